//! From a raw transaction to a wallet's trades, without a network:
//!
//!     cargo run --example decode_transaction -- [FILE WALLET]
//!
//! FILE holds one `getTransaction` result, encoding `json` or `jsonParsed`.

#![expect(clippy::print_stdout, reason = "shows what it found")]

use std::error::Error;

use blotter::decode::solana::{decode, parse};
use blotter::domain::{Address, Decimal, Family, Side};
use blotter::registry::Registry;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/solana_route.json");
const WALLET: &str = "6Sp2mYUHBALfoZ6DJff53Pc16i4nUtUZ6EGyRKjEaDk1";

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().unwrap_or_else(|| FILE.to_owned());
    let wallet = args.next().unwrap_or_else(|| WALLET.to_owned());
    let Address::Solana(wallet) = Address::parse(Family::Solana, &wallet)? else {
        return Err("not a Solana address".into());
    };
    let transaction = parse(&std::fs::read(file)?)?;
    let decoded = decode(&Registry::embedded()?, &wallet, &transaction);
    for trade in &decoded.trades {
        let side = if trade.side == Side::Buy { "buy " } else { "sell" };
        let decimals = decoded.decimals.iter().find(|(mint, _)| *mint == trade.mint);
        let amount = match (trade.units, decimals) {
            (Some(units), Some((_, decimals))) => {
                Decimal { units, decimals: *decimals }.to_string()
            }
            _ => "an unknown amount".to_owned(),
        };
        let value = trade.native.map(|units| Decimal { units, decimals: 9 }.to_string());
        let value = value.unwrap_or_else(|| "an unknown value".to_owned());
        println!("{side} {amount} of {} for {value} SOL at {}", trade.mint, trade.venue);
    }
    for note in &decoded.notes {
        println!("note: {}", note.detail);
    }
    Ok(())
}
