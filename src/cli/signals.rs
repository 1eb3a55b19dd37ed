//! The signals that stop the program.

use std::future::Future;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::errors::CliError;

/// The exit code that shells report after SIGINT.
const INTERRUPTED: i32 = 130;

/// Completes at the first SIGINT or SIGTERM. [`exit_at_once`] handles the next one.
pub(super) fn stop() -> Result<impl Future<Output = ()>, CliError> {
    let mut terminate = watch(SignalKind::terminate())?;
    let mut interrupt = watch(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

fn watch(kind: SignalKind) -> Result<Signal, CliError> {
    signal(kind).map_err(|source| CliError::failed("signals cannot be watched", source))
}

/// The stream of SIGHUP signals, which request a reload. From this call on, SIGHUP no longer ends
/// the process.
pub(super) fn hangups() -> Result<Signal, CliError> {
    watch(SignalKind::hangup())
}

/// From this call on, a write beyond the limit on file sizes (`ulimit -f`) fails as on a full disk:
/// the signal that comes with it would end the process otherwise. Needs a runtime.
pub(super) fn outlive_file_limits() -> Result<(), CliError> {
    watch(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw())).map(drop)
}

/// Waits for a signal and ends the process. This is safe, since the store on disk is valid at any
/// time.
pub(super) async fn exit_at_once() -> Result<(), CliError> {
    stop()?.await;
    std::process::exit(INTERRUPTED)
}
