//! What an EVM chain's native coin was worth at some heights, by the chain's reference pools alone:
//!
//!     cargo run --example native_price -- CHAIN URL HEIGHT [HEIGHT …]
//!
//! CHAIN is a slug such as `eth`, URL a node that answers `eth_getLogs`. Prints a line a height:
//! the height and US dollars for a whole coin, or `null`.

#![expect(clippy::print_stdout, reason = "shows what it found")]

use std::error::Error;
use std::sync::Arc;

use blotter::domain::{Clock, Decimal, Moment, Price, Units, UnixMillis, UnixSeconds};
use blotter::registry::Registry;
use blotter::rpc::{EndpointConfig, HttpTransport, Lane, Pool, PoolLimits, Priority};
use blotter::sources::{Discovery, EvmLimits, EvmParts, EvmSource, Source};

/// Needed only for how long to wait where a node names a date to come back at: not here.
#[derive(Debug)]
struct NoClock;

impl Clock for NoClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(u64::MAX)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(slug), Some(url)) = (args.next(), args.next()) else {
        return Err("CHAIN URL HEIGHT [HEIGHT …]".into());
    };
    let heights: Vec<u64> = args.map(|text| text.parse()).collect::<Result<_, _>>()?;
    let registry = Arc::new(Registry::embedded()?);
    let chain = registry.chain_named(&slug).ok_or("no such chain")?.clone();
    let transport = Arc::new(HttpTransport::new()?);
    let endpoints = vec![EndpointConfig::new(url)];
    let rpc = Pool::new(endpoints, transport, PoolLimits::default(), Arc::new(NoClock), 1);
    let source = Source::Evm(EvmSource::new(EvmParts {
        chain,
        registry,
        rpc,
        explorer: None,
        portal: None,
        discovery: vec![Discovery::Logs],
        limits: EvmLimits::default(),
    }));
    let lane = Lane::new(1, Arc::new(Priority::interactive()));
    // Only the height counts on an EVM chain.
    let moment = |height: &u64| Moment { height: *height, time: UnixSeconds(0) };
    for chunk in heights.chunks(100) {
        let at: Vec<Moment> = chunk.iter().map(moment).collect();
        for (height, price) in chunk.iter().zip(source.native_prices(&at, &lane).await?) {
            let dollars =
                |price: Price| Decimal { units: Units::from(price.0), decimals: Price::DECIMALS };
            let text = price.map_or_else(|| "null".to_owned(), |p| dollars(p).to_string());
            println!("{height} {text}");
        }
    }
    Ok(())
}
