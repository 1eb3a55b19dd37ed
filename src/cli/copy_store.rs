//! `blotter storage copy`: copies all wallets, usage and keys of one store into another.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::args::{CopyArgs, StorageCommand};
use super::config::Config;
use super::errors::CliError;
use super::keys::store::KeyStore;
use super::storage;
use crate::domain::ChainId;
use crate::registry::Registry;
use crate::store::transfer::{Copied, Transfer};
use crate::store::{Store, StoreError};

pub(super) async fn run(
    command: &StorageCommand,
    config: &Config,
    registry: &Registry,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let StorageCommand::Copy(CopyArgs { from, to }) = command;
    let (from, to) = (StoreLocation::of("--from", from)?, StoreLocation::of("--to", to)?);
    if from == to {
        return Err(CliError::Usage("--from and --to name the same store".to_owned()));
    }
    from.must_exist()?;
    let (source, target) = (from.open(config).await?, to.open(config).await?);
    let chains: Vec<ChainId> = registry.chains().iter().map(|chain| chain.id).collect();
    let copied = copy(&source, &target, &chains, out).await;
    let keys = match &copied {
        Ok(_) => from.keys(&source).copy_to(&to.keys(&target)).await.map_err(CliError::from),
        Err(_) => Ok(0),
    };
    source.close().await;
    target.close().await;
    let (copied, keys) = (copied?, keys?);
    writeln!(
        out,
        "{} wallets written, {} the same already, {} rows, {} usage records, {keys} keys",
        copied.written, copied.same, copied.rows, copied.usage
    )
    .map_err(CliError::Output)?;
    if copied.differing > 0 {
        return Err(CliError::plain(format!(
            "{} wallets differ from what they were copied from: another process writes them; stop \
             it and copy again",
            copied.differing
        )));
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum StoreLocation {
    Folder(PathBuf),
    Database(String),
}

impl StoreLocation {
    fn of(flag: &str, text: &str) -> Result<Self, CliError> {
        if !storage::is_address(text) {
            return Ok(Self::Folder(Path::new(text).to_owned()));
        }
        storage::check_url(flag, text)?;
        Ok(Self::Database(text.to_owned()))
    }

    fn must_exist(&self) -> Result<(), CliError> {
        match self {
            Self::Folder(folder) if !folder.join(crate::store::FILE_NAME).exists() => {
                let folder = folder.display();
                Err(CliError::plain(format!("there is no store in {folder}")))
            }
            Self::Folder(_) | Self::Database(_) => Ok(()),
        }
    }

    async fn open(&self, config: &Config) -> Result<Store, CliError> {
        match self {
            Self::Folder(folder) => storage::open_folder(folder, config),
            Self::Database(url) => storage::connect(url, config.storage.connections).await,
        }
    }

    fn keys(&self, store: &Store) -> KeyStore {
        match self {
            Self::Folder(folder) => KeyStore::of_folder(folder),
            Self::Database(_) => KeyStore::Shared(store.clone()),
        }
    }
}

#[derive(Debug, Default)]
struct CopyCounts {
    written: u64,
    same: u64,
    differing: u64,
    rows: u64,
    usage: usize,
}

async fn copy(
    from: &Store,
    to: &Store,
    chains: &[ChainId],
    out: &mut dyn Write,
) -> Result<CopyCounts, CliError> {
    let failed = |error: StoreError| CliError::failed("the copy stopped; run it again", error);
    let mut transfer = Transfer::new(from, to, chains).await.map_err(failed)?;
    let mut outcome = CopyCounts::default();
    let mut behind = None;
    loop {
        let wallets = transfer.wallets(behind).await.map_err(failed)?;
        let Some((last, _)) = wallets.last() else { break };
        behind = Some(*last);
        for (_, wallet) in &wallets {
            match transfer.wallet(wallet).await.map_err(failed)? {
                Copied::Same(digest) => {
                    outcome.same += 1;
                    outcome.rows += digest.rows;
                }
                Copied::Written(digest) => {
                    outcome.written += 1;
                    outcome.rows += digest.rows;
                }
                Copied::Differs => {
                    outcome.differing += 1;
                    let address = wallet.address;
                    writeln!(out, "{address} differs").map_err(CliError::Output)?;
                }
            }
        }
    }
    outcome.usage = transfer.usage().await.map_err(failed)?;
    Ok(outcome)
}
