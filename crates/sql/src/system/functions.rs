//! Functions about the database itself: `version()`, `current_schema()`, `current_setting('name')`, `typeof(value)` …

pub(crate) mod sequence;

use crate::catalog::CATALOG;
use crate::context::StatementContext;
use crate::error::SqlError;
use crate::settings::find;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::execution::context::SessionState;
use datafusion::logical_expr::registry::FunctionRegistry;
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignature, Volatility,
};
use eris_exact::types::sql_name;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// The version, as `version()` says it.
pub(crate) const VERSION: &str = concat!("Eris ", env!("CARGO_PKG_VERSION"));

/// Adds the functions that are the same for everybody.
pub(crate) fn register(state: &mut SessionState) -> Result<()> {
    for function in [
        Constant::new("version", VERSION),
        Constant::new("current_database", CATALOG),
    ] {
        state.register_udf(Arc::new(ScalarUDF::from(function)))?;
    }
    state.register_udf(Arc::new(ScalarUDF::from(TypeOf::default())))?;
    for function in sequence::without() {
        state.register_udf(Arc::new(function))?;
    }
    Ok(())
}

/// A state that knows functions and the session's variables, but no tables.
pub(crate) fn session_state(context: &StatementContext) -> SessionState {
    let mut state = SessionState::clone(context.state());
    register_for(context, &mut state);
    if *context.variables() != context.default_variables() {
        context.variables().apply(state.config_mut());
    }
    state.mark_start_execution();
    state
}

/// Adds the functions that depend on the session.
fn register_for(context: &StatementContext, state: &mut SessionState) {
    let schema = Constant::new("current_schema", &context.variables().schema);
    let setting = CurrentSetting::new(context.clone());
    let functions = [ScalarUDF::from(schema), ScalarUDF::from(setting)];
    // Most databases have none.
    let has_sequences = context.catalog.contents().sequences().next().is_some();
    let of_sequences = has_sequences.then(|| sequence::of(context));
    for function in functions
        .into_iter()
        .chain(of_sequences.into_iter().flatten())
    {
        let registered = state.register_udf(Arc::new(function));
        registered.expect("what has this name already is replaced");
    }
}

/// A function for `eris.functions`.
pub(crate) struct FunctionRow {
    pub name: String,
    /// `scalar`, `aggregate`, `window` or `table`.
    pub kind: &'static str,
    /// Such as `abs(numeric_expression)`.
    pub usage: Option<String>,
}

/// All functions under all their names, in order.
pub(crate) fn list(state: &SessionState) -> Vec<FunctionRow> {
    fn usage(documentation: Option<&Documentation>) -> Option<String> {
        documentation.map(|documentation| documentation.syntax_example.clone())
    }
    let row = |name: &String, kind, usage| FunctionRow {
        name: name.clone(),
        kind,
        usage,
    };
    let scalar = state.scalar_functions().iter();
    let scalar = scalar.map(|(name, it)| row(name, "scalar", usage(it.documentation())));
    let aggregate = state.aggregate_functions().iter();
    let aggregate = aggregate.map(|(name, it)| row(name, "aggregate", usage(it.documentation())));
    let window = state.window_functions().iter();
    let window = window.map(|(name, it)| row(name, "window", usage(it.documentation())));
    let table = state.table_functions().keys();
    let table = table.map(|name| row(name, "table", None));
    let mut all: Vec<_> = scalar.chain(aggregate).chain(window).chain(table).collect();
    all.sort_by(|a, b| (&a.name, a.kind).cmp(&(&b.name, b.kind)));
    all
}

fn text(text: impl Into<String>) -> ColumnarValue {
    ColumnarValue::Scalar(ScalarValue::Utf8(Some(text.into())))
}

/// A function without arguments that always says the same.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Constant {
    name: &'static str,
    value: String,
    signature: Signature,
}

impl Constant {
    fn new(name: &'static str, value: &str) -> Self {
        Constant {
            name,
            value: value.to_owned(),
            signature: Signature::nullary(Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for Constant {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(text(self.value.as_str()))
    }
}

/// `typeof(value)`: SQL's name of the type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TypeOf {
    aliases: Vec<String>,
    signature: Signature,
}

impl Default for TypeOf {
    fn default() -> Self {
        TypeOf {
            aliases: vec!["pg_typeof".to_owned()],
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for TypeOf {
    fn name(&self) -> &str {
        "typeof"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn is_strict(&self) -> bool {
        // NULL has a type, too.
        false
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Ok(text(sql_name(args.arg_fields[0].data_type(), None)))
    }
}

/// `current_setting('name' [, missing_ok])`.
#[derive(Debug)]
struct CurrentSetting {
    context: StatementContext,
    signature: Signature,
}

impl CurrentSetting {
    fn new(context: StatementContext) -> Self {
        let arguments = vec![
            TypeSignature::Exact(vec![DataType::Utf8]),
            TypeSignature::Exact(vec![DataType::Utf8, DataType::Boolean]),
        ];
        CurrentSetting {
            context,
            signature: Signature::one_of(arguments, Volatility::Stable),
        }
    }
}

/// Two are the same if they read the same session's settings.
impl PartialEq for CurrentSetting {
    fn eq(&self, other: &Self) -> bool {
        self.context.session.id == other.context.session.id
    }
}

impl Eq for CurrentSetting {}

impl Hash for CurrentSetting {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.context.session.id.hash(state);
    }
}

impl ScalarUDFImpl for CurrentSetting {
    fn name(&self) -> &str {
        "current_setting"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let missing_ok = match args.args.get(1) {
            Some(ColumnarValue::Scalar(ScalarValue::Boolean(value))) => *value == Some(true),
            _ => false,
        };
        let value = |name: &str| match find(name) {
            Ok(setting) => Ok(Some(setting.value(&self.context))),
            Err(_) if missing_ok => Ok(None),
            Err(error) => Err(error.into_datafusion()),
        };
        match &args.args[0] {
            ColumnarValue::Scalar(ScalarValue::Utf8(name)) => {
                let value = name.as_deref().map(value).transpose()?.flatten();
                Ok(ColumnarValue::Scalar(ScalarValue::Utf8(value)))
            }
            _ => Err(SqlError::not_supported("current_setting of a column").into_datafusion()),
        }
    }
}
