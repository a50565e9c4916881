//! The build side: read, and made into a table by all threads.

use super::JoinSpec;
use super::keys::{BatchKeys, Coding, Span};
use datafusion::arrow::array::{Array, ArrayRef, new_empty_array};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::JoinSide;
use datafusion::common::utils::memory::RecordBatchMemoryCounter;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::metrics::Time;
use eris_fragment::values_in_few_buffers;
use eris_join::{JoinTable, MOST_ROWS, NO_ROW, Scattered, Spread};
use futures::TryStreamExt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tokio::task::JoinSet;

/// Fewer rows than these are not worth a second thread.
pub(super) const FEW_ROWS: usize = 16 << 10;
/// Rows that a thread scatters before others may use it, and before it notices that the statement was cancelled.
const MOST_AT_ONCE: usize = 4 << 20;
/// Bytes that a row takes while the table is made: its code and number on their way, and its place in the table.
const BYTES_PER_ROW: usize = 40;

/// A build side that can be probed.
pub(super) struct BuildSide {
    pub table: JoinTable,
    pub coding: Arc<Coding>,
    /// The keys of its rows, if equal codes need not be equal keys.
    pub keys: Vec<ArrayRef>,
    /// Its columns; those that nobody needs are left out.
    pub columns: Vec<Option<ArrayRef>>,
    pub rows: usize,
    /// Whether no row has a key.
    pub has_no_key: bool,
    /// A bit for each row that has a match, if that is asked for.
    matched: Option<Vec<AtomicU64>>,
    /// Partitions of the probe side that have not ended.
    probes: AtomicUsize,
    /// Gives its memory back with the last user.
    _reservation: MemoryReservation,
}

impl BuildSide {
    /// Reads a build side, which so many partitions are joined with, and makes its table on so many threads.
    ///
    /// # Errors
    /// Those of the input, and `ResourcesExhausted`.
    pub async fn read(
        spec: Arc<JoinSpec>,
        mut input: SendableRecordBatchStream,
        reservation: MemoryReservation,
        (probes, threads): (usize, usize),
        time: Time,
    ) -> Result<Self> {
        let schema = input.schema();
        let mut counter = RecordBatchMemoryCounter::new();
        let mut batches = Vec::new();
        let mut rows = 0;
        while let Some(batch) = input.try_next().await? {
            reservation.try_grow(counter.count_batch(&batch) + BYTES_PER_ROW * batch.num_rows())?;
            rows += batch.num_rows();
            batches.push(batch);
        }
        drop(input);
        if rows >= MOST_ROWS as usize {
            let most = "a build side has more rows than a table can have";
            return Err(DataFusionError::ResourcesExhausted(most.to_owned()));
        }
        let _timer = time.timer();
        let rest = Unfinished {
            threads: if rows < FEW_ROWS { 1 } else { threads.max(1) },
            batches: Arc::new(batches),
            spec: Arc::clone(&spec),
            schema,
        };
        let room = reservation.new_empty();
        let (columns, keyed) = futures::try_join!(rest.columns(), rest.table(room))?;
        let keys = match keyed.coding.is_exact() {
            true => Vec::new(),
            false => rest.keys(&keyed.keys, &columns, &reservation)?,
        };
        let KeyedTable {
            table,
            coding,
            has_no_key,
            ..
        } = keyed;

        let words = rows.div_ceil(u64::BITS as usize);
        let is_asked = spec.asks_for_matches_of_build();
        let matched = is_asked.then(|| (0..words).map(|_| AtomicU64::new(0)).collect());
        // What was only needed while it was made.
        let copied: usize = keys.iter().map(|key| key.get_array_memory_size()).sum();
        let held = counter.memory_usage() + table.size() + copied;
        let held = held + words * size_of::<u64>() * usize::from(is_asked);
        reservation.shrink(reservation.size().saturating_sub(held));
        Ok(BuildSide {
            table,
            coding,
            keys,
            columns,
            rows,
            has_no_key,
            matched,
            probes: AtomicUsize::new(probes),
            _reservation: reservation,
        })
    }

    /// Notes that rows have a match, if that is asked for.
    pub fn note_matches(&self, rows: &[u32]) {
        let Some(matched) = &self.matched else {
            return;
        };
        for &row in rows.iter().filter(|row| **row != NO_ROW) {
            let (word, bit) = (&matched[row as usize / 64], 1 << (row % 64));
            // Most rows of a key that repeats are noted already: a line that nobody writes to stays in all caches.
            if word.load(Ordering::Relaxed) & bit == 0 {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
    }

    /// Whether a row has a match, as far as known.
    pub fn has_match(&self, row: usize) -> bool {
        let matched = self.matched.as_ref();
        matched.is_some_and(|words| words[row / 64].load(Ordering::Relaxed) >> (row % 64) & 1 == 1)
    }

    /// A partition of the probe side has ended; whether it is the last one, which knows all matches.
    pub fn end_of_probe(&self) -> bool {
        self.probes.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// What a build side is made of.
struct Unfinished {
    spec: Arc<JoinSpec>,
    schema: SchemaRef,
    batches: Arc<Vec<RecordBatch>>,
    threads: usize,
}

/// A table, and what its codes are.
struct KeyedTable {
    table: JoinTable,
    coding: Arc<Coding>,
    /// Those of all batches.
    keys: Arc<Vec<BatchKeys>>,
    has_no_key: bool,
}

impl Unfinished {
    /// The columns that are needed, each as one array.
    async fn columns(&self) -> Result<Vec<Option<ArrayRef>>> {
        let mut needed = vec![false; self.schema.fields().len()];
        let of_filter = self.spec.filter.iter();
        let of_filter = of_filter.flat_map(|filter| filter.column_indices());
        for column in self.spec.columns.iter().chain(of_filter) {
            if column.side == JoinSide::Left {
                needed[column.index] = true;
            }
        }
        let (batches, schema) = (Arc::clone(&self.batches), Arc::clone(&self.schema));
        let one = move |column: usize| match needed[column] {
            true => {
                let pieces = batches.iter().map(|batch| batch.column(column));
                one_array(schema.field(column).data_type(), pieces).map(Some)
            }
            false => Ok(None),
        };
        on_threads(self.schema.fields().len(), self.threads, one).await
    }

    /// The table, while whoever wants to know its keys is told.
    async fn table(&self, room: MemoryReservation) -> Result<KeyedTable> {
        let (batches, spec) = (Arc::clone(&self.batches), Arc::clone(&self.spec));
        let evaluate = move |batch: usize| BatchKeys::evaluate(&spec.build_keys, &batches[batch]);
        let keys = on_threads(self.batches.len(), self.threads, evaluate).await?;
        let ranges = keys.iter().map(BatchKeys::ranges);
        let coding = Arc::new(Coding::new(union(ranges, self.spec.build_keys.len())));
        let keys = Arc::new(keys);
        let told = self.spec.told.clone().map(|told| {
            let keys = Arc::clone(&keys);
            let all = self.spec.build_keys.len();
            move |_| {
                let values =
                    |key: usize| keys.iter().map(move |keys| Arc::clone(&keys.arrays[key]));
                told.ended_with((0..all).map(|key| values(key).collect()).collect(), &room);
                Ok(())
            }
        });
        let told = async {
            match told {
                Some(tell) => on_threads(1, self.threads, tell).await.map(drop),
                None => Ok(()),
            }
        };
        let table = table_of(Arc::clone(&keys), Arc::clone(&coding), self.threads);
        let ((), (table, has_no_key)) = futures::try_join!(told, table)?;
        Ok(KeyedTable {
            table,
            coding,
            keys,
            has_no_key,
        })
    }

    /// The keys, each as one array: the column that it is, if that is there, or else a copy.
    fn keys(
        &self,
        keys: &[BatchKeys],
        columns: &[Option<ArrayRef>],
        memory: &MemoryReservation,
    ) -> Result<Vec<ArrayRef>> {
        let one = |number: usize| {
            let key = &self.spec.build_keys[number];
            let column = key.downcast_ref::<Column>();
            if let Some(array) = column.and_then(|column| columns[column.index()].as_ref()) {
                return Ok(Arc::clone(array));
            }
            let pieces = || keys.iter().map(|keys| &keys.arrays[number]);
            let bytes = pieces().map(|piece| piece.to_data().get_slice_memory_size());
            memory.try_grow(bytes.sum::<std::result::Result<usize, _>>()?)?;
            one_array(&key.data_type(&self.schema)?, pieces())
        };
        (0..self.spec.build_keys.len()).map(one).collect()
    }
}

/// The table of these keys, and whether there are none.
pub(super) async fn table_of(
    keys: Arc<Vec<BatchKeys>>,
    coding: Arc<Coding>,
    threads: usize,
) -> Result<(JoinTable, bool)> {
    let rows = keys.iter().map(|keys| keys.rows).sum();
    let spread = Spread::new(rows, 0, coding.span().unwrap_or(u64::MAX), threads);
    let parts = parts(&keys, rows.div_ceil(threads).clamp(1, MOST_AT_ONCE));
    let count = parts.len();
    let scatter = move |part: usize| {
        let (mut first_row, batches) = parts[part].clone();
        let mut scattered = Scattered::default();
        for batch in &keys[batches] {
            let codes = coding.codes(batch)?;
            spread.scatter(&codes, first_row, count, &mut scattered);
            first_row += codes.len() as u32;
        }
        Ok(scattered)
    };
    let scattered = Arc::new(on_threads(count, threads, scatter).await?);
    let has_no_key = scattered.iter().all(Scattered::is_empty);
    let gather = move |part: usize| Ok(spread.gather(part, &scattered));
    let parts = on_threads(spread.parts(), threads, gather).await?;
    Ok((JoinTable::new(spread, parts), has_no_key))
}

/// Batches in parts, each of about so many rows: its first row and its batches.
fn parts(batches: &[BatchKeys], each: usize) -> Vec<(u32, Range<usize>)> {
    let mut parts = Vec::new();
    let (mut first, mut first_row, mut row) = (0, 0, 0);
    for (number, batch) in batches.iter().enumerate() {
        row += batch.rows;
        if row - first_row >= each || number + 1 == batches.len() {
            parts.push((first_row as u32, first..number + 1));
            (first, first_row) = (number + 1, row);
        }
    }
    parts
}

/// The ranges of keys of all batches; `None` if they are no integers, or if there is no batch that tells what they are.
pub(super) fn union(
    batches: impl Iterator<Item = Option<Vec<Span>>>,
    keys: usize,
) -> Option<Vec<Span>> {
    let mut batches = batches.peekable();
    batches.peek()?;
    let mut all = vec![(i64::MAX, i64::MIN); keys];
    for batch in batches {
        for (all, (low, high)) in all.iter_mut().zip(batch?) {
            *all = (all.0.min(low), all.1.max(high));
        }
    }
    Some(all)
}

/// Arrays as one.
fn one_array<'a>(
    data_type: &DataType,
    pieces: impl Iterator<Item = &'a ArrayRef>,
) -> Result<ArrayRef> {
    let pieces: Vec<&dyn Array> = pieces.map(|piece| piece.as_ref()).collect();
    match pieces.is_empty() {
        true => Ok(new_empty_array(data_type)),
        false => Ok(values_in_few_buffers(&concat(&pieces)?)?),
    }
}

/// What a function says of each number below a count, in their order: by so many tasks beside each other. Gives way to
/// others between the numbers.
///
/// # Errors
/// The first one of the function.
pub async fn on_threads<T: Send + 'static>(
    count: usize,
    threads: usize,
    run: impl Fn(usize) -> Result<T> + Send + Sync + 'static,
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let work = Arc::new((next, run));
    let worker = || {
        let work = Arc::clone(&work);
        async move {
            let (next, run) = &*work;
            let mut done = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok::<_, DataFusionError>(done);
                }
                done.push((number, run(number)?));
                tokio::task::yield_now().await;
            }
        }
    };
    let mut done = Vec::new();
    if threads <= 1 {
        done = worker().await?;
    } else {
        let mut tasks = JoinSet::new();
        for _ in 0..threads.min(count) {
            tasks.spawn(worker());
        }
        while let Some(ended) = tasks.join_next().await {
            done.extend(ended.map_err(|error| match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => DataFusionError::ExecutionJoin(Box::new(error)),
            })??);
        }
    }
    drop(work);
    done.sort_unstable_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}
