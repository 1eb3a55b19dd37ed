//! The configuration: flag before environment before file before default.
//!
//! Every layer has the same shape, with every value optional. Each is checked by itself, so that an
//! error can name the file and line or the variable, and is then merged over the one below. The
//! lowest layer is `data/default.toml`, which is also the reference.

mod bounds;
pub(super) mod chains;
pub(super) mod choices;
pub(super) mod environment;
mod error;
pub(super) mod numbers;
pub(super) mod secret;
pub(super) mod units;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::api::{Hosts, Proxies};
use crate::registry::{OwnChain, Registry};
use chains::{ChainLayer, check_chain, own_chain};
use choices::{Estimates, StorageEngine};
use environment::Environment;
use error::ConfigError;
use secret::{ConfigSecret, ConfigUrl, without_value};
pub(super) use units::Listen;
use units::{Optional, RateSetting, Size, Wait};

const DEFAULTS: &str = include_str!("../../../data/default.toml");
/// Read from the working directory unless another file is named.
const FILE_NAME: &str = "blotter.toml";
const VARIABLE_PREFIX: &str = "BLOTTER_";
/// Variables that are no settings: they name a file or the log filter, or replace a flag of a
/// command.
const OTHER_VARIABLES: [&str; 4] = ["BLOTTER_CONFIG", "BLOTTER_LOG", "BLOTTER_URL", "BLOTTER_KEY"];

/// Declares a section twice: with all values present, and as a layer. A reload does not apply
/// values marked `at_start`.
macro_rules! section {
    ($name:ident, $layer:ident, $table:literal, {
        $($(#[$at_start:ident])? $field:ident: $type:ty,)+
    }) => {
        #[derive(Debug, Clone, PartialEq, Serialize)]
        pub(super) struct $name {
            $(pub(super) $field: $type,)+
        }

        impl $name {
            /// Applies values that are not marked, and adds the names of those that differ.
            fn reload(&mut self, loaded: Self, changed: &mut Vec<String>, restart: &mut Vec<String>) {
                $(if self.$field != loaded.$field {
                    let name = concat!($table, ".", stringify!($field)).to_owned();
                    if stringify!($($at_start)?) == "at_start" {
                        restart.push(name);
                    } else {
                        self.$field = loaded.$field;
                        changed.push(name);
                    }
                })+
            }
        }

        #[derive(Debug, Clone, Default, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct $layer {
            $($field: Option<$type>,)+
        }

        impl $layer {
            fn over(self, below: Self) -> Self {
                Self { $($field: self.$field.or(below.$field),)+ }
            }

            fn finish(self) -> Result<$name, ConfigError> {
                Ok($name {
                    $($field: self.$field.ok_or(ConfigError::Missing {
                        key: concat!($table, ".", stringify!($field)),
                    })?,)+
                })
            }
        }
    };
}

section!(Server, ServerLayer, "server", {
    #[at_start] listen: Listen,
    stream_window: Wait,
    page_wait: Wait,
    #[at_start] freshness: Wait,
    #[at_start] head_wait: Wait,
    heartbeat: Wait,
    #[at_start] shutdown_wait: Wait,
    #[at_start] connections: u32,
    connections_per_address: u32,
    estimates: Estimates,
    trusted_proxies: Proxies,
    allowed_hosts: Hosts,
    #[at_start] metrics_listen: Optional<Listen>,
    metrics_key: bool,
});

section!(Storage, StorageLayer, "storage", {
    #[at_start] path: PathBuf,
    #[at_start] cache: Size,
    #[at_start] engine: StorageEngine,
    #[at_start] url: Optional<ConfigSecret>,
    #[at_start] connections: u32,
    max_size: Optional<Size>,
    min_free: Size,
});

section!(Log, LogLayer, "log", {
    #[at_start] access: String,
    paths: bool,
    #[at_start] audit: bool,
});

section!(Prices, PricesLayer, "prices", {
    #[at_start] candles: Optional<ConfigUrl>,
    #[at_start] candles_rate: RateSetting,
});

section!(Audit, AuditLayer, "audit", {
    #[at_start] calls_per_hour: u32,
});

/// The settings that flags of a command provide.
#[derive(Debug, Clone, Default)]
pub(super) struct Flags {
    pub(super) config: Option<PathBuf>,
    pub(super) data_dir: Option<PathBuf>,
    pub(super) storage_url: Option<Optional<ConfigSecret>>,
    pub(super) listen: Option<Listen>,
}

#[derive(Debug, Clone)]
pub(super) struct Config {
    pub(super) server: Server,
    pub(super) storage: Storage,
    pub(super) prices: Prices,
    pub(super) log: Log,
    pub(super) audit: Audit,
    /// Configured chains by slug.
    pub(super) chains: BTreeMap<String, ChainLayer>,
    pub(super) file: Option<PathBuf>,
    /// Unknown `BLOTTER_` variables, most likely misspelt.
    pub(super) unused_variables: Vec<String>,
}

impl Config {
    /// Applies the settings that may change at run time. Returns the names of the settings that
    /// changed and of those that need a restart, both without chains.
    pub(super) fn reload(&mut self, loaded: Self) -> (Vec<String>, Vec<String>) {
        let (mut changed, mut restart) = (Vec::new(), Vec::new());
        self.audit.reload(loaded.audit, &mut changed, &mut restart);
        self.log.reload(loaded.log, &mut changed, &mut restart);
        self.prices.reload(loaded.prices, &mut changed, &mut restart);
        self.server.reload(loaded.server, &mut changed, &mut restart);
        self.storage.reload(loaded.storage, &mut changed, &mut restart);
        changed.sort_unstable();
        restart.sort_unstable();
        self.chains = loaded.chains;
        self.file = loaded.file;
        self.unused_variables = loaded.unused_variables;
        (changed, restart)
    }

    /// Chains that only the configuration defines; they were checked when it was read.
    pub(super) fn own_chains(&self, registry: &Registry) -> Vec<OwnChain> {
        let own = self.chains.iter().filter(|(slug, _)| registry.chain_named(slug).is_none());
        own.filter_map(|(slug, chain)| own_chain(slug, chain).ok()).collect()
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Layer {
    server: ServerLayer,
    storage: StorageLayer,
    prices: PricesLayer,
    log: LogLayer,
    audit: AuditLayer,
    chains: BTreeMap<toml::Spanned<String>, ChainLayer>,
}

impl Layer {
    fn parse(text: &str, name: &str) -> Result<Self, ConfigError> {
        let mut layer: Self = toml::from_str(text).map_err(|error| ConfigError::Wrong {
            place: place(text, name, error.span()),
            reason: reason(&error),
        })?;
        for (slug, chain) in &mut layer.chains {
            chain.place = place(text, name, Some(slug.span()));
        }
        layer.check(name)?;
        Ok(layer)
    }

    /// Checks this layer alone, so that the error can name the setting's position.
    fn check(&self, name: &str) -> Result<(), ConfigError> {
        bounds::too_small(self).map_or(Ok(()), |(key, reason)| {
            Err(ConfigError::Wrong { place: format!("{name} ({key})"), reason })
        })
    }

    fn over(self, below: Self) -> Self {
        let mut chains = below.chains;
        for (slug, chain) in self.chains {
            let merged = match chains.remove(&slug) {
                Some(lower) => chain.over(lower),
                None => chain,
            };
            chains.insert(slug, merged);
        }
        Self {
            server: self.server.over(below.server),
            storage: self.storage.over(below.storage),
            prices: self.prices.over(below.prices),
            log: self.log.over(below.log),
            audit: self.audit.over(below.audit),
            chains,
        }
    }
}

/// The parser's message on one line; `place` names the position instead of quoting the line.
fn reason(error: &toml::de::Error) -> String {
    let text = without_value(&error.message().lines().collect::<Vec<_>>().join(", "));
    // The names of this program's types say nothing to its user.
    let text = text.replace("expected a sequence", "expected a list such as [\"…\", \"…\"]");
    match text.split_once("expected struct ") {
        Some((before, _)) => format!("{before}expected a table"),
        None => text,
    }
}

/// `file, line 3 (listen = "x")`.
fn place(text: &str, name: &str, span: Option<Range<usize>>) -> String {
    let Some(start) = span.map(|span| span.start) else { return name.to_owned() };
    let before = text.get(..start).unwrap_or(text);
    let number = before.matches('\n').count() + 1;
    let line = text.lines().nth(number - 1).unwrap_or_default().trim();
    // Only the key is shown: a wrong value may be a secret.
    let key = line.split('=').next().unwrap_or(line).trim();
    // A malformed line may begin inside a value, so only text in the form of a key is shown.
    let is_key = |c: char| c.is_ascii_alphanumeric() || "_-.[] ".contains(c);
    if (line.contains('=') || line.starts_with('[')) && key.chars().all(is_key) {
        return format!("{name}, line {number} ({key})");
    }
    format!("{name}, line {number}")
}

/// Merges all layers; `read` returns a file's text, which tests replace.
pub(super) fn load(
    flags: &Flags,
    environment: &Environment,
    registry: &Registry,
    read: impl Fn(&Path) -> std::io::Result<String>,
) -> Result<Config, ConfigError> {
    let default = Layer::parse(DEFAULTS, "data/default.toml")?;
    let (file, file_layer) = match file_text(flags, environment, read)? {
        Some((path, text)) => {
            let layer = Layer::parse(&text, &path.display().to_string())?;
            (Some(path), layer)
        }
        None => (None, Layer::default()),
    };
    let mut unused_variables = Vec::new();
    let variables = environment_layer(environment, &mut unused_variables)?;
    let merged = flag_layer(flags).over(variables).over(file_layer).over(default);
    let mut chains = BTreeMap::new();
    for (slug, chain) in merged.chains {
        let slug = check_chain(slug.as_ref(), &chain, registry)
            .map_err(|reason| ConfigError::Wrong { place: chain.place.clone(), reason })?;
        let place = chain.place.clone();
        if chains.insert(slug.clone(), chain).is_some() {
            let reason = format!("chain {slug} is configured twice, under two of its names");
            return Err(ConfigError::Wrong { place, reason });
        }
    }
    Ok(Config {
        server: merged.server.finish()?,
        storage: merged.storage.finish()?,
        prices: merged.prices.finish()?,
        log: merged.log.finish()?,
        audit: merged.audit.finish()?,
        chains,
        file,
        unused_variables,
    })
}

/// The text of the configuration file. A named file must exist; the default one need not.
fn file_text(
    flags: &Flags,
    environment: &Environment,
    read: impl Fn(&Path) -> std::io::Result<String>,
) -> Result<Option<(PathBuf, String)>, ConfigError> {
    let named =
        flags.config.clone().or_else(|| environment.get("BLOTTER_CONFIG").map(PathBuf::from));
    let path = named.clone().unwrap_or_else(|| PathBuf::from(FILE_NAME));
    match read(&path) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ConfigError::Read { path, source }),
    }
}

fn flag_layer(flags: &Flags) -> Layer {
    Layer {
        server: ServerLayer { listen: flags.listen, ..ServerLayer::default() },
        storage: StorageLayer {
            path: flags.data_dir.clone(),
            url: flags.storage_url.clone(),
            ..StorageLayer::default()
        },
        ..Layer::default()
    }
}

/// Every setting of the reference as `BLOTTER_<SECTION>_<KEY>`, the two that have flags also by the
/// flag's name, and `BLOTTER_CHAINS_<SLUG>_RPC`, `_PORTAL`, `_EXPLORER`, `_DISCOVERY` and
/// `_ENABLED`.
fn environment_layer(
    environment: &Environment,
    unused: &mut Vec<String>,
) -> Result<Layer, ConfigError> {
    let reference: toml::Table = toml::from_str(DEFAULTS).map_err(|error| ConfigError::Wrong {
        place: "data/default.toml".to_owned(),
        reason: reason(&error),
    })?;
    let mut layer = Layer::default();
    for (name, value) in environment.iter() {
        let Some(setting) = name.strip_prefix(VARIABLE_PREFIX) else { continue };
        let Some(table) = variable_table(setting, value, &reference) else {
            if !OTHER_VARIABLES.contains(&name) {
                unused.push(name.to_owned());
            }
            continue;
        };
        // By text, because the layer's keys are `Spanned`, which only a parser provides.
        let text = table.to_string();
        let mut one: Layer = toml::from_str(&text).map_err(|error| ConfigError::Wrong {
            place: name.to_owned(),
            reason: reason(&error),
        })?;
        for chain in one.chains.values_mut() {
            name.clone_into(&mut chain.place);
        }
        one.check(name)?;
        layer = one.over(layer);
    }
    Ok(layer)
}

/// The setting that a variable names; `None` if the reference has no such setting.
fn variable_table(setting: &str, value: &str, reference: &toml::Table) -> Option<toml::Table> {
    match setting {
        "LISTEN" => return Some(nested("server", "listen", value.into())),
        "DATA_DIR" => return Some(nested("storage", "path", value.into())),
        _ => {}
    }
    let setting = setting.to_ascii_lowercase();
    if let Some((slug, key)) = setting.strip_prefix("chains_").and_then(|s| s.rsplit_once('_')) {
        let value = match key {
            "rpc" | "discovery" => list(value),
            "portal" => value.into(),
            "enabled" => typed::<bool>(value),
            "explorer" => toml::Table::from_iter([("url".to_owned(), value.into())]).into(),
            _ => return None,
        };
        let chain = nested(slug, key, value).into();
        return Some(toml::Table::from_iter([("chains".to_owned(), chain)]));
    }
    let (section, key) = setting.split_once('_')?;
    let known = reference.get(section)?.get(key)?;
    let value = if known.is_integer() {
        typed::<i64>(value)
    } else if known.is_bool() {
        typed::<bool>(value)
    } else {
        value.into()
    };
    Some(nested(section, key, value))
}

/// Text of another type stays text: deserializing the layer then reports the expected type.
fn typed<T: FromStr + Into<toml::Value>>(text: &str) -> toml::Value {
    text.parse::<T>().map_or_else(|_| text.into(), Into::into)
}

fn nested(section: &str, key: &str, value: toml::Value) -> toml::Table {
    let inner = toml::Table::from_iter([(key.to_owned(), value)]);
    toml::Table::from_iter([(section.to_owned(), inner.into())])
}

fn list(value: &str) -> toml::Value {
    let parts = value.split(',').map(str::trim).filter(|part| !part.is_empty());
    toml::Value::Array(parts.map(Into::into).collect())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn merged(
        flags: &Flags,
        variables: &[(&str, &str)],
        file: Option<&str>,
    ) -> Result<Config, ConfigError> {
        let environment = variables
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let read = |path: &Path| match file {
            Some(text) if path == Path::new(FILE_NAME) => Ok(text.to_owned()),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        };
        load(flags, &environment, &Registry::embedded().unwrap(), read)
    }

    #[track_caller]
    fn check_error(variables: &[(&str, &str)], file: &str, parts: &[&str]) {
        let text = merged(&Flags::default(), variables, Some(file)).unwrap_err().to_string();
        for part in parts {
            assert!(text.contains(part), "{text:?} lacks {part:?}");
        }
    }

    #[test]
    fn works_without_any_configuration() {
        let config = merged(&Flags::default(), &[], None).unwrap();
        assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
        assert_eq!(config.server.stream_window, Wait(Duration::from_secs(55)));
        assert_eq!(config.storage.cache, Size(128 << 20));
        assert!(config.chains.is_empty() && config.file.is_none());
        assert!(config.prices.candles.0.is_none(), "no service learns of trades by default");
    }

    #[test]
    fn a_price_service_is_named_or_left_out() {
        let variables = [("BLOTTER_PRICES_CANDLES", "https://prices.example")];
        let file = "[prices]\ncandles_rate = 0.5\n";
        let prices = merged(&Flags::default(), &variables, Some(file)).unwrap().prices;
        assert_eq!(prices.candles.to_string(), "https://prices.example");
        assert_eq!(prices.candles_rate, RateSetting { millis: 500 });
        check_error(&[], "[prices]\ncandles = 'defillama'\n", &["line 2 (candles)", "http"]);
    }

    #[test]
    fn flag_before_variable_before_file_before_default() {
        let file = "[server]\nlisten = '127.0.0.1:1'\npage_wait = '1s'\nfreshness = '1s'\n";
        let variables =
            [("BLOTTER_SERVER_LISTEN", "127.0.0.1:2"), ("BLOTTER_SERVER_FRESHNESS", "2s")];
        let flags = Flags { listen: "localhost:3".parse().ok(), ..Flags::default() };
        let config = merged(&flags, &variables, Some(file)).unwrap();
        assert_eq!(config.server.listen.to_string(), "127.0.0.1:3");
        assert_eq!(config.server.freshness.to_string(), "2s");
        assert_eq!(config.server.page_wait.to_string(), "1s");
        assert_eq!(config.server.head_wait.to_string(), "2s");
        assert_eq!(config.file.as_deref(), Some(Path::new(FILE_NAME)));
    }

    #[test]
    fn variables_of_flags_and_lists() {
        let variables = [
            ("BLOTTER_DATA_DIR", "/data"),
            ("BLOTTER_LISTEN", "0.0.0.0:0"),
            ("BLOTTER_SERVER_CONNECTIONS", "7"),
            ("BLOTTER_CHAINS_SOL_RPC", "https://a.example,https://b.example"),
            ("BLOTTER_CHAINS_ETH_ENABLED", "false"),
            ("BLOTTER_SERVER_LISTNE", "x"),
            ("BLOTTER_LOG", "debug"),
            ("BLOTTER_STORAGE_CACHE", ""),
        ];
        let config = merged(&Flags::default(), &variables, None).unwrap();
        assert_eq!(config.storage.path, Path::new("/data"));
        assert_eq!(config.server.listen.to_string(), "0.0.0.0:0");
        assert_eq!((config.server.connections, config.chains["eth"].enabled), (7, Some(false)));
        assert_eq!(config.chains["sol"].rpc.as_ref().map(Vec::len), Some(2));
        assert_eq!(config.unused_variables, ["BLOTTER_SERVER_LISTNE"]);
    }

    #[test]
    fn endpoints_are_addresses_or_tables() {
        let file = "[chains.solana]\nrpc = ['http://127.0.0.1:1/sol', { url = 'https://h.example', \
                    rate = 0.5, concurrency = 8, batch = 20, headers = { x-token = 'word' } }]\n";
        let config = merged(&Flags::default(), &[], Some(file)).unwrap();
        let endpoints = config.chains["sol"].rpc.as_ref().unwrap();
        assert_eq!(endpoints[0].url.expose(), "http://127.0.0.1:1/sol");
        assert_eq!(endpoints[1].rate.map(|rate| rate.millis), Some(500));
        assert_eq!((endpoints[1].concurrency, endpoints[1].batch), (Some(8), Some(20)));
        assert_eq!(endpoints[1].headers["x-token"].expose(), "word");
    }

    #[test]
    fn evm_sections_and_own_chains_are_read() {
        let file = "[chains.eth]\nexplorer = { url = 'https://e.example/api', key = 'k' }\n\
                    portal = 'https://p.example'\ndiscovery = ['portal', 'explorer', 'alchemy', 'logs']\n\
                    [chains.foo]\nfamily = 'evm'\nchain_id = 5\nnative = 'ETH'\n\
                    wrapped_native = '0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2'\nrpc = ['http://h.example']\n";
        let config = merged(&Flags::default(), &[], Some(file)).unwrap();
        assert_eq!(config.chains["foo"].chain_id, Some(5));
        assert_eq!(config.chains["eth"].discovery.as_ref().map(Vec::len), Some(4));
    }

    #[test]
    fn errors_name_key_file_and_line() {
        let file = |text: &str, parts: &[&str]| check_error(&[], text, parts);
        file("[server]\nlisten = '127.0.0.1:1'\nlimit = 5\n", &["blotter.toml, line 3", "limit"]);
        file("[srever]\n", &["line 1", "srever"]);
        file("[server]\n\npage_wait = '20'\n", &["line 3 (page_wait)", "duration"]);
        file("[storage]\ncache = 5\n", &["line 2 (cache)"]);
        file("[server]\nlisten = '8080'\n", &["line 2 (listen)", "address and a port"]);
        file("[server\n", &["blotter.toml, line 1"]);
        file("[chains.sol]\nrpc = ['nowhere']\n", &["line 2 (rpc)", "address"]);
        file("[chains.sol]\nrpc = [{ url = 'http://h', speed = 1 }]\n", &["line 2", "speed"]);
        file("\n[chains.sol]\nrpc = []\n", &["line 2 ([chains.sol])", "empty"]);
        file("[chains.tron]\nportal = 'http://h'\n", &["line 1", "portal is for EVM"]);
        file("[chains.eth]\nchain_id = 2\n", &["line 1", "chain_id of eth"]);
        file("[chains.foo]\nrpc = ['http://h']\n", &["foo", "chain table", "family"]);
        let parts = ["line 1 ([chains.eth])", "discovery is empty", "leave it out"];
        file("[chains.eth]\ndiscovery = []\n", &parts);
        file("[chains.sol]\n[chains.solana]\n", &["sol is configured twice"]);
        let one_text = "[chains.eth]\nrpc = 'http://h'\n";
        file(one_text, &["line 2 (rpc)", "expected a list such as [\"…\", \"…\"]"]);
        let parts = ["line 2 (explorer)", "expected a table { url, key, rate }"];
        file("[chains.eth]\nexplorer = 'http://h'\n", &parts);
        file("server = 5\n", &["line 1 (server): invalid type: integer, expected a table"]);
        let variable = |name, value, part| check_error(&[(name, value)], "", &[name, part]);
        variable("BLOTTER_SERVER_HEARTBEAT", "often", "duration");
        variable("BLOTTER_SERVER_CONNECTIONS", "many", "");
        variable("BLOTTER_CHAINS_FOO_RPC", "http://h", "foo");
    }

    /// A key that was written into the wrong place is not shown again.
    #[test]
    fn errors_show_no_values() {
        for setting in [
            "[chains.sol]\nrpc = ['ftp://me:word@h.example']",
            // A text in place of a list or a table, as the variables have them.
            "[chains.sol]\nrpc = 'https://h.example/word'",
            "[chains.eth]\nexplorer = 'https://h.example/api?apikey=word, expected word'",
            "[chains.sol]\nrpc = [{ url = 'https://h.example', headers = 'Bearer word' }]",
            "[chains.eth]\ndiscovery = ['https://h.example/v2/word']",
        ] {
            let text = merged(&Flags::default(), &[], Some(setting)).unwrap_err().to_string();
            assert!(!text.contains("word") && text.contains("line 2"), "{text}");
        }
    }

    #[test]
    fn a_named_file_must_exist() {
        let flags = Flags { config: Some("other.toml".into()), ..Flags::default() };
        let variables = [("BLOTTER_CONFIG", "other.toml")];
        for read in [merged(&flags, &[], None), merged(&Flags::default(), &variables, None)] {
            assert!(matches!(read, Err(ConfigError::Read { .. })));
        }
    }

    proptest::proptest! {
        /// Any file content gives a configuration, or an error that shows no value.
        #[test]
        fn no_text_makes_a_reader_panic(
            at in proptest::prelude::any::<proptest::sample::Index>(),
            odd in proptest::sample::select(vec!["", "\0", "\u{202e}", "= ", "[[", "\"", "-1", "9e999", "[server]", "\n"]),
        ) {
            let secret = "[chains.sol]\nrpc = [\"https://host/planted-secret\"]\n";
            let text = format!("{DEFAULTS}{secret}");
            let at = at.index(text.len());
            proptest::prop_assume!(text.is_char_boundary(at));
            for changed in [format!("{}{odd}{}", &text[..at], &text[at..]), text[..at].to_owned(), odd.to_owned()] {
                if let Err(error) = Layer::parse(&changed, FILE_NAME) {
                    proptest::prop_assert!(!error.to_string().contains("planted"), "{}", error);
                }
            }
        }
    }
}
