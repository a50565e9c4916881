//! `coalesce`, `ifnull` and `nvl` of any type.
//!
//! **Stands for** DataFusion's functions: `coalesce` rejects a BLOB beside NULL and a date beside a string, and
//! `ifnull` takes dates for strings and a DECIMAL for a DOUBLE.

use crate::text::is_binary;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::functions::core::coalesce::CoalesceFunc;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl,
    Signature,
};
use std::sync::Arc;

/// The first of its arguments that is not NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Coalesce {
    other: CoalesceFunc,
    /// Whether it is called `ifnull` and `nvl`, and takes two arguments.
    of_two: Option<[String; 1]>,
}

impl Coalesce {
    /// `coalesce`.
    pub fn of_many() -> Self {
        Coalesce {
            other: CoalesceFunc::new(),
            of_two: None,
        }
    }

    /// `nvl`, and `ifnull`.
    pub fn of_two() -> Self {
        Coalesce {
            other: CoalesceFunc::new(),
            of_two: Some(["ifnull".to_owned()]),
        }
    }
}

impl ScalarUDFImpl for Coalesce {
    fn name(&self) -> &str {
        match self.of_two {
            None => self.other.name(),
            Some(_) => "nvl",
        }
    }

    fn aliases(&self) -> &[String] {
        self.of_two.as_ref().map_or(&[], |names| names)
    }

    fn signature(&self) -> &Signature {
        self.other.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.other.return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let mut fields = args.arg_fields.iter();
        let binary = fields.find(|field| is_binary(field.data_type()));
        let data_type = binary.map(|field| field.data_type().clone());
        let field = self.other.return_field_from_args(args)?;
        Ok(match data_type {
            Some(binary) => Arc::new(field.as_ref().clone().with_data_type(binary)),
            None => field,
        })
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.other.simplify(args, info)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.other.invoke_with_args(args)
    }

    fn conditional_arguments<'a>(
        &self,
        args: &'a [Expr],
    ) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.other.conditional_arguments(args)
    }

    fn short_circuits(&self) -> bool {
        self.other.short_circuits()
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if self.of_two.is_some() && types.len() != 2 {
            return plan_err!("{} function requires 2 arguments", self.name());
        }
        // A date becomes a timestamp of the digits that are there.
        let is_date = |of: &&DataType| **of == DataType::Date32;
        let others = types.iter().filter(|of| !of.is_null() && !is_date(of));
        if let [first @ DataType::Timestamp(..), rest @ ..] = &others.collect::<Vec<_>>()[..]
            && rest.iter().all(|of| of == first)
        {
            return Ok(vec![DataType::clone(first); types.len()]);
        }
        // Strings become what is beside them, as they do beside numbers.
        let mut others = types.iter().filter(|of| !of.is_null() && !of.is_string());
        match others.next() {
            Some(first) if !first.is_nested() && others.all(|of| of == first) => {
                let to = |of: &DataType| match of.is_string() && is_binary(first) {
                    // Not by Arrow's cast.
                    true => of.clone(),
                    false => first.clone(),
                };
                Ok(types.iter().map(to).collect())
            }
            _ => self.other.coerce_types(types),
        }
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.other.documentation()
    }
}
