//! Grouping: the commands of one step by data object and kind (ERIS, Section 3.1: it lets scans be shared and lookups
//! be coalesced into one batch).
//!
//! ```text
//! inbox     │A·│A·│A·│A·│B···│B···│A·│A·│ P │A·│      stretches as they lie there; P has a parcel
//! group A    └────0────┘           └─2─┘     └4┘      chained: 0 ▶ 2 ▶ 4
//! group B                └───1────┘        3          chained: 1 ▶ 3, if P is of its kind
//! ```
//!
//! What is alike lies in stretches mostly, as senders send it so. A stretch is one entry. So grouping costs a look at
//! each header, and commands stay where they are until the handler takes them.

use eris_route::{Command, Header, Rank, Stretch};
use eris_types::ObjectId;
use std::cell::Cell;
use std::fmt;

/// The end of a chain of entries.
const END: u32 = u32::MAX;

/// Commands of this step that lie side by side; chained to the next ones of their group.
struct Entry<'a, P> {
    content: Content<'a, P>,
    next: u32,
}

enum Content<'a, P> {
    /// Where they arrived.
    Stretch(Stretch<'a>),
    /// One alone.
    Command {
        header: Header,
        words: &'a [u64],
        /// In a cell, so that a group can be consumed through a shared borrow and the headers remain for [`Headers`].
        parcel: Cell<Option<Box<P>>>,
    },
}

/// A group as a chain of entries.
struct Chain {
    rank: Rank,
    object: ObjectId,
    kind: u16,
    head: u32,
    tail: u32,
    /// Commands.
    len: usize,
}

/// The commands of a step, sorted into groups: higher ranks first, then in the order of their first command.
pub(crate) struct Batch<'a, P> {
    entries: Vec<Entry<'a, P>>,
    chains: Vec<Chain>,
    /// The chain of the entry before.
    last: usize,
}

impl<'a, P> Batch<'a, P> {
    pub(crate) fn new() -> Self {
        Batch {
            entries: Vec::new(),
            chains: Vec::new(),
            last: 0,
        }
    }

    /// Adds a command.
    pub(crate) fn push(&mut self, command: Command<'a, P>) {
        let Command {
            header,
            words,
            parcel,
        } = command;
        let content = Content::Command {
            header,
            words,
            parcel: Cell::new(parcel),
        };
        self.chain(&header, 1, content);
    }

    /// Adds commands that are alike.
    pub(crate) fn push_stretch(&mut self, stretch: Stretch<'a>) {
        if let Some(header) = stretch.header() {
            self.chain(header, stretch.len(), Content::Stretch(stretch));
        }
    }

    fn chain(&mut self, header: &Header, count: usize, content: Content<'a, P>) {
        let at = self.entries.len() as u32;
        self.entries.push(Entry { content, next: END });
        let same = |chain: &Chain| {
            chain.object == header.object && chain.kind == header.kind && chain.rank == header.rank
        };
        // The kinds of a step are few, and the last one comes again most often.
        let found = match self.chains.get(self.last) {
            Some(chain) if same(chain) => Some(self.last),
            _ => self.chains.iter().rposition(same),
        };
        match found {
            Some(found) => {
                let chain = &mut self.chains[found];
                self.entries[chain.tail as usize].next = at;
                chain.tail = at;
                chain.len += count;
                self.last = found;
            }
            None => {
                self.last = self.chains.len();
                self.chains.push(Chain {
                    rank: header.rank,
                    object: header.object,
                    kind: header.kind,
                    head: at,
                    tail: at,
                    len: count,
                });
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The groups, in the order of their execution.
    pub(crate) fn groups(&mut self) -> impl Iterator<Item = Group<'_, P>> {
        self.chains
            .sort_by_key(|chain| std::cmp::Reverse(chain.rank));
        let entries: &[Entry<'_, P>] = &self.entries;
        self.chains.iter().map(move |chain| Group {
            rest: Rest {
                entries,
                at: chain.head,
                begun: None,
                left: chain.len,
            },
            rank: chain.rank,
            object: chain.object,
            kind: chain.kind,
        })
    }

    /// An empty batch with the same memory, for other commands.
    pub(crate) fn recycle<'b>(mut self) -> Batch<'b, P> {
        self.chains.clear();
        self.entries.clear();
        // Collecting an empty vector into one of the same layout keeps its allocation.
        let entries = self
            .entries
            .into_iter()
            .map(|_| unreachable!("it is empty"))
            .collect();
        Batch {
            entries,
            chains: self.chains,
            last: 0,
        }
    }
}

/// What is left of a chain.
struct Rest<'a, P> {
    entries: &'a [Entry<'a, P>],
    at: u32,
    /// What is left of the stretch before `at`.
    begun: Option<Stretch<'a>>,
    /// Commands.
    left: usize,
}

impl<P> Clone for Rest<'_, P> {
    fn clone(&self) -> Self {
        Rest { ..*self }
    }
}

impl<'a, P> Rest<'a, P> {
    /// The next entry.
    fn next(&mut self) -> Option<&'a Content<'a, P>> {
        let entry = self.entries.get(self.at as usize)?;
        self.at = entry.next;
        Some(&entry.content)
    }

    /// The next command of the stretch that was begun.
    #[inline(always)]
    fn next_of_stretch(&mut self) -> Option<(&'a Header, &'a [u64])> {
        let next = self.begun.as_mut()?.next();
        self.left -= usize::from(next.is_some());
        next
    }
}

/// Commands of one data object, kind and rank, in arrival order. An iterator: what is not taken is dropped later.
pub struct Group<'a, P = ()> {
    rest: Rest<'a, P>,
    rank: Rank,
    object: ObjectId,
    kind: u16,
}

impl<'a, P> Group<'a, P> {
    /// The rank of every command in it.
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// The headers of the commands not yet taken.
    pub fn headers(&self) -> Headers<'a, P> {
        Headers(self.rest.clone())
    }

    /// The commands without their parcels. `announce` is told of each some commands before it is yielded: so many as
    /// `distance` says, fewer at the beginning of a stretch.
    pub(crate) fn announced<F>(self, distance: usize, announce: F) -> Announced<'a, P, F>
    where
        F: FnMut(&'a Header, &'a [u64]),
    {
        Announced {
            rest: self.rest,
            ahead: None,
            distance,
            announce,
        }
    }

    pub(crate) fn object(&self) -> ObjectId {
        self.object
    }

    pub(crate) fn kind(&self) -> u16 {
        self.kind
    }
}

fn plain<'a, P>((header, words): (&Header, &'a [u64])) -> Command<'a, P> {
    Command {
        header: *header,
        words,
        parcel: None,
    }
}

impl<'a, P> Iterator for Group<'a, P> {
    type Item = Command<'a, P>;

    #[inline]
    fn next(&mut self) -> Option<Command<'a, P>> {
        loop {
            if let Some(next) = self.rest.next_of_stretch() {
                return Some(plain(next));
            }
            match self.rest.next()? {
                Content::Stretch(stretch) => self.rest.begun = Some(*stretch),
                Content::Command {
                    header,
                    words,
                    parcel,
                } => {
                    self.rest.left -= 1;
                    return Some(Command {
                        header: *header,
                        words,
                        parcel: parcel.take(),
                    });
                }
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.rest.left, Some(self.rest.left))
    }

    /// A loop over each stretch, without looking at each command for the end of its stretch and the kind of entry.
    #[inline]
    fn fold<B, F: FnMut(B, Command<'a, P>) -> B>(mut self, first: B, mut add: F) -> B {
        let mut sum = first;
        loop {
            if let Some(stretch) = self.rest.begun.take() {
                sum = stretch.fold(sum, |sum, next| add(sum, plain(next)));
            }
            match self.rest.next() {
                None => return sum,
                Some(Content::Stretch(stretch)) => self.rest.begun = Some(*stretch),
                Some(Content::Command {
                    header,
                    words,
                    parcel,
                }) => {
                    let command = Command {
                        header: *header,
                        words,
                        parcel: parcel.take(),
                    };
                    sum = add(sum, command);
                }
            }
        }
    }
}

impl<P> ExactSizeIterator for Group<'_, P> {}

/// Commands of a group that are announced before they are yielded.
pub(crate) struct Announced<'a, P, F> {
    rest: Rest<'a, P>,
    /// What is left of the stretch, beginning with the one to be announced next.
    ahead: Option<Stretch<'a>>,
    distance: usize,
    announce: F,
}

impl<'a, P, F: FnMut(&'a Header, &'a [u64])> Iterator for Announced<'a, P, F> {
    type Item = (&'a Header, &'a [u64]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        loop {
            // Before it is taken: if that panics, nothing is lost.
            if let Some((header, words)) = self.ahead.as_mut().and_then(Iterator::next) {
                (self.announce)(header, words);
            }
            if let Some(next) = self.rest.next_of_stretch() {
                return Some(next);
            }
            match self.rest.next()? {
                Content::Stretch(stretch) => {
                    self.rest.begun = Some(*stretch);
                    let mut ahead = (self.distance > 0).then_some(*stretch);
                    let first = ahead.iter_mut().flatten().take(self.distance);
                    first.for_each(|(header, words)| (self.announce)(header, words));
                    self.ahead = ahead;
                }
                Content::Command { header, words, .. } => {
                    self.rest.left -= 1;
                    return Some((header, words));
                }
            }
        }
    }
}

/// The headers of a group, in arrival order.
pub struct Headers<'a, P = ()>(Rest<'a, P>);

impl<P> Clone for Headers<'_, P> {
    fn clone(&self) -> Self {
        Headers(self.0.clone())
    }
}

impl<'a, P> Iterator for Headers<'a, P> {
    type Item = &'a Header;

    fn next(&mut self) -> Option<&'a Header> {
        loop {
            if let Some((header, _)) = self.0.next_of_stretch() {
                return Some(header);
            }
            match self.0.next()? {
                Content::Stretch(stretch) => self.0.begun = Some(*stretch),
                Content::Command { header, .. } => {
                    self.0.left -= 1;
                    return Some(header);
                }
            }
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.left, Some(self.0.left))
    }
}

impl<P> ExactSizeIterator for Headers<'_, P> {}

impl<P> fmt::Debug for Headers<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.clone()).finish()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::Random;
    use eris_route::{BufferSizes, Piece, Router};
    use eris_types::AeuId;

    /// Each command of a stretch is announced once, before it is yielded and as early as is asked for.
    #[test]
    fn commands_are_announced_ahead() {
        for (count, distance) in [
            (0, 3),
            (1, 3),
            (10, 0),
            (10, 1),
            (10, 3),
            (10, 10),
            (10, 99),
        ] {
            let router = Router::<()>::new(1, BufferSizes::default());
            let mut port = router.aeu_port(AeuId(0));
            for callback in 0..count {
                let header = Header {
                    object: ObjectId(1),
                    kind: 1,
                    rank: Rank::Client,
                    sender: port.endpoint(),
                    callback,
                };
                let to = port.endpoint();
                port.outgoing().send(to, header, &[callback], None);
            }
            port.flush();
            let mut batch = Batch::<()>::new();
            if let Some(mut received) = port.receive() {
                while let Some(Piece::Stretch(stretch)) = received.next_piece() {
                    batch.push_stretch(stretch);
                }
            }
            let announced = Cell::new(0);
            let mut yielded = 0;
            for group in batch.groups() {
                let announce = |header: &Header, words: &[u64]| {
                    assert_eq!(
                        (header.callback, words),
                        (announced.get(), &[announced.get()][..])
                    );
                    announced.set(announced.get() + 1);
                };
                for (header, words) in group.announced(distance, announce) {
                    assert_eq!((header.callback, words), (yielded, &[yielded][..]));
                    yielded += 1;
                    if distance > 0 {
                        assert_eq!(announced.get(), count.min(yielded + distance as u64));
                    }
                }
            }
            assert_eq!(
                (yielded, announced.get()),
                (count, if distance > 0 { count } else { 0 })
            );
        }
    }

    /// Groups are what a stable sort of the commands would make of them, whatever lies side by side.
    #[test]
    fn groups_are_those_of_the_commands_one_by_one() {
        for seed in 0..300 {
            println!("seed {seed}");
            let mut random = Random::new(seed);
            let router = Router::<u64>::new(1, BufferSizes::default());
            let mut port = router.aeu_port(AeuId(0));
            let mut sent: Vec<(Header, bool)> = Vec::new();
            for callback in 0..random.below(400) as u64 {
                let before = sent.last().filter(|_| !random.one_in(5));
                let new = || Header {
                    object: ObjectId(callback as u32 % 3),
                    kind: callback as u16 % 2,
                    rank: Rank::ALL[callback as usize % 4],
                    sender: port.endpoint(),
                    callback,
                };
                let like = before.map_or_else(new, |before| before.0);
                sent.push((Header { callback, ..like }, random.one_in(9)));
            }
            let mut alone = Vec::new();
            for (header, with_parcel) in &sent {
                let parcel = with_parcel.then(|| Box::new(header.callback));
                // What was put off comes one by one, before all others.
                if alone.len() < 20 && random.one_in(30) {
                    alone.push((*header, parcel));
                    continue;
                }
                let words = [header.callback; 3];
                let to = port.endpoint();
                let length = 1 + random.below(2);
                port.outgoing().send(to, *header, &words[..length], parcel);
                port.flush();
            }
            let mut expected: Vec<Header> = alone.iter().map(|(header, _)| *header).collect();
            let is_alone = |callback| alone.iter().any(|(header, _)| header.callback == callback);
            let alone_callbacks: Vec<u64> = (sent.iter())
                .map(|(header, _)| header.callback)
                .filter(|callback| is_alone(*callback))
                .collect();
            let mut batch = Batch::new();
            let words: Vec<[u64; 1]> = alone.iter().map(|(header, _)| [header.callback]).collect();
            for ((header, parcel), words) in alone.into_iter().zip(&words) {
                batch.push(Command {
                    header,
                    words,
                    parcel,
                });
            }
            if let Some(mut received) = port.receive() {
                while let Some(piece) = received.next_piece() {
                    match piece {
                        Piece::Stretch(stretch) => batch.push_stretch(stretch),
                        Piece::Command(command) => batch.push(command),
                    }
                }
            }
            let others = sent.iter().map(|(header, _)| *header);
            expected.extend(others.filter(|header| !alone_callbacks.contains(&header.callback)));
            let mut order: Vec<(Rank, ObjectId, u16)> = Vec::new();
            for header in &expected {
                let of = (header.rank, header.object, header.kind);
                if !order.contains(&of) {
                    order.push(of);
                }
            }
            order.sort_by_key(|(rank, ..)| std::cmp::Reverse(*rank));
            let mut groups = batch.groups();
            for (rank, object, kind) in order {
                let mut group = groups.next().expect("a group for each kind");
                assert_eq!(
                    (group.rank(), group.object(), group.kind()),
                    (rank, object, kind)
                );
                let of_group = |header: &&Header| {
                    (header.rank, header.object, header.kind) == (rank, object, kind)
                };
                let expected: Vec<Header> = expected.iter().filter(of_group).copied().collect();
                assert_eq!(group.len(), expected.len());
                assert!(group.headers().eq(expected.iter()));
                let taken = random.below(expected.len() + 1);
                let mut seen = Vec::new();
                let mut see = |command: Command<'_, u64>| {
                    let callback = command.header.callback;
                    assert!(command.words.iter().all(|word| *word == callback));
                    let with_parcel = sent.contains(&(command.header, true));
                    assert_eq!(command.parcel.as_deref(), with_parcel.then_some(&callback));
                    seen.push(command.header);
                };
                // Some one by one, then the rest in one go, or the headers of it.
                group.by_ref().take(taken).for_each(&mut see);
                assert_eq!(group.len(), expected.len() - taken);
                assert!(group.headers().eq(expected[taken..].iter()));
                if !random.one_in(4) {
                    group.for_each(&mut see);
                    assert_eq!(seen, expected);
                }
            }
            assert!(groups.next().is_none());
        }
    }
}
