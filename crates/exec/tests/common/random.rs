//! Random well-formed expressions and fragments.

use super::Rng;
use super::table::{SNAPSHOT, array_of, columns, value_of};
use arrow_array::RecordBatch;
use arrow_schema::DataType;
use eris_fragment::*;
use eris_types::{ColumnId, ObjectId};

pub struct Generator<'a> {
    pub rng: &'a mut Rng,
    /// The types of the fragment's columns.
    pub types: Vec<Type>,
}

fn boxed(expr: Expr) -> Box<Expr> {
    Box::new(expr)
}

pub fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::Binary {
        op,
        left: boxed(left),
        right: boxed(right),
    }
}

fn cast(operand: Expr, to: Type) -> Expr {
    Expr::Cast {
        operand: boxed(operand),
        to,
    }
}

const COMPARISONS: [BinaryOp; 6] = [
    BinaryOp::Eq,
    BinaryOp::NotEq,
    BinaryOp::Lt,
    BinaryOp::LtEq,
    BinaryOp::Gt,
    BinaryOp::GtEq,
];

const ARITHMETIC: [BinaryOp; 5] = [
    BinaryOp::Add,
    BinaryOp::Subtract,
    BinaryOp::Multiply,
    BinaryOp::Divide,
    BinaryOp::Modulo,
];

impl Generator<'_> {
    pub fn literal(&mut self, data_type: &Type) -> Scalar {
        let value = match self.rng.one_in(12) {
            true => Value::Null,
            false => value_of(&DataType::from(data_type), self.rng),
        };
        Scalar {
            data_type: data_type.clone(),
            value,
        }
    }

    fn any_type(&mut self) -> Type {
        let number = self.rng.below(self.types.len());
        self.types[number].clone()
    }

    fn column_of(&mut self, data_type: &Type) -> Option<Expr> {
        let fitting: Vec<usize> = (0..self.types.len())
            .filter(|&column| self.types[column] == *data_type)
            .collect();
        match fitting.is_empty() {
            true => None,
            false => Some(Expr::Column(*self.rng.pick(&fitting))),
        }
    }

    pub fn condition(&mut self, depth: usize) -> Expr {
        let kind = if depth == 0 {
            self.rng.below(8)
        } else {
            self.rng.below(13)
        };
        match kind {
            0..4 => {
                let data_type = self.any_type();
                let op = *self.rng.pick(&COMPARISONS);
                let column = self.value(&data_type, depth.saturating_sub(1));
                let other = match self.rng.one_in(4) {
                    true => self.value(&data_type, depth.saturating_sub(1)),
                    false => Expr::Literal(self.literal(&data_type)),
                };
                match self.rng.one_in(4) {
                    true => binary(op, other, column),
                    false => binary(op, column, other),
                }
            }
            4 => {
                let data_type = self.any_type();
                let length = 1 + self.rng.below(6);
                Expr::InList {
                    operand: boxed(self.value(&data_type, depth.saturating_sub(1))),
                    list: (0..length).map(|_| self.literal(&data_type)).collect(),
                    negated: self.rng.one_in(2),
                }
            }
            5 => {
                let patterns = [
                    "a%",
                    "%b%",
                    "_b_",
                    "b\\%",
                    "%",
                    "A%c",
                    "",
                    "%long%in line",
                    "12",
                ];
                Expr::Like {
                    operand: boxed(self.value(&Type::String, depth.saturating_sub(1))),
                    pattern: self.rng.pick(&patterns).to_string(),
                    negated: self.rng.one_in(2),
                    case_insensitive: self.rng.one_in(2),
                }
            }
            6 => {
                let data_type = self.any_type();
                let operand = boxed(self.value(&data_type, depth.saturating_sub(1)));
                match self.rng.one_in(2) {
                    true => Expr::IsNull(operand),
                    false => Expr::IsNotNull(operand),
                }
            }
            7 => self.value(&Type::Boolean, depth.saturating_sub(1)),
            8 => Expr::Not(boxed(self.condition(depth - 1))),
            9 => Expr::IsNull(boxed(self.condition(depth - 1))),
            10 => {
                let conditions = (self.condition(depth - 1), self.condition(depth - 1));
                binary(BinaryOp::And, conditions.0, conditions.1)
            }
            _ => {
                let conditions = (self.condition(depth - 1), self.condition(depth - 1));
                binary(BinaryOp::Or, conditions.0, conditions.1)
            }
        }
    }

    pub fn value(&mut self, data_type: &Type, depth: usize) -> Expr {
        if depth == 0 || self.rng.one_in(2) {
            return match self.column_of(data_type) {
                Some(column) if !self.rng.one_in(8) => column,
                _ => Expr::Literal(self.literal(data_type)),
            };
        }
        match self.rng.below(4) {
            0 => {
                let branches = 1 + self.rng.below(2);
                Expr::Case {
                    branches: (0..branches)
                        .map(|_| (self.condition(depth - 1), self.value(data_type, depth - 1)))
                        .collect(),
                    otherwise: match self.rng.one_in(2) {
                        true => Some(boxed(self.value(data_type, depth - 1))),
                        false => None,
                    },
                }
            }
            1 => self.cast_to(data_type, depth - 1),
            _ => self.arithmetic(data_type, depth - 1),
        }
    }

    fn arithmetic(&mut self, data_type: &Type, depth: usize) -> Expr {
        let op = *self.rng.pick(&ARITHMETIC);
        match data_type {
            Type::Boolean => self.condition(depth),
            Type::String | Type::Date | Type::Timestamp { .. } => self.value(data_type, depth),
            Type::Decimal { .. } => {
                let price = Type::Decimal {
                    precision: 10,
                    scale: 2,
                };
                let other = self.rng.pick(&[price.clone(), data_type.clone()]).clone();
                let pair = (self.value(&price, depth), self.value(&other, depth));
                cast(binary(op, pair.0, pair.1), data_type.clone())
            }
            Type::UInt8 | Type::UInt16 | Type::UInt32 | Type::UInt64 => {
                let pair = (self.value(data_type, depth), self.value(data_type, depth));
                binary(op, pair.0, pair.1)
            }
            _ if self.rng.one_in(5) => Expr::Negate(boxed(self.value(data_type, depth))),
            _ => {
                let pair = (self.value(data_type, depth), self.value(data_type, depth));
                binary(op, pair.0, pair.1)
            }
        }
    }

    fn cast_to(&mut self, data_type: &Type, depth: usize) -> Expr {
        let integers = [
            Type::Int8,
            Type::Int16,
            Type::Int32,
            Type::Int64,
            Type::UInt8,
            Type::UInt32,
        ];
        let from = match data_type {
            Type::Int64 if self.rng.one_in(4) => Type::String,
            Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64 => {
                self.rng.pick(&integers).clone()
            }
            Type::UInt8 | Type::UInt16 | Type::UInt32 | Type::UInt64 => {
                self.rng.pick(&integers).clone()
            }
            Type::Decimal { .. } if self.rng.one_in(2) => Type::Decimal {
                precision: 10,
                scale: 2,
            },
            Type::Decimal { .. } => self.rng.pick(&integers).clone(),
            Type::Float64 => self.rng.pick(&[Type::Float32, Type::Int32]).clone(),
            Type::Timestamp { .. } => Type::Date,
            _ => return self.value(data_type, depth),
        };
        cast(self.value(&from, depth), data_type.clone())
    }

    fn probe(&mut self) -> Option<Probe> {
        let column = self.rng.below(self.types.len());
        let keys = match &self.types[column] {
            Type::Float32 | Type::Float64 => return None,
            Type::String => {
                let count = self.rng.below(5);
                let mut keys: Vec<String> = (0..count)
                    .map(|_| self.rng.pick(&super::table::TEXTS).to_string())
                    .chain(["unheard of".to_owned()])
                    .collect();
                keys.sort();
                keys.dedup();
                KeySet::Strings(keys)
            }
            _ => match self.rng.below(3) {
                0 => KeySet::Range {
                    low: self.rng.range(-8, 4),
                    high: self.rng.range(0, 100),
                },
                1 => KeySet::Bitmap {
                    first: self.rng.range(-70, 3),
                    words: (0..3).map(|_| self.rng.next()).collect(),
                },
                _ => {
                    let count = self.rng.below(12);
                    let mut keys: Vec<i64> = (0..count)
                        .map(|_| match self.rng.one_in(8) {
                            true => self.rng.next() as i64,
                            false => self.rng.range(-9, 12),
                        })
                        .collect();
                    keys.sort();
                    keys.dedup();
                    KeySet::Integers(keys)
                }
            },
        };
        Some(Probe { column, keys })
    }

    /// A relation joined by one of the columns; its own columns are added to the types.
    fn lookup(&mut self, own: usize) -> Option<Lookup> {
        let column = self.rng.below(own);
        let of_keys = self.types[column].clone();
        match &of_keys {
            Type::Float32 | Type::Float64 | Type::Boolean | Type::UInt64 => return None,
            Type::Decimal { precision, .. } if *precision > 18 => return None,
            _ => {}
        }
        let of_keys = DataType::from(&of_keys);
        let count = *self.rng.pick(&[0, 1, 5, 40, 400]);
        let mut keys: Vec<Value> = Vec::new();
        for _ in 0..count {
            let key = value_of(&of_keys, self.rng);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        // Some keys more than once, or all, or one of them very often.
        let often = match keys.len() {
            0 => 0,
            1..20 => *self.rng.pick(&[0, 0, 0, 1, 3]),
            _ => *self.rng.pick(&[0, 0, 0, 5, 40, 200]),
        };
        for _ in 0..often {
            let key = self.rng.pick(&keys).clone();
            let place = self.rng.below(keys.len() + 1);
            keys.insert(place, key);
        }
        let mut relation = vec![("key".to_owned(), array_of(&of_keys, &keys))];
        for number in 0..self.rng.below(4) {
            let (_, data_type) = self.rng.pick(&columns()).clone();
            let few = self.rng.one_in(2).then(|| value_of(&data_type, self.rng));
            let values: Vec<Value> = keys
                .iter()
                .map(|_| match (self.rng.one_in(6), &few) {
                    (true, _) => Value::Null,
                    (false, Some(value)) if self.rng.one_in(2) => value.clone(),
                    (false, _) => value_of(&data_type, self.rng),
                })
                .collect();
            self.types.push((&data_type).try_into().unwrap());
            relation.push((format!("joined {number}"), array_of(&data_type, &values)));
        }
        let rows = RecordBatch::try_from_iter_with_nullable(
            relation
                .into_iter()
                .map(|(name, array)| (name, array, true)),
        );
        let rows = rows.expect("columns of one length");
        let lookup = Lookup::new(column, rows);
        Some(match self.rng.one_in(3) {
            true => lookup.into_outer(),
            false => lookup,
        })
    }

    pub fn aggregate(&mut self) -> Aggregate {
        let filter = match self.rng.one_in(4) {
            true => Some(self.condition(1)),
            false => None,
        };
        let function = *self.rng.pick(&[
            AggregateFunction::Sum,
            AggregateFunction::Count,
            AggregateFunction::Min,
            AggregateFunction::Max,
        ]);
        let mut input = None;
        let mut state = Type::Int64;
        if function != AggregateFunction::Count || self.rng.one_in(2) {
            let argument = loop {
                let data_type = self.any_type();
                let number = !matches!(
                    data_type,
                    Type::Boolean | Type::String | Type::Date | Type::Timestamp { .. }
                );
                if function != AggregateFunction::Sum || number {
                    break data_type;
                }
            };
            let expr = match (&argument, self.rng.one_in(4)) {
                // Sums of products of decimals, whose type no column has.
                (Type::Decimal { .. }, true) => {
                    let price = || Type::Decimal {
                        precision: 10,
                        scale: 2,
                    };
                    let op = *self.rng.pick(&ARITHMETIC[..3]);
                    binary(op, self.value(&price(), 0), self.value(&argument, 0))
                }
                _ => self.value(&argument, 2),
            };
            let argument = expr.data_type(&self.types).unwrap();
            state = match (function, &argument) {
                (AggregateFunction::Count, _) => Type::Int64,
                (AggregateFunction::Sum, Type::Decimal { precision, scale }) => Type::Decimal {
                    precision: (*precision + 10).min(38),
                    scale: *scale,
                },
                (AggregateFunction::Sum, Type::Float32 | Type::Float64) => Type::Float64,
                (AggregateFunction::Sum, Type::UInt64) => Type::UInt64,
                (AggregateFunction::Sum, _) => Type::Int64,
                _ => argument,
            };
            input = Some(expr);
        }
        Aggregate {
            function,
            input,
            filter,
            state,
        }
    }

    pub fn fragment(rng: &mut Rng) -> Fragment {
        let all = columns();
        let mut ids: Vec<usize> = (0..all.len()).collect();
        for place in (1..ids.len()).rev() {
            ids.swap(place, rng.below(place + 1));
        }
        ids.truncate(1 + rng.below(all.len()));
        let types: Vec<Type> = ids
            .iter()
            .map(|&id| (&all[id].1).try_into().unwrap())
            .collect();
        let only = |fitting: fn(&Type) -> bool| types.iter().any(fitting);
        // Something to sum.
        let types = match only(|data_type| matches!(data_type, Type::Int32)) {
            true => types,
            false => {
                ids.push(3);
                types.into_iter().chain([Type::Int32]).collect()
            }
        };
        let own = types.len();
        let mut generator = Generator { rng, types };
        let (conditions, probes) = (generator.rng.below(4), generator.rng.below(2));
        let filter = (0..conditions).map(|_| generator.condition(2)).collect();
        let probes = (0..probes).filter_map(|_| generator.probe()).collect();
        let lookups = *generator.rng.pick(&[0, 0, 1, 1, 2, 3]);
        let lookups = (0..lookups).filter_map(|_| generator.lookup(own)).collect();
        let output = match generator.rng.one_in(3) {
            true => Output::Rows {
                columns: (0..generator.rng.below(5))
                    .map(|_| {
                        let data_type = generator.any_type();
                        generator.value(&data_type, 2)
                    })
                    .collect(),
                limit: match generator.rng.one_in(3) {
                    true => Some(generator.rng.below(900) as u64),
                    false => None,
                },
            },
            false => Output::Groups {
                keys: (0..generator.rng.below(4))
                    .map(|_| {
                        let data_type = generator.any_type();
                        generator.value(&data_type, 1)
                    })
                    .collect(),
                aggregates: (0..generator.rng.below(4))
                    .map(|_| generator.aggregate())
                    .collect(),
            },
        };
        Fragment {
            object: ObjectId(1),
            snapshot: SNAPSHOT,
            order: None,
            columns: ids.into_iter().map(|id| ColumnId(id as u32)).collect(),
            filter,
            probes,
            lookups,
            output,
            options: ScanOptions::default(),
        }
    }
}
