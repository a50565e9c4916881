//! How long a thread has had a processor.

use std::time::Duration;

/// What the calling thread has used of processors so far.
pub fn thread_cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes the time to where it is told; the clock exists since Linux 2.6.12.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0, "every thread has a clock");
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    #[cfg_attr(miri, ignore = "the clock is the kernel's")]
    fn a_thread_that_sleeps_uses_nothing_and_one_that_works_does() {
        let before = thread_cpu_time();
        std::thread::sleep(Duration::from_millis(50));
        let slept = thread_cpu_time() - before;
        assert!(slept < Duration::from_millis(25), "{slept:?}");
        let (before, began) = (thread_cpu_time(), Instant::now());
        while thread_cpu_time() - before < Duration::from_millis(5) {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "the clock stands still"
            );
        }
    }
}
