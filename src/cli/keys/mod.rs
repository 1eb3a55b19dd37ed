//! `blotter keys`.

pub(super) mod args;
pub(super) mod audit;
pub(super) mod file;
pub(super) mod store;
pub(super) mod watch;

use std::io::Write;

use serde_json::json;

use crate::api::read_time;
use crate::cli::clock::SystemClock;
use crate::cli::config::Config;
use crate::cli::config::units::Wait;
use crate::cli::errors::CliError;
use crate::cli::table::{format, printable};
use crate::domain::{Clock as _, UnixMillis, UnixSeconds};
use crate::registry::Registry;
use args::{CreateArgs, KeysCommand};
use audit::Audit;
use file::{FileTime, KeyTerms, ShownId};
use store::KeyStore;

pub(super) async fn run(
    command: &KeysCommand,
    config: &Config,
    registry: &Registry,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let now = SystemClock.now();
    let file = KeyStore::open(config).await?;
    let audit = Audit::new(&config.storage.path, config.log.audit);
    match command {
        KeysCommand::Create(args) => create(args, &file, registry, now, &audit, out).await,
        KeysCommand::List { json } => list(*json, &file, now, out).await,
        KeysCommand::Revoke { id, json } => {
            revoke(*id, &file, now, &audit).await?;
            let line = if *json {
                json!({"id": id, "revoked": true}).to_string()
            } else {
                format!("revoked {id}")
            };
            writeln!(out, "{line}").map_err(CliError::Output)
        }
    }
}

async fn revoke(
    id: ShownId,
    file: &KeyStore,
    now: UnixMillis,
    audit: &Audit,
) -> Result<(), CliError> {
    file.revoke(id, now).await?;
    audit.record("key revoked", &json!({ "key": id }));
    Ok(())
}

async fn create(
    args: &CreateArgs,
    file: &KeyStore,
    registry: &Registry,
    now: UnixMillis,
    audit: &Audit,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let mut chains = Vec::with_capacity(args.chains.len());
    for name in &args.chains {
        let chain =
            registry.chain_named(name.trim()).ok_or_else(|| unknown_chain(name, registry))?;
        if !chains.contains(&chain.slug) {
            chains.push(chain.slug.clone());
        }
    }
    if args.name.as_deref().is_some_and(|name| name.chars().any(char::is_control)) {
        let what = "--name holds control characters, which a terminal would obey: leave them out";
        return Err(CliError::Usage(what.to_owned()));
    }
    let expires = args.expires.as_deref().map(|text| expiry(text, now)).transpose()?;
    let (rate, quota, streams) = (args.rate, args.quota, args.streams);
    let created = file
        .create(KeyTerms { name: args.name.clone(), rate, quota, streams, chains, expires }, now)
        .await?;
    audit.created(created.id, args.name.as_deref());
    let written = if args.json {
        writeln!(out, "{}", json!({"id": created.id, "key": created.key}))
    } else {
        let note = "It is shown only now; what is kept is its hash.";
        writeln!(out, "id   {}\nkey  {}\n{note}", created.id, created.key)
    };
    let shown = written.and_then(|()| out.flush());
    if shown.is_err() {
        // Of a key that was not shown only the hash is left.
        revoke(created.id, file, now, audit).await?;
    }
    shown.map_err(CliError::Output)
}

async fn list(
    as_json: bool,
    file: &KeyStore,
    now: UnixMillis,
    out: &mut dyn Write,
) -> Result<(), CliError> {
    let keys = file.list().await?;
    if as_json {
        let keys: Vec<_> = keys
            .iter()
            .map(|key| {
                json!({
                    "id": key.id, "name": key.name, "state": key.state(now),
                    "created": key.created, "expires": key.expires, "revoked": key.revoked,
                    "rate": key.rate, "quota": key.quota, "streams": key.streams,
                    "chains": key.chains,
                })
            })
            .collect();
        return writeln!(out, "{}", json!({ "keys": keys })).map_err(CliError::Output);
    }
    let dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let rows: Vec<Vec<String>> = keys
        .iter()
        .map(|key| {
            vec![
                key.id.to_string(),
                key.state(now).to_owned(),
                dash(key.name.as_deref().map(printable)),
                key.created.to_string(),
                dash(key.expires.map(|at| at.to_string())),
                dash(key.rate.map(|rate| rate.to_string())),
                dash(key.quota.map(|quota| quota.to_string())),
                dash(key.streams.map(|streams| streams.to_string())),
                dash(Some(key.chains.join(",")).filter(|chains| !chains.is_empty())),
            ]
        })
        .collect();
    let columns =
        ["ID", "STATE", "NAME", "CREATED", "EXPIRES", ">RATE", ">QUOTA", ">STREAMS", "CHAINS"];
    out.write_all(format(&columns, &rows).as_bytes()).map_err(CliError::Output)
}

/// A time, or a duration from now.
fn expiry(text: &str, now: UnixMillis) -> Result<FileTime, CliError> {
    let wrong = || {
        let expected = "expected unix seconds, a date or a time such as 2027-01-31 or \
                        2027-01-31T00:00:00Z, or a duration such as 30d";
        CliError::Usage(format!("--expires {text}: {expected}"))
    };
    let moment = match text.parse::<Wait>() {
        Ok(wait) => {
            let seconds = u64::from(now.seconds().0).checked_add(wait.0.as_secs());
            let seconds = seconds.and_then(|s| u32::try_from(s).ok()).ok_or_else(wrong)?;
            FileTime(UnixSeconds(seconds))
        }
        Err(_) => FileTime(read_time(text).ok_or_else(wrong)?),
    };
    if moment.0 <= now.seconds() {
        return Err(CliError::Usage(format!("--expires {text} lies in the past")));
    }
    Ok(moment)
}

/// An error that lists the valid chains.
pub(super) fn unknown_chain(name: &str, registry: &Registry) -> CliError {
    let slugs: Vec<&str> = registry.chains().iter().map(|chain| chain.slug.as_str()).collect();
    CliError::Usage(format!("there is no chain {name:?}; the chains are {}", slugs.join(", ")))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn an_expiry_is_a_time_or_a_duration() {
        let now = UnixMillis(1_000_000_000_000);
        let second = |text| expiry(text, now).ok().map(|moment| moment.0.0);
        assert_eq!(second("1d"), Some(1_000_086_400));
        assert_eq!(second("2001-09-09T01:46:41Z"), Some(1_000_000_001));
        assert_eq!(second("2001-09-09T03:46:41+02:00"), Some(1_000_000_001));
        assert_eq!(second("1000000001"), Some(1_000_000_001));
        assert_eq!(second("2001-09-10"), Some(1_000_080_000));
        for bad in ["2001-09-09T01:46:40Z", "1000000000", "2002", "0s", "tomorrow", "", "99999d"] {
            assert_eq!(second(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_empty_name_of_a_chain_is_seen_in_the_error() {
        let error = unknown_chain("", &Registry::embedded().unwrap()).report();
        assert!(error.contains("there is no chain \"\"; the chains are sol"), "{error}");
    }

    /// As of a full disk.
    struct FullOutput;

    impl Write for FullOutput {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_key_that_could_not_be_shown_is_revoked() {
        let folder = tempfile::tempdir().unwrap();
        let (file, registry) = (KeyStore::of_folder(folder.path()), Registry::embedded().unwrap());
        let (audit, now) = (Audit::new(folder.path(), false), UnixMillis(1_000_000_000_000));
        let args = CreateArgs {
            name: None,
            rate: None,
            quota: None,
            expires: None,
            streams: None,
            chains: Vec::new(),
            json: false,
        };
        let made = create(&args, &file, &registry, now, &audit, &mut FullOutput).await;
        assert!(matches!(made, Err(CliError::Output(_))));
        let keys = file.list().await.unwrap();
        let states: Vec<_> = keys.iter().map(|key| key.state(now)).collect();
        assert_eq!(states, ["revoked"]);
    }
}
