//! Work of readers that panic where a damaged file tells of more than there is: the panic becomes an error, and is not
//! printed.

use std::cell::Cell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::pin::pin;
use std::sync::LazyLock;
use std::task::Poll;

thread_local! {
    static IS_CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// What prints panics leaves out those of contained work. There is one of them for all threads.
static HOOK: LazyLock<()> = LazyLock::new(|| {
    let printed = take_hook();
    set_hook(Box::new(move |panic| {
        if !IS_CONTAINED.get() {
            printed(panic);
        }
    }));
});

/// What the work gives; nothing if it panics.
pub(crate) fn contained<T>(work: impl FnOnce() -> T) -> Option<T> {
    LazyLock::force(&HOOK);
    let before = IS_CONTAINED.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    IS_CONTAINED.set(before);
    done.ok()
}

/// What the future gives; nothing if it panics.
pub(crate) async fn contained_future<F: Future>(work: F) -> Option<F::Output> {
    let mut work = pin!(work);
    poll_fn(|cx| match contained(|| work.as_mut().poll(cx)) {
        Some(Poll::Ready(done)) => Poll::Ready(Some(done)),
        Some(Poll::Pending) => Poll::Pending,
        None => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_nothing() {
        assert_eq!(contained(|| 1), Some(1));
        assert_eq!(contained(|| -> u32 { panic!("not printed") }), None);
        assert!(!IS_CONTAINED.get());
    }
}
