//! The range partition table: which AEU holds a key.
//!
//! A CSB+-tree (Rao and Ross), as the ERIS paper uses: a node is one cache line of keys and nothing else. The tree is
//! built once and never changed; a balancing cycle builds the next one. All nodes but the last of a level are full. So
//! a child's place follows from its parent's number, and no pointer is needed.
//!
//! ```text
//!  level 1            │ 40 90 │                       every key: the smallest key under the child right of it
//!              ┌────────┼────────┐
//!  level 0  │10 20 30│ │40 60 70│ │90 95│             the lower bounds of the ranges
//! ```

use crate::RangeError;

const CACHE_LINE: usize = 64;

/// Ranges of keys and who holds them. The first range also takes the keys below its lower bound, and the last is open
/// above, so every key belongs to exactly one range.
#[derive(Clone, Debug)]
pub struct RangeTable<K: Copy, V> {
    /// The lower bounds first, the root last.
    levels: Vec<LevelKeys<K>>,
    /// By range, the position in `holders`.
    holder: Vec<u32>,
    /// Every holder once, ascending.
    holders: Vec<V>,
}

/// The keys of one level; nodes begin at cache-line boundaries.
#[derive(Debug)]
struct LevelKeys<K> {
    keys: Vec<K>,
    /// Keys before the first boundary: padding.
    first: usize,
}

impl<K: Copy> LevelKeys<K> {
    fn new(from: &[K]) -> Self {
        let mut keys: Vec<K> = Vec::with_capacity(from.len() + CACHE_LINE);
        let first = match keys.as_ptr().align_offset(CACHE_LINE) {
            aligned if aligned < CACHE_LINE => aligned,
            _ => 0,
        };
        if let Some(&padding) = from.first() {
            keys.resize(first, padding);
        }
        keys.extend_from_slice(from);
        LevelKeys { keys, first }
    }

    #[inline]
    fn keys(&self) -> &[K] {
        &self.keys[self.first..]
    }
}

impl<K: Copy> Clone for LevelKeys<K> {
    fn clone(&self) -> Self {
        LevelKeys::new(self.keys())
    }
}

impl<K: Ord + Copy, V: Ord + Copy> RangeTable<K, V> {
    /// Keys in a node.
    const NODE: usize = if CACHE_LINE / size_of::<K>() < 2 {
        2
    } else {
        CACHE_LINE / size_of::<K>()
    };

    /// Holders up to which a batch is split by a pass for each.
    const FEW: usize = 4;
    /// A batch with fewer keys than this part of the holders is sorted: there is no look at each holder.
    const SPARSE: usize = 4;
    /// Keys that stay in the first-level cache from one pass to the next.
    const BLOCK: usize = 1024;

    /// A table of ranges, each given by its lower bound and its holder, in ascending order.
    pub fn new(ranges: impl IntoIterator<Item = (K, V)>) -> Result<Self, RangeError> {
        let (bounds, of_range): (Vec<K>, Vec<V>) = ranges.into_iter().unzip();
        if bounds.is_empty() {
            return Err(RangeError::Empty);
        }
        if let Some(at) = bounds.windows(2).position(|pair| pair[0] >= pair[1]) {
            return Err(RangeError::NotAscending { position: at + 1 });
        }
        let mut holders = of_range.clone();
        holders.sort_unstable();
        holders.dedup();
        let position = |holder: &V| holders.partition_point(|known| known < holder) as u32;
        let holder = of_range.iter().map(position).collect();

        let mut levels = vec![LevelKeys::new(&bounds)];
        // A key of level n is the smallest key of a level n-1 node; the first of them says nothing and is left out,
        // so the child of a key at position i is node i + 1.
        let mut smallest: Vec<K> = bounds.chunks(Self::NODE).map(|node| node[0]).collect();
        while smallest.len() > 1 {
            let fan_out = Self::NODE + 1;
            let mut keys = Vec::with_capacity(smallest.len());
            for children in smallest.chunks(fan_out) {
                keys.extend_from_slice(&children[1..]);
            }
            levels.push(LevelKeys::new(&keys));
            smallest = smallest
                .chunks(fan_out)
                .map(|children| children[0])
                .collect();
        }
        Ok(RangeTable {
            levels,
            holder,
            holders,
        })
    }

    /// The number of the range a key belongs to.
    #[inline]
    fn find(&self, key: K) -> usize {
        let mut node = 0;
        for (height, level) in self.levels.iter().enumerate().rev() {
            let keys = level.keys();
            let start = (node * Self::NODE).min(keys.len());
            let end = (start + Self::NODE).min(keys.len());
            // Counting instead of searching: no branch depends on a key.
            let not_above: usize = keys[start..end]
                .iter()
                .map(|bound| (*bound <= key) as usize)
                .sum();
            node = if height > 0 {
                node * (Self::NODE + 1) + not_above
            } else {
                start + not_above
            };
        }
        node.saturating_sub(1)
    }

    /// Who holds a key.
    #[inline]
    pub fn get(&self, key: K) -> V {
        self.holders[self.holder[self.find(key)] as usize]
    }

    /// Who holds keys between `low` and `high`, both included: one holder per range, in the order of the ranges. Empty
    /// if `low` is above `high`.
    pub fn overlapping(&self, low: K, high: K) -> impl Iterator<Item = V> + '_ {
        let ranges = if low <= high {
            self.find(low)..self.find(high) + 1
        } else {
            0..0
        };
        self.holder[ranges]
            .iter()
            .map(|&at| self.holders[at as usize])
    }

    /// Splits a batch of keys by holder. The positions of a holder's keys keep their order.
    ///
    /// `split` is overwritten; kept by the caller, it makes the call free of allocations.
    pub fn split(&self, keys: &[K], split: &mut Split) {
        assert!(
            keys.len() <= u32::MAX as usize,
            "positions in a batch have 32 bits"
        );
        self.find_holders(keys, &mut split.holder);
        split.positions.clear();
        split.parts.clear();
        if keys.len() <= self.holders.len() / Self::SPARSE {
            self.split_sparse(split);
        } else if self.holders.len() <= Self::FEW {
            self.split_by_passes(split);
        } else {
            self.split_by_counting(split);
        }
    }

    /// Of many holders few have keys.
    fn split_sparse(&self, split: &mut Split) {
        let holder = &split.holder;
        split.positions.extend(0..holder.len() as u32);
        (split.positions).sort_unstable_by_key(|&at| (holder[at as usize], at));
        let of_one = |a: &u32, b: &u32| holder[*a as usize] == holder[*b as usize];
        let mut end = 0;
        for part in split.positions.chunk_by(of_one) {
            end += part.len() as u32;
            split.parts.push((holder[part[0] as usize], end));
        }
    }

    /// A pass per holder, without a branch or a sum in memory that the next key waits for.
    fn split_by_passes(&self, split: &mut Split) {
        let count = split.holder.len();
        split.positions.resize(count + 1, 0);
        // As slices, for the compiler does not know that no position lies where the vectors do.
        let (of_keys, positions) = (&split.holder[..], &mut split.positions[..]);
        let mut end = 0;
        for holder in 0..self.holders.len() as u32 {
            let begin = end;
            for (position, &of) in of_keys.iter().enumerate() {
                positions[end] = position as u32;
                end += usize::from(of == holder);
            }
            if end > begin {
                split.parts.push((holder, end as u32));
            }
        }
        split.positions.truncate(count);
    }

    fn split_by_counting(&self, split: &mut Split) {
        split.ends.clear();
        split.ends.resize(self.holders.len(), 0);
        for &holder in &split.holder {
            split.ends[holder as usize] += 1;
        }
        let mut sum = 0;
        for end in &mut split.ends {
            (*end, sum) = (sum, sum + *end);
        }
        split.positions.resize(split.holder.len(), 0);
        for (position, &holder) in split.holder.iter().enumerate() {
            let end = &mut split.ends[holder as usize];
            split.positions[*end as usize] = position as u32;
            *end += 1;
        }
        let mut begin = 0;
        for (&end, holder) in split.ends.iter().zip(0..) {
            if end > begin {
                split.parts.push((holder, end));
            }
            begin = end;
        }
    }

    /// By key, the number of its holder.
    fn find_holders(&self, keys: &[K], holders: &mut Vec<u32>) {
        holders.clear();
        let bounds = self.levels[0].keys();
        if bounds.len() > Self::NODE {
            holders.extend(keys.iter().map(|&key| self.holder[self.find(key)]));
            return;
        }
        // Bound by bound instead of key by key: that is what the compiler makes vectors of.
        holders.resize(keys.len(), self.holder[0]);
        let blocks = keys.chunks(Self::BLOCK);
        for (keys, holders) in blocks.zip(holders.chunks_mut(Self::BLOCK)) {
            for (bound, &from_here) in bounds.iter().zip(&self.holder).skip(1) {
                for (key, holder) in keys.iter().zip(&mut *holders) {
                    // A mask instead of a condition: a branch for each key would be guessed wrong every other time.
                    let is_above = u32::from(bound <= key).wrapping_neg();
                    *holder ^= (*holder ^ from_here) & is_above;
                }
            }
        }
    }

    /// Splits keys that ascend: each range that has keys, with its holder and where these are.
    pub fn split_sorted<'a>(
        &'a self,
        keys: &'a [K],
    ) -> impl Iterator<Item = (V, std::ops::Range<usize>)> + 'a {
        let mut from = 0;
        let nexts = self.levels[0].keys()[1..].iter().map(Some);
        let nexts = nexts.chain(std::iter::once(None));
        let ranges = nexts.zip(&self.holder).map(move |(next, &holder)| {
            let left = &keys[from..];
            let count = next.map_or(left.len(), |next| left.partition_point(|key| key < next));
            let range = from..from + count;
            from = range.end;
            (self.holders[holder as usize], range)
        });
        ranges.filter(|(_, range)| !range.is_empty())
    }

    /// Runs of keys: those one behind the other that lie in one range, each with its holder and where they are.
    pub fn runs<'a>(
        &'a self,
        keys: &'a [K],
    ) -> impl Iterator<Item = (V, std::ops::Range<usize>)> + 'a {
        let bounds = self.levels[0].keys();
        let mut from = 0;
        std::iter::from_fn(move || {
            let left = keys.get(from..).filter(|left| !left.is_empty())?;
            let at = self.find(left[0]);
            // The first range also has the keys below its bound.
            let (low, next) = (bounds.get(at).filter(|_| at > 0), bounds.get(at + 1));
            let is_in =
                |key: &&K| low.is_none_or(|low| low <= *key) && next.is_none_or(|next| *key < next);
            let range = from..from + left.iter().take_while(is_in).count();
            from = range.end;
            Some((self.holders[self.holder[at] as usize], range))
        })
    }

    /// The parts of a batch that was split by this table: each holder that has keys, with their positions.
    pub fn parts<'a>(&'a self, split: &'a Split) -> impl Iterator<Item = (V, &'a [u32])> + 'a {
        let mut begin = 0;
        split.parts.iter().map(move |&(holder, end)| {
            let positions = &split.positions[begin..end as usize];
            begin = end as usize;
            (self.holders[holder as usize], positions)
        })
    }

    /// The ranges: lower bound and holder, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (K, V)> + '_ {
        let holders = self.holder.iter().map(|&at| self.holders[at as usize]);
        self.levels[0].keys().iter().copied().zip(holders)
    }

    /// Every holder once, ascending.
    pub fn holders(&self) -> &[V] {
        &self.holders
    }

    /// How many ranges there are: at least one.
    pub fn ranges(&self) -> usize {
        self.holder.len()
    }
}

/// A batch of keys, split by holder; see [`RangeTable::split`].
#[derive(Clone, Debug, Default)]
pub struct Split {
    /// By key, the number of its holder.
    holder: Vec<u32>,
    positions: Vec<u32>,
    /// The holders that have keys, ascending, and where the positions of each end.
    parts: Vec<(u32, u32)>,
    /// By holder, where its positions end: while keys are counted.
    ends: Vec<u32>,
}

impl Split {
    /// The positions of all parts, one part after the other.
    pub fn positions(&self) -> &[u32] {
        &self.positions
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn oracle(ranges: &BTreeMap<u64, u16>, key: u64) -> u16 {
        let below = ranges.range(..=key).next_back().or(ranges.iter().next());
        *below.expect("at least one range").1
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 200 }))]
        #[test]
        fn agrees_with_a_btree_map(
            ranges in prop_oneof![
                prop::collection::btree_map(0u64..2000, 0u16..40, 1..900),
                prop::collection::btree_map(0u64..2000, 0u16..8, 1..12),
            ],
            keys in prop::collection::vec(0u64..2100, 0..2500),
        ) {
            let table = RangeTable::new(ranges.clone()).unwrap();
            prop_assert!(table.iter().eq(ranges.clone()));
            for &key in &keys {
                prop_assert_eq!(table.get(key), oracle(&ranges, key));
            }
            let mut split = Split::default();
            table.split(&keys, &mut split);
            let mut seen = BTreeSet::new();
            for (holder, positions) in table.parts(&split) {
                prop_assert!(positions.is_sorted());
                for &position in positions {
                    prop_assert_eq!(oracle(&ranges, keys[position as usize]), holder);
                    prop_assert!(seen.insert(position));
                }
            }
            prop_assert_eq!(seen.len(), keys.len());
            let range_of = |key: u64| ranges.range(..=key).next_back().or(ranges.iter().next());
            let mut next = 0;
            for (holder, run) in table.runs(&keys) {
                prop_assert_eq!((run.start, run.is_empty()), (next, false));
                next = run.end;
                let range = range_of(keys[run.start]);
                prop_assert_eq!(range.map(|(_, holder)| *holder), Some(holder));
                prop_assert!(keys[run.clone()].iter().all(|&key| range_of(key) == range));
                prop_assert!(keys.get(next).is_none_or(|&key| range_of(key) != range));
            }
            prop_assert_eq!(next, keys.len());
            let mut sorted = keys.clone();
            sorted.sort_unstable();
            let mut next = 0;
            for (holder, range) in table.split_sorted(&sorted) {
                prop_assert_eq!((range.start, range.is_empty()), (next, false));
                next = range.end;
                prop_assert!(sorted[range].iter().all(|&key| oracle(&ranges, key) == holder));
            }
            prop_assert_eq!(next, sorted.len());
        }

        #[test]
        fn overlapping_visits_the_ranges_between(
            ranges in prop::collection::btree_map(0u64..200, 0u16..9, 1..60),
            low in 0u64..210, high in 0u64..210,
        ) {
            let table = RangeTable::new(ranges.clone()).unwrap();
            let first = ranges.range(..=low).next_back().or(ranges.iter().next()).map(|(&bound, _)| bound);
            let expected: Vec<u16> = if low > high { vec![] } else {
                ranges.range(first.unwrap()..).take_while(|(bound, _)| **bound <= high || Some(**bound) == first)
                    .map(|(_, &holder)| holder).collect()
            };
            prop_assert_eq!(table.overlapping(low, high).collect::<Vec<_>>(), expected);
        }

        #[test]
        fn wide_and_narrow_keys_work(count in 1usize..600, key in any::<u8>()) {
            let wide = RangeTable::new((0..count).map(|n| ([n as u64; 9], n))).unwrap();
            prop_assert_eq!(wide.get([key as u64; 9]), (key as usize).min(count - 1));
            let narrow = RangeTable::new((0..count.min(256)).map(|n| (n as u8, n))).unwrap();
            prop_assert_eq!(narrow.get(key), (key as usize).min(count - 1));
        }
    }

    #[test]
    fn a_list_that_is_no_partitioning_is_rejected() {
        assert_eq!(
            RangeTable::<u64, u16>::new([]).unwrap_err(),
            RangeError::Empty
        );
        let unordered = RangeTable::new([(1u64, 0u16), (5, 1), (5, 0)]);
        assert_eq!(
            unordered.unwrap_err(),
            RangeError::NotAscending { position: 2 }
        );
    }

    #[test]
    fn nodes_lie_on_cache_lines() {
        let table = RangeTable::new((0..10_000u64).map(|n| (n, 0u16)))
            .unwrap()
            .clone();
        for level in &table.levels {
            assert_eq!(level.keys().as_ptr() as usize % CACHE_LINE, 0);
        }
        assert_eq!(
            table.levels.len(),
            5,
            "8 keys a node: 10,000 / 8 / 9 / 9 / 9 < 9"
        );
    }
}
