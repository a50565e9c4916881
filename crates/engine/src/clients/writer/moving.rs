//! What a statement does that gives rows other owners.

use super::{UNDER_WAY, Writer};
use crate::clients::moves::key_shift::KeyShift;
use crate::error::EngineError;
use crate::held::partition::{KeySelection, OfferedChunk, OfferedRows};
use crate::protocol::answers::OfferedKeys;
use crate::protocol::statements::{Adopt, AdoptKeys, OfferKeys};
use arrow_array::RecordBatch;
use eris_types::AeuId;

impl Writer {
    /// Has an owner write a chunk's living rows, which this statement deletes where they are.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub(crate) async fn adopt(
        &mut self,
        to: AeuId,
        offered: OfferedChunk,
        is_linked: bool,
    ) -> Result<(), EngineError> {
        self.check_failure()?;
        self.wait_until(|writer| writer.load[to.index()].under_way < UNDER_WAY)
            .await?;
        let rows = offered.living.count() as u64;
        self.rows += rows;
        self.note_under_way(to, rows);
        let adopt = Adopt {
            object: self.object.clone(),
            statement: self.statement.clone(),
            offered,
            is_linked,
        };
        (self.client).send(to, self.object.id, self.statement.id, adopt);
        self.client.flush();
        Ok(())
    }

    /// Adds rows of keys that are an owner's from the commit on.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub(crate) async fn append_to(
        &mut self,
        to: AeuId,
        batch: RecordBatch,
    ) -> Result<(), EngineError> {
        self.check_failure()?;
        self.rows += batch.num_rows() as u64;
        self.collect(to.index(), batch).await
    }

    /// Asks an owner for rows that another one of its node can get as they are, with the least keys, about so many.
    ///
    /// # Errors
    /// As [`Writer::append`].
    pub(crate) async fn offer_keys(
        &mut self,
        from: AeuId,
        keys: KeySelection,
        enough: u64,
    ) -> Result<OfferedKeys, EngineError> {
        self.check_failure()?;
        self.note_under_way(from, 0);
        let offer = OfferKeys {
            object: self.object.clone(),
            statement: self.statement.clone(),
            keys,
            enough,
        };
        (self.client).send(from, self.object.id, self.statement.id, offer);
        self.client.flush();
        self.wait_until(|writer| writer.offered.is_some()).await?;
        Ok(self.offered.take().expect("waited for it"))
    }

    /// Has an owner take over rows that another one [offers](Self::offer_keys).
    pub(crate) fn adopt_keys(&mut self, to: AeuId, offered: Box<OfferedRows>) {
        let (rows, _) = offered.size();
        self.rows += rows;
        // They are deleted where they were.
        self.found += rows;
        self.note_under_way(to, rows);
        let adopt_keys = AdoptKeys {
            object: self.object.clone(),
            statement: self.statement.clone(),
            offered,
        };
        (self.client).send(to, self.object.id, self.statement.id, adopt_keys);
        self.client.flush();
    }

    /// From its commit on, keys have another owner. It has the write lock, deletes their rows,
    /// [adds them](Self::append_to) there, and nobody writes others meanwhile.
    pub(crate) fn shift(&mut self, shift: KeyShift) {
        self.shift = Some(shift);
    }
}
