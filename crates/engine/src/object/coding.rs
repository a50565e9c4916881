//! Values as bytes of keys, and conditions as ranges of such bytes.
//!
//! ```text
//! a column's value              [present, 1 if the column may be NULL] [its bytes, in SQL's order]
//! a = 5                         from 5 up to before its successor
//! a > 5                         from the successor of 5 on
//! t LIKE 'ab%'                  from "ab" up to before "ac"
//! a IN (5, 7) AND a < 6         ranges are joined and intersected
//! ```
//!
//! All ranges are half-open and in the order of bytes, whatever the type: no condition is solved but by its bytes.

use arrow_schema::{DataType, TimeUnit};
use eris_column::{Domain, to_integer};
use eris_fragment::{BinaryOp, Expr, KeySet, Scalar, Value};
use eris_index::key::KeyEncoder;

/// Keys from one up to before another; `None`: to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ByteRange {
    pub low: Vec<u8>,
    pub high: Option<Vec<u8>>,
    /// All of one value, or of one value per column.
    pub is_value: bool,
}

/// Disjoint ranges, ascending.
pub(crate) type ByteRanges = Vec<ByteRange>;

/// Most keys of a set that an index is asked for; what has more is a matter for a scan.
pub(crate) const MOST_KEYS: u64 = 1 << 16;

impl ByteRange {
    pub fn new(low: Vec<u8>, high: Option<Vec<u8>>) -> Self {
        ByteRange {
            low,
            high,
            is_value: false,
        }
    }

    /// Puts zeros ahead of all keys.
    pub fn put_ahead(&mut self, zeros: usize) {
        let ends = std::iter::once(&mut self.low).chain(&mut self.high);
        ends.for_each(|end| drop(end.splice(..0, std::iter::repeat_n(0, zeros))));
    }

    fn is_empty(&self) -> bool {
        self.high.as_ref().is_some_and(|high| *high <= self.low)
    }
}

/// The least bytes behind all that begin with these.
pub(crate) fn successor(bytes: &[u8]) -> Option<Vec<u8>> {
    let end = bytes.iter().rposition(|&byte| byte < u8::MAX)?;
    let mut next = bytes[..=end].to_vec();
    next[end] += 1;
    Some(next)
}

/// Whether one upper bound is below another.
fn is_below(a: &Option<Vec<u8>>, b: &Option<Vec<u8>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a < b,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

/// What is in both.
pub(crate) fn intersection(a: &ByteRanges, b: &ByteRanges) -> ByteRanges {
    let (mut left, mut right) = (a.iter().peekable(), b.iter().peekable());
    let mut both = Vec::new();
    while let (Some(x), Some(y)) = (left.peek(), right.peek()) {
        let x_is_first = is_below(&x.high, &y.high);
        let (low, high) = (
            (&x.low).max(&y.low).clone(),
            if x_is_first {
                x.high.clone()
            } else {
                y.high.clone()
            },
        );
        let mut range = ByteRange::new(low, high);
        // A part of a value is the value, for no value is between its bounds.
        range.is_value = x.is_value || y.is_value;
        if !range.is_empty() {
            both.push(range);
        }
        match x_is_first {
            true => left.next(),
            false => right.next(),
        };
    }
    both
}

/// What is in one of them.
pub(crate) fn union(mut all: ByteRanges) -> ByteRanges {
    all.retain(|range| !range.is_empty());
    all.sort_by(|a, b| a.low.cmp(&b.low));
    let mut joined: ByteRanges = Vec::with_capacity(all.len());
    for range in all {
        match joined.last_mut() {
            Some(last) if last.high.as_ref().is_none_or(|high| *high > range.low) => {
                last.is_value &= last.low == range.low && last.high == range.high;
                if is_below(&last.high, &range.high) {
                    last.high = range.high;
                }
            }
            _ => joined.push(range),
        }
    }
    joined
}

/// How values of a column become bytes of a key.
#[derive(Clone, Debug)]
pub(crate) struct Coding {
    data_type: DataType,
    /// NULL has a place before all values.
    nullable: bool,
    /// The key is a number: this column alone.
    word: bool,
}

impl Coding {
    pub fn new(data_type: &DataType, nullable: bool, word: bool) -> Self {
        Coding {
            data_type: data_type.clone(),
            nullable,
            word,
        }
    }

    /// Whether the order of bytes is the one that rows are sorted by.
    pub fn sorts(&self) -> bool {
        !matches!(self.data_type, DataType::Float32 | DataType::Float64)
    }

    pub fn is_nullable(&self) -> bool {
        self.nullable
    }

    fn encoder(&self) -> KeyEncoder {
        let mut encoder = KeyEncoder::new();
        if self.nullable {
            encoder.push_present();
        }
        encoder
    }

    /// The bytes of a value; `None` if it is NULL, NaN or none of the type.
    pub fn bytes(&self, value: &Value) -> Option<Vec<u8>> {
        let mut encoder = self.encoder();
        match (value, &self.data_type) {
            (Value::Boolean(value), DataType::Boolean) if self.word => {
                encoder.push(i64::from(*value));
            }
            (Value::Boolean(value), DataType::Boolean) => {
                encoder.push(*value);
            }
            (Value::Integer(value), DataType::FixedSizeBinary(_)) => {
                encoder.push(*value);
            }
            (Value::Integer(value), data_type) => {
                self.push_integer(&mut encoder, data_type, *value)?;
            }
            (Value::Float(value), _) if value.is_nan() => return None,
            (Value::Float(value), DataType::Float32) => {
                encoder.push(*value as f32 + 0.0);
            }
            (Value::Float(value), DataType::Float64) => {
                encoder.push(*value + 0.0);
            }
            (Value::String(text), DataType::Utf8View) => {
                encoder.push_string(text);
            }
            (Value::Bytes(blob), DataType::BinaryView) => {
                encoder.push_blob(blob);
            }
            _ => return None,
        }
        Some(encoder.bytes().to_vec())
    }

    fn push_integer(
        &self,
        encoder: &mut KeyEncoder,
        data_type: &DataType,
        value: i128,
    ) -> Option<()> {
        if self.word {
            if Domain::of(data_type) != Some(Domain::Integer) {
                return None;
            }
            let fits = match data_type {
                DataType::UInt64 => u64::try_from(value).is_ok(),
                _ => i64::try_from(value).is_ok(),
            };
            return fits.then(|| {
                encoder.push(to_integer(data_type, value));
            });
        }
        match data_type {
            DataType::Int8 => encoder.push(i8::try_from(value).ok()?),
            DataType::Int16 => encoder.push(i16::try_from(value).ok()?),
            DataType::Int32 | DataType::Date32 => encoder.push(i32::try_from(value).ok()?),
            DataType::Int64 | DataType::Time64(_) => encoder.push(i64::try_from(value).ok()?),
            DataType::Timestamp(
                TimeUnit::Second
                | TimeUnit::Millisecond
                | TimeUnit::Microsecond
                | TimeUnit::Nanosecond,
                _,
            ) => encoder.push(i64::try_from(value).ok()?),
            DataType::UInt8 => encoder.push(u8::try_from(value).ok()?),
            DataType::UInt16 => encoder.push(u16::try_from(value).ok()?),
            DataType::UInt32 => encoder.push(u32::try_from(value).ok()?),
            DataType::UInt64 => encoder.push(u64::try_from(value).ok()?),
            DataType::Decimal128(precision, _) => {
                let most = 10i128.checked_pow(u32::from(*precision))?;
                (-most < value && value < most).then(|| encoder.push_decimal(value, *precision))?
            }
            _ => return None,
        };
        Some(())
    }

    /// How long the value is with which a key begins.
    pub fn length(&self, key: &[u8]) -> usize {
        let present = usize::from(self.nullable);
        if self.nullable && key.first() == Some(&0) {
            return 1;
        }
        present
            + match &self.data_type {
                _ if self.word => 8,
                DataType::Utf8View | DataType::BinaryView => {
                    let end = key[present..].iter().position(|&byte| byte == 0);
                    end.map_or(key.len() - present, |end| end + 1)
                }
                DataType::Boolean => 1,
                DataType::FixedSizeBinary(bytes) => *bytes as usize,
                DataType::Decimal128(precision, _) => {
                    let mut encoder = KeyEncoder::new();
                    encoder.push_decimal(0, *precision).bytes().len()
                }
                fixed => fixed.primitive_width().unwrap_or(0),
            }
    }

    /// All values that are not NULL.
    pub fn values(&self) -> ByteRanges {
        match self.nullable {
            true => vec![ByteRange::new(vec![1], Some(vec![2]))],
            false => vec![ByteRange::new(Vec::new(), None)],
        }
    }

    /// NULL.
    pub fn null(&self) -> ByteRanges {
        match self.nullable {
            true => vec![ByteRange::new(vec![0], Some(vec![1]))],
            false => Vec::new(),
        }
    }

    fn is_integer(&self) -> bool {
        self.data_type.is_integer()
    }

    /// Whether an expression is the column at a position, or its value as another integer type.
    fn is_operand(&self, expr: &Expr, column: usize) -> bool {
        match expr {
            Expr::Cast { operand, to } => {
                let to = DataType::from(to);
                let wider = to.is_signed_integer()
                    && to.primitive_width() > self.data_type.primitive_width();
                **operand == Expr::Column(column) && self.is_integer() && wider
            }
            other => *other == Expr::Column(column),
        }
    }

    /// The value of a constant, if it is one of the column's type, or both are integers: of others the bytes do not
    /// compare.
    fn constant<'a>(&self, constant: &'a Scalar) -> Option<&'a Value> {
        let data_type = DataType::from(&constant.data_type);
        let compares = data_type == self.data_type || data_type.is_integer() && self.is_integer();
        compares.then_some(&constant.value)
    }

    fn exactly(&self, value: &Value) -> Option<ByteRange> {
        let low = self.bytes(value)?;
        Some(ByteRange {
            high: successor(&low),
            low,
            is_value: true,
        })
    }

    fn compared(&self, op: BinaryOp, value: &Value) -> Option<ByteRanges> {
        let equal = self.exactly(value)?;
        let range = match op {
            BinaryOp::Eq => return Some(vec![equal]),
            BinaryOp::Lt => ByteRange::new(Vec::new(), Some(equal.low)),
            BinaryOp::LtEq => ByteRange::new(Vec::new(), equal.high),
            BinaryOp::GtEq => ByteRange::new(equal.low, None),
            BinaryOp::Gt => match equal.high {
                Some(high) => ByteRange::new(high, None),
                None => return Some(Vec::new()),
            },
            _ => return None,
        };
        Some(intersection(&vec![range], &self.values()))
    }

    /// The ranges that say what a condition on the column at a position says, if they can.
    pub fn ranges(&self, condition: &Expr, column: usize) -> Option<ByteRanges> {
        let is_column = |expr: &Expr| *expr == Expr::Column(column);
        let is_operand = |expr: &Expr| self.is_operand(expr, column);
        match condition {
            Expr::Binary {
                op: BinaryOp::And,
                left,
                right,
            } => Some(intersection(
                &self.ranges(left, column)?,
                &self.ranges(right, column)?,
            )),
            Expr::Binary {
                op: BinaryOp::Or,
                left,
                right,
            } => {
                let mut all = self.ranges(left, column)?;
                all.extend(self.ranges(right, column)?);
                Some(union(all))
            }
            Expr::Binary { op, left, right } => match (&**left, &**right) {
                (left, Expr::Literal(literal)) if is_operand(left) => {
                    self.compared(*op, self.constant(literal)?)
                }
                (Expr::Literal(literal), right) if is_operand(right) => {
                    self.compared(op.mirrored(), self.constant(literal)?)
                }
                _ => None,
            },
            Expr::InList {
                operand,
                list,
                negated: false,
            } if is_operand(operand) => {
                let mut values = Vec::with_capacity(list.len());
                for literal in list.iter().filter(|literal| !literal.is_null()) {
                    // A value that the column cannot have is not found.
                    match (self.exactly(self.constant(literal)?), self.is_integer()) {
                        (Some(range), _) => values.push(range),
                        (None, true) => {}
                        (None, false) => return None,
                    }
                }
                Some(union(values))
            }
            Expr::Like {
                operand,
                pattern,
                negated: false,
                case_insensitive: false,
            } if is_column(operand) && self.data_type == DataType::Utf8View => self.like(pattern),
            Expr::IsNull(operand) if is_column(operand) => Some(self.null()),
            Expr::IsNotNull(operand) if is_column(operand) => Some(self.values()),
            _ => None,
        }
    }

    /// LIKE of a text without wildcards, or with one `%` at the end.
    fn like(&self, pattern: &str) -> Option<ByteRanges> {
        let (start, open) = match pattern.strip_suffix('%') {
            Some(start) => (start, true),
            None => (pattern, false),
        };
        if start.contains(['%', '_', '\\']) {
            return None;
        }
        if !open {
            return Some(vec![self.exactly(&Value::String(start.to_owned()))?]);
        }
        let mut encoder = self.encoder();
        encoder.push_string_start(start);
        let low = encoder.bytes().to_vec();
        let high = successor(&low);
        Some(intersection(
            &vec![ByteRange::new(low, high)],
            &self.values(),
        ))
    }

    /// The ranges of a set of keys, if they are few.
    pub fn ranges_of_keys(&self, keys: &KeySet) -> Option<ByteRanges> {
        let integer = |key: i64| Value::Integer(key.into());
        let range = |value: Value| self.exactly(&value);
        match keys {
            KeySet::Range { low, high } => {
                let from = self.compared(BinaryOp::GtEq, &integer(*low))?;
                let to = self.compared(BinaryOp::LtEq, &integer(*high))?;
                Some(intersection(&from, &to))
            }
            _ if keys.len() > MOST_KEYS => None,
            KeySet::Integers(keys) => keys.iter().map(|key| range(integer(*key))).collect(),
            KeySet::Strings(keys) => keys
                .iter()
                .map(|key| range(Value::String(key.clone())))
                .collect(),
            KeySet::Bitmap { first, words } => {
                let bits = words.iter().enumerate().flat_map(|(number, word)| {
                    let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
                    bits.map(move |bit| first.wrapping_add((number * 64 + bit) as i64))
                });
                bits.map(|key| range(integer(key))).collect()
            }
        }
    }
}
