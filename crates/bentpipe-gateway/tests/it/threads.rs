//! Threads that do the same thing until their test ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Threads that return a count. They are told to end when this is dropped: those of a test that has failed would slow down all others.
#[derive(Default)]
pub(crate) struct Threads {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<u64>>,
}

impl Threads {
    /// Adds a thread, which `spawn` starts. The thread ends when the flag becomes true.
    pub(crate) fn add(&mut self, spawn: impl FnOnce(Arc<AtomicBool>) -> JoinHandle<u64>) {
        self.threads.push(spawn(self.is_over.clone()));
    }

    /// Waits until all have ended. Returns the sum of their counts.
    pub(crate) fn join(mut self) -> u64 {
        self.is_over.store(true, Ordering::Relaxed);
        self.threads.drain(..).map(|thread| thread.join().expect("it does not panic")).sum()
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}
