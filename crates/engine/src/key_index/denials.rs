//! For simulations: memory that is denied now and then.

use eris_aeu::Random;
use std::cell::RefCell;

thread_local! {
    /// Whether there is no memory for what is moved, once in so many pieces.
    pub(crate) static DENIALS: RefCell<(usize, Random)> = const { RefCell::new((0, Random::new(0))) };
}

/// How many of so many entries there is memory for, if not for all.
pub(crate) fn denial(entries: usize) -> Option<usize> {
    DENIALS.with_borrow_mut(|(one_in, random)| {
        random.one_in(*one_in).then(|| random.below(entries + 1))
    })
}
