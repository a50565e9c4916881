//! Aligned columns for people.
//!
//! ```text
//! ┌──────┬─────────┐
//! │ year │ revenue │      numbers to the right, text to the left,
//! ├──────┼─────────┤      NULL spelled out, control characters escaped
//! │ 1994 │   12.50 │
//! │ NULL │    0.10 │
//! └──────┴─────────┘
//! ```
//!
//! The first [`SAMPLE`] rows decide the widths; the rows after them are written as they come, and a wider value pushes
//! its line out of alignment, or is shortened where the table is fitted to a screen, instead of making the program hold
//! a result of any size. Where only some rows are to be seen, the first and the last of them are held.

use super::cell::{self, Cell, Kind};
use super::fit::{self, Size, Slot, fits, shorten};
use super::record::{self, RecordWriter};
use super::{Expanded, FormatError, Layout, ResultWriter, Shown};
use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use std::collections::VecDeque;
use std::io::Write;
use unicode_width::UnicodeWidthStr;

/// Rows that are held to find the columns' widths.
const SAMPLE: usize = 1_000;

/// Writes one result as a table.
pub struct TableWriter<W> {
    /// `None` behind the switch to records.
    out: Option<W>,
    layout: Layout,
    names: Vec<String>,
    numbers: Vec<bool>,
    state: State<W>,
    /// Rows of the last ones that were pushed out by later ones.
    missing: usize,
}

enum State<W> {
    /// The first rows, while widths are still being found; where rows are limited, the last ones, too.
    Held {
        first: Vec<Vec<Cell>>,
        last: VecDeque<Vec<Cell>>,
    },
    /// The head is written.
    Columns(Vec<Slot>),
    /// It was too wide, and becomes records.
    Records(RecordWriter<W>),
}

impl<W: Write> TableWriter<W> {
    /// A writer into `out`.
    pub fn new(out: W, layout: Layout) -> Self {
        TableWriter {
            out: Some(out),
            layout,
            names: Vec::new(),
            numbers: Vec::new(),
            state: State::Held {
                first: Vec::new(),
                last: VecDeque::new(),
            },
            missing: 0,
        }
    }

    fn write(&mut self, text: &str) -> Result<(), FormatError> {
        let out = self.out.as_mut().expect("there until records take it");
        Ok(out.write_all(text.as_bytes())?)
    }

    fn rule(
        &mut self,
        slots: &[Slot],
        [left, middle, right]: [&str; 3],
    ) -> Result<(), FormatError> {
        let mut line = String::from(left);
        for (position, slot) in slots.iter().enumerate() {
            if position > 0 {
                line.push_str(middle);
            }
            line.extend(std::iter::repeat_n('─', slot_width(slot) + 2));
        }
        line.push_str(right);
        line.push('\n');
        self.write(&line)
    }

    /// One line of the table; `shown` gives the text of a column and how it looks.
    fn line<'a>(
        &mut self,
        slots: &[Slot],
        shown: impl Fn(usize) -> (&'a str, &'static str),
    ) -> Result<(), FormatError> {
        let mut line = String::new();
        for slot in slots {
            let ((text, look), width, right) = match slot {
                Slot::Column { index, width } => (shown(*index), *width, self.numbers[*index]),
                Slot::Gap => (("…", ""), 1, false),
            };
            let text = match self.layout.width {
                Some(_) => shorten(text, width),
                None => text.into(),
            };
            let fill = width.saturating_sub(text.width());
            let (before, after) = if right { (fill, 0) } else { (0, fill) };
            line.push_str("│ ");
            line.extend(std::iter::repeat_n(' ', before));
            if look.is_empty() || !self.layout.style {
                line.push_str(&text);
            } else {
                line.push_str(look);
                line.push_str(&text);
                line.push_str("\x1b[0m");
            }
            line.extend(std::iter::repeat_n(' ', after + 1));
        }
        line.push_str("│\n");
        self.write(&line)
    }

    fn row(&mut self, slots: &[Slot], cells: &[Cell]) -> Result<(), FormatError> {
        let look = |cell: &Cell| if cell.null { "\x1b[2m" } else { "" };
        self.line(slots, |index| (&cells[index].text, look(&cells[index])))
    }

    fn sizes(&self, rows: &[Vec<Cell>]) -> Vec<Size> {
        let mut sizes: Vec<Size> = (self.names.iter().zip(&self.numbers))
            .map(|(name, number)| Size {
                head: if self.layout.headers { name.width() } else { 0 },
                values: 0,
                number: *number,
            })
            .collect();
        for row in rows {
            for (size, cell) in sizes.iter_mut().zip(row) {
                size.values = size.values.max(cell.text.width());
            }
        }
        sizes
    }

    /// Fixes the widths and writes what was held.
    fn release(&mut self) -> Result<(), FormatError> {
        let State::Held { first, last } = &mut self.state else {
            return Ok(());
        };
        let before_gap = first.len();
        let mut rows = std::mem::take(first);
        rows.extend(last.drain(..));
        let sizes = self.sizes(&rows);
        if self.layout.expanded == Expanded::Auto && !fits(&sizes, self.layout.width) {
            let out = self.out.take().expect("there until now");
            let mut records = RecordWriter::new(out, self.layout.clone());
            records.names(std::mem::take(&mut self.names));
            let written = rows.iter().try_for_each(|row| records.record(row));
            self.state = State::Records(records);
            return written;
        }
        let slots = fit::fit(&sizes, self.layout.width);
        self.rule(&slots, ["┌", "┬", "┐"])?;
        if self.layout.headers {
            let names = std::mem::take(&mut self.names);
            self.line(&slots, |index| (&names[index], "\x1b[1m"))?;
            self.rule(&slots, ["├", "┼", "┤"])?;
        }
        for (position, row) in rows.iter().enumerate() {
            if position == before_gap && self.missing > 0 {
                self.line(&slots, |_| ("⋮", ""))?;
            }
            self.row(&slots, row)?;
        }
        self.state = State::Columns(slots);
        Ok(())
    }

    /// Holds what a limit lets be seen of a batch.
    fn hold(&mut self, batch: &RecordBatch, limit: usize) -> Result<(), FormatError> {
        let State::Held { first, last } = &mut self.state else {
            return Ok(());
        };
        let (firsts, lasts) = (limit.div_ceil(2), limit / 2);
        let null = self.layout.null();
        let rows = batch.num_rows();
        let head = rows.min(firsts.saturating_sub(first.len()));
        first.extend(cell::rows(batch, 0..head, null)?);
        // What later rows of the same batch push out need not be made into text.
        let tail = head.max(rows.saturating_sub(lasts));
        self.missing += tail - head;
        last.extend(cell::rows(batch, tail..rows, null)?);
        while last.len() > lasts {
            last.pop_front();
            self.missing += 1;
        }
        Ok(())
    }
}

fn slot_width(slot: &Slot) -> usize {
    match slot {
        Slot::Column { width, .. } => *width,
        Slot::Gap => 1,
    }
}

impl<W: Write> ResultWriter for TableWriter<W> {
    fn begin(&mut self, schema: &Schema) -> Result<(), FormatError> {
        let fields = schema.fields().iter();
        self.numbers = fields
            .map(|field| Kind::of(field.data_type()) == Kind::Number)
            .collect();
        self.names = record::names(schema);
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), FormatError> {
        if let Some(limit) = self.layout.rows {
            return self.hold(batch, limit);
        }
        for row in cell::rows(batch, 0..batch.num_rows(), self.layout.null())? {
            match &mut self.state {
                State::Held { first, .. } => {
                    first.push(row);
                    if first.len() >= SAMPLE {
                        self.release()?;
                    }
                }
                State::Columns(slots) => {
                    let slots = std::mem::take(slots);
                    self.row(&slots, &row)?;
                    self.state = State::Columns(slots);
                }
                State::Records(records) => records.record(&row)?,
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), FormatError> {
        self.release()?;
        match &mut self.state {
            State::Columns(slots) => {
                let slots = std::mem::take(slots);
                self.rule(&slots, ["└", "┴", "┘"])?;
                self.state = State::Columns(slots);
                Ok(())
            }
            State::Held { .. } | State::Records(_) => Ok(()),
        }
    }

    fn shown(&self) -> Shown {
        let rows = self.layout.rows.filter(|_| self.missing > 0);
        let columns = match &self.state {
            State::Columns(slots) if slots.contains(&Slot::Gap) => {
                Some((slots.len() - 1, self.numbers.len()))
            }
            _ => None,
        };
        match (rows, columns) {
            (None, None) => Shown::All,
            (rows, columns) => Shown::Part { rows, columns },
        }
    }
}

#[cfg(test)]
mod tests;
