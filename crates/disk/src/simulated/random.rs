//! Numbers by chance, the same for the same seed.

/// SplitMix64.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`, which is not zero.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// What a crash leaves of what was not flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// None of it.
    Nothing,
    /// All of it.
    Everything,
    /// This many of eight, one by one.
    Some(u64),
}

impl Kept {
    /// Chance seldom keeps all or nothing of many things, and both are what happens most. So they are drawn apart.
    pub(super) fn any(random: &mut Random) -> Self {
        match random.below(8) {
            0 => Kept::Nothing,
            1 => Kept::Everything,
            _ => Kept::Some(1 + random.below(7)),
        }
    }

    /// The same for a part: some of the whole may be all of one file.
    pub(super) fn part(self, random: &mut Random) -> Self {
        match self {
            Kept::Some(_) => Kept::any(random),
            whole => whole,
        }
    }

    /// Whether this one is kept.
    pub(super) fn is_kept(self, random: &mut Random) -> bool {
        match self {
            Kept::Nothing => false,
            Kept::Everything => true,
            Kept::Some(eighths) => random.below(8) < eighths,
        }
    }
}
