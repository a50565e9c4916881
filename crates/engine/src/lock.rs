//! Locks under which nothing panics, so that none is ever poisoned.

use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

const UNPOISONED: &str = "nothing panics under this lock";

/// What one thread at a time looks at.
#[derive(Debug, Default)]
pub(crate) struct Lock<T>(Mutex<T>);

impl<T> Lock<T> {
    pub fn new(value: T) -> Self {
        Lock(Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().expect(UNPOISONED)
    }
}

/// What many threads read, and one at a time changes.
#[derive(Debug, Default)]
pub(crate) struct SharedLock<T>(RwLock<T>);

impl<T> SharedLock<T> {
    pub fn new(value: T) -> Self {
        SharedLock(RwLock::new(value))
    }

    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().expect(UNPOISONED)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().expect(UNPOISONED)
    }
}
