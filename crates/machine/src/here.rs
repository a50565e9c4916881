//! What is known of the machine at hand, while it becomes known.

use crate::kept::Kept;
use crate::measure::{Measuring, are_free, measure};
use arc_swap::ArcSwapOption;
use eris_numa::{Memory, Profile, Speeds, Topology, give_way};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// Looks at whether the cores are free, and the pause after the first one. Each pause is twice as long as the one
/// before: a minute in all.
const LOOKS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(60);

/// The machine at hand. Threads share it.
pub struct Here {
    topology: Arc<Topology>,
    memory: Memory,
    known: ArcSwapOption<Profile>,
    /// A number of [`State`]. Only whoever makes `Allowed` to `Begun` measures.
    state: AtomicU8,
    learned: Box<dyn Fn(&Profile) + Send + Sync>,
}

#[derive(Clone, Copy)]
enum State {
    /// Nobody may measure.
    Fixed,
    /// Whoever needs it first has it measured.
    Allowed,
    /// It is known, or will be.
    Begun,
}

impl Here {
    /// Of which nothing is known. When that changes, `learned` is called with it, once, by a thread of its own.
    ///
    /// If the topology has the profile of a machine, this one is known, and nothing is ever measured.
    pub fn new(
        topology: Arc<Topology>,
        memory: Memory,
        learned: impl Fn(&Profile) + Send + Sync + 'static,
    ) -> Self {
        let given = topology.machine().cloned();
        let state = match &given {
            Some(_) => State::Begun,
            None => State::Fixed,
        };
        Here {
            topology,
            memory,
            known: ArcSwapOption::new(given),
            state: AtomicU8::new(state as u8),
            learned: Box::new(learned),
        }
    }

    /// From now on, whoever needs it first has it measured.
    pub fn allow(&self) {
        let (fixed, allowed) = (State::Fixed as u8, State::Allowed as u8);
        let _ = self
            .state
            .compare_exchange(fixed, allowed, Relaxed, Relaxed);
    }

    /// What is known of links and cores.
    pub fn profile(&self) -> Option<Arc<Profile>> {
        self.known.load_full()
    }

    /// What is known of cores, or else what is usual.
    pub fn speeds(&self) -> Speeds {
        let known = self.known.load();
        let speeds = known.as_ref().and_then(|profile| profile.speeds());
        speeds.cloned().unwrap_or_else(Speeds::usual)
    }

    /// Somebody needs what is not known: it is read from where it is kept, or measured by a thread that gives way to
    /// all others. Does not wait.
    pub fn need(self: &Arc<Self>) {
        if self.state.load(Relaxed) != State::Allowed as u8 || !self.begin() {
            return;
        }
        let here = Arc::clone(self);
        let learn = move || {
            give_way();
            if !here.learn(Kept::of_user(&here.topology).as_ref(), Measuring::default()) {
                here.state.store(State::Allowed as u8, Relaxed);
            }
        };
        let thread = thread::Builder::new()
            .name("machine".to_owned())
            .spawn(learn);
        if thread.is_err() {
            self.state.store(State::Allowed as u8, Relaxed);
        }
    }

    fn begin(&self) -> bool {
        let (allowed, begun) = (State::Allowed as u8, State::Begun as u8);
        let begun = self
            .state
            .compare_exchange(allowed, begun, Relaxed, Relaxed);
        begun.is_ok()
    }

    /// Says whether it is known now.
    fn learn(&self, kept: Option<&Kept>, how: Measuring) -> bool {
        let read = kept.and_then(Kept::load);
        let profile = match read {
            Some(profile) => profile,
            None => {
                let Some(measured) = self.measure(how) else {
                    return false;
                };
                // Who cannot keep it measures again the next time.
                let _ = kept.map(|kept| kept.store(&measured));
                measured
            }
        };
        (self.learned)(&profile);
        self.known.store(Some(Arc::new(profile)));
        true
    }

    fn measure(&self, how: Measuring) -> Option<Profile> {
        for look in 0..LOOKS {
            if are_free(&self.topology) {
                return measure(&self.topology, &self.memory, how).ok();
            }
            thread::sleep(PAUSE * (1 << look));
        }
        None
    }
}

impl fmt::Debug for Here {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Here")
            .field("known", &self.known.load())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use eris_numa::HugePages;
    use std::sync::atomic::AtomicUsize;

    fn here(learned: impl Fn(&Profile) + Send + Sync + 'static) -> Arc<Here> {
        let topology = Arc::new(Topology::fake(1, 2));
        let memory = Memory::new(&topology, HugePages::Never, Some(256 << 20)).unwrap();
        Arc::new(Here::new(topology, memory, learned))
    }

    #[test]
    fn nothing_is_measured_where_that_is_not_allowed() {
        let here = here(|_| panic!("nobody may measure"));
        here.need();
        assert_eq!(here.profile(), None);
        assert_eq!(here.speeds(), Speeds::usual());
    }

    #[test]
    fn a_machine_that_is_given_is_not_measured() {
        let given = Arc::new(Profile::known("eris-intel").unwrap());
        let topology = Topology::fake(2, 1).planned_as(Arc::clone(&given));
        let topology = Arc::new(topology.unwrap());
        let memory = Memory::new(&topology, HugePages::Never, Some(1 << 20)).unwrap();
        let here = Arc::new(Here::new(topology, memory, |_| {}));
        assert_eq!(here.profile(), Some(given));
        here.allow();
        assert!(!here.begin(), "nobody may measure");
    }

    #[test]
    fn what_is_kept_is_known_without_measuring() {
        let directory = tempfile::tempdir().unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let first = here(move |_| {
            counted.fetch_add(1, Relaxed);
        });
        let kept = Kept::within(directory.path(), &first.topology);
        let how = Measuring {
            time: Duration::from_millis(100),
            buffer_bytes: 1 << 20,
        };
        // Others may use the cores all the time.
        let profile = measure(&first.topology, &first.memory, how).unwrap();
        kept.store(&profile).unwrap();
        assert!(first.learn(Some(&kept), how));
        assert_eq!(count.load(Relaxed), 1);
        assert_eq!(first.profile().as_deref(), Some(&profile));
        assert_eq!(Some(&first.speeds()), profile.speeds());
    }
}
