//! A client's side: a port that can wait.

use eris_route::{Endpoint, FlushState, Port, Received};
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// A client of the AEUs, for async code or a blocking thread. Dropping it closes the endpoint: replies that come later
/// are rejected and their parcels dropped; what was sent and not flushed is dropped.
pub struct Session<P = ()> {
    port: Port<P>,
}

impl<P> Session<P> {
    /// A session over a port of [`eris_route::Router::session`].
    pub fn new(port: Port<P>) -> Self {
        Session { port }
    }

    /// Where replies go.
    pub fn endpoint(&self) -> Endpoint {
        self.port.endpoint()
    }

    /// The port beneath. What is [sent](eris_route::Outgoing::send) by it leaves at the next flush.
    pub fn port(&mut self) -> &mut Port<P> {
        &mut self.port
    }

    /// See [`eris_route::Outgoing::flush`]. What is held because the engine is busy waits for the next flush,
    /// [`Session::flushed`], or whatever waits for replies.
    pub fn flush(&mut self) -> FlushState {
        self.port.flush()
    }

    /// Whatever has arrived, without waiting.
    pub fn try_receive(&mut self) -> Option<Received<'_, P>> {
        self.port.receive()
    }

    /// Ready when [`Session::try_receive`] has something; nothing is flushed then. Otherwise everything held is flushed
    /// as far as there is room, and the task is woken when something has come, *or when there may be room for what is
    /// still held*: the next poll flushes it. So a caller that polls whenever it is woken need not look after
    /// [`FlushState::Held`] itself. It may be woken for nothing.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.port.ready() {
            return Poll::Ready(());
        }
        self.port.wake_by(cx.waker());
        self.port.flush();
        if self.port.ready() {
            self.port.awake();
            return Poll::Ready(());
        }
        // A sender that was just copying into the swapped buffer has looked at the bell before it was armed, perhaps.
        // It rings after its copy in any case, and the bell was armed before the look that found it copying.
        Poll::Pending
    }

    /// Ready when everything sent has left; otherwise the task is woken when there may be room.
    pub fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.port.wake_by(cx.waker());
        match self.port.flush() {
            FlushState::Empty => {
                self.port.awake();
                Poll::Ready(())
            }
            FlushState::Held => Poll::Pending,
        }
    }

    /// Waits for replies.
    pub async fn next(&mut self) -> Received<'_, P> {
        loop {
            poll_fn(|cx| self.poll_ready(cx)).await;
            // A second look, because the borrow checker cannot follow a loan out of a loop that may go on.
            if self.port.ready() {
                break;
            }
        }
        self.port
            .receive()
            .expect("ready was true, and only this session can take")
    }

    /// Waits until everything sent has left: the back-pressure of the engine on its client.
    pub async fn flushed(&mut self) {
        poll_fn(|cx| self.poll_flush(cx)).await;
    }

    /// Blocks the thread until replies have come, at most for `timeout`.
    pub fn receive(&mut self, timeout: Duration) -> Option<Received<'_, P>> {
        if block_on(timeout, |cx| self.poll_ready(cx)) {
            self.port.receive()
        } else {
            None
        }
    }

    /// Blocks the thread until everything sent has left, at most for `timeout`; true if it has.
    pub fn flush_blocking(&mut self, timeout: Duration) -> bool {
        block_on(timeout, |cx| self.poll_flush(cx))
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Polls until ready or the time is over; true if ready.
fn block_on(timeout: Duration, mut poll: impl FnMut(&mut Context<'_>) -> Poll<()>) -> bool {
    // What has come already needs neither a clock nor a waker.
    if poll(&mut Context::from_waker(Waker::noop())).is_ready() {
        return true;
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    let deadline = Instant::now().checked_add(timeout);
    loop {
        if poll(&mut cx).is_ready() {
            return true;
        }
        match deadline {
            None => thread::park(),
            Some(deadline) => match deadline.checked_duration_since(Instant::now()) {
                Some(left) if !left.is_zero() => thread::park_timeout(left),
                _ => return false,
            },
        }
    }
}
