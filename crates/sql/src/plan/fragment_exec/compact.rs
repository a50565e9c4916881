//! From the leaf's expressions over the table's columns to a fragment over those that are needed.
//!
//! ```text
//! columns of the table │ parameters │ columns of the sides          the leaf
//!      0 … 16          │   17, 18   │  19 … 24
//!      ▼                    ▼            ▼
//! those that are used  │  literals  │ those that are chosen         the fragment
//! ```

use super::FragmentExec;
use super::columns::{expressions, replace_columns};
use super::star::BuildSides;
use crate::plan::dynamic_filter;
use datafusion::error::Result;
use eris_fragment::{Expr, Fragment, Probe};

impl FragmentExec {
    /// The fragment, with the dynamic filters as they are now.
    pub(super) async fn fragment(&self, build_sides: Option<BuildSides>) -> Result<Fragment> {
        let mut inputs = self.inputs();
        // What is joined is not there to be tested.
        let own = self.scan.types.len();
        for input in &mut inputs {
            input.take_if(|expr| {
                let mut joined = false;
                expr.for_each_column(&mut |column| joined |= column >= own);
                joined
            });
        }
        let scope = self.scope(&self.schema, &inputs);
        let known = dynamic_filter::harvest(&self.dynamic, &scope, &self.scan.statistics).await?;
        let filter = self.filter.iter().cloned().chain(known.filter).collect();
        self.compact(filter, known.probes, build_sides)
    }

    /// The fragment that reads only the columns it needs, with values for parameters.
    pub(super) fn compact(
        &self,
        mut filter: Vec<Expr>,
        mut probes: Vec<Probe>,
        build_sides: Option<BuildSides>,
    ) -> Result<Fragment> {
        let mut output = self.output.clone();
        let mut order = self.order.clone();
        let mut used = Vec::new();
        let columns = self.scan.parameters();
        let chosen = self.chosen();
        let mut lookups = Vec::new();
        if let Some(build_sides) = build_sides {
            let more;
            (lookups, more) = build_sides.into_parts(&chosen, &output)?;
            probes.extend(more);
        }
        let mut note = |column: usize| {
            if column < columns && !used.contains(&column) {
                used.push(column);
            }
        };
        filter
            .iter()
            .for_each(|expr| expr.for_each_column(&mut note));
        probes.iter().for_each(|probe| note(probe.column));
        lookups.iter().for_each(|lookup| note(lookup.column));
        expressions(&mut output)
            .into_iter()
            .for_each(|expr| expr.for_each_column(&mut note));
        let keys = order.iter().flat_map(|order| &order.keys);
        keys.for_each(|key| note(key.column));
        used.sort_unstable();
        let place = |column: usize| used.binary_search(&column).expect("noted above");
        // What is joined is called by its place among all that is chosen of the sides.
        let own = self.scan.types.len();
        let joined: Vec<usize> = self.joined_columns(&chosen);
        let replacement = |column: usize| match column.checked_sub(columns) {
            None => Expr::Column(place(column)),
            Some(_) if column >= own => {
                let joined = joined.iter().position(|other| *other == column - own);
                Expr::Column(used.len() + joined.expect("chosen above"))
            }
            Some(parameter) => Expr::Literal(self.scan.values[parameter].clone()),
        };
        filter
            .iter_mut()
            .for_each(|expr| replace_columns(expr, &replacement));
        probes
            .iter_mut()
            .for_each(|probe| probe.column = place(probe.column));
        lookups
            .iter_mut()
            .for_each(|lookup| lookup.column = place(lookup.column));
        expressions(&mut output)
            .into_iter()
            .for_each(|expr| replace_columns(expr, &replacement));
        if let Some(order) = &mut order {
            order
                .keys
                .iter_mut()
                .for_each(|key| key.column = place(key.column));
        }
        let snapshot = &self.scan.snapshot;
        let snapshot = snapshot.as_ref().expect("a plan that runs has a snapshot");
        Ok(Fragment {
            object: self.scan.table.object,
            snapshot: snapshot.at(),
            order,
            columns: used
                .iter()
                .map(|column| self.scan.column_id(*column))
                .collect(),
            filter,
            probes,
            lookups,
            output,
            options: self.scan.options,
        })
    }
}
