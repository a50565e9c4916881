//! What each AEU has of a table, and what it is asked for: what `eris.partitions` shows.

use crate::clients::engine::Engine;
use crate::error::EngineError;
use crate::object::data_object::DataObject;
use crate::object::keys::Keys;
use crate::object::ranges::Assignment;
use eris_home::{PartitionStatus, Partitioning};
use eris_types::{AeuId, ObjectId};
use std::time::Duration;

impl Engine {
    /// The partitions of a table, one of each AEU.
    ///
    /// # Errors
    /// There is no such object.
    pub fn partitions(&self, id: ObjectId) -> Result<Vec<PartitionStatus>, EngineError> {
        let object = self.object(id)?;
        let assignment = object.ranges.get();
        let (time, loads) = object.loads.lately();
        let per_second = |what: f64| what / time.max(Duration::from_micros(1)).as_secs_f64();
        let places = self.topology().aeus().iter().zip(loads);
        let partitions = places.map(|(place, load)| {
            let has = object.partition_statistics(place.aeu);
            PartitionStatus {
                aeu: place.aeu,
                node: place.node,
                ranges: (assignment.as_ref())
                    .map(|assignment| object.shown_ranges(assignment, place.aeu)),
                rows: has.rows.saturating_sub(has.deleted),
                bytes: has.bytes,
                accesses: per_second(load.keys as f64),
                scanned: per_second(load.read as f64),
                // One part in some is timed: by chance these may be the long ones.
                busy: per_second(load.busy().as_secs_f64()).min(1.0),
            }
        });
        Ok(partitions.collect())
    }
}

impl DataObject {
    /// The ranges of an AEU as text, ascending.
    fn shown_ranges(&self, assignment: &Assignment, aeu: AeuId) -> String {
        let ranges = assignment.ranges().filter(|(.., owner)| *owner == aeu);
        let shown = ranges.map(|(low, high, _)| self.shown_range(assignment, low, high));
        let shown: Vec<String> = shown.collect();
        match shown.is_empty() {
            true => "none".to_owned(),
            false => shown.join(", "),
        }
    }

    /// Keys with numbers from `low` to before `high`.
    pub(crate) fn shown_range(
        &self,
        assignment: &Assignment,
        low: Option<i64>,
        high: Option<i64>,
    ) -> String {
        let low = low.map(|low| format!(">= {}", self.shown_bound(assignment, low)));
        let high = high.map(|high| format!("< {}", self.shown_bound(assignment, high)));
        match (low, high) {
            (Some(low), Some(high)) => format!("{low} and {high}"),
            (low, high) => low.or(high).unwrap_or_else(|| "all".to_owned()),
        }
    }

    /// The key at which a range begins.
    fn shown_bound(&self, assignment: &Assignment, number: i64) -> String {
        let keys = Keys::Words(vec![number as u64 ^ 1 << 63]);
        match (&*self.key, self.partitioning) {
            ([], Partitioning::Range(column)) => {
                let field = self.schema.field(column.index());
                keys.shown(0, &[field.data_type()])
            }
            _ if crate::object::keys::is_word(self.key_types()) => keys.shown(0, &self.key_types()),
            _ => format!("'{}'", assignment.least(number).escape_ascii()),
        }
    }
}
