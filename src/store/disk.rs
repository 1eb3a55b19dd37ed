//! Disk usage, and files that only their owner can read.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

/// The unit of `st_blocks` on every file system.
const BLOCK_BYTES: u64 = 512;

/// Allocated bytes of a file, at most its length: redb doubles the length of a small file in
/// advance, and unwritten parts take no space on most file systems.
pub(super) fn used_bytes(path: &Path) -> io::Result<u64> {
    let file = fs::metadata(path)?;
    Ok(file.len().min(file.blocks().saturating_mul(BLOCK_BYTES)))
}

/// Bytes that this user may still write to the file system of a path, where it reports them.
pub(super) fn free_bytes(path: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(path).ok()?;
    system.f_bavail.checked_mul(system.f_frsize)
}

/// Creates a folder that only its owner can enter; an existing one stays as it is.
pub(crate) fn create_private_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Options that create a file which only its owner can read.
pub(crate) fn private_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(0o600);
    options
}

/// Makes a file readable by its owner only: one that was restored from a copy may be open to
/// others. Where that fails, the folder's mode protects it.
pub(crate) fn make_private(path: &Path) {
    let is_open = |file: fs::Metadata| file.permissions().mode() & 0o077 != 0;
    let private = || fs::set_permissions(path, Permissions::from_mode(0o600));
    let changed = fs::metadata(path).and_then(|f| if is_open(f) { private() } else { Ok(()) });
    if let Err(error) = changed {
        let file = path.display();
        tracing::warn!(%error, %file, "other users can read this file, and its mode cannot be changed: set it to 0600");
    }
}
