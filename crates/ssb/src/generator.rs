//! Tables as streams of batches, cut into any number of partitions.

use crate::lineorder::{Orders, Position};
use crate::scale::{DAYS, Scale};
use crate::table::SsbTable;
use crate::{customer, date, part, supplier};
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::ops::Range;

/// Rows of a batch; only the last one of a partition has fewer.
pub const BATCH_ROWS: usize = 65_536;

/// Any number would do; this one reads "SSB ERIS".
const DEFAULT_SEED: u64 = 0x5353_4220_4552_4953;

/// The data of one scale and seed. Cheap to make and to copy: it holds no data.
#[derive(Clone, Copy, Debug)]
pub struct Generator {
    scale: Scale,
    seed: u64,
}

impl Generator {
    /// The generator of the benchmark's data at `scale`.
    pub fn new(scale: Scale) -> Self {
        Self {
            scale,
            seed: DEFAULT_SEED,
        }
    }

    /// The same distributions with other random values.
    #[must_use]
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The scale factor.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// Exact number of rows of `table`. For the fact table this hashes once per order: milliseconds at
    /// scale 1, seconds at 1,000.
    pub fn rows(&self, table: SsbTable) -> u64 {
        self.table(table).rows()
    }

    /// One table of the data.
    pub fn table(&self, table: SsbTable) -> TableGenerator {
        TableGenerator {
            table,
            seed: self.seed,
            items: match table {
                SsbTable::Date => DAYS,
                SsbTable::Customer => self.scale.customers(),
                SsbTable::Supplier => self.scale.suppliers(),
                SsbTable::Part => self.scale.parts(),
                SsbTable::Lineorder => self.scale.orders(),
            },
            orders: (table == SsbTable::Lineorder).then(|| Orders::new(self.seed, self.scale)),
        }
    }
}

/// One table; made of *items*, which are orders in the fact table and rows elsewhere. No item is cut by a partition.
#[derive(Clone, Debug)]
pub struct TableGenerator {
    table: SsbTable,
    seed: u64,
    items: u64,
    /// Of the fact table only.
    orders: Option<Orders>,
}

impl TableGenerator {
    /// Which table.
    pub fn table(&self) -> SsbTable {
        self.table
    }

    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    /// Exact number of rows.
    pub fn rows(&self) -> u64 {
        match &self.orders {
            Some(orders) => orders.count_lines(0..self.items),
            None => self.items,
        }
    }

    /// Partition `index` of `count`: concatenating all of them in order gives the same rows for every `count`.
    ///
    /// # Panics
    /// If `index` is not below `count`.
    pub fn partition(&self, index: usize, count: usize) -> Batches {
        assert!(index < count, "partition {index} of {count}");
        let cut = |at: usize| (u128::from(self.items) * at as u128 / count as u128) as u64;
        self.items(cut(index)..cut(index + 1))
    }

    /// The rows of some items, in order.
    pub(crate) fn items(&self, items: Range<u64>) -> Batches {
        Batches {
            next: Position {
                order: items.start,
                line: 0,
            },
            end: items.end,
            table: self.clone(),
        }
    }

    pub(crate) fn item_count(&self) -> u64 {
        self.items
    }
}

/// The batches of a partition: [`BATCH_ROWS`] rows each, the last one fewer, none empty.
#[derive(Clone, Debug)]
pub struct Batches {
    table: TableGenerator,
    next: Position,
    end: u64,
}

impl Iterator for Batches {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if self.next.order >= self.end {
            return None;
        }
        if let Some(orders) = &self.table.orders {
            let (batch, next) = orders.batch(self.next, self.end, BATCH_ROWS);
            self.next = next;
            return Some(batch);
        }
        let rows = self.next.order..self.end.min(self.next.order + BATCH_ROWS as u64);
        self.next.order = rows.end;
        let seed = self.table.seed;
        Some(match self.table.table {
            SsbTable::Date => date::batch(rows),
            SsbTable::Customer => customer::batch(seed, rows),
            SsbTable::Supplier => supplier::batch(seed, rows),
            SsbTable::Part => part::batch(seed, rows),
            SsbTable::Lineorder => unreachable!("the fact table has its orders"),
        })
    }
}
