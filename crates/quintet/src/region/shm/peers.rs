//! The processes that take part in a segment.
//!
//! A slot is taken by locking its byte of the lock file through an open file description of the process's own, then
//! counting its incarnation up. The kernel releases the lock when the process ends, however it ends.

use super::SegmentError;
use super::header::{Header, PROCESSES, boot_id};
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fork, thread};
use std::fs::File;
use std::os::fd::{IntoRawFd, RawFd};

/// The byte a creator holds; slot n holds byte n + 1.
pub(super) const CREATION_LOCK: usize = 0;

// Words of a slot.
const INCARNATION: usize = 0;
const PID: usize = 1;
const STARTED: usize = 2;
const NAMESPACE: usize = 3;
const BOOT: usize = 4;

fn range(kind: i32, byte: usize) -> libc::flock {
    // SAFETY: a C structure of integers, for which zero is valid.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = byte as libc::off_t;
    range.l_len = 1;
    range
}

/// Takes a byte's lock for the open file description of `fd`, if nobody has it.
pub(super) fn try_lock(fd: RawFd, byte: usize) -> bool {
    let wanted = range(libc::F_WRLCK, byte);
    // SAFETY: the structure outlives the call.
    unsafe { libc::fcntl(fd, libc::F_OFD_SETLK, &wanted) == 0 }
}

/// Somebody else holds a byte's lock, or it cannot be told.
pub(super) fn is_locked(fd: RawFd, byte: usize) -> bool {
    let mut asked = range(libc::F_WRLCK, byte);
    // SAFETY: the structure outlives the call and is written by it.
    let answered = unsafe { libc::fcntl(fd, libc::F_OFD_GETLK, &mut asked) == 0 };
    !answered || asked.l_type != libc::F_UNLCK as libc::c_short
}

/// Descriptors of lock files, plus one; 0 is an empty place. A forked child closes them all: the lock would
/// otherwise outlive the parent in the child's copy.
static HELD: [AtomicU32; 128] = [const { AtomicU32::new(0) }; 128];

extern "C" fn close_in_child() {
    for place in &HELD {
        // ORDERING: Relaxed: the child has one thread.
        let held = place.swap(0, Ordering::Relaxed);
        if held != 0 {
            // SAFETY: the descriptor is the child's copy; close is allowed after fork.
            unsafe { libc::close(held as RawFd - 1) };
        }
    }
}

/// A lock file that is closed on drop, or in a forked child.
#[derive(Debug)]
pub(super) struct LockFile {
    fd: RawFd,
    place: usize,
}

impl LockFile {
    /// `None` if this process holds too many.
    pub(super) fn register(file: File) -> Option<Self> {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handler lives as long as the program and calls only what is allowed after fork.
            unsafe { libc::pthread_atfork(None, None, Some(close_in_child)) };
        });
        fork::watch();
        let fd = file.into_raw_fd();
        for (place, held) in HELD.iter().enumerate() {
            // ORDERING: Relaxed: the fork that hands the table to a child orders it.
            let free =
                held.compare_exchange(0, fd as u32 + 1, Ordering::Relaxed, Ordering::Relaxed);
            if free.is_ok() {
                return Some(Self { fd, place });
            }
        }
        // SAFETY: the descriptor is ours and in no table.
        unsafe { libc::close(fd) };
        None
    }

    fn forget(self) -> (RawFd, usize) {
        let kept = (self.fd, self.place);
        std::mem::forget(self);
        kept
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        close(self.fd, self.place);
    }
}

fn close(fd: RawFd, place: usize) {
    let word = fd as u32 + 1;
    // ORDERING: Relaxed, as in `register`. In a forked child the place is empty or somebody else's: nothing is closed.
    let ours = HELD[place].compare_exchange(word, 0, Ordering::Relaxed, Ordering::Relaxed);
    if ours.is_ok() {
        // SAFETY: the descriptor was in the table, so it is open and ours.
        unsafe { libc::close(fd) };
    }
}

/// This process's part in a segment. Atomics only: a forked child may find it in any state.
#[derive(Debug)]
pub(super) struct Membership {
    /// 0: never joined. 2f + 1: somebody of fork count f is joining. 2f + 2: joined.
    turn: AtomicUsize,
    slot: AtomicU32,
    incarnation: AtomicU64,
    fd: AtomicU32,
    place: AtomicU32,
}

impl Membership {
    pub(super) const fn new() -> Self {
        Self {
            turn: AtomicUsize::new(0),
            slot: AtomicU32::new(0),
            incarnation: AtomicU64::new(0),
            fd: AtomicU32::new(0),
            place: AtomicU32::new(0),
        }
    }

    fn joined(&self) -> bool {
        // ORDERING: Acquire; partner: the Release at the end of `me`.
        self.turn.load(Ordering::Acquire) == 2 * fork::seen().0 + 2
    }

    fn name(&self) -> (u32, u64) {
        // ORDERING: Relaxed: published by `turn`.
        (self.slot.load(Ordering::Relaxed), self.incarnation.load(Ordering::Relaxed))
    }

    /// Slot and incarnation; joins first if needed.
    pub(super) fn me(
        &self,
        header: Header<'_>,
        open: impl FnOnce() -> Result<LockFile, SegmentError>,
    ) -> Result<(u32, u64), SegmentError> {
        loop {
            let forks = fork::seen().0;
            // ORDERING: Acquire, as in `joined`.
            let turn = self.turn.load(Ordering::Acquire);
            if turn == 2 * forks + 2 {
                return Ok(self.name());
            }
            if turn == 2 * forks + 1 {
                thread::yield_now();
                continue;
            }
            let taken = self.turn.compare_exchange(
                turn,
                2 * forks + 1,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            if taken.is_ok() {
                let joined = open().and_then(|lock| self.join(header, lock));
                let next = if joined.is_ok() { 2 * fork::seen().0 + 2 } else { 0 };
                // ORDERING: Release: publishes the name.
                self.turn.store(next, Ordering::Release);
                return joined.map(|()| self.name());
            }
        }
    }

    fn join(&self, header: Header<'_>, lock: LockFile) -> Result<(), SegmentError> {
        for slot in 0..PROCESSES {
            if !try_lock(lock.fd, slot + 1) {
                continue;
            }
            let Some(words) = header.slot(slot) else { break };
            // ORDERING: Acquire of the last owner's count; the description is stored before the count (Release), so
            // whoever sees the count sees whom it describes.
            let incarnation =
                words[INCARNATION].load(Ordering::Acquire).wrapping_add(1) & ((1 << 48) - 1);
            let boot = boot_id();
            // SAFETY: getpid has no preconditions.
            let pid = unsafe { libc::getpid() };
            let started = start_time(pid).map_or(0, |(started, _)| started);
            for (word, value) in [
                (PID, pid as u64),
                (STARTED, started),
                (NAMESPACE, namespace()),
                (BOOT, boot[0]),
                (BOOT + 1, boot[1]),
            ] {
                words[word].store(value, Ordering::Release);
            }
            words[INCARNATION].store(incarnation, Ordering::Release);
            let (fd, place) = lock.forget();
            // ORDERING: Relaxed: published by `turn`.
            self.slot.store(slot as u32, Ordering::Relaxed);
            self.incarnation.store(incarnation, Ordering::Relaxed);
            self.fd.store(fd as u32 + 1, Ordering::Relaxed);
            self.place.store(place as u32, Ordering::Relaxed);
            return Ok(());
        }
        Err(SegmentError::TooManyProcesses)
    }

    pub(super) fn leave(&self) {
        if self.joined() {
            // ORDERING: Relaxed: published by `turn`, which `joined` has read.
            let (fd, place) = (self.fd.load(Ordering::Relaxed), self.place.load(Ordering::Relaxed));
            close(fd as RawFd - 1, place as usize);
        }
    }

    /// True only on proof. A process that has not joined has no descriptor to ask with, and proves nothing.
    pub(super) fn is_dead(&self, header: Header<'_>, slot: usize, incarnation: u64) -> bool {
        let Some(words) = header.slot(slot) else { return false };
        if !self.joined() || (slot as u32, incarnation) == self.name() {
            return false;
        }
        // ORDERING: Acquire; partner: the Release stores of `join`.
        let current = || words[INCARNATION].load(Ordering::Acquire);
        if current() != incarnation {
            return true;
        }
        if slot as u32 == self.name().0 {
            return true;
        }
        let fd = self.fd.load(Ordering::Relaxed) as RawFd - 1;
        !is_locked(fd, slot + 1) || is_gone(words)
    }
}

/// Slot, incarnation and process id of every slot that was ever taken.
pub(super) fn described(header: Header<'_>) -> Vec<(u32, u64, u32)> {
    let describe = |slot: usize| {
        let words = header.slot(slot)?;
        // ORDERING: Acquire; partner: the Release stores of `join`.
        let incarnation = words[INCARNATION].load(Ordering::Acquire);
        let pid = words[PID].load(Ordering::Acquire) as u32;
        (incarnation != 0).then_some((slot as u32, incarnation, pid))
    };
    (0..PROCESSES).filter_map(describe).collect()
}

/// The described process does not exist any more. Only its own boot and pid namespace can tell.
fn is_gone(words: &[AtomicU64]) -> bool {
    let [pid, started, of, boot0, boot1] =
        // ORDERING: Acquire, as in `is_dead`.
        [PID, STARTED, NAMESPACE, BOOT, BOOT + 1].map(|word| words[word].load(Ordering::Acquire));
    let boot = boot_id();
    if boot != [0, 0] && [boot0, boot1] != boot {
        return true;
    }
    if of == 0 || of != namespace() || pid == 0 || pid > i32::MAX as u64 {
        return false;
    }
    match start_time(pid as i32) {
        Some((now, state)) => started != 0 && now != started || matches!(state, 'Z' | 'X'),
        None => does_not_exist(pid as i32),
    }
}

fn does_not_exist(pid: i32) -> bool {
    // SAFETY: signal 0 only asks.
    let refused = unsafe { libc::kill(pid, 0) } != 0;
    refused && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

/// When a process started, in ticks since boot, and its state.
fn start_time(pid: i32) -> Option<(u64, char)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain anything; the fields follow its last parenthesis.
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((fields.nth(18)?.parse().ok()?, state))
}

/// Which pid namespace this process lives in; 0 if the system does not tell.
fn namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |meta| meta.ino())
}
