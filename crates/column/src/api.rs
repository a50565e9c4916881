//! The column interface between a query engine and its storage (elastic OLAP paper, Sections 2.1 and 4.2, Listing 1).
//!
//! ```text
//! Listing 1                                     here
//! ColumnPosition append(ColumnValue)            append(value) -> position
//! ColumnValue get(ColumnPosition)               get(position)
//! void set(ColumnPosition, ColumnValue)         set(position, value)
//! ColumnPositionList scan(comparator, value,    scan(&[one or two conditions], positions)      Section 4.2.1
//!                         positions)
//! Array<ColumnValue> materialize(positions)     materialize(positions)                         Section 4.2.2
//! ColumnPositionList joinProbe(keys, positions) join_probe(keys, positions)                    Section 4.2.3
//! size_t size() · void restore(values)          size() · restore(values)
//!
//! position   0 ············ 65,536 ············ 131,072 ········ size
//!            │ sealed chunk   │ opened chunk      │ tail            one chunk at most is open for set
//! ```
//!
//! Where the paper passes an empty position list for "the whole column", `None` does so here, and an empty list has no
//! rows. As in the paper all values are 64-bit integers, text being the codes of a dictionary; there is no NULL.

mod condition;
mod scan;

pub use condition::{Comparator, Condition};

use crate::chunk::{ColumnChunk, Home};
use crate::dictionary::Dictionary;
use crate::error::EncodeError;
use crate::selection::Selection;
use crate::value::ColumnValue;
use crate::{CHUNK_ROWS, Domain};
use arrow_array::Int64Array;
use eris_kernels::Isa;
use eris_numa::NodeMemory;
use eris_types::{Code, ObjectId};
use std::fmt;
use std::sync::Arc;

/// The place of a value in a [`Column`], from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnPosition(pub u64);

impl fmt::Display for ColumnPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "position {}", self.0)
    }
}

/// Why an operation on a [`Column`] failed; the column is as it was before.
#[derive(Debug, thiserror::Error)]
pub enum ColumnError {
    /// There is no such position.
    #[error("{position} is beyond the column's {size} values")]
    Position {
        /// The position asked for.
        position: ColumnPosition,
        /// The size of the column.
        size: u64,
    },
    /// The value is not of the column's kind.
    #[error("{value:?} in a column of {expected:?}")]
    Kind {
        /// The kind of the column's values.
        expected: Domain,
        /// The value that was given.
        value: ColumnValue,
    },
    /// A scan takes one or two conditions.
    #[error("{0} conditions for a scan that takes one or two")]
    Conditions(usize),
    /// A full chunk could not be encoded.
    #[error(transparent)]
    Encode(#[from] EncodeError),
}

/// A growing sequence of 64-bit integers or strings. A clone is a snapshot: it shares the sealed chunks, which `set`
/// copies before it writes.
#[derive(Clone, Debug)]
pub struct Column {
    domain: Domain,
    memory: NodeMemory,
    object: ObjectId,
    /// The strings, of a column of text.
    dictionary: Dictionary,
    /// Full chunks.
    sealed: Vec<Arc<ColumnChunk>>,
    /// The number of a full chunk, and its current values in place of the sealed ones.
    opened: Option<(usize, Vec<i64>)>,
    /// The values after the last full chunk.
    tail: Vec<i64>,
}

/// The values of one chunk.
enum Part<'a> {
    Sealed(&'a ColumnChunk),
    Open(&'a [i64]),
}

impl Part<'_> {
    fn rows(&self) -> usize {
        match self {
            Part::Sealed(chunk) => chunk.rows(),
            Part::Open(values) => values.len(),
        }
    }
}

impl Column {
    /// An empty column of integers whose chunks are to lie in `memory`, accounted to `object`.
    pub fn of_integers(memory: NodeMemory, object: ObjectId) -> Self {
        Self::new(Domain::Integer, memory, object)
    }

    /// An empty column of text, likewise.
    pub fn of_text(memory: NodeMemory, object: ObjectId) -> Self {
        Self::new(Domain::String, memory, object)
    }

    fn new(domain: Domain, memory: NodeMemory, object: ObjectId) -> Self {
        Column {
            domain,
            memory,
            object,
            dictionary: Dictionary::new(),
            sealed: Vec::new(),
            opened: None,
            tail: Vec::new(),
        }
    }

    /// Number of values.
    pub fn size(&self) -> u64 {
        (self.sealed.len() * CHUNK_ROWS + self.tail.len()) as u64
    }

    /// Adds a value at the end.
    ///
    /// # Errors
    /// The value is of the wrong kind, or it fills a chunk for which there is no memory.
    pub fn append(&mut self, value: ColumnValue) -> Result<ColumnPosition, ColumnError> {
        let integer = self.intern(&value)?;
        let position = ColumnPosition(self.size());
        self.tail.push(integer);
        if self.tail.len() == CHUNK_ROWS {
            match self.encode(&self.tail) {
                Ok(chunk) => self.sealed.push(chunk),
                Err(error) => {
                    self.tail.pop();
                    return Err(error);
                }
            }
            self.tail.clear();
        }
        Ok(position)
    }

    /// The value at a position.
    ///
    /// # Errors
    /// There is no such position.
    pub fn get(&self, position: ColumnPosition) -> Result<ColumnValue, ColumnError> {
        let (chunk, row) = self.locate(position)?;
        let integer = match self.part(chunk) {
            Part::Open(values) => values[row],
            Part::Sealed(chunk) => match chunk.get(row, None) {
                ColumnValue::Integer(integer) => integer,
                other => unreachable!("{other:?} in a chunk of integers"),
            },
        };
        Ok(self.value(integer))
    }

    /// Replaces the value at a position. The first change of a sealed chunk decodes it; it is sealed again when a
    /// position in another one is set.
    ///
    /// # Errors
    /// There is no such position, the value is of the wrong kind, or there is no memory to seal a chunk again.
    pub fn set(&mut self, position: ColumnPosition, value: ColumnValue) -> Result<(), ColumnError> {
        let (chunk, row) = self.locate(position)?;
        let integer = self.intern(&value)?;
        if chunk == self.sealed.len() {
            self.tail[row] = integer;
            return Ok(());
        }
        if self
            .opened
            .as_ref()
            .is_none_or(|(opened, _)| *opened != chunk)
        {
            self.seal()?;
            self.opened = Some((chunk, decode(&self.sealed[chunk])));
        }
        let (_, values) = self.opened.as_mut().expect("it has just been opened");
        values[row] = integer;
        Ok(())
    }

    /// Replaces all values.
    ///
    /// # Errors
    /// A value is of the wrong kind, or there is no memory for the chunks.
    pub fn restore(
        &mut self,
        values: impl IntoIterator<Item = ColumnValue>,
    ) -> Result<(), ColumnError> {
        let mut restored = Self::new(self.domain, self.memory.clone(), self.object);
        for value in values {
            restored.append(value)?;
        }
        *self = restored;
        Ok(())
    }

    /// Encodes the opened chunk again.
    fn seal(&mut self) -> Result<(), ColumnError> {
        if let Some((chunk, values)) = &self.opened {
            let chunk = *chunk;
            self.sealed[chunk] = self.encode(values)?;
            self.opened = None;
        }
        Ok(())
    }

    fn encode(&self, values: &[i64]) -> Result<Arc<ColumnChunk>, ColumnError> {
        let home = Home {
            memory: &self.memory,
            object: self.object,
        };
        let array = Int64Array::from(values.to_vec());
        Ok(Arc::new(ColumnChunk::encode(&array, None, home)?))
    }

    /// Number of chunks, the tail included if it has values.
    fn parts(&self) -> usize {
        self.sealed.len() + !self.tail.is_empty() as usize
    }

    fn part(&self, chunk: usize) -> Part<'_> {
        match &self.opened {
            Some((opened, values)) if *opened == chunk => Part::Open(values),
            _ if chunk == self.sealed.len() => Part::Open(&self.tail),
            _ => Part::Sealed(&self.sealed[chunk]),
        }
    }

    /// The chunk of a position, and the row in it.
    fn locate(&self, position: ColumnPosition) -> Result<(usize, usize), ColumnError> {
        let size = self.size();
        if position.0 >= size {
            return Err(ColumnError::Position { position, size });
        }
        let position = position.0 as usize;
        Ok((position / CHUNK_ROWS, position % CHUNK_ROWS))
    }

    /// The integer for a value, which becomes known if it is a new string.
    fn intern(&mut self, value: &ColumnValue) -> Result<i64, ColumnError> {
        if let (Domain::String, ColumnValue::String(text)) = (self.domain, value) {
            self.dictionary.add([text.as_str()].into_iter());
        }
        self.integer(value)
            .map(|integer| integer.expect("the string has just been added"))
    }

    /// The integer for a value; `None` for a string that occurs nowhere.
    fn integer(&self, value: &ColumnValue) -> Result<Option<i64>, ColumnError> {
        match (self.domain, value) {
            (Domain::Integer, ColumnValue::Integer(integer)) => Ok(Some(*integer)),
            (Domain::String, ColumnValue::String(text)) => {
                Ok(self.dictionary.code(text).map(|Code(code)| code as i64))
            }
            (expected, value) => Err(ColumnError::Kind {
                expected,
                value: value.clone(),
            }),
        }
    }

    fn value(&self, integer: i64) -> ColumnValue {
        match self.domain {
            Domain::Integer => ColumnValue::Integer(integer),
            _ => {
                let text = self.dictionary.get(Code(integer as u32));
                ColumnValue::String(text.expect("each code has its string").to_owned())
            }
        }
    }
}

fn decode(chunk: &ColumnChunk) -> Vec<i64> {
    let mut values = Vec::with_capacity(chunk.rows());
    chunk.gather_integers(Isa::best(), &Selection::all(chunk.rows()), &mut values);
    values
}
