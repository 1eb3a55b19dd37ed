//! The server's end of the socket: for its own user and root alone.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
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

/// Bound under this name, so that no client connects before its mode is set.
const NEW_NAME: &str = "admin.sock.new";
const REQUEST_BYTES_MAX: u64 = 64 * 1024;
const REQUEST_WAIT_MAX: Duration = Duration::from_secs(10);
const CONNECTIONS_MAX: usize = 16;
/// Pause after the system refused to accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);
const ROOT: u32 = 0;

/// A bound socket; dropping it removes it.
pub(in crate::cli) struct AdminSocket {
    listener: UnixListener,
    path: PathBuf,
    /// The user that runs the server.
    user: u32,
}

impl AdminSocket {
    /// Call it with the store open: then no other server has the folder, and a socket that is there
    /// was left by one that has ended.
    pub(in crate::cli) fn bind(folder: &Path) -> io::Result<Self> {
        let (path, new) = (folder.join(SOCKET_NAME), folder.join(NEW_NAME));
        remove_stale(&new)?;
        let listener = UnixListener::bind(&new)?;
        fs::set_permissions(&new, Permissions::from_mode(0o600))?;
        let user = fs::metadata(&new)?.uid();
        remove_stale(&path)?;
        fs::rename(&new, &path)?;
        Ok(Self { listener, path, user })
    }

    /// Answers until the tasks are asked to end.
    pub(in crate::cli) async fn serve(self, operator: Arc<Operator>, tasks: Tasks) {
        let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
        while let Some(accepted) = tasks.run(self.listener.accept()).await {
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => {
                    tracing::warn!(%error, "no admin connection can be accepted");
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
        let _ = fs::remove_file(&self.path);
    }
}

fn remove_stale(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(file) if file.file_type().is_socket() => fs::remove_file(path),
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
    // Read in any case: a socket that is closed with bytes unread loses the answer.
    let mut line = String::new();
    let mut read = BufReader::new(read.take(REQUEST_BYTES_MAX));
    timeout(REQUEST_WAIT_MAX, read.read_line(&mut line)).await??;
    let response = if peer == user || peer == ROOT {
        match serde_json::from_str::<AdminRequest>(&line) {
            Ok(request) => operator.answer(request, peer).await,
            Err(error) => AdminResponse::Error(format!("this is no request: {error}")),
        }
    } else {
        tracing::warn!(uid = peer, "an admin request by another user was refused");
        AdminResponse::Error("only the user that runs the server may ask it".to_owned())
    };
    let mut line = serde_json::to_vec(&response)?;
    line.push(b'\n');
    write.write_all(&line).await?;
    write.shutdown().await
}
