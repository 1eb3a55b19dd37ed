//! Recorded transactions: what nodes answered, and whose trades are asked for.

use std::hint::black_box;
use std::path::{Path, PathBuf};

use blotter::decode::{Decoded, evm, solana, tron};
use blotter::domain::{Address, Family};
use blotter::registry::Registry;
use serde::Deserialize;
use serde_json::Value;

/// One file.
#[derive(Deserialize)]
struct Recorded {
    chain: String,
    wallet: String,
    rpc: Value,
}

/// One transaction.
pub(super) enum Case {
    Solana { wallet: [u8; 32], answer: Vec<u8> },
    Evm { chain: String, wallet: evm::Account, tx: Vec<u8>, receipt: Vec<u8> },
    Tron { wallet: evm::Account, tx: Vec<u8>, info: Vec<u8> },
}

impl Case {
    /// As a node sends them, without white space.
    pub(super) fn answers(&self) -> impl Iterator<Item = &[u8]> {
        let both = match self {
            Self::Solana { answer, .. } => [Some(answer), None],
            Self::Evm { tx, receipt: more, .. } | Self::Tron { tx, info: more, .. } => {
                [Some(tx), Some(more)]
            }
        };
        both.into_iter().flatten().map(Vec::as_slice)
    }

    pub(super) fn parse(&self) {
        match self {
            Self::Solana { answer, .. } => drop(black_box(solana::parse(answer).unwrap())),
            Self::Evm { tx, receipt, .. } => drop(black_box(evm::parse(tx, receipt).unwrap())),
            Self::Tron { tx, info, .. } => drop(black_box(tron::parse(tx, info).unwrap())),
        }
    }

    /// From the bytes of the answers. EVM without inner calls: other calls return those.
    pub(super) fn trades(&self, registry: &Registry) -> Decoded {
        match self {
            Self::Solana { wallet, answer } => {
                solana::decode(registry, wallet, &solana::parse(answer).unwrap())
            }
            Self::Evm { chain, wallet, tx, receipt } => {
                let chain = registry.chain_named(chain).unwrap();
                evm::decode(registry.evm(), chain, wallet, &evm::parse(tx, receipt).unwrap())
            }
            Self::Tron { wallet, tx, info } => {
                let chain = registry.chain_named("tron").unwrap();
                tron::decode(registry.tron(), chain, wallet, &tron::parse(tx, info).unwrap())
            }
        }
    }

    fn read(path: &Path) -> Self {
        let case: Recorded = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let Recorded { chain, wallet, rpc } = case;
        let answer = |name: &str| rpc.get(name).unwrap().to_string().into_bytes();
        let family = match chain.as_str() {
            "sol" => Family::Solana,
            "tron" => Family::Tron,
            _ => Family::Evm,
        };
        match Address::parse(family, &wallet).unwrap() {
            Address::Solana(wallet) => Self::Solana { wallet, answer: answer("getTransaction") },
            Address::Evm(wallet) => Self::Evm {
                chain,
                wallet,
                tx: answer("eth_getTransactionByHash"),
                receipt: answer("eth_getTransactionReceipt"),
            },
            Address::Tron(wallet) => Self::Tron {
                wallet,
                tx: answer("gettransactionbyid"),
                info: answer("gettransactioninfobyid"),
            },
        }
    }
}

/// The cases of one folder of the corpus; none where there is no such folder.
#[expect(clippy::print_stderr, reason = "lists what was left out")]
pub(super) fn cases(name: &str) -> Vec<Case> {
    let corpus = std::env::var_os("BLOTTER_CORPUS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus"),
        PathBuf::from,
    );
    let folder = corpus.join(name);
    if !folder.is_dir() {
        eprintln!("answers-{name}: skipped, there is no folder {}", folder.display());
        return Vec::new();
    }
    files(&folder).iter().map(|path| Case::read(path)).collect()
}

/// All JSON files below a folder, in the order of their names.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "json") {
            found.push(path);
        }
    }
    found
}
