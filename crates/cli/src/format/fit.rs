//! Which columns of a table fit on the screen, and how wide each may be.
//!
//! ```text
//! │ id │ a long text that says… │ … │ total │      first the texts are shortened, the longest first,
//!                                 ▲               then columns in the middle are left out;
//!                                                 numbers are never shortened: half a number is a wrong number
//! ```

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Texts are not shortened below this width.
const LEAST: usize = 8;
/// What a column takes beside its text: a line and two blanks.
const FRAME: usize = 3;

/// The natural size of a column.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    /// Width of its name.
    pub head: usize,
    /// Width of its widest value.
    pub values: usize,
    /// Whether its values are numbers.
    pub number: bool,
}

/// What stands at one place of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// A column.
    Column {
        /// Which.
        index: usize,
        /// Its width, without frame.
        width: usize,
    },
    /// `…` for columns that are left out.
    Gap,
}

impl Size {
    fn natural(self) -> usize {
        self.head.max(self.values)
    }

    fn least(self) -> usize {
        if self.number {
            self.values.max(self.head.min(LEAST))
        } else {
            self.natural().min(LEAST)
        }
    }
}

/// Width of a table with columns of these widths.
fn total(widths: impl Iterator<Item = usize>) -> usize {
    1 + widths.map(|width| width + FRAME).sum::<usize>()
}

/// Whether columns of these sizes fit without loss.
pub fn fits(sizes: &[Size], room: Option<usize>) -> bool {
    room.is_none_or(|room| total(sizes.iter().map(|size| size.natural())) <= room)
}

/// The slots of a table in so much room. Where not even one column has room, the first is shown nevertheless.
pub fn fit(sizes: &[Size], room: Option<usize>) -> Vec<Slot> {
    let all: Vec<usize> = (0..sizes.len()).collect();
    let Some(room) = room else {
        return slots(sizes, &all, usize::MAX);
    };
    let least = |columns: &[usize]| total(columns.iter().map(|column| sizes[*column].least()));
    if least(&all) <= room {
        return slots(sizes, &all, room);
    }
    let room = room.saturating_sub(FRAME + 1);
    let (mut left, mut right) = (vec![0], Vec::new());
    // From both ends in turn, as long as there is room.
    for turn in 1..sizes.len() {
        let next = if turn % 2 == 1 {
            sizes.len() - 1 - right.len()
        } else {
            left.len()
        };
        let mut tried = [&left[..], &right[..]].concat();
        tried.push(next);
        if least(&tried) > room {
            break;
        }
        if turn % 2 == 1 {
            right.push(next);
        } else {
            left.push(next);
        }
    }
    right.reverse();
    let chosen = [&left[..], &right[..]].concat();
    let mut slots = slots(sizes, &chosen, room);
    slots.insert(left.len(), Slot::Gap);
    slots
}

/// These columns, shortened as little as the room allows.
fn slots(sizes: &[Size], columns: &[usize], room: usize) -> Vec<Slot> {
    let width = |column: &usize, cap: usize| {
        let size = sizes[*column];
        size.least().max(size.natural().min(cap))
    };
    let fits = |cap: usize| total(columns.iter().map(|column| width(column, cap))) <= room;
    let widest = columns.iter().map(|column| sizes[*column].natural()).max();
    let cap = (LEAST..=widest.unwrap_or(0))
        .rev()
        .find(|cap| fits(*cap))
        .unwrap_or(LEAST);
    columns
        .iter()
        .map(|column| Slot::Column {
            index: *column,
            width: width(column, cap),
        })
        .collect()
}

/// The text in at most `width` columns; `…` stands for what is missing.
pub fn shorten(text: &str, width: usize) -> std::borrow::Cow<'_, str> {
    if text.width() <= width {
        return text.into();
    }
    let (mut used, mut end) = (0, 0);
    for (at, character) in text.char_indices() {
        used += character.width().unwrap_or(0);
        if used + 1 > width {
            break;
        }
        end = at + character.len_utf8();
    }
    format!("{}…", &text[..end]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(values: usize) -> Size {
        Size {
            head: 4,
            values,
            number: false,
        }
    }

    fn number(values: usize) -> Size {
        Size {
            head: 1,
            values,
            number: true,
        }
    }

    /// Widths of the columns that are shown, 0 for a gap.
    fn widths(sizes: &[Size], room: usize) -> Vec<usize> {
        let slots = fit(sizes, Some(room));
        let widths: Vec<_> = slots
            .iter()
            .map(|slot| match slot {
                Slot::Column { width, .. } => *width,
                Slot::Gap => 0,
            })
            .collect();
        let shown = slots.iter().map(|slot| match slot {
            Slot::Column { width, .. } => *width,
            Slot::Gap => 1,
        });
        assert!(total(shown) <= room || slots.len() <= 2, "{widths:?}");
        widths
    }

    #[test]
    fn what_fits_stays_as_it_is() {
        assert_eq!(widths(&[text(10), number(5)], 80), [10, 5]);
        assert!(fits(&[text(10), number(5)], Some(22)));
        assert!(!fits(&[text(10), number(5)], Some(21)));
    }

    #[test]
    fn the_longest_texts_are_shortened_first_and_numbers_never() {
        assert_eq!(widths(&[text(10), number(20), text(100)], 80), [10, 20, 40]);
        assert_eq!(widths(&[text(100), text(100)], 47), [20, 20]);
    }

    #[test]
    fn columns_in_the_middle_give_way() {
        let sizes = [number(10); 20];
        let slots = fit(&sizes, Some(80));
        let indices: Vec<_> = slots
            .iter()
            .map(|slot| match slot {
                Slot::Column { index, .. } => index.to_string(),
                Slot::Gap => "…".into(),
            })
            .collect();
        assert_eq!(indices, ["0", "1", "2", "…", "18", "19"]);
        assert_eq!(widths(&[number(100), number(3)], 20), [100, 0]);
    }

    #[test]
    fn a_shortened_text_shows_that_it_is() {
        assert_eq!(shorten("abcdef", 6), "abcdef");
        assert_eq!(shorten("abcdefg", 6), "abcde…");
        // Wide characters take two columns each.
        assert_eq!(shorten("日本語", 5), "日本…");
        assert_eq!(shorten("日本語", 4), "日…");
    }
}
