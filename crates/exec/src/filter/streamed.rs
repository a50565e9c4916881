//! Which columns of a chunk will be read from end to end: what is worth copying from afar before.

use super::classify::Filter;
use super::order::arrange;
use super::run::FilterState;
use crate::columns::FragmentColumns;
use eris_store::Chunk;

/// Columns are read row by row once no more than this share of the rows is left: see `FEW_TESTED`.
const FEW_SHARE: f64 = 1.0 / 16.0;

impl Filter {
    /// The positions of columns that are read as a stream, and whether that holds for output columns. It follows the
    /// order of the tests and the rates at which rows passed them so far. `None`: the zones show that no row passes.
    pub(crate) fn streamed(
        &self,
        chunk: &Chunk,
        columns: &FragmentColumns,
        state: &mut FilterState,
    ) -> Option<(Vec<usize>, bool)> {
        if self.never {
            return None;
        }
        let mut tests = Vec::with_capacity(self.tests.len());
        let all = self.tests.iter().zip(&mut state.by_order);
        for (number, (test, known)) in all.enumerate() {
            let column = chunk.column(columns.ids[test.column]);
            let form = test.form(column, known);
            if form.excludes(column) {
                return None;
            }
            if !form.covers(column) {
                tests.push((number, form.cost(column), state.rates[number].share()));
            }
        }
        arrange(&mut tests);
        let mut share = 1.0;
        let mut streamed = Vec::new();
        for (number, _, pass) in tests {
            if share > FEW_SHARE {
                streamed.push(self.tests[number].column);
            }
            share *= pass;
        }
        if share > FEW_SHARE {
            streamed.extend(
                self.residual
                    .iter()
                    .flat_map(|condition| &condition.columns),
            );
        }
        Some((streamed, share > FEW_SHARE))
    }
}
