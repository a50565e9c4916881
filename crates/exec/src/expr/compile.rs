//! From the fragment's expressions to nodes that can be evaluated: types checked, constants made, messages prepared.

use super::in_list::Members;
use super::literal::literal;
use super::pattern::Pattern;
use crate::columns::FragmentColumns;

use arrow_array::ArrayRef;
use arrow_schema::DataType;
use eris_fragment::{BinaryOp, Expr, FragmentError, Type};
use std::sync::Arc;

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct Expression {
    pub(crate) node: ExpressionNode,
    /// The columns it reads, ascending.
    pub(crate) columns: Vec<usize>,
    pub(crate) data_type: DataType,
    /// Whether no value makes it fail.
    pub(crate) infallible: bool,
}

/// One operator.
#[derive(Debug)]
pub(crate) enum ExpressionNode {
    Column(usize),
    /// One row.
    Literal(ArrayRef),
    Arithmetic {
        op: BinaryOp,
        left: Box<ExpressionNode>,
        right: Box<ExpressionNode>,
        text: Arc<str>,
    },
    Compare {
        op: BinaryOp,
        left: Box<ExpressionNode>,
        right: Box<ExpressionNode>,
    },
    /// AND or OR. `guarded`: the right side may fail, so it sees only the rows that the left side leaves open.
    Logic {
        and: bool,
        left: Box<ExpressionNode>,
        right: Box<Expression>,
        guarded: bool,
    },
    Not(Box<ExpressionNode>),
    Negate(Box<ExpressionNode>, Arc<str>),
    IsNull(Box<ExpressionNode>),
    IsNotNull(Box<ExpressionNode>),
    InList {
        operand: Box<ExpressionNode>,
        members: Members,
        negated: bool,
    },
    Like {
        operand: Box<ExpressionNode>,
        pattern: Pattern,
        negated: bool,
        text: Arc<str>,
    },
    Case {
        branches: Vec<(Expression, Expression)>,
        otherwise: Option<Box<Expression>>,
        data_type: DataType,
    },
    Cast {
        operand: Box<ExpressionNode>,
        to: DataType,
        text: Arc<str>,
    },
}

fn malformed<T>(reason: &'static str) -> Result<T, FragmentError> {
    Err(FragmentError::Malformed { reason })
}

impl Expression {
    pub(crate) fn compile(expr: &Expr, columns: &FragmentColumns) -> Result<Self, FragmentError> {
        let mut compiler = Compiler {
            columns,
            infallible: true,
        };
        let node = compiler.node(expr)?;
        Ok(Expression {
            node,
            columns: columns_of(expr),
            data_type: (&expr.data_type(&columns.types)?).into(),
            infallible: compiler.infallible,
        })
    }

    /// Compiles a condition.
    pub(crate) fn condition(expr: &Expr, columns: &FragmentColumns) -> Result<Self, FragmentError> {
        let expression = Self::compile(expr, columns)?;
        match expression.data_type {
            DataType::Boolean => Ok(expression),
            _ => malformed("a condition that is not BOOLEAN"),
        }
    }

    /// The column it is, if it is nothing else.
    pub(crate) fn as_column(&self) -> Option<usize> {
        match self.node {
            ExpressionNode::Column(column) => Some(column),
            _ => None,
        }
    }
}

/// The columns of an expression, ascending, each once.
pub(crate) fn columns_of(expr: &Expr) -> Vec<usize> {
    let mut columns = Vec::new();
    expr.for_each_column(&mut |column| columns.push(column));
    columns.sort_unstable();
    columns.dedup();
    columns
}

struct Compiler<'a> {
    columns: &'a FragmentColumns,
    infallible: bool,
}

impl Compiler<'_> {
    fn type_of(&self, expr: &Expr) -> Result<Type, FragmentError> {
        expr.data_type(&self.columns.types)
    }

    fn text(&self, expr: &Expr) -> Arc<str> {
        let name = |position| self.columns.name(position);
        expr.named(&name).to_string().into()
    }

    fn boxed(&mut self, expr: &Expr) -> Result<Box<ExpressionNode>, FragmentError> {
        self.node(expr).map(Box::new)
    }

    fn boolean(&mut self, expr: &Expr) -> Result<Box<ExpressionNode>, FragmentError> {
        match self.type_of(expr)? {
            Type::Boolean => self.boxed(expr),
            _ => malformed("AND, OR or NOT of something that is not BOOLEAN"),
        }
    }

    /// A part that is evaluated on rows of its own.
    fn part(&mut self, expr: &Expr) -> Result<Expression, FragmentError> {
        let part = Expression::compile(expr, self.columns)?;
        self.infallible &= part.infallible;
        Ok(part)
    }

    fn node(&mut self, expr: &Expr) -> Result<ExpressionNode, FragmentError> {
        Ok(match expr {
            Expr::Column(position) => {
                self.type_of(expr)?;
                ExpressionNode::Column(*position)
            }
            Expr::Literal(scalar) => ExpressionNode::Literal(literal(scalar)?),
            Expr::Binary { op, left, right } if op.is_arithmetic() => {
                self.arithmetic(expr, *op, left, right)?
            }
            Expr::Binary { op, left, right } if op.is_comparison() => {
                let of_left = self.type_of(left)?;
                if of_left != self.type_of(right)? {
                    return malformed("a comparison of different types");
                }
                if of_left == Type::Interval {
                    return malformed("a comparison of intervals");
                }
                ExpressionNode::Compare {
                    op: *op,
                    left: self.boxed(left)?,
                    right: self.boxed(right)?,
                }
            }
            Expr::Binary { op, left, right } => self.logic(*op, left, right)?,
            Expr::Not(operand) => ExpressionNode::Not(self.boolean(operand)?),
            Expr::Negate(operand) => self.negation(expr, operand)?,
            Expr::IsNull(operand) => ExpressionNode::IsNull(self.boxed(operand)?),
            Expr::IsNotNull(operand) => ExpressionNode::IsNotNull(self.boxed(operand)?),
            Expr::InList {
                operand,
                list,
                negated,
            } => ExpressionNode::InList {
                members: Members::new(list, &self.type_of(operand)?)?,
                operand: self.boxed(operand)?,
                negated: *negated,
            },
            Expr::Like {
                operand,
                pattern,
                negated,
                case_insensitive,
            } => {
                if self.type_of(operand)? != Type::String {
                    return malformed("LIKE on something that is not VARCHAR");
                }
                ExpressionNode::Like {
                    operand: self.boxed(operand)?,
                    pattern: Pattern::new(pattern, *case_insensitive),
                    negated: *negated,
                    text: self.text(expr),
                }
            }
            Expr::Case {
                branches,
                otherwise,
            } => self.case(expr, branches, otherwise.as_deref())?,
            Expr::Cast { operand, to } => {
                let from = self.type_of(operand)?;
                self.infallible &= crate::bounds::lossless_factor(&from, to).is_some();
                ExpressionNode::Cast {
                    operand: self.boxed(operand)?,
                    to: to.into(),
                    text: self.text(expr),
                }
            }
        })
    }

    fn arithmetic(
        &mut self,
        expr: &Expr,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
    ) -> Result<ExpressionNode, FragmentError> {
        let (l, r) = (self.type_of(left)?, self.type_of(right)?);
        if !l.is_number() || !r.is_number() {
            return malformed("arithmetic on something that is no number");
        }
        self.type_of(expr)?;
        self.infallible &= matches!(l, Type::Float32 | Type::Float64);
        Ok(ExpressionNode::Arithmetic {
            op,
            left: self.boxed(left)?,
            right: self.boxed(right)?,
            text: self.text(expr),
        })
    }

    fn logic(
        &mut self,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
    ) -> Result<ExpressionNode, FragmentError> {
        let left = self.boolean(left)?;
        if self.type_of(right)? != Type::Boolean {
            return malformed("AND or OR of something that is not BOOLEAN");
        }
        let right = self.part(right)?;
        Ok(ExpressionNode::Logic {
            and: op == BinaryOp::And,
            left,
            guarded: !right.infallible,
            right: Box::new(right),
        })
    }

    fn negation(&mut self, expr: &Expr, operand: &Expr) -> Result<ExpressionNode, FragmentError> {
        let data_type = self.type_of(operand)?;
        self.infallible &= matches!(data_type, Type::Float32 | Type::Float64);
        match data_type {
            Type::UInt8 | Type::UInt16 | Type::UInt32 | Type::UInt64 => {
                malformed("negation of an unsigned number")
            }
            _ if !data_type.is_number() => malformed("negation of something that is no number"),
            _ => Ok(ExpressionNode::Negate(
                self.boxed(operand)?,
                self.text(expr),
            )),
        }
    }

    fn case(
        &mut self,
        expr: &Expr,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
    ) -> Result<ExpressionNode, FragmentError> {
        let data_type = self.type_of(expr)?;
        let results = branches.iter().map(|(_, then)| then);
        for result in results.chain(otherwise) {
            if self.type_of(result)? != data_type {
                return malformed("CASE with results of different types");
            }
        }
        let mut compiled = Vec::with_capacity(branches.len());
        for (condition, then) in branches {
            if self.type_of(condition)? != Type::Boolean {
                return malformed("CASE with a condition that is not BOOLEAN");
            }
            compiled.push((self.part(condition)?, self.part(then)?));
        }
        let otherwise = otherwise.map(|expr| self.part(expr));
        Ok(ExpressionNode::Case {
            branches: compiled,
            otherwise: otherwise.transpose()?.map(Box::new),
            data_type: (&data_type).into(),
        })
    }
}
