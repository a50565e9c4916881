//! From DataFusion's physical expressions to the expressions of fragments: the one place that knows both.
//!
//! What has no counterpart yields `None` and stays above the fragment.

use crate::plan::parameter::PlanParameter;
use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr,
    Literal, NegativeExpr, NotExpr,
};
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use eris_exact::Replacement;
use eris_exact::scalar;
use eris_fragment::{BinaryOp, Expr, Scalar, Type, Value};
use std::sync::Arc;

/// What the columns of a physical expression stand for.
pub(crate) struct Scope<'a> {
    /// The schema that the physical expression refers to.
    pub schema: &'a Schema,
    /// Per column of that schema its expression over the table's columns; `None`: not to be had in a fragment.
    pub inputs: &'a [Option<Expr>],
    /// The types of the table's columns, and behind them of the plan's parameters.
    pub types: &'a [Type],
    /// Where the parameters begin among these.
    pub parameters: usize,
}

impl Scope<'_> {
    /// The same expression over the table's columns, with the same value for every row, and of the same type up to the
    /// form of texts.
    pub fn translate(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Expr> {
        let any = expr.as_ref();
        if let Some(column) = any.downcast_ref::<Column>() {
            self.inputs.get(column.index())?.clone()
        } else if let Some(literal) = any.downcast_ref::<Literal>() {
            scalar::to_fragment(literal.value()).map(Expr::Literal)
        } else if let Some(binary) = any.downcast_ref::<BinaryExpr>() {
            self.binary(expr, *binary.op(), binary.left(), binary.right())
        } else if let Some(function) = any.downcast_ref::<ScalarFunctionExpr>() {
            if let Some(parameter) = function.fun().inner().downcast_ref::<PlanParameter>() {
                return Some(Expr::Column(self.parameters + parameter.number));
            }
            match (Replacement::of(function.fun())?, function.args()) {
                (Replacement::FinerTimestamp, [operand]) => Some(Expr::Cast {
                    operand: self.boxed(operand)?,
                    to: Type::try_from(function.return_type()).ok()?,
                }),
                (Replacement::Arithmetic(op), [left, right]) => self.binary(expr, op, left, right),
                // Fragments compute no other NaN.
                (Replacement::OneNan, [operand]) => self.translate(operand),
                _ => None,
            }
        } else if let Some(not) = any.downcast_ref::<NotExpr>() {
            Some(Expr::Not(self.boxed(not.arg())?))
        } else if let Some(negative) = any.downcast_ref::<NegativeExpr>() {
            let operand = self.boxed(negative.arg())?;
            is_signed(&self.type_of(&operand)?).then_some(Expr::Negate(operand))
        } else if let Some(test) = any.downcast_ref::<IsNullExpr>() {
            Some(Expr::IsNull(self.boxed(test.arg())?))
        } else if let Some(test) = any.downcast_ref::<IsNotNullExpr>() {
            Some(Expr::IsNotNull(self.boxed(test.arg())?))
        } else if let Some(list) = any.downcast_ref::<InListExpr>() {
            self.in_list(list)
        } else if let Some(like) = any.downcast_ref::<LikeExpr>() {
            self.like(like)
        } else if let Some(case) = any.downcast_ref::<CaseExpr>() {
            self.case(case)
        } else if let Some(cast) = any.downcast_ref::<CastExpr>() {
            self.cast(cast)
        } else {
            None
        }
    }

    /// Like [`Scope::translate`], if the type is also the same in Arrow's terms, as an output column's has to be.
    pub fn translate_output(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Expr> {
        let translated = self.translate(expr)?;
        let same =
            DataType::from(&self.type_of(&translated)?) == expr.data_type(self.schema).ok()?;
        same.then_some(translated)
    }

    /// The type of an expression over the table's columns.
    pub fn type_of(&self, expr: &Expr) -> Option<Type> {
        expr.data_type(self.types).ok()
    }

    fn boxed(&self, expr: &Arc<dyn PhysicalExpr>) -> Option<Box<Expr>> {
        self.translate(expr).map(Box::new)
    }

    fn binary(
        &self,
        whole: &Arc<dyn PhysicalExpr>,
        op: Operator,
        left: &Arc<dyn PhysicalExpr>,
        right: &Arc<dyn PhysicalExpr>,
    ) -> Option<Expr> {
        let op = match op {
            Operator::And => BinaryOp::And,
            Operator::Or => BinaryOp::Or,
            Operator::Eq => BinaryOp::Eq,
            Operator::NotEq => BinaryOp::NotEq,
            Operator::Lt => BinaryOp::Lt,
            Operator::LtEq => BinaryOp::LtEq,
            Operator::Gt => BinaryOp::Gt,
            Operator::GtEq => BinaryOp::GtEq,
            Operator::Plus => BinaryOp::Add,
            Operator::Minus => BinaryOp::Subtract,
            Operator::Multiply => BinaryOp::Multiply,
            Operator::Divide => BinaryOp::Divide,
            Operator::Modulo => BinaryOp::Modulo,
            _ => return None,
        };
        let (left, right) = (self.boxed(left)?, self.boxed(right)?);
        let (left_type, right_type) = (self.type_of(&left)?, self.type_of(&right)?);
        let translated = Expr::Binary { op, left, right };
        let fits = if op.is_comparison() {
            left_type == right_type && left_type != Type::Interval
        } else if op.is_arithmetic() {
            left_type.is_number()
                && right_type.is_number()
                && DataType::from(&self.type_of(&translated)?)
                    == whole.data_type(self.schema).ok()?
        } else {
            left_type == Type::Boolean && right_type == Type::Boolean
        };
        fits.then_some(translated)
    }

    fn in_list(&self, list: &InListExpr) -> Option<Expr> {
        let operand = self.boxed(list.expr())?;
        let operand_type = self.type_of(&operand)?;
        let values = list
            .list()
            .iter()
            .map(constant)
            .collect::<Option<Vec<_>>>()?;
        let fits = values
            .iter()
            .all(|value| value.data_type == operand_type || value.is_null());
        fits.then(|| Expr::InList {
            operand,
            list: typed(values, &operand_type),
            negated: list.negated(),
        })
    }

    fn like(&self, like: &LikeExpr) -> Option<Expr> {
        let operand = self.boxed(like.expr())?;
        let Value::String(pattern) = constant(like.pattern())?.value else {
            return None;
        };
        (self.type_of(&operand)? == Type::String).then(|| Expr::Like {
            operand,
            pattern,
            negated: like.negated(),
            case_insensitive: like.case_insensitive(),
        })
    }

    fn case(&self, case: &CaseExpr) -> Option<Expr> {
        let base = case.expr().map(|base| self.boxed(base));
        let branches = case.when_then_expr().iter().map(|(when, then)| {
            let when = self.translate(when)?;
            let condition = match &base {
                None => when,
                Some(base) => {
                    let base = base.clone()?;
                    if self.type_of(&base)? != self.type_of(&when)? {
                        return None;
                    }
                    Expr::Binary {
                        op: BinaryOp::Eq,
                        left: base,
                        right: Box::new(when),
                    }
                }
            };
            Some((condition, self.translate(then)?))
        });
        let branches = branches.collect::<Option<Vec<_>>>()?;
        let otherwise = match case.else_expr() {
            Some(otherwise) => Some(self.boxed(otherwise)?),
            None => None,
        };
        let result = self.type_of(&branches.first()?.1)?;
        let mut results = branches
            .iter()
            .map(|(_, then)| then)
            .chain(otherwise.as_deref());
        let same = results.all(|expr| self.type_of(expr).as_ref() == Some(&result));
        same.then_some(Expr::Case {
            branches,
            otherwise,
        })
    }

    fn cast(&self, cast: &CastExpr) -> Option<Expr> {
        let to = Type::try_from(cast.cast_type()).ok()?;
        // A fragment's cast rounds by itself.
        let rounding = cast.expr().downcast_ref::<ScalarFunctionExpr>();
        let rounding = rounding
            .filter(|function| Replacement::of(function.fun()) == Some(Replacement::RoundHalfEven));
        let operand = self.boxed(rounding.map_or(cast.expr(), |function| &function.args()[0]))?;
        (!cast.cast_options().safe).then_some(Expr::Cast { operand, to })
    }
}

/// The value of a literal.
pub(crate) fn constant(expr: &Arc<dyn PhysicalExpr>) -> Option<Scalar> {
    scalar::to_fragment(expr.downcast_ref::<Literal>()?.value())
}

/// NULLs in a list of constants may be untyped.
fn typed(values: Vec<Scalar>, data_type: &Type) -> Vec<Scalar> {
    let typed = |value: Scalar| Scalar {
        data_type: data_type.clone(),
        ..value
    };
    values.into_iter().map(typed).collect()
}

fn is_signed(data_type: &Type) -> bool {
    use Type::{UInt8, UInt16, UInt32, UInt64};
    data_type.is_number() && !matches!(data_type, UInt8 | UInt16 | UInt32 | UInt64)
}

/// Whether the values of a column of this type are integers to a fragment's key sets, and all of them fit 64 bits.
pub(crate) fn is_key(data_type: &Type) -> bool {
    match data_type {
        Type::Boolean | Type::UInt64 | Type::Float32 | Type::Float64 | Type::String => false,
        Type::Blob | Type::Uuid | Type::Interval => false,
        Type::Decimal { precision, .. } => *precision <= 18,
        _ => true,
    }
}

/// An expression in words, with the columns' names.
pub(crate) struct Named<'a> {
    pub expr: &'a Expr,
    pub schema: &'a Schema,
}

impl std::fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let named = |expr| Named {
            expr,
            schema: self.schema,
        };
        match self.expr {
            Expr::Column(position) => match position.checked_sub(self.schema.fields().len()) {
                None => f.write_str(self.schema.field(*position).name()),
                Some(parameter) => write!(f, "${}", parameter + 1),
            },
            Expr::Literal(scalar) if scalar.data_type == Type::Date => {
                match scalar::to_datafusion(scalar) {
                    Some(value) if !value.is_null() => write!(f, "'{value}'"),
                    _ => f.write_str("NULL"),
                }
            }
            Expr::Literal(scalar) => write!(f, "{scalar}"),
            Expr::Binary {
                op: op @ (BinaryOp::And | BinaryOp::Or),
                left,
                right,
            } => {
                write!(f, "({} {} {})", named(left), op.symbol(), named(right))
            }
            Expr::Binary { op, left, right } if op.is_arithmetic() => {
                write!(f, "({} {} {})", named(left), op.symbol(), named(right))
            }
            Expr::Binary { op, left, right } => {
                write!(f, "{} {} {}", named(left), op.symbol(), named(right))
            }
            Expr::Not(operand) => write!(f, "NOT {}", named(operand)),
            Expr::Negate(operand) => write!(f, "-{}", named(operand)),
            Expr::IsNull(operand) => write!(f, "{} IS NULL", named(operand)),
            Expr::IsNotNull(operand) => write!(f, "{} IS NOT NULL", named(operand)),
            Expr::InList {
                operand,
                list,
                negated,
            } => {
                let not = if *negated { " NOT" } else { "" };
                write!(f, "{}{not} IN (", named(operand))?;
                for (position, value) in list.iter().take(SHOWN).enumerate() {
                    let comma = if position == 0 { "" } else { ", " };
                    write!(f, "{comma}{value}")?;
                }
                match list.len().checked_sub(SHOWN) {
                    Some(more @ 1..) => write!(f, ", … {more} more)"),
                    _ => f.write_str(")"),
                }
            }
            Expr::Like {
                operand,
                pattern,
                negated,
                case_insensitive,
            } => {
                let not = if *negated { "NOT " } else { "" };
                let like = if *case_insensitive { "ILIKE" } else { "LIKE" };
                write!(
                    f,
                    "{} {not}{like} '{}'",
                    named(operand),
                    pattern.replace('\'', "''")
                )
            }
            Expr::Case {
                branches,
                otherwise,
            } => {
                f.write_str("CASE")?;
                for (condition, then) in branches {
                    write!(f, " WHEN {} THEN {}", named(condition), named(then))?;
                }
                if let Some(otherwise) = otherwise {
                    write!(f, " ELSE {}", named(otherwise))?;
                }
                f.write_str(" END")
            }
            Expr::Cast { operand, to } => {
                let name = eris_exact::types::sql_name(&DataType::from(to), None);
                write!(f, "CAST({} AS {name})", named(operand))
            }
        }
    }
}

/// Constants of a list that are shown.
const SHOWN: usize = 10;
