//! The signals that stop the program.

use std::future::Future;

use super::errors::CliError;

/// What a shell reports for a program that an interrupt ended.
const INTERRUPTED: i32 = 130;

/// Ready at the first SIGINT or SIGTERM. From then on, [`exit_at_once`] is for the next one.
pub(super) fn stop() -> Result<impl Future<Output = ()>, CliError> {
    let error = |source| CliError::failed("signals cannot be watched", source);
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate()).map_err(error)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(error)?;
        Ok(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    {
        let _: fn(std::io::Error) -> CliError = error;
        Ok(async move {
            let _ = tokio::signal::ctrl_c().await;
        })
    }
}

/// Calls for a reload: SIGHUP. Without such a signal on a system, it never comes.
pub(super) struct Hangups {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

impl Hangups {
    /// From here on the signal ends the process no more.
    pub(super) fn watch() -> Result<Self, CliError> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let signal = signal(SignalKind::hangup())
                .map_err(|source| CliError::failed("signals cannot be watched", source))?;
            Ok(Self { signal })
        }
        #[cfg(not(unix))]
        {
            Ok(Self {})
        }
    }

    /// Ready at the next one.
    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        if self.signal.recv().await.is_some() {
            return;
        }
        std::future::pending::<()>().await;
    }
}

/// Waits for a signal and ends the process: nothing is lost by it but time, for the store is
/// always in a state that can be opened.
pub(super) async fn exit_at_once() -> Result<(), CliError> {
    stop()?.await;
    std::process::exit(INTERRUPTED)
}
