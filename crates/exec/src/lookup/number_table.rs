//! Tables of small numbers, which are looked at once for every row: the larger ones lie where the program says.

use eris_numa::{Buffer, NodeMemory, Plain};
use eris_types::ObjectId;
use std::marker::PhantomData;

/// Smaller tables are taken from the heap, in bytes: they stay in the nearest cache wherever they lie.
const LEAST_BYTES: usize = 64 << 10;

/// Where a program's tables lie, and on whose account.
#[derive(Clone, Debug)]
pub struct TableMemory {
    /// The node's manager.
    pub memory: NodeMemory,
    /// What they are accounted to.
    pub object: ObjectId,
}

/// Numbers, as narrow as they allow.
#[derive(Debug)]
pub(crate) enum NumberTable {
    One(Numbers<u8>),
    Two(Numbers<u16>),
    Four(Numbers<u32>),
}

/// The entries of a table.
#[derive(Debug)]
pub(crate) enum Numbers<T> {
    OnNode(Buffer, PhantomData<T>),
    OnHeap(Vec<T>),
}

impl<T: Plain + Default> Numbers<T> {
    /// So many zeros; from the heap if the node has no memory for them.
    fn zeros(len: usize, memory: Option<&TableMemory>) -> Self {
        let bytes = len * size_of::<T>();
        let on_node = memory.filter(|_| bytes >= LEAST_BYTES).and_then(|memory| {
            let TableMemory { memory, object } = memory;
            memory.allocate(*object, bytes).ok()
        });
        match on_node {
            Some(buffer) => Numbers::OnNode(buffer, PhantomData),
            None => Numbers::OnHeap(vec![T::default(); len]),
        }
    }

    fn as_mut_slice(&mut self) -> &mut [T] {
        match self {
            Numbers::OnNode(buffer, _) => buffer.as_mut_slice(),
            Numbers::OnHeap(numbers) => numbers,
        }
    }

    fn as_slice(&self) -> &[T] {
        match self {
            Numbers::OnNode(buffer, _) => buffer.as_slice(),
            Numbers::OnHeap(numbers) => numbers,
        }
    }
}

impl NumberTable {
    /// A table of `len` entries: those that are given, of which none is greater than `most`, and zeros.
    pub(super) fn new(
        len: usize,
        most: u32,
        entries: impl Iterator<Item = (usize, u32)>,
        memory: Option<&TableMemory>,
    ) -> Self {
        macro_rules! filled {
            ($number:ty) => {{
                let mut table = Numbers::zeros(len, memory);
                let numbers: &mut [$number] = table.as_mut_slice();
                entries.for_each(|(at, number)| numbers[at] = number as $number);
                table
            }};
        }
        match most {
            0..=0xff => NumberTable::One(filled!(u8)),
            0x100..=0xffff => NumberTable::Two(filled!(u16)),
            _ => NumberTable::Four(filled!(u32)),
        }
    }

    /// A table of just these numbers.
    pub(super) fn of(numbers: &[u32], memory: Option<&TableMemory>) -> Self {
        let entries = numbers.iter().copied().enumerate();
        NumberTable::new(numbers.len(), most(numbers), entries, memory)
    }

    /// Appends the entries at some places.
    #[inline(always)]
    pub(crate) fn each<T: From<u32>>(&self, places: impl Iterator<Item = usize>, out: &mut Vec<T>) {
        match self {
            NumberTable::One(table) => {
                let table = table.as_slice();
                out.extend(places.map(|at| T::from(u32::from(table[at]))));
            }
            NumberTable::Two(table) => {
                let table = table.as_slice();
                out.extend(places.map(|at| T::from(u32::from(table[at]))));
            }
            NumberTable::Four(table) => {
                let table = table.as_slice();
                out.extend(places.map(|at| T::from(table[at])));
            }
        }
    }

    /// The same; beyond its end there are zeros.
    pub(crate) fn each_or_zero<T: From<u32>>(
        &self,
        places: impl Iterator<Item = usize>,
        out: &mut Vec<T>,
    ) {
        macro_rules! each {
            ($table:expr) => {{
                let table = $table.as_slice();
                let number = |at| table.get(at).copied().map_or(0, u32::from);
                out.extend(places.map(|at| T::from(number(at))));
            }};
        }
        match self {
            NumberTable::One(table) => each!(table),
            NumberTable::Two(table) => each!(table),
            NumberTable::Four(table) => each!(table),
        }
    }
}

/// The greatest of some numbers.
pub(super) fn most(numbers: &[u32]) -> u32 {
    numbers.iter().copied().max().unwrap_or(0)
}
