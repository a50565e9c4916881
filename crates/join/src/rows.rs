//! Rows on their way to the table, and where they are found there.

/// Rows by bucket.
#[derive(Clone, Debug, Default)]
pub struct Scattered {
    pub(crate) buckets: Vec<Entries>,
}

/// Rows of a bucket, not in order.
#[derive(Clone, Debug)]
pub(crate) enum Entries {
    /// Places within the bucket, and rows.
    Dense(Vec<(u32, u32)>),
    /// Upper and lower half of a code, and its row: in 12 bytes.
    Hashed(Vec<(u32, u32, u32)>),
}

impl Entries {
    pub fn len(&self) -> usize {
        match self {
            Entries::Dense(entries) => entries.len(),
            Entries::Hashed(entries) => entries.len(),
        }
    }
}

impl Scattered {
    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.buckets.iter().all(|entries| entries.len() == 0)
    }
}

/// Where the rows of a code are: `len` of them from `start` on, in its part. If no code of the part has several,
/// or a hashed one has one, the start is the row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Located {
    pub(crate) start: u32,
    /// How many rows have the code.
    pub len: u32,
}
