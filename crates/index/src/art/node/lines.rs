//! The node that has room for a value of every last byte.
//!
//! ```text
//! line i:  [value of 7i] … [value of 7i + 6][present: a bit each]      37 lines
//! ```
//! Any 64 bits may be a value, so none is left to say that there is no value. The bits that say it lie in the line of
//! their values. So a lookup touches only this line. As in [`super::Direct`] nothing is counted but when a removal
//! leaves a line with at most one value.

use super::{BranchNode, Remainder, sparse};

const VALUES_PER_LINE: usize = 7;
const LINES: usize = 256usize.div_ceil(VALUES_PER_LINE);

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct ValueLine {
    values: [u64; VALUES_PER_LINE],
    present: u64,
}

#[repr(C)]
pub(crate) struct Lines {
    lines: [ValueLine; LINES],
}

fn split(byte: u8) -> (usize, usize) {
    (
        byte as usize / VALUES_PER_LINE,
        byte as usize % VALUES_PER_LINE,
    )
}

fn join(line: usize, at: usize) -> u8 {
    (line * VALUES_PER_LINE + at) as u8
}

impl BranchNode for Lines {
    type Child = u64;
    const FAR: bool = false;

    #[inline(always)]
    fn locate(&self, byte: u8) -> Option<&u64> {
        let (line, at) = split(byte);
        let line = &self.lines[line];
        (line.present >> at & 1 == 1).then(|| &line.values[at])
    }

    fn find_mut(&mut self, byte: u8) -> Option<&mut u64> {
        let (line, at) = split(byte);
        let line = &mut self.lines[line];
        (line.present >> at & 1 == 1).then(|| &mut line.values[at])
    }

    #[inline(always)]
    fn ceil(&self, from: u16) -> Option<(u8, u64)> {
        // Mostly it is there itself.
        let byte = u8::try_from(from).ok()?;
        if let Some(value) = self.find(byte) {
            return Some((byte, value));
        }
        let (first, at) = split(byte);
        let mut wanted = u64::MAX << at;
        for (i, line) in (first..).zip(&self.lines[first..]) {
            let found = line.present & wanted;
            if found != 0 {
                let at = found.trailing_zeros() as usize;
                return Some((join(i, at), line.values[at]));
            }
            wanted = u64::MAX;
        }
        None
    }

    fn floor(&self, below: u16) -> Option<(u8, u64)> {
        let (last, at) = split(u8::try_from(below.checked_sub(1)?).ok()?);
        let mut wanted = (2 << at) - 1;
        for (i, line) in self.lines[..=last].iter().enumerate().rev() {
            let found = line.present & wanted;
            if found != 0 {
                let at = found.ilog2() as usize;
                return Some((join(i, at), line.values[at]));
            }
            wanted = u64::MAX;
        }
        None
    }

    fn entries(&self) -> impl Iterator<Item = (u8, u64)> {
        let all = (0..=255).map(|byte| (byte, self.find(byte)));
        all.filter_map(|(byte, value)| Some((byte, value?)))
    }

    fn fill(&mut self, mut entries: impl Iterator<Item = (u8, u64)>) {
        if entries.size_hint().0 == 256 {
            for (line, first) in self.lines.iter_mut().zip((0..256).step_by(VALUES_PER_LINE)) {
                let values = VALUES_PER_LINE.min(256 - first);
                let places = line.values[..values].iter_mut();
                places
                    .zip(&mut entries)
                    .for_each(|(place, (_, value))| *place = value);
                line.present = (1 << values) - 1;
            }
            return;
        }
        // Each line is told once which values it has; the compiler keeps them in a register until then.
        let (mut line, mut present) = (0, 0);
        for (byte, value) in entries {
            let (of, at) = split(byte);
            while line < of {
                self.lines[line].present = std::mem::take(&mut present);
                line += 1;
            }
            self.lines[line].values[at] = value;
            present |= 1 << at;
        }
        self.lines[line].present = present;
        self.lines[line + 1..]
            .iter_mut()
            .for_each(|line| line.present = 0);
    }

    fn add(&mut self, byte: u8, value: u64) -> bool {
        let (line, at) = split(byte);
        self.lines[line].values[at] = value;
        self.lines[line].present |= 1 << at;
        true
    }

    fn remove(&mut self, byte: u8) -> Remainder {
        let (line, at) = split(byte);
        self.lines[line].present &= !(1 << at);
        if self.lines[line].present.count_ones() > 1 {
            return Remainder::Right;
        }
        match self
            .lines
            .iter()
            .map(|line| line.present.count_ones() as usize)
            .sum()
        {
            0 => Remainder::Empty,
            1 => Remainder::Single,
            left if left <= sparse(56) => Remainder::Sparse,
            _ => Remainder::Right,
        }
    }
}
