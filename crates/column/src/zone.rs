//! What is known of a column chunk without reading it (a zone map's entry).

/// The NULLs and the range of a column chunk's values. Exact, not merely bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    /// Number of NULLs.
    pub nulls: usize,
    /// Least and greatest value that is not NULL.
    pub range: ZoneRange,
}

/// Least and greatest value, by domain.
#[derive(Clone, Debug, PartialEq)]
pub enum ZoneRange {
    /// There is no value: no rows, or only NULLs.
    Empty,
    /// [`Domain::Integer`](crate::Domain::Integer)
    Integer(i64, i64),
    /// `Float32` (widened exactly) and `Float64`, in IEEE 754 total order: -NaN < -∞ < … < -0 < 0 < … < ∞ < NaN.
    /// Without NaNs both ends are numbers.
    Float(f64, f64),
    /// [`Domain::Wide`](crate::Domain::Wide)
    Wide(i128, i128),
    /// Dictionary codes; as codes are unordered, this bounds the codes and says nothing about the strings' order.
    Codes(u32, u32),
    /// Plain text, in byte order.
    Strings(Box<str>, Box<str>),
    /// Bytes, in their order.
    Bytes(Box<[u8]>, Box<[u8]>),
}
