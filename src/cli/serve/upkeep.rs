//! `blotter backup`, `compact` and `forget`, for a data folder that no server has open.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::cli::args::{BackupArgs, ForgetArgs};
use crate::cli::config::Config;
use crate::cli::errors::CliError;
use crate::cli::keys::audit::Audit;
use crate::cli::reading::{Context, parse_address};
use crate::cli::seed::random_seeds;
use crate::cli::storage;
use crate::domain::Wallet;
use crate::store::{FILE_NAME, StoreError, private_file, upkeep};

const KEYS_FILE: &str = "keys.toml";

// What to use instead of a backup or a compaction if the store is a database.
pub(in crate::cli) const BACKUP_OF_DATABASE: &str = "the store is a database, which its own tools copy: pg_dump for the \
     schema `blotter`, pg_basebackup for the whole server";
pub(in crate::cli) const COMPACTION_OF_DATABASE: &str = "the store is a database, which gives space back by itself: \
     autovacuum keeps it for new rows, VACUUM FULL or pg_repack return it to the disk";

fn refuse_shared(config: &Config, instead: &str) -> Result<(), CliError> {
    match storage::shared_url(config)? {
        Some(_) => Err(CliError::plain(instead.to_owned())),
        None => Ok(()),
    }
}

/// An error whose text names a remedy.
fn failed(folder: &Path, error: StoreError) -> CliError {
    let what = if let StoreError::Locked { .. } = &error {
        "a server has the data folder open: `blotter admin` asks it to do the same".to_owned()
    } else if let StoreError::Io(source) = &error
        && source.kind() == ErrorKind::NotFound
    {
        format!("there is no store in {}; name the folder with --data-dir", folder.display())
    } else {
        "the store cannot be used".to_owned()
    };
    CliError::failed(what, error)
}

/// An error where the destination of a backup holds a store or keys: neither is overwritten.
pub(in crate::cli) fn refuse_existing(to: &Path) -> Result<(), CliError> {
    let mut files = [FILE_NAME, KEYS_FILE].map(|name| to.join(name)).into_iter();
    let taken = |file: PathBuf| format!("{} exists already: name another folder", file.display());
    files.find(|file| file.exists()).map_or(Ok(()), |file| Err(CliError::plain(taken(file))))
}

pub(in crate::cli) fn backup(
    args: &BackupArgs,
    config: &Config,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    refuse_shared(config, BACKUP_OF_DATABASE)?;
    let folder = &config.storage.path;
    refuse_existing(&args.path)?;
    let bytes = upkeep::copy(folder, &args.path, storage::options(config))
        .map_err(|error| failed(folder, error))?;
    copy_keys(folder, &args.path)?;
    let path = args.path.display();
    writeln!(out, "copied {bytes} bytes to {path}; `--data-dir {path}` opens it")
        .map_err(CliError::Output)
}

/// Copies the keys file, if there is one, into a backup.
pub(in crate::cli) fn copy_keys(folder: &Path, to: &Path) -> Result<(), CliError> {
    let keys = folder.join(KEYS_FILE);
    if keys.exists() {
        let error = CliError::file("copy", &keys);
        // Neither over a file that came meanwhile, nor through a link.
        let target = private_file().write(true).create_new(true).open(to.join(KEYS_FILE));
        let (mut from, mut target) = (File::open(&keys).map_err(&error)?, target.map_err(&error)?);
        io::copy(&mut from, &mut target).and_then(|_| target.sync_all()).map_err(error)?;
    }
    Ok(())
}

pub(in crate::cli) fn compact(config: &Config, out: &mut dyn Write) -> Result<(), CliError> {
    refuse_shared(config, COMPACTION_OF_DATABASE)?;
    let folder = &config.storage.path;
    let (before, after) =
        upkeep::compact(folder, storage::options(config)).map_err(|error| failed(folder, error))?;
    writeln!(out, "{before} bytes before, {after} after").map_err(CliError::Output)
}

pub(in crate::cli) async fn forget(
    args: &ForgetArgs,
    context: &Context<'_>,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let chain = context.chain(&args.chain)?;
    let address = parse_address(chain, &args.address)?;
    let wallet = Wallet { chain: chain.id, address };
    let folder = &context.config.storage.path;
    let seed = random_seeds()?;
    let rows = if storage::shared_url(context.config)?.is_some() {
        let store = storage::open(context.config).await?;
        let forgotten = store.forget(wallet, seed).await;
        forgotten.map_err(|error| CliError::failed("the store cannot be used", error))?
    } else {
        upkeep::forget(folder, storage::options(context.config), &wallet, seed)
            .map_err(|error| failed(folder, error))?
    };
    // Without the address, which is to be forgotten.
    let done = json!({ "chain": chain.slug, "rows": rows, "by": "blotter forget" });
    Audit::new(folder, context.config.log.audit).record("forget", &done);
    let text = match rows {
        Some(rows) => format!("forgot {address} on {} with {rows} rows", chain.slug),
        None => format!("nothing is stored of {address} on {}", chain.slug),
    };
    writeln!(out, "{text}").map_err(CliError::Output)
}
