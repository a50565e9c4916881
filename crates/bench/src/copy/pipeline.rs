//! A column on another node, and the ways of copying and scanning it.

use eris_kernels::{Isa, MASK_WORDS, VECTOR, pack};
use eris_numa::{Arrival, Buffer, CopyBlock, CopyEngine, Links, Memory, NodeMemory, OutOfMemory};
use eris_types::{NodeId, ObjectId};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// What buffers are accounted to: nobody else has any here.
const OBJECT: ObjectId = ObjectId(1);

/// The node that reads.
const SOURCE: NodeId = NodeId(0);

/// Who copies, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// The core that scans, with plain loads and stores.
    Plain,
    /// The same, with prefetches.
    Prefetched,
    /// The same, and stores past the caches.
    Streaming,
    /// A core of the node that has the data.
    Owner,
}

/// How a column is scanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// As if it lay on the node that reads.
    Local,
    /// Block by block, each waited for.
    InPlace,
    /// Block n + 1 is copied while block n is scanned.
    Buffered(Engine),
}

impl Engine {
    pub const ALL: [Engine; 4] = [
        Engine::Plain,
        Engine::Prefetched,
        Engine::Streaming,
        Engine::Owner,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Engine::Plain => "plain",
            Engine::Prefetched => "prefetched",
            Engine::Streaming => "streaming",
            Engine::Owner => "owner",
        }
    }
}

impl Way {
    pub const ALL: [Way; 6] = [
        Way::Local,
        Way::InPlace,
        Way::Buffered(Engine::Plain),
        Way::Buffered(Engine::Prefetched),
        Way::Buffered(Engine::Streaming),
        Way::Buffered(Engine::Owner),
    ];

    pub fn name(self) -> &'static str {
        match self {
            Way::Local => "local",
            Way::InPlace => "in place",
            Way::Buffered(Engine::Plain) => "buffered, plain",
            Way::Buffered(Engine::Prefetched) => "buffered, prefetched",
            Way::Buffered(Engine::Streaming) => "buffered, streaming",
            Way::Buffered(Engine::Owner) => "buffered, by the owner",
        }
    }
}

/// A packed column on another node.
pub(super) struct RemoteColumn<'a> {
    links: &'a Links,
    home: NodeId,
    /// Where copies go.
    own: NodeMemory,
    width: u8,
    rows: usize,
    words: Buffer,
}

impl<'a> RemoteColumn<'a> {
    pub fn new(
        memory: &Memory,
        links: &'a Links,
        home: NodeId,
        width: u8,
        rows: usize,
    ) -> Result<Self, OutOfMemory> {
        let vectors = rows / VECTOR;
        let vector_words = MASK_WORDS * usize::from(width);
        let mut words = memory
            .node(home)
            .allocate(OBJECT, vectors * vector_words * 8)?;
        let mut values = [0; VECTOR];
        for (number, out) in words
            .as_mut_slice::<u64>()
            .chunks_exact_mut(vector_words)
            .enumerate()
        {
            for (row, value) in values.iter_mut().enumerate() {
                let number = (number * VECTOR + row) as u64;
                *value = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - width);
            }
            pack(&values, width, out);
        }
        Ok(RemoteColumn {
            links,
            home,
            own: memory.node(SOURCE),
            width,
            rows: vectors * VECTOR,
            words,
        })
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    pub fn bytes(&self) -> usize {
        self.words.len()
    }

    /// What the link lets through, in GB per second; `None` if it is not paced.
    pub fn link_gigabytes(&self) -> Option<f64> {
        let seconds = self.link_seconds();
        (seconds > 0.0).then(|| self.bytes() as f64 / seconds / 1e9)
    }

    /// The seconds that its bytes take on the link; 0 if that is not paced.
    pub fn link_seconds(&self) -> f64 {
        self.links.seconds(SOURCE, self.home, self.bytes() as u64)
    }

    /// Whole vectors that make a block of about so many bytes, in words.
    fn block_words(&self, bytes: usize) -> usize {
        let vector = MASK_WORDS * usize::from(self.width);
        (bytes / 8 / vector).max(1) * vector
    }

    fn blocks(&self, bytes: usize) -> impl Iterator<Item = &[u64]> {
        self.words.as_slice::<u64>().chunks(self.block_words(bytes))
    }

    fn request(&self, words: &[u64]) -> Arrival {
        self.links
            .request(SOURCE, self.home, size_of_val(words) as u64)
    }

    fn new_block(&self, bytes: usize) -> CopyBlock {
        let bytes = self.block_words(bytes) * 8;
        CopyBlock::allocate(&self.own, OBJECT, bytes).expect("there is memory for two blocks")
    }

    /// Copies everything, block by block.
    pub fn copy(&self, engine: Engine, block_bytes: usize) {
        let mut count = 0;
        self.pass(engine, block_bytes, |words| count += words.len());
        assert_eq!(count * 8, self.bytes());
    }

    /// How many values are below half of the greatest.
    pub fn scan(&self, way: Way, block_bytes: usize) -> usize {
        let mut found = 0;
        let mut masks = vec![
            0;
            self.block_words(block_bytes)
                .div_ceil(usize::from(self.width))
        ];
        let mut scan = |words: &[u64]| {
            let masks = &mut masks[..words.len() / usize::from(self.width)];
            let high = (1 << (self.width - 1)) - 1;
            Isa::best().between(self.width, words, 0, high, masks);
            found += masks
                .iter()
                .map(|mask| mask.count_ones() as usize)
                .sum::<usize>();
        };
        match way {
            Way::Local => self.blocks(block_bytes).for_each(scan),
            Way::InPlace => self.blocks(block_bytes).for_each(|words| {
                self.request(words).wait();
                scan(words);
            }),
            Way::Buffered(engine) => self.pass(engine, block_bytes, scan),
        }
        found
    }

    /// Hands each block to `work` once it is copied; the next one is asked for before.
    fn pass(&self, engine: Engine, block_bytes: usize, work: impl FnMut(&[u64])) {
        match engine {
            Engine::Plain => self.pass_own(CopyEngine::Plain, block_bytes, work),
            Engine::Prefetched => self.pass_own(CopyEngine::Prefetched, block_bytes, work),
            Engine::Streaming => self.pass_own(CopyEngine::Streaming, block_bytes, work),
            Engine::Owner => thread::scope(|scope| {
                let (asks, asked) = channel::<(CopyBlock, &[u64])>();
                let (sends, sent) = channel();
                scope.spawn(move || {
                    while let Ok((mut block, words)) = asked.recv() {
                        let part = block.copy(words, CopyEngine::Plain).expect("it fits");
                        if sends.send((block, part)).is_err() {
                            return;
                        }
                    }
                });
                self.pass_owner(block_bytes, &asks, &sent, work);
            }),
        }
    }

    fn pass_own(&self, engine: CopyEngine, block_bytes: usize, mut work: impl FnMut(&[u64])) {
        let mut free = vec![self.new_block(block_bytes), self.new_block(block_bytes)];
        let mut before: Option<(Arrival, CopyBlock, Buffer)> = None;
        for words in self.blocks(block_bytes) {
            let arrival = self.request(words);
            let mut block = free.pop().expect("two blocks take turns");
            let part = block.copy(words, engine).expect("it fits");
            if let Some((arrival, block, part)) = before.take() {
                arrival.wait();
                free.push(done(block, part, &mut work));
            }
            before = Some((arrival, block, part));
        }
        if let Some((arrival, block, part)) = before {
            arrival.wait();
            done(block, part, &mut work);
        }
    }

    fn pass_owner<'c>(
        &'c self,
        block_bytes: usize,
        asks: &Sender<(CopyBlock, &'c [u64])>,
        sent: &Receiver<(CopyBlock, Buffer)>,
        mut work: impl FnMut(&[u64]),
    ) {
        let mut free = vec![self.new_block(block_bytes), self.new_block(block_bytes)];
        let mut before: Option<Arrival> = None;
        let mut receive = |arrival: Arrival| {
            let (block, part) = sent.recv().expect("the owner sends what it is asked for");
            arrival.wait();
            done(block, part, &mut work)
        };
        for words in self.blocks(block_bytes) {
            let arrival = self.request(words);
            let block = free.pop().expect("two blocks take turns");
            asks.send((block, words)).expect("the owner waits");
            if let Some(arrival) = before.replace(arrival) {
                free.push(receive(arrival));
            }
        }
        if let Some(arrival) = before {
            receive(arrival);
        }
    }
}

/// Works on a block, and empties it.
fn done(mut block: CopyBlock, part: Buffer, work: &mut impl FnMut(&[u64])) -> CopyBlock {
    work(part.as_slice());
    drop(part);
    assert!(block.clear(), "nobody else has a part of it");
    block
}
