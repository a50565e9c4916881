//! Messages that are small and can be copied: they travel as words, without an allocation.

/// What fits into two words.
pub(crate) trait Words: Sized {
    /// How many it takes.
    const LEN: usize;

    fn to_words(&self) -> [u64; 2];

    /// Of so many words.
    fn of(words: &[u64]) -> Self;
}

/// Messages that say all there is to say by being there.
macro_rules! without_words {
    ($($name:ident),* $(,)?) => {
        $(impl $crate::protocol::words::Words for $name {
            const LEN: usize = 0;

            fn to_words(&self) -> [u64; 2] {
                [0; 2]
            }

            fn of(_: &[u64]) -> Self {
                $name
            }
        })*
    };
}
pub(crate) use without_words;
