//! Conditions that no test decides: they are computed on gathered rows, window by window.

use super::run::ChunkInput;
use crate::expr::{Expression, Frame};
use crate::window::Windows;
use arrow_buffer::BooleanBuffer;
use eris_column::Selection;
use eris_fragment::FragmentError;
use eris_kernels::{MASK_WORDS, VECTOR};

/// Rows that a condition is evaluated on at a time.
const WINDOW_ROWS: usize = 4_096;

const _: () = assert!(WINDOW_ROWS.is_multiple_of(VECTOR) && VECTOR == MASK_WORDS * 64);

/// Takes the rows out of the selection for which the condition does not hold.
pub(super) fn filter(
    condition: &Expression,
    input: &ChunkInput<'_>,
    selection: &mut Selection,
) -> Result<(), FragmentError> {
    let mut windows = Windows::new(WINDOW_ROWS);
    let mut from = 0;
    while let Some(window) = windows.next(selection) {
        let holds = condition.holds(&gather(condition, input, window))?;
        let until = windows.end();
        retain(&mut selection.words_mut()[from..until], &holds);
        from = until;
    }
    Ok(())
}

/// What the condition reads of the selected rows.
fn gather(condition: &Expression, input: &ChunkInput<'_>, rows: &Selection) -> Frame {
    let columns = input.columns;
    let mut gathered = vec![None; columns.ids.len()];
    for &column in &condition.columns {
        gathered[column] = Some(input.chunk(column).gather(
            input.isa,
            rows,
            &columns.data_types[column],
            columns.dictionaries[column].as_ref(),
        ));
    }
    Frame {
        rows: rows.count(),
        columns: gathered,
    }
}

/// Keeps the `n`-th set bit of `words` only if the `n`-th bit of `keep` is set.
fn retain(words: &mut [u64], keep: &BooleanBuffer) {
    let mut next = 0;
    for word in words {
        let mut left = *word;
        while left != 0 {
            let bit = left & left.wrapping_neg();
            if !keep.value(next) {
                *word &= !bit;
            }
            next += 1;
            left ^= bit;
        }
    }
    debug_assert_eq!(next, keep.len());
}

#[cfg(test)]
mod tests {
    use super::retain;

    #[test]
    fn bits_are_kept_by_their_number() {
        let mut words = [0b1011_0000, 0, 1 << 63 | 1];
        retain(
            &mut words,
            &[true, false, true, false, true].into_iter().collect(),
        );
        assert_eq!(words, [0b1001_0000, 0, 1 << 63]);
    }
}
