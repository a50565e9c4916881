//! From keys to numbers of groups.
//!
//! ```text
//! dense   slot = Σ (field - least + 1) · stride, 0 standing for NULL        table[slot] = number of the group
//!         while the product of the fields' ranges is at most 65,536; ranges grow as values come
//! hash    packed key ─hash─▶ table of group numbers, compared with the stored keys
//!         when the dense table is outgrown (for good), or the keys cannot be counted
//! ```

use super::keys::{GroupKey, GroupKeys};
use arrow_buffer::NullBuffer;
use eris_kernels::Isa;
use hashbrown::HashTable;

/// Slots of the largest dense table: 256 KiB of group numbers.
const DENSE_SLOTS: u64 = 1 << 16;

/// No group has this number.
const NONE: u32 = u32::MAX;

/// All groups met so far.
#[derive(Debug)]
pub(crate) struct GroupIndex {
    /// Packed keys, one after the other, in the order of the groups' numbers.
    packed: Vec<u64>,
    groups: usize,
    form: IndexForm,
    slots: Vec<u32>,
    rows: Vec<u64>,
}

#[derive(Debug)]
enum IndexForm {
    Dense(Dense),
    Hash(HashTable<u32>),
}

#[derive(Debug, Default)]
struct Dense {
    /// Per field the range of values that have slots; no field before the first row.
    ranges: Vec<(i64, i64)>,
    strides: Vec<u32>,
    table: Vec<u32>,
}

impl GroupIndex {
    pub(crate) fn new(keys: &GroupKeys) -> Self {
        GroupIndex {
            packed: Vec::new(),
            groups: 0,
            form: match keys.countable {
                true => IndexForm::Dense(Dense::default()),
                false => IndexForm::Hash(HashTable::new()),
            },
            slots: Vec::new(),
            rows: Vec::new(),
        }
    }

    /// One that hashes, of these packed keys, which are distinct and need not be found again.
    pub(crate) fn of_packed(packed: Vec<u64>, keys: &GroupKeys) -> Self {
        GroupIndex {
            groups: packed.len() / keys.words,
            packed,
            form: IndexForm::Hash(HashTable::new()),
            slots: Vec::new(),
            rows: Vec::new(),
        }
    }

    pub(crate) fn groups(&self) -> usize {
        self.groups
    }

    /// Whether the dense table is outgrown: there may be any number of groups.
    pub(crate) fn is_hashed(&self) -> bool {
        matches!(self.form, IndexForm::Hash(_))
    }

    /// The packed keys of all groups, one after the other.
    pub(crate) fn packed(&self) -> &[u64] {
        &self.packed
    }

    /// Forgets all groups, but keeps the room for them.
    pub(crate) fn clear(&mut self) {
        self.packed.clear();
        self.groups = 0;
        match &mut self.form {
            IndexForm::Hash(table) => table.clear(),
            IndexForm::Dense(dense) => dense.table.fill(NONE),
        }
    }

    /// The packed key of a group.
    pub(crate) fn key(&self, group: usize, keys: &GroupKeys) -> &[u64] {
        &self.packed[group * keys.words..][..keys.words]
    }

    pub(crate) fn bytes(&self) -> usize {
        let form = match &self.form {
            IndexForm::Dense(dense) => dense.table.capacity() * size_of::<u32>(),
            // Group number and control byte.
            IndexForm::Hash(table) => table.capacity() * 5,
        };
        let scratch = self.slots.capacity() * size_of::<u32>();
        form + scratch + (self.packed.capacity() + self.rows.capacity()) * size_of::<u64>()
    }

    /// Writes the number of each row's group to `numbers`; new keys get new groups.
    pub(crate) fn assign(
        &mut self,
        isa: Isa,
        keys: &GroupKeys,
        fields: &[&[i64]],
        nulls: &[Option<NullBuffer>],
        numbers: &mut Vec<u32>,
    ) {
        numbers.clear();
        if fields[0].is_empty() {
            return;
        }
        if let IndexForm::Dense(dense) = &mut self.form {
            if dense.admit(isa, fields) == Admitted::Regrown {
                dense.rebuild(keys, &self.packed, self.groups);
            }
            if dense.ranges.is_empty() {
                self.form = IndexForm::Hash(self.hashed(keys));
            }
        }
        match &mut self.form {
            IndexForm::Dense(dense) => {
                dense.slots(keys, fields, nulls, &mut self.slots);
                let packed = &mut self.packed;
                if !dense.numbers(&self.slots, numbers) {
                    dense.number_new(&self.slots, &mut self.groups, numbers, |row| {
                        push_packed(keys, fields, nulls, row, packed);
                    });
                }
            }
            IndexForm::Hash(_) => {
                let mut rows = std::mem::take(&mut self.rows);
                pack(keys, fields, nulls, &mut rows);
                self.assign_packed(keys, &rows, numbers);
                self.rows = rows;
            }
        }
    }

    /// The same for packed keys, of an index that hashes.
    pub(crate) fn assign_packed(&mut self, keys: &GroupKeys, rows: &[u64], numbers: &mut Vec<u32>) {
        let IndexForm::Hash(table) = &mut self.form else {
            unreachable!("packed keys are looked up in an index that hashes");
        };
        numbers.clear();
        let packed = &mut self.packed;
        match keys.words {
            1 => look_up::<1>(table, rows, packed, numbers),
            2 => look_up::<2>(table, rows, packed, numbers),
            3 => look_up::<3>(table, rows, packed, numbers),
            words => look_up_many(words, table, rows, packed, numbers),
        }
        self.groups = self.packed.len() / keys.words;
        assert!(self.groups < NONE as usize, "group numbers have 32 bits");
    }

    fn hashed(&self, keys: &GroupKeys) -> HashTable<u32> {
        let key = |number: u32| &self.packed[number as usize * keys.words..][..keys.words];
        let mut table = HashTable::with_capacity(self.groups);
        for number in 0..self.groups as u32 {
            table.insert_unique(hash(key(number)), number, |&number| hash(key(number)));
        }
        table
    }
}

#[derive(PartialEq)]
enum Admitted {
    /// All values have slots.
    AsIs,
    /// All values have slots now, or, if there are no ranges left, too many would be needed.
    Regrown,
}

impl Dense {
    /// Makes room for the values of the fields.
    fn admit(&mut self, isa: Isa, fields: &[&[i64]]) -> Admitted {
        let first = self.ranges.is_empty();
        let mut ranges = Vec::with_capacity(fields.len());
        for (field, values) in fields.iter().enumerate() {
            let (low, high) = isa.min_max_i64(values).expect("there are rows");
            ranges.push(match self.ranges.get(field) {
                Some(&(least, greatest)) => (low.min(least), high.max(greatest)),
                None => (low, high),
            });
        }
        if !first && ranges == self.ranges {
            return Admitted::AsIs;
        }
        if slots_of(&ranges).is_none_or(|slots| slots > DENSE_SLOTS) {
            *self = Dense::default();
            return Admitted::Regrown;
        }
        // Values often come in ascending order: grow by half as much again, so that rebuilding stays rare.
        for field in 0..ranges.len() {
            let (low, high) = ranges[field];
            let more = (high - low) / 2 + 1;
            let mut wider = ranges.clone();
            let (below, above) = match self.ranges.get(field) {
                Some(&(least, greatest)) => (low < least, high > greatest),
                None => (false, true),
            };
            wider[field] = (
                if below { low.saturating_sub(more) } else { low },
                if above {
                    high.saturating_add(more)
                } else {
                    high
                },
            );
            if slots_of(&wider).is_some_and(|slots| slots <= DENSE_SLOTS) {
                ranges = wider;
            }
        }
        self.ranges = ranges;
        Admitted::Regrown
    }

    fn rebuild(&mut self, keys: &GroupKeys, packed: &[u64], groups: usize) {
        let Some(slots) = slots_of(&self.ranges) else {
            return;
        };
        let mut stride = 1;
        self.strides.clear();
        for range in &self.ranges {
            self.strides.push(stride);
            stride *= size_of_range(range).expect("within the limit") as u32;
        }
        self.table.clear();
        self.table.resize(slots as usize, NONE);
        for number in 0..groups {
            let words = &packed[number * keys.words..][..keys.words];
            let mut slot = 0;
            for (field, key) in keys.keys.iter().enumerate() {
                if !key.null.is_set(words) {
                    slot += self.place(field, keys.fields[field].unpack(words));
                }
            }
            self.table[slot as usize] = number as u32;
        }
    }

    /// What a field's value adds to the slot.
    #[inline(always)]
    fn place(&self, field: usize, value: i64) -> u32 {
        (value.wrapping_sub(self.ranges[field].0) as u32 + 1) * self.strides[field]
    }

    fn slots(
        &self,
        keys: &GroupKeys,
        fields: &[&[i64]],
        nulls: &[Option<NullBuffer>],
        slots: &mut Vec<u32>,
    ) {
        slots.clear();
        slots.resize(fields[0].len(), 0);
        for field in 0..keys.keys.len() {
            let (least, stride) = (self.ranges[field].0, self.strides[field]);
            let place = |value: i64| (value.wrapping_sub(least) as u32 + 1) * stride;
            let pairs = slots.iter_mut().zip(fields[field]);
            match &nulls[field] {
                None => pairs.for_each(|(slot, &value)| *slot += place(value)),
                Some(nulls) => {
                    for ((slot, &value), valid) in pairs.zip(nulls) {
                        *slot += if valid { place(value) } else { 0 };
                    }
                }
            }
        }
    }

    /// The numbers of the slots' groups, or [`NONE`]; whether all slots have groups.
    ///
    /// New groups are rare. So this loop calls nothing: with a call in it the compiler keeps the row's position and the
    /// table in memory, and each row takes half as long again.
    fn numbers(&self, slots: &[u32], numbers: &mut Vec<u32>) -> bool {
        numbers.resize(slots.len(), NONE);
        let table = &self.table[..];
        let mut all = true;
        for (number, &slot) in numbers.iter_mut().zip(slots) {
            *number = table[slot as usize];
            all &= *number != NONE;
        }
        all
    }

    /// Gives a new group to each slot that has none, and says by which row it was met.
    #[cold]
    fn number_new(
        &mut self,
        slots: &[u32],
        groups: &mut usize,
        numbers: &mut [u32],
        mut met: impl FnMut(usize),
    ) {
        for (row, (number, &slot)) in numbers.iter_mut().zip(slots).enumerate() {
            if *number != NONE {
                continue;
            }
            let of_slot = &mut self.table[slot as usize];
            if *of_slot == NONE {
                *of_slot = *groups as u32;
                *groups += 1;
                met(row);
            }
            *number = *of_slot;
        }
    }
}

/// Values of a range, and NULL.
fn size_of_range(&(low, high): &(i64, i64)) -> Option<u64> {
    high.abs_diff(low).checked_add(2)
}

/// Slots of a table over the ranges; `None` without ranges.
fn slots_of(ranges: &[(i64, i64)]) -> Option<u64> {
    if ranges.is_empty() {
        return None;
    }
    ranges.iter().try_fold(1u64, |slots, range| {
        slots.checked_mul(size_of_range(range)?)
    })
}

/// Appends the packed key of one row.
fn push_packed(
    keys: &GroupKeys,
    fields: &[&[i64]],
    nulls: &[Option<NullBuffer>],
    row: usize,
    packed: &mut Vec<u64>,
) {
    let start = packed.len();
    packed.resize(start + keys.words, 0);
    let words = &mut packed[start..];
    for (key, nulls) in keys.keys.iter().zip(nulls) {
        if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            words[key.null.word] |= 1 << key.null.shift;
            continue;
        }
        for field in fields_of(key) {
            words[keys.fields[field].place.word] |= keys.fields[field].pack(fields[field][row]);
        }
    }
}

fn fields_of(key: &GroupKey) -> std::ops::Range<usize> {
    let fields = match key.domain {
        eris_column::Domain::Wide => 2,
        _ => 1,
    };
    key.field..key.field + fields
}

/// Packs the keys of all rows.
fn pack(keys: &GroupKeys, fields: &[&[i64]], nulls: &[Option<NullBuffer>], rows: &mut Vec<u64>) {
    rows.clear();
    rows.resize(fields[0].len() * keys.words, 0);
    for (key, nulls) in keys.keys.iter().zip(nulls) {
        for number in fields_of(key) {
            let field = &keys.fields[number];
            let words = rows.iter_mut().skip(field.place.word).step_by(keys.words);
            let pairs = words.zip(fields[number]);
            match nulls {
                None => pairs.for_each(|(word, &value)| *word |= field.pack(value)),
                Some(nulls) => {
                    for ((word, &value), valid) in pairs.zip(nulls) {
                        *word |= if valid { field.pack(value) } else { 0 };
                    }
                }
            }
        }
        if let Some(nulls) = nulls {
            let words = rows.iter_mut().skip(key.null.word).step_by(keys.words);
            for (word, valid) in words.zip(nulls) {
                *word |= (!valid as u64) << key.null.shift;
            }
        }
    }
}

/// Folded multiplication, word by word.
#[inline(always)]
pub(super) fn hash(words: &[u64]) -> u64 {
    words.iter().fold(0x243f_6a88_85a3_08d3, |hash, &word| {
        let product = (hash ^ word) as u128 * 0x9e37_79b9_7f4a_7c15_u128;
        product as u64 ^ (product >> 64) as u64
    })
}

fn look_up<const WORDS: usize>(
    table: &mut HashTable<u32>,
    rows: &[u64],
    packed: &mut Vec<u64>,
    numbers: &mut Vec<u32>,
) {
    for row in rows.as_chunks::<WORDS>().0 {
        let hash_of_row = hash(row);
        let keys = packed.as_chunks::<WORDS>().0;
        let number = match table.find(hash_of_row, |&number| keys[number as usize] == *row) {
            Some(&number) => number,
            None => {
                let number = keys.len() as u32;
                packed.extend_from_slice(row);
                let keys = packed.as_chunks::<WORDS>().0;
                table.insert_unique(hash_of_row, number, |&number| hash(&keys[number as usize]));
                number
            }
        };
        numbers.push(number);
    }
}

fn look_up_many(
    words: usize,
    table: &mut HashTable<u32>,
    rows: &[u64],
    packed: &mut Vec<u64>,
    numbers: &mut Vec<u32>,
) {
    for row in rows.chunks_exact(words) {
        let hash_of_row = hash(row);
        let key = |number: u32| &packed[number as usize * words..][..words];
        let number = match table.find(hash_of_row, |&number| key(number) == row) {
            Some(&number) => number,
            None => {
                let number = (packed.len() / words) as u32;
                packed.extend_from_slice(row);
                let key = |number: u32| &packed[number as usize * words..][..words];
                table.insert_unique(hash_of_row, number, |&number| hash(key(number)));
                number
            }
        };
        numbers.push(number);
    }
}
