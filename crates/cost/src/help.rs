//! Whether an idle worker of another place helps with a queue of work, and how it reads what it takes.
//!
//! ```text
//!  owner      ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│     alone: what is left of the queue, by those who work on it
//!  in place   ─latency─▒▒▒ link ▒▒▒▓▓ scan ▓▓│               one chunk: its bytes cross, and are scanned
//!  copied     ─latency─▒▒▒ link ▒▒▒ ▓▓ scan ▓▓│              the same of a block, but with the next one these overlap
//!                                   ▒▒▒ next ▒▒▒
//! ```
//!
//! A chunk is what is taken from the queue at a time. A block is one that is copied, or several narrow ones. Pulling a
//! chunk is worth it if it is done before the owner would be done with everything: then the queue ends
//! sooner, however slow the link is. This is equations 5 and 6 of the crate for one chunk, where the operation that
//! stays (E_OP) has the rest of the queue before it.

/// What takes no longer than so many times the least takes about as long: measurements do not agree better.
const ABOUT: f64 = 1.03;

/// Work at its owner, as a worker of another place sees it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// Bytes that are still to be scanned.
    pub bytes: f64,
    /// How many work on it. Who has other work as well counts for the part of its time that is for this.
    pub workers: f64,
    /// Bytes that one worker scans per second, from its own memory.
    pub scan: f64,
}

/// What lies between a queue and a worker of another place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Way {
    /// Bytes per second that the link gives one who crosses it.
    pub link: f64,
    /// Seconds of a request.
    pub latency: f64,
    /// How the worker copies, if it does.
    pub copy: Copying,
}

/// A way of copying.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Copying {
    /// Bytes that are asked for and copied at a time.
    pub block: f64,
    /// Bytes that a worker copies per second, if the link does not slow it down.
    pub rate: f64,
}

/// How a worker reads what it has taken from another place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Where it lies.
    InPlace,
    /// Copied into a block of the worker's place, while it works on the one before.
    Copied,
}

impl Queue {
    /// Seconds until it is empty if nobody else helps.
    pub fn alone(&self) -> f64 {
        self.bytes / (self.scan * self.workers)
    }
}

impl Way {
    /// Seconds of a byte among many. In place a request is for a chunk of the queue, of so many bytes.
    pub fn each(&self, reading: Reading, chunk: f64, scan: f64) -> f64 {
        let crosses = |request: f64| self.latency / request + 1.0 / self.link;
        match reading {
            Reading::InPlace => crosses(chunk) + 1.0 / scan,
            Reading::Copied => {
                crosses(self.copy.block.max(chunk)).max(1.0 / self.copy.rate + 1.0 / scan)
            }
        }
    }

    /// Seconds until the first chunk is done.
    pub fn first(&self, chunk: f64, scan: f64) -> f64 {
        self.latency + chunk / self.link + chunk / scan
    }

    /// How chunks of this size are read fastest.
    pub fn reading(&self, chunk: f64, scan: f64) -> Reading {
        let each = |reading| self.each(reading, chunk, scan);
        match each(Reading::Copied) < each(Reading::InPlace) {
            true => Reading::Copied,
            false => Reading::InPlace,
        }
    }

    /// Bytes per second that a worker behind this way adds to a queue's.
    pub fn rate(&self, chunk: f64, scan: f64) -> f64 {
        1.0 / self.each(self.reading(chunk, scan), chunk, scan)
    }

    /// The number of the way of copying with which a byte takes least; 0 if there is none. Of ways that are about as
    /// fast, the one with the smallest block: it is there sooner, and ends sooner when the owner is done. Where the
    /// link is slow, many are.
    pub fn fastest(&self, ways: impl Iterator<Item = Copying> + Clone, scan: f64) -> usize {
        let seconds = |copy: Copying| Way { copy, ..*self }.each(Reading::Copied, 0.0, scan);
        let least = ways.clone().map(seconds).fold(f64::INFINITY, f64::min);
        let good = (ways.enumerate()).filter(|(_, copy)| seconds(*copy) <= ABOUT * least);
        let smallest = good.min_by(|a, b| a.1.block.total_cmp(&b.1.block));
        smallest.map_or(0, |(number, _)| number)
    }
}

/// Whether a worker behind this way helps by taking a chunk of so many bytes.
pub fn helps(queue: &Queue, way: &Way, chunk: f64) -> bool {
    way.first(chunk, queue.scan) <= queue.alone()
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUEUE: Queue = Queue {
        bytes: 64e6,
        workers: 1.0,
        scan: 8e9,
    };

    const QPI: Way = Way {
        link: 10.7e9,
        latency: 193e-9,
        copy: Copying {
            block: 256e3,
            rate: 12e9,
        },
    };

    #[test]
    fn a_worker_helps_until_the_owner_is_almost_done() {
        assert!(helps(&QUEUE, &QPI, 256e3));
        let left = |bytes| Queue { bytes, ..QUEUE };
        // A block takes 24 µs to cross and 32 µs to be scanned: the owner scans 448 kB in that time.
        assert!(helps(&left(500e3), &QPI, 256e3));
        assert!(!helps(&left(400e3), &QPI, 256e3));
        // Two owners are done earlier.
        let two = Queue {
            workers: 2.0,
            ..left(500e3)
        };
        assert!(!helps(&two, &QPI, 256e3));
        // One that has three other scans takes four times as long.
        let busy = Queue {
            workers: 0.25,
            ..left(120e3)
        };
        assert!(helps(&busy, &QPI, 256e3) && !helps(&left(120e3), &QPI, 256e3));
    }

    #[test]
    fn even_a_slow_link_helps_with_much_work() {
        let slow = Way { link: 0.1e9, ..QPI };
        assert!(helps(&QUEUE, &slow, 256e3));
        assert!(!helps(
            &Queue {
                bytes: 16e6,
                ..QUEUE
            },
            &slow,
            256e3
        ));
    }

    #[test]
    fn copying_pays_where_crossing_and_scanning_can_overlap() {
        let fast = Way { link: 30e9, ..QPI };
        assert_eq!(fast.reading(256e3, 4e9), Reading::InPlace);
        assert_eq!(QPI.reading(256e3, 4e9), Reading::Copied);
        // Somebody else copies: only the longer of both counts.
        let free = Way {
            copy: Copying {
                rate: f64::INFINITY,
                ..QPI.copy
            },
            ..QPI
        };
        assert_eq!(free.reading(256e3, 4e9), Reading::Copied);
        let rate = free.rate(256e3, 10.7e9);
        assert!((rate / 10.7e9 - 1.0).abs() < 0.01);
        // As one after the other it would be half of it.
        let sum = 1.0 / free.each(Reading::InPlace, 256e3, 10.7e9);
        assert!((sum / rate - 0.5).abs() < 0.01);
        // There is no link at all: a copy is work for nothing.
        let near = Way {
            link: f64::INFINITY,
            latency: 0.0,
            ..QPI
        };
        assert_eq!(near.reading(256e3, 4e9), Reading::InPlace);
    }

    #[test]
    fn many_small_chunks_in_one_request_are_worth_a_copy() {
        let far = Way {
            latency: 5e-6,
            link: 40e9,
            ..QPI
        };
        assert_eq!(far.reading(1e6, 4e9), Reading::InPlace);
        assert_eq!(far.reading(8e3, 4e9), Reading::Copied);
    }

    #[test]
    fn the_way_of_copying_goes_by_what_crosses_and_what_is_copied() {
        let ways = [(64e3, 9e9), (256e3, 11e9), (1e6, 7e9)];
        let ways = || {
            ways.map(|(block, rate)| Copying { block, rate })
                .into_iter()
        };
        assert_eq!(QPI.fastest(ways(), 20e9), 1);
        // A slow link hides all of them.
        let slow = Way { link: 1e9, ..QPI };
        assert_eq!(slow.fastest(ways(), 20e9), 0);
        // Unless a request takes long.
        let late = Way {
            latency: 100e-6,
            ..slow
        };
        assert_eq!(late.fastest(ways(), 20e9), 2);
        assert_eq!(QPI.fastest([].into_iter(), 20e9), 0);
    }
}
