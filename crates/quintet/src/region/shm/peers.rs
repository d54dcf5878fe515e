//! The processes that take part in a segment.
//!
//! A slot is taken by locking the first byte of its line in the segment's own file, through an open
//! file description of the process's own, then counting its incarnation up. The kernel releases the
//! lock when the last descriptor of that description is closed, however the process ends.
//!
//! **D1.** The lock alone decides. Held: alive. Free, or the slot has been taken anew: dead. No
//! pid, start time, state or namespace is asked: each of them can say "gone" about somebody who is
//! there (a first thread that ended, a copy made by a raw clone, another namespace's numbers).
//! **D2.** The lock lies on the file that is mapped, not on a name: who has the memory has the
//! lock.
//! **D3.** The description is opened anew by each process. A forked child closes its copy before
//! anything else runs there, and takes a slot of its own when it first needs one. A program started
//! by exec has none of it.
//! **D4.** An owner's name (slot, incarnation) is known to others only after its lock is held, and
//! the lock is held until the process has ended or has left for good. So whoever sees the name and
//! a free lock sees somebody who is gone.
//! **D5.** Anybody who has the file open can ask, also who may only read: asking takes nothing.
//!
//! A copy of the description in a child that was made without the library hearing of it (a raw
//! clone) keeps its parent alive until it ends or calls exec: noticed late, never wrongly.

use super::header::Header;
use super::{Peer, SLOT_WORDS, SLOTS, SegmentError};
use crate::sync::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fork, thread};
use std::fs::File;
use std::io;
use std::os::fd::{IntoRawFd, RawFd};

/// The byte a creator holds: of the magic word.
pub(super) const CREATION: usize = 0;
/// The byte of whoever repairs a segment after a restart: of the boot's id.
pub(super) const REPAIR: usize = super::header::AT_BOOT * 8;

/// The byte of a slot's owner.
fn byte_of(slot: usize) -> usize {
    SLOTS + slot * SLOT_WORDS * 8
}

// Words of a slot.
const INCARNATION: usize = 0;
const PID: usize = 1;
const NAMESPACE: usize = 2;

fn range(kind: i32, byte: usize) -> libc::flock {
    // SAFETY: a C structure of integers, for which zero is valid.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = byte as libc::off_t;
    range.l_len = 1;
    range
}

fn set(fd: RawFd, command: i32, wanted: &libc::flock) -> io::Result<()> {
    // SAFETY: the structure outlives the call.
    match unsafe { libc::fcntl(fd, command, std::ptr::from_ref(wanted)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Takes a byte's lock for the open file description of `fd`. False if somebody has it.
pub(super) fn lock(fd: RawFd, byte: usize) -> io::Result<bool> {
    match set(fd, libc::F_OFD_SETLK, &range(libc::F_WRLCK, byte)) {
        Ok(()) => Ok(true),
        Err(error) => match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EACCES) => Ok(false),
            _ => Err(error),
        },
    }
}

/// Takes a byte's lock, waiting for as long as somebody has it.
pub(super) fn lock_when_free(fd: RawFd, byte: usize) -> io::Result<()> {
    loop {
        match set(fd, libc::F_OFD_SETLKW, &range(libc::F_WRLCK, byte)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Gives a byte's lock back, whoever else has a copy of the descriptor.
pub(super) fn unlock(fd: RawFd, byte: usize) {
    let _ = set(fd, libc::F_OFD_SETLK, &range(libc::F_UNLCK, byte));
}

/// Somebody else holds a byte's lock, or it cannot be told.
pub(super) fn is_locked(fd: RawFd, byte: usize) -> bool {
    let mut asked = range(libc::F_WRLCK, byte);
    // SAFETY: the structure outlives the call and is written by it.
    let answered = unsafe { libc::fcntl(fd, libc::F_OFD_GETLK, &mut asked) == 0 };
    !answered || asked.l_type != libc::F_UNLCK as libc::c_short
}

/// Descriptors that hold locks, plus one; 0 is an empty place. A forked child closes them all (D3):
/// the lock would otherwise outlive the parent in the child's copy.
static HELD: [AtomicU32; 1024] = [const { AtomicU32::new(0) }; 1024];

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

/// A description of our own that is closed on drop, or in a forked child.
#[derive(Debug)]
pub(super) struct Description {
    fd: RawFd,
    place: usize,
}

impl Description {
    /// `None` if this process holds too many.
    pub(super) fn register(file: File) -> Option<Self> {
        static ONCE: std::sync::Once = std::sync::Once::new();
        ONCE.call_once(|| {
            // SAFETY: the handler lives as long as the program and calls only what is allowed after
            // fork.
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

    pub(super) fn fd(&self) -> RawFd {
        self.fd
    }

    fn forget(self) -> (RawFd, usize) {
        let kept = (self.fd, self.place);
        std::mem::forget(self);
        kept
    }
}

impl Drop for Description {
    fn drop(&mut self) {
        close(self.fd, self.place);
    }
}

fn close(fd: RawFd, place: usize) {
    let word = fd as u32 + 1;
    // ORDERING: Relaxed, as in `register`. In a forked child the place is empty or somebody else's:
    // nothing is closed.
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
        open: impl FnOnce() -> Result<Description, SegmentError>,
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

    fn join(&self, header: Header<'_>, own: Description) -> Result<(), SegmentError> {
        for slot in 0..header.processes() {
            let Some(words) = header.slot(slot) else { break };
            let locked = lock(own.fd, byte_of(slot));
            if !locked.map_err(|source| SegmentError::Io { doing: "lock a slot", source })? {
                continue;
            }
            // ORDERING: Acquire of the last owner's count; the description is stored before the
            // count (Release), so whoever sees the count sees whom it describes.
            let incarnation =
                words[INCARNATION].load(Ordering::Acquire).wrapping_add(1) & ((1 << 48) - 1);
            // SAFETY: getpid has no preconditions.
            let pid = unsafe { libc::getpid() };
            words[PID].store(pid as u64, Ordering::Release);
            words[NAMESPACE].store(namespace(), Ordering::Release);
            words[INCARNATION].store(incarnation, Ordering::Release);
            let (fd, place) = own.forget();
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

    /// True only on proof (D1). `fd` is any descriptor of the segment's file that holds no lock.
    pub(super) fn is_dead(
        &self,
        header: Header<'_>,
        fd: RawFd,
        slot: usize,
        incarnation: u64,
    ) -> bool {
        let Some(words) = header.slot(slot) else { return false };
        if self.joined() && (slot as u32, incarnation) == self.name() {
            return false;
        }
        // ORDERING: Acquire; partner: the Release stores of `join`.
        if words[INCARNATION].load(Ordering::Acquire) != incarnation {
            return true;
        }
        !is_locked(fd, byte_of(slot))
    }

    /// Nobody else holds a slot.
    pub(super) fn is_alone(&self, header: Header<'_>, fd: RawFd) -> bool {
        let mine = self.joined().then(|| self.name().0 as usize);
        let mut slots = (0..header.processes()).filter(|slot| Some(*slot) != mine);
        slots.all(|slot| !is_locked(fd, byte_of(slot)))
    }
}

/// Every slot that was ever taken.
pub(super) fn described(header: Header<'_>) -> Vec<Peer> {
    let ours = namespace();
    let describe = |slot: usize| {
        let words = header.slot(slot)?;
        // ORDERING: Acquire; partner: the Release stores of `join`.
        let [incarnation, pid, of] =
            [INCARNATION, PID, NAMESPACE].map(|word| words[word].load(Ordering::Acquire));
        let here = of != 0 && of == ours;
        (incarnation != 0).then_some(Peer { slot: slot as u32, incarnation, pid: pid as u32, here })
    };
    (0..header.processes()).filter_map(describe).collect()
}

/// Which pid namespace this process lives in; 0 if the system does not tell.
fn namespace() -> u64 {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self/ns/pid").map_or(0, |meta| meta.ino())
}
