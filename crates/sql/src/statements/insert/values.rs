//! VALUES on their way into a table: each cell takes the type of its column by itself.
//!
//! DataFusion gives all cells of a column one common type. That changes values: beside the number 1, `'007'` becomes 7.
//! Beside `1e0`, the integer 9007199254740993 loses a unit. So a column whose cells are written as several kinds is
//! taken apart. Each kind has a column of its own, with NULL for the rows of the others. They are put together again
//! when each has been cast to the type of the table's column ([`Target::Sources`]).
//!
//! ```text
//! VALUES (1, 'a'),        VALUES (1,    NULL,  'a'),
//!        ('007', 'b')  ▶         (NULL, '007', 'b')
//! ```

use crate::catalog::Table;
use crate::text::parameter::placeholder;
use crate::write::coerce::Target;
use crate::write::targets::{default_expr, is_word_default};
use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{
    self, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, SetExpr, UnaryOperator,
    Value,
};
use eris_exact::types::ast_type;

/// Kinds that a column is taken apart into. More of them are expressions of many forms: they get a common type.
const MOST_KINDS: usize = 16;

/// How a cell is written, which says of which type it is.
#[derive(Clone, Debug, PartialEq)]
enum CellKind {
    Boolean,
    /// A whole number of at most 64 bits.
    Integer,
    LargeInteger,
    /// Digits behind the point.
    Decimal(usize),
    String,
    /// A type, a function or an operator with the kinds of its operands, or a whole expression.
    Other(String),
    /// Any other expression, where there are too many kinds.
    Any,
}

/// The kinds of the cells of each column; no columns if the rows come from elsewhere.
pub(super) struct CellKinds(Vec<Vec<CellKind>>);

/// Replaces DEFAULT and keeps the digits of numbers, if rows come from VALUES; which kinds of cells there are then.
pub(super) fn prepare(source: &mut ast::Query, table: &Table, columns: &[usize]) -> CellKinds {
    let SetExpr::Values(values) = source.body.as_mut() else {
        return CellKinds(Vec::new());
    };
    let rows = || values.rows.iter().map(|row| &row.content);
    if rows().any(|row| row.len() != columns.len()) {
        // An error, which names the widths.
        return CellKinds(Vec::new());
    }
    for row in &mut values.rows {
        for (cell, &column) in row.content.iter_mut().zip(columns) {
            let data_type = table.schema.field(column).data_type();
            if is_word_default(cell) {
                *cell = cast_to(default_expr(table, column), data_type);
            } else if is_fractional(data_type)
                && let Some(digits) = digits(cell).filter(|digits| is_pointed(digits))
            {
                *cell = string(digits);
            }
        }
    }
    let kinds = (0..columns.len()).map(|column| {
        let cells = values.rows.iter().map(|row| &row.content[column]);
        kinds_of(cells)
    });
    CellKinds(kinds.collect())
}

fn kinds_of<'a>(cells: impl Iterator<Item = &'a Expr>) -> Vec<CellKind> {
    let mut kinds = Vec::new();
    for kind in cells.filter_map(kind) {
        let is_other = matches!(kind, CellKind::Other(_));
        if kinds.contains(&kind) || is_other && kinds.contains(&CellKind::Any) {
            continue;
        }
        kinds.push(kind);
        if is_other && kinds.len() > MOST_KINDS {
            kinds.retain(|kind| !matches!(kind, CellKind::Other(_)));
            kinds.push(CellKind::Any);
        }
    }
    kinds
}

impl CellKinds {
    /// Columns of the rows that are taken apart.
    pub fn width(&self, columns: usize) -> usize {
        match self.0.is_empty() {
            true => columns,
            false => self.0.iter().map(|kinds| kinds.len().max(1)).sum(),
        }
    }

    /// Which of the kinds a cell is of; `None` for NULL.
    fn place(kinds: &[CellKind], cell: &Expr) -> Option<usize> {
        let kind = kind(cell)?;
        let of_kind = kinds.iter().position(|other| *other == kind);
        of_kind.or_else(|| kinds.iter().position(|other| *other == CellKind::Any))
    }

    /// Takes columns of several kinds apart.
    pub fn take_apart(&self, source: &mut ast::Query) {
        let SetExpr::Values(values) = source.body.as_mut() else {
            return;
        };
        if self.0.iter().all(|kinds| kinds.len() < 2) {
            return;
        }
        for row in &mut values.rows {
            let mut apart = Vec::with_capacity(self.0.len() + 1);
            for (cell, kinds) in std::mem::take(&mut row.content).into_iter().zip(&self.0) {
                let place = CellKinds::place(kinds, &cell).unwrap_or(0);
                let start = apart.len();
                let null = || Expr::value(Value::Null);
                apart.resize_with(start + kinds.len().max(1), null);
                apart[start + place] = cell;
            }
            row.content = apart;
        }
    }

    /// Where the columns of the table get their values when the rows are taken apart.
    pub fn retarget(&self, targets: &mut [Target]) {
        let mut starts = Vec::with_capacity(self.0.len());
        let mut width = 0;
        for kinds in &self.0 {
            starts.push(width);
            width += kinds.len().max(1);
        }
        for target in targets {
            if let Target::Source(position) = target
                && let Some(&start) = starts.get(*position)
            {
                *target = match self.0[*position].len() {
                    0 | 1 => Target::Source(start),
                    kinds => Target::Sources((start..start + kinds).collect()),
                };
            }
        }
    }

    /// Casts each cell of a column of several kinds to the type of the table's column. That is for a query which casts
    /// the whole column anyway.
    pub fn cast_apart(&self, source: &mut ast::Query, table: &Table, columns: &[usize]) {
        let SetExpr::Values(values) = source.body.as_mut() else {
            return;
        };
        for row in &mut values.rows {
            for ((cell, kinds), &column) in row.content.iter_mut().zip(&self.0).zip(columns) {
                if kinds.len() > 1 && !is_null(cell) {
                    *cell = cast_to(cell.clone(), table.schema.field(column).data_type());
                }
            }
        }
    }
}

/// `None` for NULL, which is of every kind.
fn kind(cell: &Expr) -> Option<CellKind> {
    Some(match cell {
        Expr::Nested(expr) => return kind(expr),
        Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        } => return kind(expr),
        Expr::Value(value) => match &value.value {
            Value::Null => return None,
            Value::Boolean(_) => CellKind::Boolean,
            Value::SingleQuotedString(_) => CellKind::String,
            Value::Number(digits, _) => match digits.split_once('.') {
                Some((_, fraction)) => CellKind::Decimal(fraction.len()),
                None if digits.parse::<i64>().is_ok() => CellKind::Integer,
                None => CellKind::LargeInteger,
            },
            other => CellKind::Other(other.to_string()),
        },
        Expr::TypedString(string) => CellKind::Other(string.data_type.to_string()),
        Expr::Interval(_) => CellKind::Other("INTERVAL".to_owned()),
        Expr::Cast { data_type, .. } => CellKind::Other(data_type.to_string()),
        Expr::BinaryOp { left, op, right } => {
            CellKind::Other(format!("{:?} {op} {:?}", kind(left), kind(right)))
        }
        Expr::Function(function) => CellKind::Other(match argument_kinds(function) {
            Some(kinds) => format!("{}({kinds:?})", function.name),
            None => function.to_string(),
        }),
        other => CellKind::Other(other.to_string()),
    })
}

/// The kinds of a function's arguments, if they say of which type it is.
fn argument_kinds(function: &Function) -> Option<Vec<Option<CellKind>>> {
    let FunctionArguments::List(list) = &function.args else {
        return None;
    };
    let of_argument = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(kind(expr)),
        _ => None,
    };
    list.args.iter().map(of_argument).collect()
}

/// A value on its way into a column of this type: as text if it is a number that is written out and might lose digits,
/// of the column's type if it is a parameter.
pub(crate) fn for_column(value: Expr, data_type: &DataType) -> Expr {
    if placeholder(&value).is_some() {
        return cast_to(value, data_type);
    }
    match digits(&value).filter(|_| is_fractional(data_type)) {
        Some(digits) => string(digits),
        None => value,
    }
}

/// A value as one of a column of this type.
pub(crate) fn cast_to(expr: Expr, data_type: &DataType) -> Expr {
    Expr::Cast {
        kind: ast::CastKind::Cast,
        expr: Box::new(expr),
        data_type: ast_type(data_type),
        array: false,
        format: None,
    }
}

fn is_fractional(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Decimal128(..) | DataType::Float64 | DataType::Float32
    )
}

/// Whether a number is written with a fraction or an exponent.
fn is_pointed(digits: &str) -> bool {
    digits.contains(['.', 'e', 'E'])
}

fn string(text: String) -> Expr {
    Expr::value(Value::SingleQuotedString(text))
}

/// The digits of a number that is written out, with its sign.
fn digits(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => Some(digits.clone()),
            _ => None,
        },
        // What the parser's result has for a number with an exponent.
        Expr::Cast {
            expr,
            data_type: ast::DataType::Float8,
            ..
        } => match &**expr {
            Expr::Value(value) => match &value.value {
                Value::SingleQuotedString(digits) => Some(digits.clone()),
                _ => None,
            },
            _ => None,
        },
        Expr::UnaryOp {
            op: UnaryOperator::Minus,
            expr,
        } => {
            let digits = digits(expr)?;
            (!digits.starts_with('-')).then(|| format!("-{digits}"))
        }
        _ => None,
    }
}

fn is_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Value(value) if value.value == Value::Null)
}
