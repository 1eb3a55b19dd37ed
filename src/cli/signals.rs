//! The signals that stop the program.

use std::future::Future;

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::errors::CliError;

/// What a shell reports for a program that an interrupt ended.
const INTERRUPTED: i32 = 130;

/// Ready at the first SIGINT or SIGTERM. From then on, [`exit_at_once`] is for the next one.
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

/// Calls for a reload. From here on the signal ends the process no more.
pub(super) fn hangups() -> Result<Signal, CliError> {
    watch(SignalKind::hangup())
}

/// Waits for a signal and ends the process: nothing is lost by it but time, for the store is
/// always in a state that can be opened.
pub(super) async fn exit_at_once() -> Result<(), CliError> {
    stop()?.await;
    std::process::exit(INTERRUPTED)
}
