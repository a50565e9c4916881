//! The small expression language of fragments. Operands already have the types that their operator needs: whoever
//! builds an expression puts in the casts.

use crate::{FragmentError, Scalar, Type};
use serde::{Deserialize, Serialize};
use std::fmt;

/// An expression over one row, with SQL's three-valued logic. A NaN that it computes is the positive quiet one without
/// a payload, whatever the processor makes: it is equal to itself, and greater than any number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Expr {
    /// A position in [`Fragment::columns`](crate::Fragment::columns).
    Column(usize),
    /// A constant.
    Literal(Scalar),
    /// `left op right`
    Binary {
        /// The operator.
        op: BinaryOp,
        /// The left operand.
        left: Box<Expr>,
        /// The right operand.
        right: Box<Expr>,
    },
    /// `NOT operand`
    Not(Box<Expr>),
    /// `-operand`
    Negate(Box<Expr>),
    /// `operand IS NULL`
    IsNull(Box<Expr>),
    /// `operand IS NOT NULL`
    IsNotNull(Box<Expr>),
    /// `operand [NOT] IN (list)`
    InList {
        /// What is looked up.
        operand: Box<Expr>,
        /// Constants of the operand's type; a NULL among them has SQL's meaning.
        list: Vec<Scalar>,
        /// NOT IN
        negated: bool,
    },
    /// `operand [NOT] [I]LIKE pattern`, `\` escapes
    Like {
        /// The text.
        operand: Box<Expr>,
        /// `%` any text, `_` any character.
        pattern: String,
        /// NOT LIKE
        negated: bool,
        /// ILIKE
        case_insensitive: bool,
    },
    /// `CASE WHEN … THEN … ELSE … END`
    Case {
        /// Condition and result, the first true condition counts.
        branches: Vec<(Expr, Expr)>,
        /// ELSE; NULL without.
        otherwise: Option<Box<Expr>>,
    },
    /// `CAST(operand AS to)`, an error where the value does not fit
    Cast {
        /// The value.
        operand: Box<Expr>,
        /// The target type.
        to: Type,
    },
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BinaryOp {
    /// AND
    And,
    /// OR
    Or,
    /// =
    Eq,
    /// <>
    NotEq,
    /// <
    Lt,
    /// <=
    LtEq,
    /// \>
    Gt,
    /// \>=
    GtEq,
    /// +, an error on overflow
    Add,
    /// -, an error on overflow
    Subtract,
    /// *, an error on overflow
    Multiply,
    /// /, an error on division of an integer or decimal by zero
    Divide,
    /// %
    Modulo,
}

impl BinaryOp {
    /// The operator of a comparison with its operands exchanged; another one is itself.
    pub fn mirrored(self) -> BinaryOp {
        match self {
            BinaryOp::Lt => BinaryOp::Gt,
            BinaryOp::LtEq => BinaryOp::GtEq,
            BinaryOp::Gt => BinaryOp::Lt,
            BinaryOp::GtEq => BinaryOp::LtEq,
            other => other,
        }
    }

    /// Whether it yields a BOOLEAN.
    pub fn is_predicate(self) -> bool {
        !self.is_arithmetic()
    }

    /// Whether it is one of `+ - * / %`.
    pub fn is_arithmetic(self) -> bool {
        use BinaryOp::*;
        matches!(self, Add | Subtract | Multiply | Divide | Modulo)
    }

    /// Whether it is one of `= <> < <= > >=`.
    pub fn is_comparison(self) -> bool {
        use BinaryOp::*;
        matches!(self, Eq | NotEq | Lt | LtEq | Gt | GtEq)
    }

    /// The SQL spelling.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::And => "AND",
            BinaryOp::Or => "OR",
            BinaryOp::Eq => "=",
            BinaryOp::NotEq => "<>",
            BinaryOp::Lt => "<",
            BinaryOp::LtEq => "<=",
            BinaryOp::Gt => ">",
            BinaryOp::GtEq => ">=",
            BinaryOp::Add => "+",
            BinaryOp::Subtract => "-",
            BinaryOp::Multiply => "*",
            BinaryOp::Divide => "/",
            BinaryOp::Modulo => "%",
        }
    }
}

impl Expr {
    /// The expression's type, given the types of the fragment's columns.
    pub fn data_type(&self, inputs: &[Type]) -> Result<Type, FragmentError> {
        match self {
            Expr::Column(position) => {
                inputs
                    .get(*position)
                    .cloned()
                    .ok_or(FragmentError::Malformed {
                        reason: "an expression names a column that the fragment does not read",
                    })
            }
            Expr::Literal(scalar) => Ok(scalar.data_type.clone()),
            Expr::Binary { op, left, right } if op.is_arithmetic() => {
                arithmetic_type(*op, &left.data_type(inputs)?, &right.data_type(inputs)?)
            }
            Expr::Binary { .. }
            | Expr::Not(_)
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::InList { .. }
            | Expr::Like { .. } => Ok(Type::Boolean),
            Expr::Negate(operand) => operand.data_type(inputs),
            Expr::Case {
                branches,
                otherwise,
            } => match (branches.first(), otherwise) {
                (Some((_, then)), _) => then.data_type(inputs),
                (None, Some(otherwise)) => otherwise.data_type(inputs),
                (None, None) => Err(FragmentError::Malformed {
                    reason: "CASE without branches",
                }),
            },
            Expr::Cast { to, .. } => Ok(to.clone()),
        }
    }

    /// Calls `visit` with every column position that occurs, in order of occurrence.
    pub fn for_each_column(&self, visit: &mut impl FnMut(usize)) {
        match self {
            Expr::Column(position) => visit(*position),
            Expr::Literal(_) => {}
            Expr::Binary { left, right, .. } => {
                left.for_each_column(visit);
                right.for_each_column(visit);
            }
            Expr::Not(operand)
            | Expr::Negate(operand)
            | Expr::IsNull(operand)
            | Expr::IsNotNull(operand)
            | Expr::InList { operand, .. }
            | Expr::Like { operand, .. }
            | Expr::Cast { operand, .. } => operand.for_each_column(visit),
            Expr::Case {
                branches,
                otherwise,
            } => {
                for (condition, then) in branches {
                    condition.for_each_column(visit);
                    then.for_each_column(visit);
                }
                if let Some(otherwise) = otherwise {
                    otherwise.for_each_column(visit);
                }
            }
        }
    }
}

/// The result type of arithmetic: the operands' common type, except for decimals, whose precision and scale grow by
/// the rules of Arrow's decimal kernels (those of Hive and SQL Server).
fn arithmetic_type(op: BinaryOp, left: &Type, right: &Type) -> Result<Type, FragmentError> {
    let (
        Type::Decimal {
            precision: p1,
            scale: s1,
        },
        Type::Decimal {
            precision: p2,
            scale: s2,
        },
    ) = (left, right)
    else {
        return if left == right {
            Ok(left.clone())
        } else {
            Err(FragmentError::Malformed {
                reason: "arithmetic on operands of different types",
            })
        };
    };
    let (p1, s1, p2, s2) = (*p1 as i16, *s1 as i16, *p2 as i16, *s2 as i16);
    let (precision, scale) = match op {
        BinaryOp::Multiply => (p1 + p2 + 1, s1 + s2),
        BinaryOp::Divide => {
            let scale = (s1 + 4).min(38);
            (p1 - s1 + s2 + scale, scale)
        }
        BinaryOp::Modulo => ((p1 - s1).min(p2 - s2) + s1.max(s2), s1.max(s2)),
        _ => (s1.max(s2) + (p1 - s1).max(p2 - s2) + 1, s1.max(s2)),
    };
    Ok(Type::Decimal {
        precision: precision.min(38) as u8,
        scale: scale as i8,
    })
}

impl Expr {
    /// The expression in SQL's spelling, for messages and plans, with the columns called by `name`.
    pub fn named<'a>(&'a self, name: &'a dyn Fn(usize) -> String) -> impl fmt::Display + 'a {
        Named { expr: self, name }
    }
}

impl fmt::Display for Expr {
    /// Like [`Expr::named`], with columns called by their position: `#0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.named(&|position| format!("#{position}")))
    }
}

struct Named<'a> {
    expr: &'a Expr,
    name: &'a dyn Fn(usize) -> String,
}

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name;
        let named = |expr| Named { expr, name };
        match self.expr {
            Expr::Column(position) => f.write_str(&name(*position)),
            Expr::Literal(scalar) => write!(f, "{scalar}"),
            Expr::Binary { op, left, right } => {
                write!(f, "({} {} {})", named(left), op.symbol(), named(right))
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
                let not = if *negated { "NOT " } else { "" };
                write!(f, "{} {not}IN (", named(operand))?;
                for (position, scalar) in list.iter().enumerate() {
                    let comma = if position == 0 { "" } else { ", " };
                    write!(f, "{comma}{scalar}")?;
                }
                f.write_str(")")
            }
            Expr::Like {
                operand,
                pattern,
                negated,
                case_insensitive,
            } => {
                let not = if *negated { "NOT " } else { "" };
                let like = if *case_insensitive { "ILIKE" } else { "LIKE" };
                let pattern = pattern.replace('\'', "''");
                write!(f, "{} {not}{like} '{pattern}'", named(operand))
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
            Expr::Cast { operand, to } => write!(f, "CAST({} AS {to})", named(operand)),
        }
    }
}
