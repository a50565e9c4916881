//! Keys on their way in tasks: which of them have room there, and those that have not.

use crate::key::Key;
use eris_aeu::task::MOST_WORDS;
use eris_atomics::Lock;
use std::sync::Arc;

/// Words of a task before those of its key.
pub(crate) const BEFORE_KEY: usize = 2;
/// The most words of a key that travels in a task.
pub(crate) const KEY_WORDS: usize = MOST_WORDS - BEFORE_KEY;

/// Keys that have no room in a task, by their numbers.
pub(crate) struct LongKeys<K: Key + ?Sized>(Lock<Numbered<K::Owned>>);

struct Numbered<T> {
    keys: Vec<Option<Arc<T>>>,
    free: Vec<usize>,
}

impl<K: Key + ?Sized> Default for LongKeys<K> {
    fn default() -> Self {
        let (keys, free) = (Vec::new(), Vec::new());
        LongKeys(Lock::new(Numbered { keys, free }))
    }
}

impl<K: Key + ?Sized> LongKeys<K> {
    /// How many are on their way.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        let all = self.0.lock();
        all.keys.len() - all.free.len()
    }

    pub fn keep(&self, key: K::Ref<'_>) -> u64 {
        let key = Some(Arc::new(K::own(key)));
        let mut all = self.0.lock();
        match all.free.pop() {
            Some(number) => {
                all.keys[number] = key;
                number as u64
            }
            None => {
                all.keys.push(key);
                all.keys.len() as u64 - 1
            }
        }
    }

    pub fn get(&self, number: u64) -> Arc<K::Owned> {
        let kept = self.0.lock().keys[number as usize].clone();
        kept.expect("it is kept as long as its operation lasts")
    }

    pub fn forget(&self, number: u64) {
        let mut all = self.0.lock();
        let key = all.keys[number as usize].take();
        all.free.push(number as usize);
        drop(all);
        // Its memory is given back behind the lock.
        drop(key);
    }
}
