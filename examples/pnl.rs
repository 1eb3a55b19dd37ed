//! Realised gains per token out of a wallet's trades, exact to the last digit, by the rule that what
//! was bought first is sold first. Reads one trade a line, newest first, as `stream` prints them:
//!
//!     cargo run --example stream -- URL KEY WALLET eth | cargo run --example pnl -- 18
//!
//! The number is the decimals of the chain's coin: 9 for Solana, 18 for EVM chains, 6 for Tron.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the example prints its result")]

use std::collections::BTreeMap;
use std::error::Error;
use std::io::BufRead as _;

use blotter::domain::{Side, Units};
use blotter::pnl::{Book, BookEntry, Method, TokenPosition};
use serde::Deserialize;
use serde_json::value::RawValue;

/// More decimals than any token of use has: all quantities are counted in this unit.
const QUANTITY_DECIMALS: usize = 30;

#[derive(Deserialize)]
struct Trade {
    side: String,
    token: String,
    #[serde(rename = "tokenMint")]
    mint: String,
    #[serde(rename = "amountSol")]
    native: Option<Box<RawValue>>,
    amount: Option<Box<RawValue>>,
}

/// The integer of units that a number literal stands for; `None` where it has more digits.
fn units(number: Option<&RawValue>, decimals: usize) -> Option<Units> {
    let (whole, part) = number?.get().split_once('.').unwrap_or((number?.get(), ""));
    let zeros = "0".repeat(decimals.checked_sub(part.len())?);
    format!("{whole}{part}{zeros}").parse().ok()
}

fn main() -> Result<(), Box<dyn Error>> {
    let decimals: u8 = std::env::args().nth(1).map_or(Ok(9), |text| text.parse())?;
    let lines = std::io::stdin().lock().lines().collect::<Result<Vec<_>, _>>()?;
    let mut books: BTreeMap<String, (String, Book)> = BTreeMap::new();
    // A book is entered oldest first.
    for line in lines.iter().rev() {
        let trade: Trade = serde_json::from_str(line)?;
        let (_, book) =
            books.entry(trade.mint).or_insert_with(|| (trade.token, Book::new(Method::Fifo)));
        book.enter(BookEntry {
            side: if trade.side == "buy" { Side::Buy } else { Side::Sell },
            quantity: units(trade.amount.as_deref(), QUANTITY_DECIMALS),
            native: units(trade.native.as_deref(), decimals.into()),
            row: 0,
        });
    }
    let mut totals = TokenPosition::default();
    println!("token\tbuys\tsells\trealised\tmint");
    for (mint, (token, book)) in &books {
        let position = book.position();
        totals.add(position);
        let realised = position.realised.decimal(decimals);
        println!("{token}\t{}\t{}\t{realised}\t{mint}", position.buys, position.sells);
    }
    println!("all\t{}\t{}\t{}", totals.buys, totals.sells, totals.realised.decimal(decimals));
    eprintln!(
        "without an amount: {}, without a native value: {} (left out of the gains)",
        totals.without_amount, totals.unvalued
    );
    Ok(())
}
