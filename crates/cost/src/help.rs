//! Whether an idle worker of another place helps with a queue of work, and how it reads what it takes.
//!
//! ```text
//!  owner      ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│     alone: what is left of the queue, by those who work on it
//!  in place   ─latency─▒▒▒ link ▒▒▒▓▓ scan ▓▓│               one block: its bytes cross, and are scanned
//!  copied     ─latency─▒▒▒ link ▒▒▒ ▓▓ scan ▓▓│              the same, but of later blocks these overlap
//!                                   ▒▒▒ next ▒▒▒
//! ```
//!
//! Pulling a block is worth it if it is done before the owner would be done with everything: then the queue ends
//! sooner, however slow the link is. This is equations 5 and 6 of the crate for one block, where the operation that
//! stays (E_OP) has the rest of the queue before it.

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
    /// Bytes that the worker copies per second, if it does so itself and the link does not slow it down.
    pub copy: f64,
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
    /// Seconds of one block among many.
    pub fn each(&self, reading: Reading, bytes: f64, scan: f64) -> f64 {
        let (crosses, scans) = (bytes / self.link, bytes / scan);
        match reading {
            Reading::InPlace => self.latency + crosses + scans,
            Reading::Copied => (self.latency + crosses).max(bytes / self.copy + scans),
        }
    }

    /// Seconds until the first block is done.
    pub fn first(&self, bytes: f64, scan: f64) -> f64 {
        self.latency + bytes / self.link + bytes / scan
    }

    /// How blocks of this size are read fastest.
    pub fn reading(&self, bytes: f64, scan: f64) -> Reading {
        let each = |reading| self.each(reading, bytes, scan);
        match each(Reading::Copied) < each(Reading::InPlace) {
            true => Reading::Copied,
            false => Reading::InPlace,
        }
    }

    /// Bytes per second that a worker behind this way adds to a queue's.
    pub fn rate(&self, bytes: f64, scan: f64) -> f64 {
        bytes / self.each(self.reading(bytes, scan), bytes, scan)
    }
}

/// Whether a worker behind this way helps by taking a block of so many bytes.
pub fn helps(queue: &Queue, way: &Way, bytes: f64) -> bool {
    way.first(bytes, queue.scan) <= queue.alone()
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
        copy: 12e9,
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
            copy: f64::INFINITY,
            ..QPI
        };
        assert_eq!(free.reading(256e3, 4e9), Reading::Copied);
        let rate = free.rate(256e3, 10.7e9);
        assert!((rate / 10.7e9 - 1.0).abs() < 0.01);
        // As one after the other it would be half of it.
        let sum = 256e3 / free.each(Reading::InPlace, 256e3, 10.7e9);
        assert!((sum / rate - 0.5).abs() < 0.01);
        // There is no link at all: a copy is work for nothing.
        let near = Way {
            link: f64::INFINITY,
            latency: 0.0,
            copy: 12e9,
        };
        assert_eq!(near.reading(256e3, 4e9), Reading::InPlace);
    }
}
