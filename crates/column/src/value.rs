//! One value of any domain.

/// A single value, detached from its chunk.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnValue {
    /// Unknown.
    Null,
    /// [`Domain::Integer`](crate::Domain::Integer); see [`from_integer`](crate::from_integer).
    Integer(i64),
    /// [`Domain::Float32`](crate::Domain::Float32)
    Float32(f32),
    /// [`Domain::Float64`](crate::Domain::Float64)
    Float64(f64),
    /// [`Domain::Wide`](crate::Domain::Wide)
    Wide(i128),
    /// [`Domain::String`](crate::Domain::String), whether it was a code or not.
    String(String),
    /// [`Domain::Bytes`](crate::Domain::Bytes)
    Bytes(Vec<u8>),
}

impl From<i64> for ColumnValue {
    fn from(value: i64) -> Self {
        ColumnValue::Integer(value)
    }
}

impl From<&str> for ColumnValue {
    fn from(value: &str) -> Self {
        ColumnValue::String(value.to_owned())
    }
}
