//! The resume token of a walk: what is taken is the text that was given for it, and no other.
//!
//! The first byte chooses the family and how to go on: the rest is a token's text, or a token's
//! bytes, whose checksum is then made right, so that what lies behind it is reached.

#![no_main]

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use blotter::domain::{Address, Cursor, Family, FilterTag, Position, Wallet};
use blotter_fuzz::sample::chain;
use blotter_fuzz::target;
use sha2::{Digest as _, Sha256};

const CHECKSUM_BYTES: usize = 8;
const CHAINS: [&str; 3] = ["sol", "eth", "tron"];

fn wallet(choice: u8) -> Wallet {
    let chain = chain(CHAINS[usize::from(choice) % CHAINS.len()]);
    let address = match chain.family {
        Family::Solana => Address::Solana([7; 32]),
        Family::Evm => Address::Evm([7; 20]),
        Family::Tron => Address::Tron([7; 20]),
    };
    Wallet { chain: chain.id, address }
}

fn seeds() -> Vec<Vec<u8>> {
    let cursors = (0..3_u8).flat_map(|choice| {
        [None, Some(17)].map(|head| {
            let position = Position::Start;
            let cursor = Cursor { head, filter: FilterTag(3), live: head.is_some(), position, passed: None };
            (choice, cursor.encode(&wallet(choice)))
        })
    });
    cursors
        .flat_map(|(choice, text)| {
            let bytes = URL_SAFE_NO_PAD.decode(&text).expect("its own text");
            let mut body = bytes[..bytes.len() - CHECKSUM_BYTES].to_vec();
            let whole = [vec![choice], text.into_bytes()].concat();
            // A position of the size that the family's has.
            body.resize(body.len() + 18 + if choice == 0 { 64 } else { 32 }, 1);
            [whole, [vec![choice | 0x80], body].concat()]
        })
        .collect()
}

fn attempt(bytes: &[u8]) {
    let Some((choice, rest)) = bytes.split_first() else { return };
    let wallet = wallet(*choice & 0x7f);
    let text = if choice & 0x80 == 0 {
        String::from_utf8_lossy(rest).into_owned()
    } else {
        let mut hash = Sha256::new();
        hash.update(wallet.chain.0.to_be_bytes());
        hash.update(wallet.address.bytes());
        hash.update(rest);
        let sum = hash.finalize();
        URL_SAFE_NO_PAD.encode([rest, &sum[..CHECKSUM_BYTES]].concat())
    };
    if let Ok(cursor) = Cursor::decode(&text, &wallet) {
        assert_eq!(cursor.encode(&wallet), text, "{cursor:?}");
    }
}

target!(seeds, attempt);
