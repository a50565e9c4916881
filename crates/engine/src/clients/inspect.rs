//! What a data object consists of, for people who look: segments, chunks, encodings.
//!
//! ```text
//! session ── Inspect ──▶ every AEU ◀── Segments: its segments, their chunks frozen as of now
//! ```
//!
//! A segment is its owner's alone, so the owner is asked, as for a scan. It answers with its immutable chunks and
//! nothing more; whoever asked looks at them on its own thread. An AEU therefore spends a few microseconds on a
//! question, however many columns there are, and nothing is merged, copied or kept for it.

use super::engine::Engine;
use crate::error::EngineError;
use crate::held::segment_view::SegmentView;
use crate::object::statistics::extremes;
use crate::protocol::objects::Inspect;
use eris_column::ColumnChunk;
use eris_home::{
    ChunkInspection, ColumnChunkInspection, DictionaryInspection, Inspection, SegmentInspection,
};
use eris_store::Chunk;
use eris_types::ObjectId;

impl Engine {
    /// Asks the owners what a data object consists of.
    ///
    /// # Errors
    /// There is no such object, or an owner panicked.
    pub async fn inspect(&self, id: ObjectId) -> Result<Inspection, EngineError> {
        let object = self.object(id)?;
        let parts = self.ask(self.owners(), id, &object.name, Inspect).await?;
        let mut views: Vec<SegmentView> = parts.into_iter().flat_map(|part| part.0).collect();
        views.sort_by_key(|view| (view.aeu, view.id));
        let types: Vec<_> = (object.schema.fields().iter())
            .map(|field| field.data_type().clone())
            .collect();
        let chunk = |chunk: &Chunk, deleted, sealed| ChunkInspection {
            sealed,
            rows: chunk.rows() as u64,
            deleted,
            columns: (chunk.columns().iter().zip(&types))
                .map(|(column, data_type)| column_chunk(column, data_type))
                .collect(),
        };
        let segments = views.iter().map(|view| SegmentInspection {
            segment: view.id,
            aeu: view.aeu,
            node: self.topology().node_of(view.aeu),
            bytes: view.bytes,
            chunks: (view.chunks.iter().enumerate())
                .map(|(index, (each, deleted))| chunk(each, *deleted as u64, index < view.sealed))
                .collect(),
        });
        let dictionaries = object.dictionaries().into_iter().map(|dictionary| {
            dictionary.map(|dictionary| DictionaryInspection {
                entries: dictionary.len() as u64,
                bytes: dictionary.bytes() as u64,
            })
        });
        Ok(Inspection {
            segments: segments.collect(),
            dictionaries: dictionaries.collect(),
        })
    }
}

fn column_chunk(column: &ColumnChunk, data_type: &arrow_schema::DataType) -> ColumnChunkInspection {
    // Displayed as `packed(12)`, or without bits.
    let shown = column.encoding().to_string();
    let (name, width) = match shown.split_once('(') {
        Some((name, rest)) => (name, rest.trim_end_matches(')').parse().ok()),
        None => (shown.as_str(), None),
    };
    ColumnChunkInspection {
        encoding: match (column.is_coded(), column.order()) {
            (true, _) => format!("codes {name}"),
            (_, Some(_)) => format!("ordinals {name}"),
            _ => name.to_owned(),
        },
        is_by_key_order: column.order().is_some(),
        width,
        nulls: column.nulls() as u64,
        bytes: column.bytes() as u64,
        range: extremes(data_type, &column.zone().range),
    }
}
