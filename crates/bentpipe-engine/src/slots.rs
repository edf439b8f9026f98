//! Values by handle: a queue or layer passes on a number, and the owner keeps the packet.

use alloc::vec::Vec;

/// Values, each under a handle until it is taken. Handles are reused, so memory follows the maximum number of values
/// kept at a time.
#[derive(Clone, Debug)]
pub struct Slots<T> {
    values: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots { values: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slots<T> {
    /// Keeps a value. Returns its handle.
    pub fn keep(&mut self, value: T) -> u32 {
        match self.free.pop() {
            Some(handle) => {
                self.values[handle as usize] = Some(value);
                handle
            }
            None => {
                self.values.push(Some(value));
                self.values.len() as u32 - 1
            }
        }
    }

    /// The value of a handle; `None` if it was taken.
    pub fn get(&self, handle: u32) -> Option<&T> {
        self.values.get(handle as usize)?.as_ref()
    }

    /// Takes the value of a handle, which becomes free; `None` if it was taken before.
    pub fn take(&mut self, handle: u32) -> Option<T> {
        let value = self.values.get_mut(handle as usize)?.take()?;
        self.free.push(handle);
        Some(value)
    }

    /// Number of values kept.
    pub fn len(&self) -> usize {
        self.values.len() - self.free.len()
    }

    /// True if no value is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_is_used_again_after_its_value_was_taken() {
        let mut slots = Slots::default();
        assert_eq!(["a", "b", "c"].map(|value| slots.keep(value)), [0, 1, 2]);
        assert_eq!((slots.take(1), slots.take(1), slots.get(1), slots.len()), (Some("b"), None, None, 2));
        assert_eq!((slots.keep("d"), slots.get(1), slots.len()), (1, Some(&"d"), 3));
        assert_eq!((slots.keep("e"), slots.take(9)), (3, None));
        assert!(!slots.is_empty());
    }
}
