//! Entry points of `tests/fuzz` to this layer's parsers; only in a build for fuzzing.

use std::collections::BTreeMap;
use std::path::Path;

use super::config::environment::Environment;
use super::config::{Flags, load};
use super::keys::file::KeysFile;
use super::show_config;
use crate::registry::Registry;

/// Loads a configuration file and variables, lines of `NAME=VALUE`. A valid configuration can be
/// shown, as TOML.
pub fn config(registry: &Registry, file: &str, variables: &str) {
    let variables = variables.lines().filter_map(|line| line.split_once('='));
    let environment: Environment =
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let loaded = load(&Flags::default(), &environment, registry, |_: &Path| Ok(file.to_owned()));
    match loaded {
        Ok(config) => {
            let own = config.own_chains(registry);
            if let (false, Ok(mut all)) = (own.is_empty(), Registry::embedded()) {
                for chain in own {
                    drop(all.add(chain));
                }
            }
            let mut shown = Vec::new();
            assert!(show_config::run(&config, registry, &mut shown).is_ok(), "it can be shown");
            let text = String::from_utf8(shown);
            let shown = text.map(|text| toml::from_str::<toml::Table>(&text));
            assert!(matches!(shown, Ok(Ok(_))), "what is shown can be read: {shown:?}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Parses a keys file: its entries survive a round trip.
pub fn keys(text: &str) {
    let file = KeysFile::new(Path::new("nowhere"));
    let Ok(keys) = file.parse(text) else { return };
    let written = toml::to_string(&BTreeMap::from([("key", &keys)]));
    let again = written.map(|written| file.parse(&written).map_err(|error| error.to_string()));
    assert_eq!(again, Ok(Ok(keys)));
}
