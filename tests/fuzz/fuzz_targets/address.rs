//! Addresses and ids of transactions in the text of each family: what is taken has one text of its
//! own, which is taken as the same.

#![no_main]

use blotter::domain::{Address, Family, TxId};
use blotter_fuzz::sample::{Sample, chain};
use blotter_fuzz::target;

const FAMILIES: [Family; 3] = [Family::Solana, Family::Evm, Family::Tron];

fn seeds() -> Vec<Vec<u8>> {
    let samples = [
        Sample::solana(None, 2, false),
        Sample::evm(chain("eth"), None, 2),
        Sample::tron(None, 2, true),
    ];
    let texts = samples.iter().flat_map(|sample| {
        let ids = sample.ids.iter().take(2).map(TxId::to_string);
        ids.chain([sample.wallet.to_string(), sample.wallet.to_string().to_lowercase()])
    });
    texts.map(String::into_bytes).collect()
}

fn attempt(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    for family in FAMILIES {
        if let Ok(address) = Address::parse(family, text) {
            assert_eq!(address.family(), family);
            assert_eq!(Address::from_bytes(family, address.bytes()), Some(address));
            // A token without a contract is written as its number, which is no address.
            if address.as_tron_asset().is_none() {
                assert_eq!(Address::parse(family, &address.to_string()), Ok(address));
            }
            if family == Family::Solana {
                let reference = bs58::decode(text).into_vec();
                assert_eq!(reference.as_deref().ok(), Some(address.bytes()));
            }
        }
        if let Some(id) = TxId::parse(family, text) {
            assert_eq!(TxId::parse(family, &id.to_string()), Some(id));
        }
    }
}

target!(seeds, attempt);
