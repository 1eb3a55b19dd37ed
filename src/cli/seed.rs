//! Numbers that distinguish runs.

use super::errors::CliError;

/// Distinguishes runs and spreads their retries; not a secret.
pub(super) fn random_seed() -> Result<u64, CliError> {
    getrandom::u64()
        .map_err(|error| CliError::plain(format!("the system gives no random numbers: {error}")))
}

/// A secret for a store that has none yet, by which it marks what was forgotten.
pub(super) fn random_seeds() -> Result<[u64; 4], CliError> {
    Ok([random_seed()?, random_seed()?, random_seed()?, random_seed()?])
}
