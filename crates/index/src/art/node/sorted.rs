//! Nodes of up to 6, 12, 25 or 51 references, or 7, 14, 28 or 56 values: sorted bytes, then children in the same order.
//!
//! ```text
//! head: H bytes                       children: N of 4 or 8 bytes
//! [count][byte 0][byte 1]…[unused]    [child 0][child 1]…[unused]
//! ```
//! `N` is what fits: with the count, five bytes per reference make 6 of them 31 bytes, 12 of them 61, 25 of them 126
//! and 51 of them 256. The head lies in the first line, so that a lookup compares it as a whole and needs one more line
//! at most.

use super::{BranchNode, Node, Remainder, sparse};
use crate::LINE;

#[repr(C)]
pub(crate) struct Sorted<C, const H: usize, const N: usize> {
    head: [u8; H],
    children: [C; N],
}

impl<C: Copy, const H: usize, const N: usize> Sorted<C, H, N> {
    /// At this many children the next smaller class is right; the smallest class has none.
    const SPARSE: usize = match N {
        6 | 7 => 0,
        12 => sparse(6),
        25 => sparse(12),
        51 => sparse(25),
        14 => sparse(7),
        28 => sparse(14),
        _ => sparse(28),
    };

    #[inline(always)]
    fn count(&self) -> usize {
        self.head[0] as usize
    }

    fn bytes(&self) -> &[u8] {
        &self.head[1..=self.count()]
    }

    /// Where a byte is among the sorted ones.
    #[inline(always)]
    fn position(&self, byte: u8) -> Option<usize> {
        // The count is a byte of the head too, and so is what is unused: their bits are masked out.
        let used = (2u64 << self.count()) - 2;
        let hits = equal(&self.head, byte) & used;
        (hits != 0).then(|| hits.trailing_zeros() as usize - 1)
    }

    /// How many bytes are less.
    fn rank(&self, byte: u8) -> usize {
        self.bytes().iter().filter(|&&other| other < byte).count()
    }
}

/// A bit for each byte of the head that is equal.
#[inline(always)]
fn equal<const H: usize>(head: &[u8; H], byte: u8) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::*;
        // SAFETY: SSE2 is part of the architecture; each load lies within the head, by the offsets chosen from its
        // size.
        unsafe {
            let wanted = _mm_set1_epi8(byte as i8);
            let compare = |offset: usize| {
                let bytes = _mm_loadu_si128(head.as_ptr().add(offset).cast());
                (_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, wanted)) as u32 as u64) << offset
            };
            match H {
                8 => {
                    let bytes = _mm_loadl_epi64(head.as_ptr().cast());
                    _mm_movemask_epi8(_mm_cmpeq_epi8(bytes, wanted)) as u32 as u64 & 0xFF
                }
                // The last load may overlap the one before.
                16 => compare(0),
                28 => compare(0) | compare(12),
                32 => compare(0) | compare(16),
                52 => compare(0) | compare(16) | compare(32) | compare(36),
                64 => compare(0) | compare(16) | compare(32) | compare(48),
                _ => unreachable!(),
            }
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    {
        let bits = head.iter().enumerate();
        bits.fold(0, |hits, (i, &other)| hits | u64::from(other == byte) << i)
    }
}

impl<C: Copy, const H: usize, const N: usize> BranchNode for Sorted<C, H, N>
where
    Self: Node,
{
    type Child = C;
    const FAR: bool = size_of::<Self>() > 2 * LINE;

    #[inline(always)]
    fn locate(&self, byte: u8) -> Option<&C> {
        self.position(byte).map(|at| &self.children[at])
    }

    fn find_mut(&mut self, byte: u8) -> Option<&mut C> {
        self.position(byte).map(|at| &mut self.children[at])
    }

    fn ceil(&self, from: u16) -> Option<(u8, C)> {
        let at = u8::try_from(from).map_or(N, |byte| self.rank(byte));
        let byte = self.bytes().get(at)?;
        Some((*byte, self.children[at]))
    }

    fn floor(&self, below: u16) -> Option<(u8, C)> {
        let rank = u8::try_from(below).map_or(self.count(), |byte| self.rank(byte));
        let at = rank.checked_sub(1)?;
        Some((self.head[1 + at], self.children[at]))
    }

    fn entries(&self) -> impl Iterator<Item = (u8, C)> {
        self.bytes()
            .iter()
            .copied()
            .zip(self.children.iter().copied())
    }

    fn fill(&mut self, entries: impl Iterator<Item = (u8, C)>) {
        let mut count = 0;
        for (byte, child) in entries {
            self.head[1 + count] = byte;
            self.children[count] = child;
            count += 1;
        }
        self.head[0] = count as u8;
    }

    fn add(&mut self, byte: u8, child: C) -> bool {
        let count = self.count();
        if count == N {
            return false;
        }
        let at = self.rank(byte);
        self.head.copy_within(1 + at..1 + count, 2 + at);
        self.children.copy_within(at..count, at + 1);
        self.head[1 + at] = byte;
        self.children[at] = child;
        self.head[0] += 1;
        true
    }

    fn remove(&mut self, byte: u8) -> Remainder {
        let at = self.position(byte).expect("a byte with a child");
        let count = self.count();
        self.head.copy_within(2 + at..1 + count, 1 + at);
        self.children.copy_within(at + 1..count, at);
        self.head[0] -= 1;
        match count - 1 {
            0 => Remainder::Empty,
            1 => Remainder::Single,
            left if left <= Self::SPARSE => Remainder::Sparse,
            _ => Remainder::Right,
        }
    }
}
