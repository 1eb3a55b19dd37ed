//! The server side of the admin socket, which serves the server's own user and root only.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream as Probe;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::operator::Operator;
use crate::cli::admin::{AdminRequest, AdminResponse, SOCKET_NAME};
use crate::history::Tasks;
use crate::store::create_private_folder;

/// The socket is bound under this name and then renamed, so that no client connects before its mode
/// is set.
const NEW_NAME: &str = "admin.sock.new";
const REQUEST_BYTES_MAX: u64 = 64 * 1024;
const REQUEST_WAIT_MAX: Duration = Duration::from_secs(10);
const CONNECTIONS_MAX: usize = 16;
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
const ROOT: u32 = 0;

/// A bound socket; dropping it removes it.
pub(in crate::cli) struct AdminSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode: by now another process may have its own socket at the path.
    file: (u64, u64),
    /// The user that runs the server.
    user: u32,
}

impl AdminSocket {
    /// Creates the folder if it is missing, as a shared store has none. Several processes of a
    /// shared store may use the same folder, so a socket on which one of them listens is an error.
    pub(in crate::cli) fn bind(folder: &Path) -> io::Result<Self> {
        create_private_folder(folder)?;
        let (path, new) = (folder.join(SOCKET_NAME), folder.join(NEW_NAME));
        remove_stale(&new)?;
        let listener = UnixListener::bind(&new)?;
        let meta = place(&new, &path).inspect_err(|_| drop(fs::remove_file(&new)))?;
        Ok(Self { listener, path, file: identity(&meta), user: meta.uid() })
    }

    pub(in crate::cli) async fn serve(self, operator: Arc<Operator>, tasks: Tasks) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        while let Some(accepted) = tasks.run(self.listener.accept()).await {
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept an admin connection; retrying after a pause");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let Ok(place) = Arc::clone(&places).try_acquire_owned() else { continue };
            let (operator, stopping, user) = (Arc::clone(&operator), tasks.clone(), self.user);
            tasks.spawn(async move {
                let _place = place;
                let served = stopping.run(serve_one(stream, user, &operator)).await;
                if let Some(Err(error)) = served {
                    tracing::debug!(%error, "an admin connection ended early");
                }
            });
        }
    }
}

impl Drop for AdminSocket {
    fn drop(&mut self) {
        if fs::symlink_metadata(&self.path).is_ok_and(|meta| identity(&meta) == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(meta: &Metadata) -> (u64, u64) {
    (meta.dev(), meta.ino())
}

/// Sets the mode of a new socket and renames it. Returns its metadata.
fn place(new: &Path, path: &Path) -> io::Result<Metadata> {
    fs::set_permissions(new, Permissions::from_mode(0o600))?;
    let meta = fs::symlink_metadata(new)?;
    remove_stale(path)?;
    fs::rename(new, path)?;
    Ok(meta)
}

/// Removes a socket on which no process listens any more.
fn remove_stale(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(file) if file.file_type().is_socket() => match Probe::connect(path) {
            Ok(_) => {
                let text = format!(
                    "another process answers at {}: give each process a data folder of its own, by \
                     --data-dir or storage.path",
                    path.display()
                );
                Err(io::Error::new(io::ErrorKind::AddrInUse, text))
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
            Err(error) => Err(error),
        },
        Ok(_) => {
            let text = format!("{} is no socket: move it away", path.display());
            Err(io::Error::new(io::ErrorKind::AlreadyExists, text))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

async fn serve_one(stream: UnixStream, user: u32, operator: &Operator) -> io::Result<()> {
    let peer = stream.peer_cred()?.uid();
    let (read, mut write) = stream.into_split();
    // Read in any case: closing a socket with unread bytes discards the response.
    let mut line = String::new();
    let mut read = BufReader::new(read.take(REQUEST_BYTES_MAX));
    timeout(REQUEST_WAIT_MAX, read.read_line(&mut line)).await??;
    let response = if peer == user || peer == ROOT {
        match serde_json::from_str::<AdminRequest>(&line) {
            Ok(request) => operator.answer(request, peer).await,
            Err(error) => AdminResponse::Error(format!("this is no request: {error}")),
        }
    } else {
        tracing::warn!(uid = peer, "rejected an admin request by another user");
        AdminResponse::Error("only the user that runs the server may ask it".to_owned())
    };
    let mut line = serde_json::to_vec(&response)?;
    line.push(b'\n');
    write.write_all(&line).await?;
    write.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A shared store makes no folder.
    #[tokio::test]
    async fn a_folder_that_is_not_there_is_made_for_the_socket() {
        let temp = tempfile::tempdir().unwrap();
        let folder = temp.path().join("not/yet");
        let socket = AdminSocket::bind(&folder).unwrap();
        assert!(folder.join(SOCKET_NAME).exists());
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        drop(socket);
        assert!(!folder.join(SOCKET_NAME).exists(), "it ended");
    }

    #[tokio::test]
    async fn a_socket_that_took_the_place_of_a_bound_one_outlives_it() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join(SOCKET_NAME);
        let first = AdminSocket::bind(temp.path()).unwrap();
        // The inode of the first stays in use, as its file does.
        fs::rename(&path, temp.path().join("moved")).unwrap();
        let second = AdminSocket::bind(temp.path()).unwrap();
        drop(first);
        assert!(path.exists(), "it is the second one's");
        drop(second);
        assert!(!path.exists());
    }
}
