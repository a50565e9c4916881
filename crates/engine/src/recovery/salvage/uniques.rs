//! UNIQUE constraints and indexes: their keys are made again from the rows of their tables.
//!
//! ```text
//! table 12        (1, 'a') ▒▒▒▒▒▒▒▒ (3, 'c')
//! UNIQUE: 13      ('a')    ('b')    ('c')       ──▶ 13: ('a') ('c')        nobody could write 'b' any more
//! ```

use super::{Salvage, UniqueColumns};
use crate::error::{EngineError, store_error};
use crate::object::data_object::DataObject;
use crate::recovery::objects::RecoveredObject;
use crate::recovery::replay::RecoveredSegment;
use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_schema::Schema;
use eris_column::{ColumnChunk, DICTIONARY_LIMIT, Dictionary, ObjectMemory};
use eris_home::{Definition, Partitioning};
use eris_numa::Memory;
use eris_store::{ReadColumns, Recoder, RestoredRows, Segment, StoreError};
use eris_types::{AeuId, ColumnId, NodeId, ObjectId, SegmentId, Timestamp};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Salvage {
    /// Makes the keys of all UNIQUE constraints and indexes again, if anything is lost. Of rows that share one the
    /// newest is kept.
    pub(super) fn remake_uniques(&mut self, columns: UniqueColumns<'_>) -> Result<(), EngineError> {
        if !self.is_partial() {
            return Ok(());
        }
        let definitions = self.recovery.definitions.values();
        let definitions: Vec<Definition> = definitions.cloned().collect();
        for definition in definitions {
            let [table, uniques @ ..] = &definition.objects[..] else {
                continue;
            };
            let columns = columns(&definition).unwrap_or_default();
            for (unique, columns) in uniques.iter().zip(columns) {
                self.remake_unique(*table, *unique, &columns)?;
            }
        }
        Ok(())
    }

    fn remake_unique(
        &mut self,
        table: ObjectId,
        unique: ObjectId,
        columns: &[usize],
    ) -> Result<(), EngineError> {
        let recovery = &mut self.recovery;
        let Some(mut of) = recovery.objects.remove(&table) else {
            return Ok(());
        };
        let fields = of.object.schema.fields().len();
        if columns.iter().all(|place| *place < fields) {
            let columns = columns.iter().map(|place| ColumnId(*place as u32));
            let columns: Vec<ColumnId> = columns.collect();
            let memory = &recovery.machine.memory;
            of.leave_out_duplicates(&columns, recovery.through, memory.budget())?;
            recovery.last_segment = SegmentId(recovery.last_segment.0 + 1);
            let keys = Keys {
                columns: &columns,
                id: unique,
                aeus: recovery.machine.topology.aeus().len(),
                segment: recovery.last_segment,
                at: recovery.through,
                memory,
            };
            let mut made = keys.of(&of)?;
            let lost = recovery.objects.remove(&unique);
            made.ranges = lost.and_then(|lost| lost.ranges);
            recovery.objects.insert(unique, made);
        }
        recovery.objects.insert(table, of);
        Ok(())
    }
}

/// The keys that are to be made.
struct Keys<'a> {
    /// Their columns in the table.
    columns: &'a [ColumnId],
    /// Their object, and the segment that gets them.
    id: ObjectId,
    segment: SegmentId,
    aeus: usize,
    at: Timestamp,
    memory: &'a Memory,
}

impl Keys<'_> {
    /// Makes them of the rows of a table.
    fn of(&self, table: &RecoveredObject) -> Result<RecoveredObject, EngineError> {
        let fields = self.columns.iter().map(|column| {
            let field = table.object.schema.field(column.index()).clone();
            field.with_nullable(true)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let key: Vec<ColumnId> = (0..self.columns.len() as u32).map(ColumnId).collect();
        let (name, cut) = (&table.object.name, Partitioning::Size);
        let mut made = RecoveredObject::new(DataObject::new(
            self.id, name, schema, cut, &key, self.aeus,
        )?);
        let memory = self.memory.node(NodeId(0));
        let home = ObjectMemory {
            memory: &memory,
            object: self.id,
        };
        let mut segment = Segment::new(self.segment);
        for (chunk, rows) in table.living(self.columns) {
            let values = table.values(&chunk, &rows, self.columns);
            let columns = values.iter().enumerate().map(|(place, values)| {
                let dictionary = made.coded(place, values);
                let column = ColumnChunk::encode(&**values, dictionary.as_ref(), home);
                let column = column.map_err(|source| StoreError::Encode {
                    column: made.object.schema.field(place).name().clone(),
                    source,
                });
                Ok(Arc::new(column.map_err(|error| store_error(name, &error))?))
            });
            let columns = columns.collect::<Result<Vec<_>, EngineError>>()?;
            let rows = rows.count();
            let read = ReadColumns {
                columns,
                number: None,
            };
            let restored = RestoredRows {
                read,
                ids: vec![(segment.next_id(), rows)],
                deleted: Vec::new(),
            };
            segment.restore(restored, self.at, self.memory.budget());
            if segment.needs_merge() {
                // Short of memory it stays as it is.
                let _ = segment.merge(Recoder {
                    horizon: self.at,
                    schema: &made.object.schema,
                    known: &made.dictionaries,
                    coding: &made.dictionaries,
                    home,
                });
            }
        }
        let recovered = RecoveredSegment {
            owner: AeuId(0),
            segment,
            steps: Vec::new(),
            lost: Vec::new(),
        };
        made.segments.insert(self.segment, recovered);
        Ok(made)
    }
}

impl RecoveredObject {
    /// The dictionary by which these values of a column are coded, with all of them. `None`: they are stored as they
    /// are.
    fn coded(&mut self, column: usize, values: &ArrayRef) -> Option<Dictionary> {
        let dictionary = self.dictionaries[column].as_mut()?;
        let strings = values.as_string_view().iter().flatten();
        let new: BTreeSet<&str> = strings
            .filter(|string| dictionary.code(string).is_none())
            .collect();
        if dictionary.len() + new.len() > DICTIONARY_LIMIT {
            return None;
        }
        *dictionary = dictionary.extend(new.into_iter());
        self.object.publish(column, dictionary.clone());
        Some(dictionary.clone())
    }
}
