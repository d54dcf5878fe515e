//! Open addressing in shared memory under one robust, process-shared mutex: what is written where a
//! cache must survive the death of a process and nothing else is at hand.
//!
//! Unsafe is allowed here because the memory is mapped and the mutex is the system's. The memory is
//! a file without a name, so that children can enter it.
#![allow(unsafe_code)]

use super::{Local, Shared, path_of};
use crate::{Label, mix};
use std::cell::UnsafeCell;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, FromRawFd};

/// The mutex, and slots of key and value behind it. Key 0 is an empty slot.
#[derive(Debug)]
pub struct Robust {
    memory: *mut u8,
    bytes: usize,
    slots: usize,
    file: File,
}

// SAFETY: the slots are accessed under the mutex only.
unsafe impl Send for Robust {}
// SAFETY: as above.
unsafe impl Sync for Robust {}

/// Bytes kept for the mutex.
const FRONT: usize = 128;

#[derive(Clone, Copy)]
#[repr(C)]
struct Slot {
    key: u64,
    value: u64,
}

impl Robust {
    /// Maps the whole file.
    fn map(file: File) -> Option<Self> {
        let bytes = file.metadata().ok()?.len() as usize;
        let slots = (bytes - FRONT) / size_of::<Slot>();
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let (null, fd) = (std::ptr::null_mut(), file.as_raw_fd());
        // SAFETY: a fresh shared mapping at an address of the system's choice.
        let memory = unsafe { libc::mmap(null, bytes, protection, libc::MAP_SHARED, fd, 0) };
        let memory = memory.cast::<u8>();
        (memory != libc::MAP_FAILED.cast()).then_some(Self { memory, bytes, slots, file })
    }

    fn mutex(&self) -> *mut libc::pthread_mutex_t {
        self.memory.cast()
    }

    /// Runs `work` under the mutex; a dead owner's lock is taken over.
    #[inline]
    fn locked<R>(&self, work: impl FnOnce(&mut [Slot]) -> R) -> R {
        // SAFETY: the mutex was initialized by `create`.
        let result = unsafe { libc::pthread_mutex_lock(self.mutex()) };
        if result == libc::EOWNERDEAD {
            // SAFETY: we hold the mutex, as its dead owner did.
            unsafe { libc::pthread_mutex_consistent(self.mutex()) };
        }
        // SAFETY: the slots lie behind the front, inside the mapping.
        let first = unsafe { self.memory.add(FRONT) }.cast::<UnsafeCell<Slot>>();
        // SAFETY: the mutex gives exclusive access to all slots.
        let slots = unsafe { std::slice::from_raw_parts_mut(first.cast::<Slot>(), self.slots) };
        let result = work(slots);
        // SAFETY: locked above.
        unsafe { libc::pthread_mutex_unlock(self.mutex()) };
        result
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        mix(key) as usize & (self.slots - 1)
    }

    /// The slot of a key, or the empty one where it would go.
    #[inline]
    fn find(&self, slots: &[Slot], key: u64) -> usize {
        let mut at = self.home(key);
        while slots[at].key != 0 && slots[at].key != key {
            at = (at + 1) & (self.slots - 1);
        }
        at
    }
}

impl Drop for Robust {
    fn drop(&mut self) {
        // SAFETY: mapped by `map`, and nobody uses it any more.
        unsafe { libc::munmap(self.memory.cast(), self.bytes) };
    }
}

impl Shared for Robust {
    const LABEL: Label = Label { name: "robust mutex", version: None };
    type Local<'a> = &'a Robust;

    fn create(_: usize, entries: usize) -> Option<Self> {
        // Its own best mode: never more than 70 % full.
        let slots = (entries * 10 / 7 + 1).next_power_of_two();
        let bytes = FRONT + slots * size_of::<Slot>();
        // SAFETY: the name is a valid C string.
        let fd = unsafe { libc::memfd_create(c"robust".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return None;
        }
        // SAFETY: the descriptor is fresh and ours.
        let file = unsafe { File::from_raw_fd(fd) };
        file.set_len(bytes as u64).ok()?;
        let table = Self::map(file)?;
        // SAFETY: plain bytes that the call below initializes.
        let mut kind: libc::pthread_mutexattr_t = unsafe { std::mem::zeroed() };
        // SAFETY: the attribute is a local of the right type.
        unsafe { libc::pthread_mutexattr_init(&mut kind) };
        // SAFETY: as above.
        unsafe { libc::pthread_mutexattr_setpshared(&mut kind, libc::PTHREAD_PROCESS_SHARED) };
        // SAFETY: as above.
        unsafe { libc::pthread_mutexattr_setrobust(&mut kind, libc::PTHREAD_MUTEX_ROBUST) };
        // SAFETY: the mapping starts with room for a mutex, aligned to a page.
        let made = unsafe { libc::pthread_mutex_init(table.mutex(), &kind) };
        (made == 0).then_some(table)
    }

    fn path(&self) -> Option<String> {
        Some(path_of(self.file.as_fd()))
    }

    fn attach(path: &str) -> Option<Self> {
        Self::map(File::options().read(true).write(true).open(path).ok()?)
    }

    fn local(&self) -> &Robust {
        self
    }
}

impl Local for &Robust {
    #[inline]
    fn get(&mut self, key: u32) -> Option<u64> {
        self.locked(|slots| {
            let slot = slots[self.find(slots, key as u64)];
            (slot.key != 0).then_some(slot.value)
        })
    }
    fn add(&mut self, key: u32, value: u64) -> bool {
        self.locked(|slots| {
            let at = self.find(slots, key as u64);
            let absent = slots[at].key == 0;
            if absent {
                slots[at] = Slot { key: key as u64, value };
            }
            absent
        })
    }
    fn update(&mut self, key: u32, value: u64) -> bool {
        self.locked(|slots| {
            let at = self.find(slots, key as u64);
            let present = slots[at].key != 0;
            if present {
                slots[at].value = value;
            }
            present
        })
    }
    fn remove(&mut self, key: u32) -> bool {
        self.locked(|slots| {
            let mut hole = self.find(slots, key as u64);
            if slots[hole].key == 0 {
                return false;
            }
            // Later entries of the run move up, so that no mark is left behind.
            let mask = self.slots - 1;
            let mut at = hole;
            loop {
                at = (at + 1) & mask;
                if slots[at].key == 0 {
                    break;
                }
                let home = self.home(slots[at].key);
                if (at.wrapping_sub(home) & mask) >= (at.wrapping_sub(hole) & mask) {
                    slots[hole] = slots[at];
                    hole = at;
                }
            }
            slots[hole] = Slot { key: 0, value: 0 };
            true
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_mapping_sees_the_first() {
        let table = Robust::create(0, 10).unwrap();
        let other = Robust::attach(&table.path().unwrap()).unwrap();
        assert!(table.local().add(7, 70));
        assert_eq!(other.local().get(7), Some(70));
    }

    #[test]
    fn agrees_with_std() {
        let table = Robust::create(0, 300).unwrap();
        let mut local = table.local();
        let mut oracle = std::collections::HashMap::new();
        for step in 0..50_000u64 {
            let key = 1 + (mix(step) % 300) as u32;
            match mix(step + 1_000_000) % 4 {
                0 => assert_eq!(local.remove(key), oracle.remove(&key).is_some()),
                1 => assert_eq!(
                    local.update(key, step),
                    oracle.get_mut(&key).map(|v| *v = step).is_some()
                ),
                2 => assert_eq!(local.get(key), oracle.get(&key).copied()),
                _ => {
                    assert_eq!(local.add(key, step), !oracle.contains_key(&key));
                    oracle.entry(key).or_insert(step);
                }
            }
        }
    }
}
