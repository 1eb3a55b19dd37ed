//! Random numbers.

use super::errors::CliError;

/// Makes request ids of different runs distinct and spreads retries; not a secret.
pub(super) fn random_seed() -> Result<u64, CliError> {
    getrandom::u64()
        .map_err(|error| CliError::plain(format!("the system gives no random numbers: {error}")))
}

/// A secret for a store that has none yet: the store marks forgotten wallets by hashes with it.
pub(super) fn random_seeds() -> Result<[u64; 4], CliError> {
    Ok([random_seed()?, random_seed()?, random_seed()?, random_seed()?])
}
