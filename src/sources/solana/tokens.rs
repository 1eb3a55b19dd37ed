//! Symbols and decimals of tokens, in bulk: the mint's own account, and its Metaplex metadata.
//!
//! Layouts: SPL Token `Mint` (decimals at byte 44), Token-2022 extensions (type-length-value from
//! byte 166, type 19 is the metadata), Metaplex Token Metadata (key 4, two keys, name, symbol).

use std::sync::Arc;

use serde_json::json;

use super::SolanaSource;
use super::wire;
use crate::domain::{Address, program_address};
use crate::rpc::{Call, CallOptions, Result};
use crate::sources::symbol::{self, TokenMeta};

/// `metaqbxxUerdq28cj1RbAWkYQm3ybzjb6a8bt518x1s`.
const METADATA_PROGRAM: [u8; 32] = [
    11, 112, 101, 177, 227, 209, 124, 69, 56, 157, 82, 127, 107, 4, 195, 205, 88, 184, 108, 115,
    26, 160, 253, 181, 73, 182, 209, 188, 3, 248, 41, 70,
];
/// Accounts in one `getMultipleAccounts` are at most 100: each mint takes two.
const MINTS_PER_CALL: usize = 50;
const DECIMALS_OFFSET: usize = 44;
const MINT_BYTES: usize = 82;
/// Token-2022 pads a mint to a token account's length and one byte for the kind.
const EXTENSIONS_OFFSET: usize = 166;
const METADATA_EXTENSION: u16 = 19;
/// Offset of the name in both metadata layouts: two keys of 32 bytes behind a first byte. In the
/// extension, there is no first byte.
const METAPLEX_NAME_OFFSET: usize = 65;
const EXTENSION_NAME_OFFSET: usize = 64;

impl SolanaSource {
    pub(crate) async fn tokens(
        &self,
        mints: &[Address],
        options: &CallOptions,
    ) -> Result<Vec<TokenMeta>> {
        let groups: Vec<&[Address]> = mints.chunks(MINTS_PER_CALL).collect();
        let calls: Vec<Call> = groups.iter().map(|group| call(group)).collect();
        let answers = self.inner.pool.batch(&calls, options).await;
        let mut metas = Vec::with_capacity(mints.len());
        for (group, answer) in groups.into_iter().zip(answers) {
            let answer = answer?;
            let accounts = wire::accounts(&answer.result).map_err(|_| {
                self.malformed(answer.endpoint, "getMultipleAccounts gave no accounts")
            })?;
            let data: Vec<Option<Vec<u8>>> =
                accounts.into_iter().map(|account| account?.bytes()).collect();
            for (mint, pair) in group.iter().zip(data.chunks(2)) {
                let [account, metadata] = pair else { continue };
                let (account, metadata) = (account.as_deref(), metadata.as_deref());
                if !names_another(*mint, account, metadata) {
                    metas.push(meta(*mint, account, metadata));
                }
            }
        }
        Ok(metas)
    }
}

fn call(mints: &[Address]) -> Call {
    let addresses: Vec<String> = mints
        .iter()
        .flat_map(|mint| [mint.to_string(), metadata_address(mint).to_string()])
        .collect();
    let how = json!({"encoding": "base64", "commitment": "finalized"});
    Call { method: "getMultipleAccounts", params: json!([addresses, how]) }
}

fn meta(mint: Address, account: Option<&[u8]>, metadata: Option<&[u8]>) -> TokenMeta {
    let decimals = account
        .filter(|data| data.len() >= MINT_BYTES)
        .and_then(|data| data.get(DECIMALS_OFFSET).copied());
    let extension = account.and_then(metadata_extension);
    let symbol = extension
        .and_then(|data| symbol(data, EXTENSION_NAME_OFFSET))
        .or_else(|| metadata.and_then(|data| symbol(data, METAPLEX_NAME_OFFSET)));
    TokenMeta { mint, symbol, decimals }
}

/// Whether the metadata are those of another mint: a proxy may give the answer to another request.
fn names_another(mint: Address, account: Option<&[u8]>, metadata: Option<&[u8]>) -> bool {
    let extension = account.and_then(metadata_extension);
    let both = [(extension, EXTENSION_NAME_OFFSET), (metadata, METAPLEX_NAME_OFFSET)];
    both.into_iter().any(|(data, names_at)| {
        let before_names = data.and_then(|data| data.get(..names_at));
        before_names.is_some_and(|data| !data.ends_with(mint.bytes()))
    })
}

/// The metadata among a Token-2022 mint's extensions.
fn metadata_extension(account: &[u8]) -> Option<&[u8]> {
    let mut rest = account.get(EXTENSIONS_OFFSET..)?;
    loop {
        let (kind, tail) = rest.split_first_chunk::<2>()?;
        let (length, tail) = tail.split_first_chunk::<2>()?;
        let (value, next) = tail.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        if u16::from_le_bytes(*kind) == METADATA_EXTENSION {
            return Some(value);
        }
        rest = next;
    }
}

/// The text behind the name: each text is a length of four bytes and that many bytes.
fn symbol(data: &[u8], name_offset: usize) -> Option<Arc<str>> {
    let (_, rest) = text(data.get(name_offset..)?)?;
    let (symbol, _) = text(rest)?;
    symbol::symbol(symbol)
}

fn text(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first_chunk::<4>()?;
    rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)
}

fn metadata_address(mint: &Address) -> Address {
    let seeds = [b"metadata".as_slice(), &METADATA_PROGRAM, mint.bytes()];
    Address::Solana(program_address(&seeds, &METADATA_PROGRAM))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Family;

    fn address(text: &str) -> Address {
        Address::parse(Family::Solana, text).unwrap()
    }

    #[test]
    fn derives_the_metadata_account() {
        assert_eq!(
            Address::Solana(METADATA_PROGRAM),
            address("metaqbxxUerdq28cj1RbAWkYQm3ybzjb6a8bt518x1s")
        );
        // USDC's metadata account as explorers show it.
        let usdc = address("EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v");
        let metadata = address("5x38Kp4hvdomTCnCrAny4UtMUt5rQBdB6px2K1Ui45Wq");
        assert_eq!(metadata_address(&usdc), metadata);
    }

    fn mint_with(extension: &[u8]) -> Vec<u8> {
        let mut mint = vec![0; EXTENSIONS_OFFSET];
        mint[DECIMALS_OFFSET] = 6;
        mint.extend([1, 0, 2, 0, 9, 9]);
        mint.extend(METADATA_EXTENSION.to_le_bytes());
        mint.extend(u16::try_from(extension.len()).unwrap().to_le_bytes());
        mint.extend(extension);
        mint
    }

    fn named(prefix: usize, name: &str, symbol: &str) -> Vec<u8> {
        let mut data = vec![4; prefix];
        for text in [name, symbol] {
            data.extend(u32::try_from(text.len()).unwrap().to_le_bytes());
            data.extend(text.as_bytes());
        }
        data
    }

    #[test]
    fn reads_both_layouts_and_cleans_the_symbol() {
        let mint = Address::Solana([4; 32]);
        let plain = [0_u8; 44].into_iter().chain([9, 1]).chain([0; 36]).collect::<Vec<u8>>();
        let padded = named(65, "Bonk\0\0\0", " BO\u{7}NK\0\0\0");
        let known = meta(mint, Some(&plain), Some(&padded));
        assert_eq!(known, TokenMeta { mint, symbol: Some("BONK".into()), decimals: Some(9) });
        let newer = mint_with(&named(64, "Newer", "NEW"));
        let known = meta(mint, Some(&newer), None);
        assert_eq!(known, TokenMeta { mint, symbol: Some("NEW".into()), decimals: Some(6) });
        let unknown = TokenMeta { mint, symbol: None, decimals: None };
        assert_eq!(meta(mint, None, Some(&[4; 70])), unknown);
        let other = Address::Solana([1; 32]);
        for (account, metadata) in [(&plain, Some(&padded[..])), (&newer, None)] {
            let names_another =
                [mint, other].map(|mint| names_another(mint, Some(account), metadata));
            assert_eq!(names_another, [false, true]);
        }
    }
}
