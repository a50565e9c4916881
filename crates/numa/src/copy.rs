//! Ways of copying another node's memory.
//!
//! ```text
//! plain       load ─▶ store                                    the compiler's and the system's best; fills the caches
//! prefetched  prefetch far ahead, load ─▶ store                       more requests under way; fills the caches
//! streaming   prefetch far ahead, load ─▶ store past the caches       the same; leaves the caches alone
//! ```
//!
//! All are done by the core that asks. Another way is that a core of the other node does it, which is the engine's
//! business: it is one of these, there. A unit of the hardware that copies (Intel's DSA, SGI's GRU) would be one more
//! variant.

use crate::buffer::Plain;
use serde::{Deserialize, Serialize};

/// How far ahead of the loads copies ask for lines, in bytes: what crosses a link within a latency.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const AHEAD: usize = 4096;

/// A line of a cache, in bytes.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE: usize = 64;

/// How memory is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CopyEngine {
    /// Loads and stores.
    Plain,
    /// Prefetched loads, and stores; plain where nothing can be prefetched.
    Prefetched,
    /// Prefetched loads, and stores that go past the caches; plain on processors that have none.
    Streaming,
}

impl CopyEngine {
    /// All of them.
    pub const ALL: [CopyEngine; 3] = [
        CopyEngine::Plain,
        CopyEngine::Prefetched,
        CopyEngine::Streaming,
    ];

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            CopyEngine::Plain => "plain",
            CopyEngine::Prefetched => "prefetched",
            CopyEngine::Streaming => "streaming",
        }
    }

    /// Copies all numbers.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn copy<T: Plain>(self, from: &[T], to: &mut [T]) {
        assert_eq!(from.len(), to.len());
        match self {
            CopyEngine::Plain => to.copy_from_slice(from),
            CopyEngine::Prefetched => copy_lines::<T, false>(from, to),
            CopyEngine::Streaming => copy_lines::<T, true>(from, to),
        }
    }
}

#[cfg(any(not(target_arch = "x86_64"), miri))]
fn copy_lines<T: Plain, const PAST_CACHES: bool>(from: &[T], to: &mut [T]) {
    to.copy_from_slice(from);
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn copy_lines<T: Plain, const PAST_CACHES: bool>(from: &[T], to: &mut [T]) {
    use std::arch::x86_64::{
        __m128i, _MM_HINT_T1, _mm_loadu_si128, _mm_prefetch, _mm_sfence, _mm_store_si128,
        _mm_stream_si128,
    };
    let bytes = size_of_val(from);
    let (source, target) = (from.as_ptr().cast::<u8>(), to.as_mut_ptr().cast::<u8>());
    // Lines of the target are written as a whole; what is before the first and behind the last is copied plainly.
    let head = target.align_offset(LINE).min(bytes);
    let lines = (bytes - head) / LINE;
    let tail = head + lines * LINE;
    // SAFETY: both slices have `bytes` bytes, do not overlap (one is borrowed exclusively), and are plain numbers.
    // `head + line * LINE + LINE <= tail <= bytes`, and the target is aligned to a line from `head` on. A prefetch may
    // be of any address.
    unsafe {
        target.copy_from_nonoverlapping(source, head);
        for line in 0..lines {
            let at = head + line * LINE;
            _mm_prefetch::<_MM_HINT_T1>(source.wrapping_add(at + AHEAD).cast());
            let from = source.add(at).cast::<__m128i>();
            let to = target.add(at).cast::<__m128i>();
            let quarters = [0, 1, 2, 3].map(|quarter| _mm_loadu_si128(from.add(quarter)));
            for (quarter, value) in quarters.into_iter().enumerate() {
                match PAST_CACHES {
                    true => _mm_stream_si128(to.add(quarter), value),
                    false => _mm_store_si128(to.add(quarter), value),
                }
            }
        }
        target
            .add(tail)
            .copy_from_nonoverlapping(source.add(tail), bytes - tail);
        if PAST_CACHES {
            // Such stores are not ordered with others: whoever is told of the copy must find it.
            _mm_sfence();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_engine_copies_every_length_at_every_offset() {
        let from: Vec<u8> = (0..9000u32).map(|byte| (byte % 251) as u8).collect();
        for engine in CopyEngine::ALL {
            for len in [0, 1, 15, 63, 64, 65, 127, 128, 1000, 4096, 8191] {
                for (start, offset) in [(0, 0), (1, 0), (0, 1), (13, 57), (64, 63)] {
                    let mut to = vec![255u8; offset + len + 70];
                    engine.copy(&from[start..start + len], &mut to[offset..offset + len]);
                    assert_eq!(to[offset..offset + len], from[start..start + len]);
                    let around = to[..offset].iter().chain(&to[offset + len..]);
                    assert!(around.copied().all(|byte| byte == 255), "{engine:?} {len}");
                }
            }
        }
    }
}
