//! Room in a file system.
//!
//! Unsafe is allowed here for one system call.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Free bytes and all bytes of the file system that holds `path`.
pub(super) fn of(path: &Path) -> Option<(u64, u64)> {
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    let mut room = MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: a valid C string and a place for the answer.
    let answer = unsafe { libc::statvfs(path.as_ptr(), room.as_mut_ptr()) };
    if answer != 0 {
        return None;
    }
    // SAFETY: the call succeeded, so it filled the answer in.
    let room = unsafe { room.assume_init() };
    // The widths of these fields differ between systems.
    #[allow(clippy::unnecessary_cast)]
    let bytes = |blocks| (blocks as u64).saturating_mul(room.f_frsize as u64);
    Some((bytes(room.f_bavail), bytes(room.f_blocks)))
}
