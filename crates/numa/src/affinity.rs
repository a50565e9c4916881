//! Which CPUs the process may use, and binding a thread to one of them.

use std::io;

/// A thread could not be bound to a CPU.
#[derive(Debug, thiserror::Error)]
#[error("cannot pin the thread to CPU {cpu}: {source}")]
pub struct PinError {
    /// The CPU's number as the operating system counts.
    pub cpu: u32,
    /// Mostly that the CPU is offline or not allowed to this process.
    pub source: io::Error,
}

/// The kernel's own upper bound of CPUs; its mask must fit, or `sched_getaffinity` fails.
const MAX_CPUS: usize = 8192;
const WORDS: usize = MAX_CPUS / 64;

/// Binds the calling thread to one CPU until it ends or is bound anew.
///
/// # Errors
/// [`PinError`] if the CPU is offline, unknown or outside of the process's cpuset.
pub fn pin_current_thread(cpu: u32) -> Result<(), PinError> {
    let bit = cpu as usize;
    if bit >= MAX_CPUS {
        return Err(PinError {
            cpu,
            source: io::Error::from_raw_os_error(libc::EINVAL),
        });
    }
    let mut mask = [0u64; WORDS];
    mask[bit / 64] |= 1 << (bit % 64);
    // SAFETY: `mask` is an array of the size given; pid 0 means the calling thread.
    let status = unsafe {
        libc::sched_setaffinity(
            0,
            size_of_val(&mask),
            mask.as_ptr().cast::<libc::cpu_set_t>(),
        )
    };
    if status == 0 {
        Ok(())
    } else {
        Err(PinError {
            cpu,
            source: io::Error::last_os_error(),
        })
    }
}

/// Has the calling thread, and those that it starts from now on, run only where nobody else wants to, or nearly so.
pub fn give_way() {
    const LAST: libc::c_int = 19;
    // SAFETY: plain numbers; of PRIO_PROCESS, 0 is the calling thread.
    // A thread may always go back in the line, so that there is no error.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, LAST) };
}

/// The CPU on which the calling thread runs at this moment, if the operating system says so.
pub fn current_cpu() -> Option<u32> {
    // SAFETY: it takes nothing and only returns a number.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).ok()
}

/// The CPUs on which the calling thread may run, ascending. The kernel has already applied the cgroup's cpuset to it.
///
/// # Errors
/// What the operating system reports.
pub(crate) fn allowed_cpus() -> io::Result<Vec<u32>> {
    let mut mask = [0u64; WORDS];
    // SAFETY: `mask` is writable for the size given; pid 0 means the calling thread.
    let status = unsafe {
        libc::sched_getaffinity(
            0,
            size_of_val(&mask),
            mask.as_mut_ptr().cast::<libc::cpu_set_t>(),
        )
    };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let set = |cpu: &u32| mask[*cpu as usize / 64] >> (cpu % 64) & 1 == 1;
    Ok((0..MAX_CPUS as u32).filter(set).collect())
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_run_on_its_cpu_alone() {
        let cpus = allowed_cpus().unwrap();
        for &cpu in &cpus {
            let seen = std::thread::spawn(move || {
                pin_current_thread(cpu).unwrap();
                allowed_cpus().unwrap()
            });
            assert_eq!(seen.join().unwrap(), [cpu]);
        }
        assert_eq!(
            allowed_cpus().unwrap(),
            cpus,
            "the spawning thread was not bound"
        );
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_an_error() {
        for cpu in [8191, 8192, u32::MAX] {
            let error = pin_current_thread(cpu).unwrap_err();
            assert!(error.to_string().contains(&format!("CPU {cpu}")), "{error}");
        }
    }
}
