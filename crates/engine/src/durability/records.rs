//! The records of the log (docs/formats/records.md says them byte by byte).
//!
//! ```text
//! kind │ object │ …                  all numbers as `eris_log` writes them: seven bits a byte
//!
//! 1  object       key columns ▪ partitioning ▪ name ▪ schema
//! 2  dropped
//! 3  strings      column ▪ code of the first ▪ strings
//! 4  ranges       common ▪ bounds with their owners
//! 5  rows         owner ▪ rows that were added, in their stored form ▪ ids of rows that were deleted
//! 6  definition   name ▪ text ▪ objects
//! 7  definition is gone: name
//! 8  chunk        owner ▪ segment ▪ ids ▪ rows that a snapshot does not see ▪ columns
//! ```
//!
//! A snapshot has records of all kinds but 2, 5 and 7. Columns of many rows are in chunk files, and their number is
//! here.

mod sets;

use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::SchemaRef;
use eris_home::{Definition, DefinitionChange, Partitioning};
use eris_log::{BadBytes, Bytes, put_bytes, put_number};
use eris_store::{CommittedRows, StoredIn};
use eris_types::{AeuId, ColumnId, ObjectId, RowId, SegmentId};
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};

const OBJECT: u8 = 1;
const DROPPED: u8 = 2;
const STRINGS: u8 = 3;
const RANGES: u8 = 4;
const ROWS: u8 = 5;
const DEFINITION: u8 = 6;
const GONE: u8 = 7;
const CHUNK: u8 = 8;

/// What the head of a record takes at most.
const HEAD: u64 = 32;
/// What rows with consecutive ids take at most beside their stored form; and a run of deleted rows.
const RUN: u64 = 26;

/// A record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    Object(StoredObject),
    Dropped(ObjectId),
    Strings(StoredStrings<'a>),
    Ranges(ObjectId, StoredRanges),
    Rows(StoredCommit<'a>),
    Chunk(StoredChunk<'a>),
    Definition(DefinitionChange),
}

/// What a data object is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredObject {
    pub id: ObjectId,
    pub name: String,
    pub schema: SchemaRef,
    pub partitioning: Partitioning,
    pub key: Vec<ColumnId>,
}

/// Which AEU has which keys. It says where rows are best put: a reader puts all rows by the last ranges that it finds,
/// wherever they were.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredRanges {
    /// What keys that are bytes begin with.
    pub common: Vec<u8>,
    /// The least number of each range, ascending from the least of all, and its owner.
    pub bounds: Vec<(i64, AeuId)>,
}

/// Strings that a column's dictionary has got.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoredStrings<'a> {
    pub object: ObjectId,
    pub column: usize,
    /// The code of the first.
    pub first: usize,
    pub strings: Vec<&'a str>,
}

/// What a commit did to the rows of an owner.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoredCommit<'a> {
    pub object: ObjectId,
    pub owner: AeuId,
    /// The first id of each piece, the number of its rows, and its columns.
    pub added: Vec<(RowId, usize, Columns<'a>)>,
    /// Ids of deleted rows: the first of each run, and how many.
    pub deleted: Vec<(RowId, usize)>,
}

/// A chunk of which a snapshot sees some rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoredChunk<'a> {
    pub object: ObjectId,
    pub owner: AeuId,
    pub segment: SegmentId,
    /// The numbers that rows have in the segment, ascending: the first of each run, and how many.
    pub ids: Vec<(u32, u32)>,
    /// The places of rows that it does not see, likewise.
    pub unseen: Vec<(u32, u32)>,
    pub columns: Columns<'a>,
}

/// Columns of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Columns<'a> {
    /// In their stored form.
    Here(&'a [u8]),
    /// In a chunk file, under this number.
    ChunkFile(u64),
}

impl<'a> From<&'a StoredIn> for Columns<'a> {
    fn from(stored: &'a StoredIn) -> Self {
        match stored {
            StoredIn::Bytes(form) => Columns::Here(form),
            StoredIn::ChunkFile(number) => Columns::ChunkFile(*number),
        }
    }
}

/// Bytes that are no record.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error(transparent)]
    Bytes(#[from] BadBytes),
    #[error("a record of kind {0}, which this version of Eris does not know")]
    Kind(u8),
    #[error("a schema that cannot be read: {0}")]
    Schema(String),
}

/// What rows take at most that a commit adds and deletes: so many bytes of stored forms in so many pieces, and so many
/// deleted rows.
pub(crate) fn rows_bytes(forms: u64, pieces: u64, deleted: u64) -> u64 {
    HEAD + forms + RUN * (pieces + deleted)
}

/// What a change of a definition takes at most.
pub(crate) fn definition_bytes(change: &DefinitionChange) -> u64 {
    HEAD + match change {
        DefinitionChange::IsGone(name) => name.len() as u64,
        DefinitionChange::Is(is) => (is.name.len() + is.text.len() + 5 * is.objects.len()) as u64,
    }
}

fn begin(kind: u8, object: ObjectId) -> Vec<u8> {
    let mut body = vec![kind];
    put_number(&mut body, object.0.into());
    body
}

/// A new object.
pub(crate) fn object(object: &StoredObject) -> Vec<u8> {
    let mut body = begin(OBJECT, object.id);
    put_number(&mut body, object.key.len() as u64);
    for column in &object.key {
        put_number(&mut body, column.0.into());
    }
    let partitioning = match object.partitioning {
        Partitioning::Size => 0,
        Partitioning::Range(column) => 1 + u64::from(column.0),
    };
    put_number(&mut body, partitioning);
    put_bytes(&mut body, object.name.as_bytes());
    let schema = StreamWriter::try_new(Vec::new(), &object.schema);
    let schema = schema.and_then(StreamWriter::into_inner);
    put_bytes(&mut body, &schema.expect("every schema can be written"));
    body
}

/// An object is dropped.
pub(crate) fn dropped(object: ObjectId) -> Vec<u8> {
    begin(DROPPED, object)
}

/// Strings that a column's dictionary has got.
pub(crate) fn strings<'a>(
    object: ObjectId,
    column: usize,
    first: usize,
    strings: impl ExactSizeIterator<Item = &'a str>,
) -> Vec<u8> {
    let mut body = begin(STRINGS, object);
    put_number(&mut body, column as u64);
    put_number(&mut body, first as u64);
    put_number(&mut body, strings.len() as u64);
    strings.for_each(|string| put_bytes(&mut body, string.as_bytes()));
    body
}

/// The ranges of an object's keys.
pub(crate) fn ranges(object: ObjectId, ranges: &StoredRanges) -> Vec<u8> {
    let mut body = begin(RANGES, object);
    put_bytes(&mut body, &ranges.common);
    put_number(&mut body, ranges.bounds.len() as u64);
    for (bound, owner) in &ranges.bounds {
        put_signed(&mut body, *bound);
        put_number(&mut body, owner.0.into());
    }
    body
}

/// What a commit did to the segments of an owner; `None`: nothing.
pub(crate) fn rows(object: ObjectId, owner: AeuId, segments: &[CommittedRows]) -> Option<Vec<u8>> {
    let mut body = begin(ROWS, object);
    put_number(&mut body, owner.0.into());
    let added: usize = segments.iter().map(|segment| segment.added.len()).sum();
    put_number(&mut body, added as u64);
    for piece in segments.iter().flat_map(|segment| &segment.added) {
        put_row(&mut body, piece.first);
        put_number(&mut body, piece.rows as u64);
        put_columns(&mut body, (&piece.columns).into());
    }
    let deleted = segments.iter().flat_map(|segment| &segment.deleted);
    let runs = runs(deleted.copied());
    put_number(&mut body, runs.len() as u64);
    for (first, rows) in &runs {
        put_row(&mut body, *first);
        put_number(&mut body, *rows as u64);
    }
    (added > 0 || !runs.is_empty()).then_some(body)
}

/// A chunk as a snapshot sees it.
pub(crate) fn chunk(chunk: &StoredChunk<'_>) -> Vec<u8> {
    let mut body = begin(CHUNK, chunk.object);
    put_number(&mut body, chunk.owner.0.into());
    put_number(&mut body, chunk.segment.0);
    sets::put(&mut body, &chunk.ids);
    sets::put(&mut body, &chunk.unseen);
    put_columns(&mut body, chunk.columns);
    body
}

/// No columns take no bytes. So that says that they are elsewhere.
fn put_columns(body: &mut Vec<u8>, columns: Columns<'_>) {
    match columns {
        Columns::Here(form) => put_bytes(body, form),
        Columns::ChunkFile(number) => {
            put_bytes(body, &[]);
            put_number(body, number);
        }
    }
}

fn read_columns<'a>(bytes: &mut Bytes<'a>) -> Result<Columns<'a>, BadBytes> {
    match bytes.bytes()? {
        [] => Ok(Columns::ChunkFile(bytes.number()?)),
        form => Ok(Columns::Here(form)),
    }
}

/// Ids, as runs of consecutive ones.
fn runs(ids: impl Iterator<Item = RowId>) -> Vec<(RowId, usize)> {
    let mut runs: Vec<(RowId, usize)> = Vec::new();
    for id in ids {
        match runs.last_mut() {
            Some((first, rows)) if first.plus(*rows) == id && first.segment() == id.segment() => {
                *rows += 1;
            }
            _ => runs.push((id, 1)),
        }
    }
    runs
}

/// A definition is new, has changed, or is gone.
pub(crate) fn definition(change: &DefinitionChange) -> Vec<u8> {
    let mut body = Vec::new();
    match change {
        DefinitionChange::Is(is) => {
            body.push(DEFINITION);
            put_bytes(&mut body, is.name.as_bytes());
            put_bytes(&mut body, is.text.as_bytes());
            put_number(&mut body, is.objects.len() as u64);
            for object in &is.objects {
                put_number(&mut body, object.0.into());
            }
        }
        DefinitionChange::IsGone(name) => {
            body.push(GONE);
            put_bytes(&mut body, name.as_bytes());
        }
    }
    body
}

/// Reads a record.
pub(crate) fn read(body: &[u8]) -> Result<Record<'_>, RecordError> {
    let Some((&kind, rest)) = body.split_first() else {
        return Err(BadBytes::Short("a record").into());
    };
    let mut bytes = Bytes::of(rest, "a record");
    let record = match kind {
        OBJECT => Record::Object(read_object(&mut bytes)?),
        DROPPED => Record::Dropped(ObjectId(bytes.small()?)),
        STRINGS => Record::Strings(StoredStrings {
            object: ObjectId(bytes.small()?),
            column: bytes.small()?,
            first: bytes.small()?,
            strings: many(&mut bytes, |bytes| bytes.text())?,
        }),
        RANGES => Record::Ranges(ObjectId(bytes.small()?), read_ranges(&mut bytes)?),
        ROWS => Record::Rows(StoredCommit {
            object: ObjectId(bytes.small()?),
            owner: AeuId(bytes.small()?),
            added: many(&mut bytes, |bytes| {
                Ok((read_row(bytes)?, bytes.small()?, read_columns(bytes)?))
            })?,
            deleted: many(&mut bytes, |bytes| Ok((read_row(bytes)?, bytes.small()?)))?,
        }),
        CHUNK => Record::Chunk(StoredChunk {
            object: ObjectId(bytes.small()?),
            owner: AeuId(bytes.small()?),
            segment: read_segment(&mut bytes)?,
            ids: sets::read(&mut bytes)?,
            unseen: sets::read(&mut bytes)?,
            columns: read_columns(&mut bytes)?,
        }),
        DEFINITION => Record::Definition(DefinitionChange::Is(Definition {
            name: bytes.text()?.to_owned(),
            text: bytes.text()?.to_owned(),
            objects: many(&mut bytes, |bytes| Ok(ObjectId(bytes.small()?)))?,
        })),
        GONE => Record::Definition(DefinitionChange::IsGone(bytes.text()?.to_owned())),
        kind => return Err(RecordError::Kind(kind)),
    };
    bytes.end()?;
    Ok(record)
}

fn read_object(bytes: &mut Bytes<'_>) -> Result<StoredObject, RecordError> {
    let id = ObjectId(bytes.small()?);
    let key = many(bytes, |bytes| Ok(ColumnId(bytes.small()?)))?;
    let partitioning = match bytes.small::<u32>()? {
        0 => Partitioning::Size,
        column => Partitioning::Range(ColumnId(column - 1)),
    };
    let name = bytes.text()?.to_owned();
    let schema = read_schema(bytes.bytes()?)?;
    let columns = schema.fields().len();
    let is_column = |column: &ColumnId| column.index() < columns;
    let ranged = match partitioning {
        Partitioning::Size => None,
        Partitioning::Range(column) => Some(column),
    };
    if !key.iter().chain(&ranged).all(is_column) {
        return Err(BadBytes::Value("a key column").into());
    }
    Ok(StoredObject {
        id,
        name,
        schema,
        partitioning,
        key,
    })
}

/// Arrow panics at some bytes that are no schema.
fn read_schema(bytes: &[u8]) -> Result<SchemaRef, RecordError> {
    let read = || StreamReader::try_new(Cursor::new(bytes), None).map(|reader| reader.schema());
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(schema)) => Ok(schema),
        Ok(Err(error)) => Err(RecordError::Schema(error.to_string())),
        Err(_) => Err(RecordError::Schema("its bytes are none".to_owned())),
    }
}

fn read_ranges(bytes: &mut Bytes<'_>) -> Result<StoredRanges, BadBytes> {
    let common = bytes.bytes()?.to_vec();
    let bounds = many(bytes, |bytes| {
        Ok((read_signed(bytes)?, AeuId(bytes.small()?)))
    })?;
    let ascend = bounds.is_sorted_by(|one, next| one.0 < next.0);
    match bounds.first() {
        Some((i64::MIN, _)) if ascend => Ok(StoredRanges { common, bounds }),
        _ => Err(BadBytes::Value("a bound of ranges")),
    }
}

/// Reads as many as a number in front says.
fn many<'a, T>(
    bytes: &mut Bytes<'a>,
    mut one: impl FnMut(&mut Bytes<'a>) -> Result<T, BadBytes>,
) -> Result<Vec<T>, BadBytes> {
    let count: usize = bytes.small()?;
    // Each takes a byte at least: no more memory is asked for than there can be.
    if count > bytes.left().len() {
        return Err(BadBytes::Short("a list"));
    }
    (0..count).map(|_| one(bytes)).collect()
}

/// A row id: its segment, and its number in it.
fn put_row(body: &mut Vec<u8>, row: RowId) {
    put_number(body, row.segment().0);
    put_number(body, u64::from(row.0 as u32));
}

fn read_row(bytes: &mut Bytes<'_>) -> Result<RowId, BadBytes> {
    Ok(RowId::new(read_segment(bytes)?, bytes.small()?))
}

/// Row ids have room for so many segments.
fn read_segment(bytes: &mut Bytes<'_>) -> Result<SegmentId, BadBytes> {
    match bytes.number()? {
        segment if segment < 1 << 31 => Ok(SegmentId(segment)),
        _ => Err(BadBytes::Value("a segment")),
    }
}

fn put_signed(body: &mut Vec<u8>, number: i64) {
    put_number(body, (number << 1 ^ number >> 63) as u64);
}

fn read_signed(bytes: &mut Bytes<'_>) -> Result<i64, BadBytes> {
    let number = bytes.number()?;
    Ok((number >> 1) as i64 ^ -((number & 1) as i64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::{DataType, Field, Schema, TimeUnit};
    use eris_store::StoredRows;
    use std::sync::Arc;

    fn id(segment: u64, number: u32) -> RowId {
        RowId::new(SegmentId(segment), number)
    }

    /// Every record, and what it should be read as.
    fn each(check: impl Fn(&[u8], Record<'_>)) {
        let schema = Arc::new(Schema::new(vec![
            Field::new("k", DataType::Int64, true),
            Field::new("t", DataType::Timestamp(TimeUnit::Microsecond, None), true),
            Field::new("d", DataType::Decimal128(30, 4), true),
            Field::new("ä b", DataType::Utf8View, true),
        ]));
        let stored = StoredObject {
            id: ObjectId(300),
            name: "public.t".to_owned(),
            schema,
            partitioning: Partitioning::Range(ColumnId(1)),
            key: vec![ColumnId(3), ColumnId(0)],
        };
        check(&object(&stored), Record::Object(stored.clone()));
        check(&dropped(ObjectId(7)), Record::Dropped(ObjectId(7)));
        let texts = ["", "ä", "long enough for more than one byte of length"];
        check(
            &strings(ObjectId(7), 3, 200, texts.into_iter()),
            Record::Strings(StoredStrings {
                object: ObjectId(7),
                column: 3,
                first: 200,
                strings: texts.to_vec(),
            }),
        );
        let stored = StoredRanges {
            common: vec![1, 2],
            bounds: vec![(i64::MIN, AeuId(0)), (-3, AeuId(1)), (i64::MAX, AeuId(0))],
        };
        let body = ranges(ObjectId(7), &stored);
        check(&body, Record::Ranges(ObjectId(7), stored));
        let piece = |first, columns| StoredRows {
            first,
            rows: 2,
            columns,
        };
        let form = StoredIn::Bytes(b"form".to_vec());
        let segments = [
            CommittedRows {
                added: vec![
                    piece(id(1, 4), form),
                    piece(id(1, 6), StoredIn::ChunkFile(u64::MAX)),
                ],
                deleted: vec![id(1, 0), id(1, 1), id(1, 3)],
            },
            CommittedRows {
                added: vec![],
                deleted: vec![id(9, 5)],
            },
        ];
        let body = rows(ObjectId(7), AeuId(2), &segments).unwrap();
        assert!(body.len() as u64 <= rows_bytes(4, 2, 4));
        check(
            &body,
            Record::Rows(StoredCommit {
                object: ObjectId(7),
                owner: AeuId(2),
                added: vec![
                    (id(1, 4), 2, Columns::Here(b"form")),
                    (id(1, 6), 2, Columns::ChunkFile(u64::MAX)),
                ],
                deleted: vec![(id(1, 0), 2), (id(1, 3), 1), (id(9, 5), 1)],
            }),
        );
        for columns in [Columns::Here(b"form"), Columns::ChunkFile(300)] {
            let stored = || StoredChunk {
                object: ObjectId(7),
                owner: AeuId(2),
                segment: SegmentId(300),
                ids: vec![(7, 40), (100, 60)],
                unseen: vec![(0, 1), (99, 1)],
                columns,
            };
            check(&chunk(&stored()), Record::Chunk(stored()));
        }
        let is = DefinitionChange::Is(Definition {
            name: "table t".to_owned(),
            text: "CREATE TABLE t (k INTEGER)".to_owned(),
            objects: vec![ObjectId(7), ObjectId(1 << 30)],
        });
        for change in [is, DefinitionChange::IsGone("table u".to_owned())] {
            let body = definition(&change);
            assert!(body.len() as u64 <= definition_bytes(&change));
            check(&body, Record::Definition(change));
        }
    }

    #[test]
    fn records_are_read_as_they_were_written() {
        each(|body, record| assert_eq!(read(body).unwrap(), record));
        let none = [CommittedRows::default()];
        assert_eq!(rows(ObjectId(7), AeuId(0), &none), None);
    }

    #[test]
    fn what_is_cut_or_follows_is_an_error() {
        each(|body, _| {
            for end in 0..body.len() {
                assert!(read(&body[..end]).is_err(), "{end} of {body:?}");
            }
            assert!(read(&[body, &[0]].concat()).is_err());
        });
        assert!(matches!(read(&[99]), Err(RecordError::Kind(99))));
    }
}
