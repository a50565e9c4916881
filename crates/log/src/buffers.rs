//! Log buffers: what owners have to say, on its way to the log writer.
//!
//! ```text
//! owner 0 ─ t5 · t8 ──▶ ┐
//! owner 1 ─ t6 · t9 ──▶ ├─ gathered once commits up to t8 are complete: t5 t6 t8 │ t9 waits for the next group
//! owner 2 ─ · t7 ─────▶ ┘
//! ```
//!
//! Each owner has a buffer of its own and appends without a latch. It says what a commit did before the commit counts
//! as complete. So whoever has read up to where commits are complete finds all that they have said.

use crate::room::ReservedRoom;
use crossbeam_channel::{Receiver, Sender, unbounded};
use eris_types::Timestamp;

/// Something to be logged.
#[derive(Debug)]
pub struct Entry {
    /// The commit that it belongs to; zero: to none. Then it is in the log before all that is said after it.
    pub at: Timestamp,
    /// The record.
    pub body: Vec<u8>,
    /// Room for it.
    pub room: Option<ReservedRoom>,
}

/// What was said.
#[derive(Debug)]
struct Said {
    entry: Entry,
    /// Whether it refers to chunks.
    needs_chunks: bool,
}

/// What becomes a group.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// Buffer by buffer, each in its order.
    pub entries: Vec<Entry>,
    /// Whether some refer to chunks.
    pub needs_chunks: bool,
}

/// An owner's end of its log buffer.
#[derive(Clone, Debug)]
pub struct LogBuffer(Sender<Said>);

/// The log writer's ends of all log buffers.
#[derive(Debug)]
pub(crate) struct Buffers {
    ends: Vec<Receiver<Said>>,
    /// What was said too early, per buffer in its order.
    left: Vec<Vec<Said>>,
}

impl LogBuffer {
    /// Says something. What is said after the log has failed is lost: nothing is durable any more.
    pub fn push(&self, entry: Entry) {
        self.say(entry, false);
    }

    /// The same of something that refers to chunks, which were pushed before. They are durable before it is written.
    pub fn push_with_chunks(&self, entry: Entry) {
        self.say(entry, true);
    }

    fn say(&self, entry: Entry, needs_chunks: bool) {
        let _ = self.0.send(Said {
            entry,
            needs_chunks,
        });
    }
}

impl Buffers {
    /// As many as owners, and whoever else has something to say.
    pub fn new(count: usize) -> (Vec<LogBuffer>, Self) {
        let (starts, ends): (Vec<_>, Vec<_>) = (0..count)
            .map(|_| {
                let (start, end) = unbounded();
                (LogBuffer(start), end)
            })
            .unzip();
        let left = ends.iter().map(|_| Vec::new()).collect();
        (starts, Buffers { ends, left })
    }

    /// All entries of commits up to `through`, which are complete, and those of no commit.
    pub fn gather(&mut self, through: Timestamp) -> Gathered {
        let mut gathered = Gathered::default();
        let mut take = |said: Said| {
            gathered.needs_chunks |= said.needs_chunks;
            gathered.entries.push(said.entry);
        };
        for (end, left) in self.ends.iter().zip(&mut self.left) {
            left.extract_if(.., |said| said.entry.at <= through)
                .for_each(&mut take);
            for said in end.try_iter() {
                match said.entry.at <= through {
                    true => take(said),
                    false => left.push(said),
                }
            }
        }
        gathered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at: u64, body: u8) -> Entry {
        Entry {
            at: Timestamp(at),
            body: vec![body],
            room: None,
        }
    }

    #[test]
    fn what_was_said_too_early_waits() {
        let (starts, mut buffers) = Buffers::new(2);
        let gather = |buffers: &mut Buffers, through| -> Vec<(u64, u8)> {
            let entries = buffers.gather(Timestamp(through)).entries.into_iter();
            entries.map(|entry| (entry.at.0, entry.body[0])).collect()
        };
        starts[0].push(entry(5, 1));
        starts[1].push(entry(9, 2));
        starts[1].push(entry(0, 3));
        starts[1].push(entry(6, 4));
        assert_eq!(gather(&mut buffers, 6), [(5, 1), (0, 3), (6, 4)]);
        starts[1].push(entry(10, 5));
        assert_eq!(gather(&mut buffers, 8), []);
        assert_eq!(gather(&mut buffers, 10), [(9, 2), (10, 5)]);
        assert_eq!(gather(&mut buffers, 99), []);
    }

    #[test]
    fn chunks_are_needed_with_the_entry_that_refers_to_them() {
        let (starts, mut buffers) = Buffers::new(2);
        starts[0].push(entry(5, 1));
        starts[1].push_with_chunks(entry(6, 2));
        let mut needs_chunks = |through| buffers.gather(Timestamp(through)).needs_chunks;
        assert!(!needs_chunks(5));
        assert!(needs_chunks(6));
        starts[1].push(entry(7, 3));
        assert!(!needs_chunks(7));
    }
}
