//! What the file system reports of a file and of itself.

use std::io;
use std::path::Path;

/// Bytes that a file takes of its disk, at most its length: redb doubles the length of a small file
/// ahead of need, and what was never written takes no room on most file systems.
#[cfg(unix)]
pub(super) fn used_bytes(path: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    /// The unit of `st_blocks` on every file system.
    const BLOCK_BYTES: u64 = 512;
    let file = std::fs::metadata(path)?;
    Ok(file.len().min(file.blocks().saturating_mul(BLOCK_BYTES)))
}

#[cfg(not(unix))]
pub(super) fn used_bytes(path: &Path) -> io::Result<u64> {
    Ok(std::fs::metadata(path)?.len())
}

/// Bytes that this user may still write to the file system of a path; `None` where it reports none.
#[cfg(unix)]
pub(super) fn free_bytes(path: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(path).ok()?;
    system.f_bavail.checked_mul(system.f_frsize)
}

#[cfg(not(unix))]
pub(super) fn free_bytes(_path: &Path) -> Option<u64> {
    None
}
