//! The stored form of a column chunk: what a log or a file keeps of it. docs/formats/column-chunk.md says it byte by
//! byte.
//!
//! ```text
//! tag │ rows │ validity │ range, widths, lengths, small sections │ 0 0 │▕ section ▏│ 0 │▕ section ▏
//!                                                                        from 4,096 bytes on, at a multiple of 64
//! a constant without NULLs   tag │ value
//! only NULLs                 tag
//!
//! tag   more │ kind: domain and encoding, 5 bits │ validity: 2 bits      more: what the chunk has beside its values
//! ```
//!
//! Values are written as they are encoded, and large sections by reference. Whoever reads a buffer that lies where the
//! column chunk is to lie gets its sections as parts of that buffer. Validity is copied, for query results keep it.
//!
//! Reading does not trust the bytes. It looks through all values, and what it accepts is as sound as what was encoded:
//! no reader of the chunk panics, and its zone is exact. Codes of a dictionary are the exception: the caller compares
//! the greatest one, which is in the zone, with the table's dictionary.

mod error;
mod integers;
mod packed;
mod plain;
mod reader;
mod stored_columns;
mod text;
mod writer;

pub use error::FormError;
pub use reader::FormReader;
pub use stored_columns::StoredColumns;
pub use writer::FormWriter;

use crate::CHUNK_ROWS;
use crate::chunk::ColumnChunk;
use crate::data::{Data, Integers, Plain};
use crate::distinct::DistinctSketch;
use crate::domain::Domain;
use crate::error::EncodeError;
use crate::floats::{TotalOrder, narrow};
use crate::object_memory::ObjectMemory;
use crate::resident;
use crate::strings::{StringKind, Strings};
use crate::validity::Validity;
use crate::zone::{Zone, ZoneRange};
use arrow_array::types::{BinaryViewType, StringViewType};
use arrow_schema::DataType;
use error::ensure;
use plain::Number;
use std::sync::OnceLock;

/// What large sections begin at multiples of: a cache line.
const ALIGN: usize = 64;
/// Sections of fewer bytes are not worth a piece of their own, nor keeping a buffer that others share.
const LARGE: usize = 4096;

/// In the tag: the next byte says what the chunk has beside its values.
const MORE: u8 = 1 << 7;
/// What it may have: a sketch of the distinct values.
const DISTINCT: u8 = 1;
/// Of a sketch so many registers are written one by one, at most; three bytes each.
const SPARSE: usize = DistinctSketch::REGISTERS / 3;
/// Instead of their number: all registers follow.
const DENSE: u64 = DistinctSketch::REGISTERS as u64;

// Numbers are written as they lie in memory.
const _: () = assert!(cfg!(target_endian = "little"));

/// The numbers of kinds: that of a domain plus that of an encoding.
mod kinds {
    pub(super) const INTEGERS: u8 = 0;
    pub(super) const CODES: u8 = 8;
    pub(super) const FLOAT32: u8 = 16;
    pub(super) const FLOAT64: u8 = 18;
    pub(super) const WIDE: u8 = 20;
    pub(super) const STRINGS: u8 = 24;
    pub(super) const BYTES: u8 = 28;

    pub(super) const CONSTANT: u8 = 0;
    // Of integers and codes.
    pub(super) const PACKED: u8 = 1;
    pub(super) const RUNS: u8 = 2;
    pub(super) const SHORT_RUNS: u8 = 3;
    pub(super) const FRAMED: u8 = 4;
    // Of floats and wide numbers.
    pub(super) const VALUES: u8 = 1;
    // Of strings and bytes.
    pub(super) const DICTIONARY: u8 = 1;
    pub(super) const FSST: u8 = 2;
    pub(super) const PLAIN: u8 = 3;
}

/// Validity as it is in a tag.
mod validities {
    pub(super) const ALL: u8 = 0;
    pub(super) const NONE: u8 = 1;
    pub(super) const BITMAP: u8 = 2;
}

impl ColumnChunk {
    /// Writes the stored form. Integers that are stored by a key order are written as integers, encoded anew in this
    /// home.
    ///
    /// # Errors
    /// [`EncodeError`]: the memory of the home is exhausted.
    pub fn store<'a>(
        &'a self,
        home: ObjectMemory<'_>,
        out: &mut FormWriter<'a>,
    ) -> Result<(), EncodeError> {
        if self.order().is_some() {
            let integers = self.without_order(home)?;
            let mut own = FormWriter::at(out.position());
            integers.store_as_encoded(&mut own);
            out.append(own);
        } else {
            self.store_as_encoded(out);
        }
        Ok(())
    }

    fn store_as_encoded<'a>(&'a self, out: &mut FormWriter<'a>) {
        let validity = match &self.validity {
            Validity::All => validities::ALL,
            Validity::None => validities::NONE,
            Validity::Bitmap(_) => validities::BITMAP,
        };
        let kind = self.kind();
        let tag = kind << 2 | validity;
        match self.distinct.get() {
            None => out.byte(tag),
            Some(sketch) => {
                out.byte(tag | MORE);
                out.byte(DISTINCT);
                store_registers(sketch.registers(), out);
            }
        }
        if validity == validities::NONE {
            return;
        }
        if validity == validities::BITMAP || !is_constant(kind) {
            out.number(self.rows as u64);
        }
        if let Validity::Bitmap(words) = &self.validity {
            packed::store_bits(words, self.rows, out);
        }
        match (&self.data, &self.zone.range) {
            (Data::Integers(Integers::Constant(value)), _) => out.signed(*value),
            (Data::Codes(Integers::Constant(code)), _) => out.number(*code as u64),
            (Data::Integers(integers), &ZoneRange::Integer(min, max)) => {
                integers::store(integers, (min, max), self.rows, out);
            }
            (Data::Codes(codes), &ZoneRange::Codes(min, max)) => {
                integers::store(codes, (min.into(), max.into()), self.rows, out);
            }
            (Data::Float32(plain), range) => plain::store(plain, single_range(range), out),
            (Data::Float64(plain), &ZoneRange::Float(min, max)) => {
                plain::store(plain, (min, max), out);
            }
            (Data::Float64(plain), _) => plain::store(plain, (0.0, 0.0), out),
            (Data::Wide(plain), &ZoneRange::Wide(min, max)) => plain::store(plain, (min, max), out),
            (Data::Wide(plain), _) => plain::store(plain, (0, 0), out),
            (Data::Strings(text), _) => text::store(text, self.rows, out),
            (Data::Bytes(bytes), _) => text::store(bytes, self.rows, out),
            (data, range) => unreachable!("{range:?} of {data:?}"),
        }
    }

    fn kind(&self) -> u8 {
        fn of<T: Number>(plain: &Plain<T>) -> u8 {
            match plain {
                Plain::Constant(_) => kinds::CONSTANT,
                Plain::Values(_) => kinds::VALUES,
            }
        }
        match &self.data {
            Data::Integers(integers) => kinds::INTEGERS + integers::kind(integers),
            Data::Codes(codes) => kinds::CODES + integers::kind(codes),
            Data::Float32(plain) => kinds::FLOAT32 + of(plain),
            Data::Float64(plain) => kinds::FLOAT64 + of(plain),
            Data::Wide(plain) => kinds::WIDE + of(plain),
            Data::Strings(text) => kinds::STRINGS + text::kind(text),
            Data::Bytes(bytes) => kinds::BYTES + text::kind(bytes),
            Data::Ordinals { .. } => unreachable!("ordinals are written as integers"),
        }
    }

    /// Reads the stored form of `rows` values of an Arrow type, each of which proves to be one. If text is
    /// [coded](Self::is_coded), the caller has to compare the greatest code of the [zone](Self::zone) with its
    /// dictionary, and to look whether it has one.
    ///
    /// # Errors
    /// [`FormError`]: this is no such form, or the memory of the home is exhausted. The reader is then anywhere.
    pub fn read(
        form: &mut FormReader<'_>,
        data_type: &DataType,
        rows: usize,
        home: ObjectMemory<'_>,
    ) -> Result<ColumnChunk, FormError> {
        let tag = form.byte()?;
        let distinct = match tag & MORE {
            0 => OnceLock::new(),
            _ => OnceLock::from(read_sketch(form)?),
        };
        let kind = (tag & !MORE) >> 2;
        if domain(kind).is_none() || domain(kind) != Domain::of(data_type) {
            return Err(FormError::Type(data_type.clone()));
        }
        let stored = match (tag & 3, is_constant(kind)) {
            (validities::NONE, true) => return only_nulls(kind, rows, distinct),
            (validities::ALL, true) => rows as u64,
            (validities::ALL | validities::BITMAP, _) => form.number()?,
            _ => return Err(FormError::Encoding(tag)),
        };
        if stored != rows as u64 || rows > CHUNK_ROWS {
            let expected = rows;
            return Err(FormError::Rows { stored, expected });
        }
        ensure(
            is_constant(kind) || rows >= 2,
            "few rows that are no constant",
        )?;
        let validity = match tag & 3 {
            validities::BITMAP => read_validity(rows, form, home)?,
            _ => Validity::All,
        };
        let nulls = match &validity {
            Validity::Bitmap(words) => rows - eris_kernels::popcount(words) as usize,
            _ => 0,
        };
        let (data, range) = read_data(kind, rows, &validity, form, home)?;
        check_type(&range, data_type)?;
        let range = if rows == 0 { ZoneRange::Empty } else { range };
        Ok(ColumnChunk {
            rows,
            zone: Zone { nulls, range },
            data,
            validity,
            distinct,
        })
    }
}

/// The sketch of the values, behind a tag that says that there is more.
fn read_sketch(form: &mut FormReader<'_>) -> Result<DistinctSketch, FormError> {
    if form.byte()? != DISTINCT {
        return Err(FormError::Version);
    }
    let hit = form.number()?;
    let none = FormError::Damaged("a sketch that is none");
    let registers = match hit {
        DENSE => form.bytes(DistinctSketch::REGISTERS, <[u8]>::to_vec)?,
        hit if hit > SPARSE as u64 => return Err(none),
        hit => {
            let mut registers = vec![0; DistinctSketch::REGISTERS];
            for _ in 0..hit {
                let [low, high, rank] = form.array()?;
                match registers.get_mut(usize::from(u16::from_le_bytes([low, high]))) {
                    Some(register) if *register == 0 && rank > 0 => *register = rank,
                    _ => return Err(none),
                }
            }
            registers
        }
    };
    DistinctSketch::of_registers(&registers).ok_or(none)
}

/// Writes all registers, or if few are not 0, these.
fn store_registers(registers: &[u8], out: &mut FormWriter<'_>) {
    let hit = registers.iter().filter(|&&rank| rank > 0).count();
    if hit > SPARSE {
        out.number(DENSE);
        return out.bytes(registers);
    }
    out.number(hit as u64);
    for (register, &rank) in (0u16..).zip(registers).filter(|(_, rank)| **rank > 0) {
        let [low, high] = register.to_le_bytes();
        out.bytes(&[low, high, rank]);
    }
}

/// Whether a kind is that of a constant.
fn is_constant(kind: u8) -> bool {
    use kinds::*;
    [INTEGERS, CODES, FLOAT32, FLOAT64, WIDE, STRINGS, BYTES].contains(&kind)
}

/// The domain of a kind; not every number of such a domain is an encoding.
fn domain(kind: u8) -> Option<Domain> {
    use kinds::*;
    Some(match kind {
        INTEGERS..CODES => Domain::Integer,
        CODES..FLOAT32 | STRINGS..BYTES => Domain::String,
        FLOAT32..FLOAT64 => Domain::Float32,
        FLOAT64..WIDE => Domain::Float64,
        WIDE..=21 => Domain::Wide,
        BYTES..=31 => Domain::Bytes,
        _ => return None,
    })
}

/// The range of single floats, of which a zone has the widened ends.
fn single_range(range: &ZoneRange) -> (f32, f32) {
    match *range {
        ZoneRange::Float(min, max) => {
            let (low, high) = narrow(min.key(), max.key());
            (f32::from_key(low), f32::from_key(high))
        }
        _ => (0.0, 0.0),
    }
}

fn read_validity(
    rows: usize,
    form: &mut FormReader<'_>,
    home: ObjectMemory<'_>,
) -> Result<Validity, FormError> {
    let words = resident::numbers(packed::read_bits(rows, form, home)?);
    let valid = eris_kernels::popcount(&words) as usize;
    ensure(
        valid > 0 && valid < rows,
        "a bitmap without NULLs, or of nothing else",
    )?;
    Ok(Validity::Bitmap(words))
}

/// A chunk of only NULLs.
fn only_nulls(
    kind: u8,
    rows: usize,
    distinct: OnceLock<DistinctSketch>,
) -> Result<ColumnChunk, FormError> {
    ensure(rows > 0, "NULLs without rows")?;
    if rows > CHUNK_ROWS {
        let stored = rows as u64;
        return Err(FormError::Rows {
            stored,
            expected: CHUNK_ROWS,
        });
    }
    let zone = Zone {
        nulls: rows,
        range: ZoneRange::Empty,
    };
    Ok(ColumnChunk {
        rows,
        zone,
        data: nothing(kind),
        validity: Validity::None,
        distinct,
    })
}

/// The constant of a kind that stands for no value.
fn nothing(kind: u8) -> Data {
    match kind {
        kinds::CODES => Data::Codes(Integers::Constant(0)),
        kinds::FLOAT32 => Data::Float32(Plain::Constant(0.0)),
        kinds::FLOAT64 => Data::Float64(Plain::Constant(0.0)),
        kinds::WIDE => Data::Wide(Plain::Constant(0)),
        kinds::STRINGS => Data::Strings(text::constant(StringViewType::empty())),
        kinds::BYTES => Data::Bytes(text::constant(BinaryViewType::empty())),
        _ => Data::Integers(Integers::Constant(0)),
    }
}

/// Reads values, and their range.
fn read_data(
    kind: u8,
    rows: usize,
    validity: &Validity,
    form: &mut FormReader<'_>,
    home: ObjectMemory<'_>,
) -> Result<(Data, ZoneRange), FormError> {
    use kinds::*;
    Ok(match kind {
        INTEGERS..CODES if is_constant(kind) => {
            let value = form.signed()?;
            let range = ZoneRange::Integer(value, value);
            (Data::Integers(Integers::Constant(value)), range)
        }
        CODES..FLOAT32 if is_constant(kind) => {
            let code = code(form.number()?)?;
            (
                Data::Codes(Integers::Constant(code.into())),
                ZoneRange::Codes(code, code),
            )
        }
        INTEGERS..CODES => {
            let (integers, min, max) = read_integers(kind - INTEGERS, rows, validity, form, home)?;
            (Data::Integers(integers), ZoneRange::Integer(min, max))
        }
        CODES..FLOAT32 => {
            let (codes, min, max) = read_integers(kind - CODES, rows, validity, form, home)?;
            let range = ZoneRange::Codes(code(min as u64)?, code(max as u64)?);
            (Data::Codes(codes), range)
        }
        FLOAT32..FLOAT64 => {
            let (plain, min, max) = read_plain(kind - FLOAT32, rows, validity, form, home)?;
            let range = ZoneRange::Float(f32::widen(min), f32::widen(max));
            (Data::Float32(plain), range)
        }
        FLOAT64..WIDE => {
            let (plain, min, max) = read_plain(kind - FLOAT64, rows, validity, form, home)?;
            (Data::Float64(plain), ZoneRange::Float(min, max))
        }
        WIDE..STRINGS => {
            let (plain, min, max) = read_plain(kind - WIDE, rows, validity, form, home)?;
            (Data::Wide(plain), ZoneRange::Wide(min, max))
        }
        STRINGS..BYTES => {
            let (text, range) = read_strings(kind - STRINGS, rows, validity, form, home)?;
            (Data::Strings(text), range)
        }
        _ => {
            let (bytes, range) = read_strings(kind - BYTES, rows, validity, form, home)?;
            (Data::Bytes(bytes), range)
        }
    })
}

fn code(number: u64) -> Result<u32, FormError> {
    u32::try_from(number).map_err(|_| FormError::Damaged("a code of more than 32 bits"))
}

fn read_integers(
    encoding: u8,
    rows: usize,
    validity: &Validity,
    form: &mut FormReader<'_>,
    home: ObjectMemory<'_>,
) -> Result<(Integers, i64, i64), FormError> {
    let (integers, min, max) = integers::read(encoding, rows, form, home)?;
    if let Validity::Bitmap(_) = validity {
        // The slots of NULLs are within the range, too, and must not be the only ones at its ends.
        let occurs = |value| integers::occurs(&integers, value, rows, validity);
        ensure(occurs(min) && occurs(max), "a range that no value has")?;
    }
    Ok((integers, min, max))
}

fn read_plain<T: Number>(
    encoding: u8,
    rows: usize,
    validity: &Validity,
    form: &mut FormReader<'_>,
    home: ObjectMemory<'_>,
) -> Result<(Plain<T>, T, T), FormError> {
    match encoding {
        kinds::CONSTANT => {
            let value = T::read(form)?;
            Ok((Plain::Constant(value), value, value))
        }
        _ => plain::read(rows, validity, form, home),
    }
}

fn read_strings<T: StringKind>(
    encoding: u8,
    rows: usize,
    validity: &Validity,
    form: &mut FormReader<'_>,
    home: ObjectMemory<'_>,
) -> Result<(Strings<T>, ZoneRange), FormError> {
    match encoding {
        kinds::CONSTANT => text::read_constant(form),
        _ => text::read(encoding, rows, validity, form, home),
    }
}

/// Whether values within a range are of a type that has fewer than 64 bits.
fn check_type(range: &ZoneRange, data_type: &DataType) -> Result<(), FormError> {
    use DataType::*;
    let &ZoneRange::Integer(min, max) = range else {
        return Ok(());
    };
    let (low, high) = match data_type {
        Boolean => (0, 1),
        Int8 => (i8::MIN.into(), i8::MAX.into()),
        Int16 => (i16::MIN.into(), i16::MAX.into()),
        Int32 | Date32 => (i32::MIN.into(), i32::MAX.into()),
        UInt8 => (0, u8::MAX.into()),
        UInt16 => (0, u16::MAX.into()),
        UInt32 => (0, u32::MAX.into()),
        _ => return Ok(()),
    };
    ensure(
        low <= min && max <= high,
        "a value that its type does not have",
    )
}
