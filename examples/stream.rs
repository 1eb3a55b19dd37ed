//! Streams a wallet's history from a running server to its end, through cuts and windows, and
//! prints one trade a line, exactly as it came.
//!
//!     cargo run --example stream -- URL KEY WALLET [CHAIN]

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "the example prints what it reads")]

use std::error::Error;
use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::value::RawValue;

/// Both kinds of line. A `RawValue` keeps every digit of the amounts.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow, default)]
    trades: Vec<&'a RawValue>,
    cursor: Option<String>,
    complete: Option<bool>,
    #[serde(rename = "tradeCount")]
    trade_count: Option<u64>,
    error: Option<LineError>,
}

#[derive(Deserialize)]
struct LineError {
    message: String,
    /// Whether going on at the cursor can help.
    #[serde(default = "yes")]
    retryable: bool,
}

/// Reasons of earlier servers say nothing of it.
fn yes() -> bool {
    true
}

/// Failures in a row, without a line between, that are borne.
const FAILURES_MAX: u32 = 8;

/// The server says that going on is of no use.
#[derive(Debug)]
struct Final(String);

impl fmt::Display for Final {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Final {}

struct Client {
    http: reqwest::Client,
    url: String,
    key: String,
    cursor: Option<String>,
}

impl Client {
    /// Reads one stream. True where the history is complete; else the cursor says where to go on.
    async fn read(&mut self) -> Result<bool, Box<dyn Error>> {
        let mut url = self.url.clone();
        if let Some(cursor) = &self.cursor {
            url = format!("{url}&cursor={cursor}");
        }
        let mut response = self.http.get(url).bearer_auth(&self.key).send().await?;
        if !response.status().is_success() {
            let (status, text) = (response.status(), response.text().await?);
            let passes = status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS;
            return Err(if passes { text.into() } else { Final(text).into() });
        }
        let mut buffer = Vec::new();
        while let Some(piece) = response.chunk().await? {
            buffer.extend_from_slice(&piece);
            while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = buffer.drain(..=end).collect();
                // A blank line keeps the connection alive and means nothing.
                if line.len() > 1 && self.take(&line)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn take(&mut self, line: &[u8]) -> Result<bool, Box<dyn Error>> {
        let line: Line<'_> = serde_json::from_slice(line)?;
        for trade in line.trades {
            println!("{trade}");
        }
        // Only now: what was not printed is asked for again.
        self.cursor = line.cursor.or(self.cursor.take());
        if let Some(count) = line.trade_count {
            eprintln!("{count} trades");
        }
        if let Some(error) = line.error {
            if !error.retryable {
                return Err(Final(error.message).into());
            }
            eprintln!("{}", error.message);
        }
        Ok(line.complete == Some(true))
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [url, key, wallet, chain @ ..] = args.as_slice() else {
        return Err("usage: stream URL KEY WALLET [CHAIN]".into());
    };
    let chain = chain.first().map_or("sol", String::as_str);
    rustls::crypto::ring::default_provider().install_default().map_err(|_| "no cryptography")?;
    let mut client = Client {
        http: reqwest::Client::builder().build()?,
        url: format!("{url}/v1/wallets/{wallet}/history?chain={chain}"),
        key: key.clone(),
        cursor: None,
    };
    let mut failures = 0;
    loop {
        let before = client.cursor.clone();
        match client.read().await {
            Ok(true) => return Ok(()),
            Ok(false) => failures = 0,
            Err(error) => {
                // A cut goes on at the last cursor, also while the server is started again.
                failures = if client.cursor == before { failures + 1 } else { 1 };
                if error.is::<Final>() || failures == FAILURES_MAX {
                    return Err(error);
                }
                eprintln!("cut: {error}");
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}
