//! Lookups, compiled: from a row's key to the row of a relation, or straight to what that row stands for.
//!
//! ```text
//! key of the scanned row ── KeyMap ──▶ place of the relation's row ──▶ its values     where values are computed with
//!                        └─ KeyMap ──▶ number of the combination of values            where rows are grouped by them
//! ```
//!
//! If keys occur more than once, a key leads to the places of all its rows, and a scanned row [is there](crate::pairs)
//! once for each.
//!
//! Whether a row has a match at all is a test of the [filter](crate::filter) like any other: it takes part in the order
//! of the tests, and behind it every key is found. An outer join has no such test. Its relation has one more row, of
//! NULLs, at place 0; and every key that is not found leads there.

mod combinations;
mod key_map;
mod matches;
mod number_table;

pub(crate) use combinations::{CombinationNumbers, Combinations};
pub(crate) use key_map::KeyMap;
pub(crate) use matches::Matches;
pub(crate) use number_table::NumberTable;
pub use number_table::TableMemory;

use crate::columns::FragmentColumns;
use crate::expr::unexpected;
use crate::values::{Values, values};
use arrow_array::{Array, ArrayRef, RecordBatch, new_null_array};
use arrow_buffer::NullBuffer;
use arrow_schema::ArrowError;
use arrow_select::concat::concat;
use eris_column::Domain;
use eris_fragment::{FragmentError, Type};
use std::sync::{Arc, OnceLock};

/// A lookup, compiled.
#[derive(Debug)]
pub(crate) struct CompiledLookup {
    /// The key column: a position in the fragment's columns.
    pub(crate) column: usize,
    keys: RelationKeys,
    joined: Vec<Joined>,
    of_keys: OnceLock<KeyMap>,
    /// Where each key's rows are, if there are more rows than keys.
    matches: Option<Matches>,
    /// Place 0 is of rows without a match.
    outer: bool,
    /// Where its tables lie.
    memory: Option<TableMemory>,
}

/// The relation's keys, each once: row by row, unless there are matches.
#[derive(Debug)]
enum RelationKeys {
    Integers(Arc<Vec<i64>>),
    Strings(ArrayRef),
}

/// A column of the relation.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) array: ArrayRef,
    /// Its values as stored, if they are integers.
    integers: Option<Integers>,
}

/// Integers by their places, as narrow as they allow: what is looked at for every row should fit into the nearest
/// cache.
#[derive(Debug)]
struct Integers {
    least: i64,
    greatest: i64,
    stored: StoredIntegers,
}

#[derive(Debug)]
enum StoredIntegers {
    /// By how much each is greater than the least.
    Distances(NumberTable),
    Whole(Vec<i64>),
}

impl Integers {
    fn new(values: Vec<i64>) -> Self {
        let least = values.iter().min().copied().unwrap_or(0);
        let greatest = values.iter().max().copied().unwrap_or(0);
        let stored = match u32::try_from(greatest.abs_diff(least)) {
            Ok(most) => {
                let distances = values.iter().map(|value| value.abs_diff(least) as u32);
                let entries = distances.enumerate();
                let table = NumberTable::new(values.len(), most, entries, None);
                StoredIntegers::Distances(table)
            }
            Err(_) => StoredIntegers::Whole(values),
        };
        Integers {
            least,
            greatest,
            stored,
        }
    }

    fn at(&self, places: &[u32]) -> Vec<i64> {
        let mut values = Vec::with_capacity(places.len());
        let places = places.iter().map(|&place| place as usize);
        match &self.stored {
            StoredIntegers::Distances(table) => {
                table.each(places, &mut values);
                values
                    .iter_mut()
                    .for_each(|value: &mut i64| *value += self.least);
            }
            StoredIntegers::Whole(whole) => values.extend(places.map(|place| whole[place])),
        }
        values
    }
}

impl CompiledLookup {
    pub(crate) fn compile(
        lookup: &eris_fragment::Lookup,
        columns: &FragmentColumns,
        memory: Option<&TableMemory>,
    ) -> Result<Self, FragmentError> {
        let malformed = |reason| Err(FragmentError::Malformed { reason });
        let column = lookup.column;
        if column >= columns.ids.len() {
            return malformed("a lookup by a column that the fragment does not read");
        }
        if lookup.keys().null_count() > 0 {
            return malformed("a lookup with a key NULL");
        }
        let (keys, mut matches, rows) = match lookup.is_unique() {
            true => (lookup.keys().clone(), None, lookup.rows.clone()),
            false => {
                let (keys, matches, rows) = Matches::group(&lookup.rows).map_err(unexpected)?;
                (keys, Some(matches), rows)
            }
        };
        let outer = lookup.outer;
        if outer {
            matches = matches.map(Matches::behind_no_match);
        }
        let of_keys = Type::try_from(keys.data_type()).ok();
        let keys = match (columns.domains[column], of_keys) {
            (Domain::String, Some(Type::String)) => RelationKeys::Strings(keys),
            (Domain::Integer, Some(of_keys)) if comparable(&columns.types[column], &of_keys) => {
                match values(&keys) {
                    Values::Integers(keys) => RelationKeys::Integers(Arc::new(keys.into_owned())),
                    Values::Wide(keys) => RelationKeys::Integers(Arc::new(
                        keys.iter().map(|&key| key as i64).collect(),
                    )),
                    _ => return malformed("a lookup by keys that are no integers"),
                }
            }
            _ => return malformed("a lookup with keys of another type than its column"),
        };
        let joined = rows.columns()[1..].iter().map(|array| match outer {
            true => Joined::behind_null(array),
            false => Ok(Joined::new(array.clone())),
        });
        Ok(CompiledLookup {
            column,
            keys,
            joined: joined.collect::<Result<_, _>>().map_err(unexpected)?,
            of_keys: OnceLock::new(),
            matches,
            outer,
            memory: memory.cloned(),
        })
    }

    /// A map from keys to what `values` says of their numbers.
    fn map(&self, values: impl Fn(usize) -> u32, columns: &FragmentColumns) -> KeyMap {
        let memory = self.memory.as_ref();
        let values = |number: usize| values(number + usize::from(self.outer));
        let map = match &self.keys {
            RelationKeys::Integers(keys) => KeyMap::integers(keys, values, memory),
            RelationKeys::Strings(keys) => {
                let dictionary = columns.dictionaries[self.column].as_ref();
                KeyMap::strings(keys, values, dictionary, memory)
            }
        };
        match self.outer {
            true => map.with_zero_for_others(),
            false => map,
        }
    }

    /// From keys to their numbers: the places of the relation's rows, unless there are matches. No match is number 0 of
    /// an outer join.
    pub(crate) fn of_keys(&self, columns: &FragmentColumns) -> &KeyMap {
        (self.of_keys).get_or_init(|| self.map(|number| number as u32, columns))
    }

    /// Where each key's rows are; `None` if each has one, at the place that is its number.
    pub(crate) fn matches(&self) -> Option<&Matches> {
        self.matches.as_ref()
    }

    pub(crate) fn joined(&self, column: usize) -> &Joined {
        &self.joined[column]
    }

    /// Numbers for the combinations of the values of some of the columns of this lookup, which is the
    /// fragment's `own`-th.
    pub(crate) fn combinations(
        &self,
        own: usize,
        chosen: &[usize],
        columns: &FragmentColumns,
    ) -> Combinations {
        let arrays: Vec<&ArrayRef> = chosen.iter().map(|&at| &self.joined[at].array).collect();
        let (numbers, distinct) = combinations::number(&arrays);
        Combinations {
            numbers: match self.matches {
                None => CombinationNumbers::OfKeys(self.map(|place| numbers[place], columns)),
                Some(_) => {
                    CombinationNumbers::OfPlaces(NumberTable::of(&numbers, self.memory.as_ref()))
                }
            },
            lookup: own,
            column: self.column,
            arrays: distinct,
        }
    }
}

impl Joined {
    fn new(array: ArrayRef) -> Self {
        Joined {
            integers: stored_integers(&array).map(Integers::new),
            array,
        }
    }

    /// The same behind a row of NULL.
    fn behind_null(array: &ArrayRef) -> Result<Self, ArrowError> {
        let null = new_null_array(array.data_type(), 1);
        let array = concat(&[&null, array])?;
        let mut integers = stored_integers(&array);
        if let Some([null, first, ..]) = integers.as_deref_mut() {
            // So that the range is that of the others.
            *null = *first;
        }
        Ok(Joined {
            integers: integers.map(Integers::new),
            array,
        })
    }

    /// The least and the greatest of its integers.
    pub(crate) fn range(&self) -> Option<(i64, i64)> {
        let integers = self.integers.as_ref()?;
        Some((integers.least, integers.greatest))
    }

    /// The integers of the rows at these places.
    pub(crate) fn integers(&self, places: &[u32]) -> Vec<i64> {
        let integers = self.integers.as_ref().expect("a column of integers");
        integers.at(places)
    }

    /// The validity of the rows at these places.
    pub(crate) fn validity(&self, places: &[u32]) -> Option<NullBuffer> {
        let nulls = self.array.nulls().filter(|nulls| nulls.null_count() > 0)?;
        let valid = places.iter().map(|&place| nulls.is_valid(place as usize));
        Some(valid.collect())
    }
}

/// Whether integers of both types mean the same.
fn comparable(column: &Type, keys: &Type) -> bool {
    let plain = |data_type: &Type| {
        use Type::*;
        matches!(
            data_type,
            Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32
        )
    };
    column == keys && *keys != Type::UInt64 || plain(column) && plain(keys)
}

fn stored_integers(array: &ArrayRef) -> Option<Vec<i64>> {
    match (Domain::of(array.data_type())?, values(array)) {
        (Domain::Integer, Values::Integers(values)) => Some(values.into_owned()),
        (Domain::Integer, Values::Wide(values)) => {
            Some(values.iter().map(|&value| value as i64).collect())
        }
        _ => None,
    }
}

/// The lookups of a fragment and where their columns are.
#[derive(Debug, Default)]
pub(crate) struct Lookups {
    pub(crate) all: Vec<CompiledLookup>,
    /// Per joined column: its lookup, and which of its columns it is.
    pub(crate) joined: Vec<(usize, usize)>,
}

impl Lookups {
    /// Whether a row may be joined to several rows of a relation.
    pub(crate) fn have_several_matches(&self) -> bool {
        self.all.iter().any(|lookup| lookup.matches.is_some())
    }
}

/// The columns that lookups join, in the order of their positions.
pub(crate) fn joined_fields(rows: &RecordBatch) -> impl Iterator<Item = &Arc<arrow_schema::Field>> {
    rows.schema_ref().fields().iter().skip(1)
}
