//! Corrupts input, from a seed: what nodes, proxies and attackers may send.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use blotter::rpc::{Request, Response, Transport, TransportError};
use futures_util::future::BoxFuture;

/// splitmix64
#[derive(Debug, Clone)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.roll() % u64::try_from(bound.max(1)).unwrap()).unwrap()
    }
}

/// Numbers and texts that stand where a small number is expected.
const ODD: [&[u8]; 14] = [
    b"-1",
    b"0",
    b"1e400",
    b"-0.0",
    b"18446744073709551616",
    b"99999999999999999999999999999999999999999999999999999999999999999999999999999999",
    b"9223372036854775807",
    b"null",
    b"\"\"",
    b"\"-0x1\"",
    b"\"0x\"",
    b"\"0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff\"",
    b"\"\\u0000\\u202e\"",
    b"[]",
];
const LONGEST: usize = 1 << 20;

/// The range of a number or of a text's inside that lies at or behind a place.
fn token(bytes: &[u8], from: usize) -> std::ops::Range<usize> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    let start = (from..bytes.len()).find(|at| is_word(&bytes[*at])).unwrap_or(bytes.len());
    let length = bytes[start..].iter().take_while(|byte| is_word(byte)).count();
    start..start + length
}

/// One to four changes: a byte, a cut, a piece twice, a number beyond range, nesting.
pub(crate) fn mangle(bytes: &mut Vec<u8>, dice: &mut Dice) {
    for _ in 0..=dice.below(4) {
        let (from, to) = (dice.below(bytes.len() + 1), dice.below(bytes.len() + 1));
        let (from, to) = (from.min(to), from.max(to).min(from.min(to) + 4096));
        match dice.below(10) {
            0 => bytes.truncate(from),
            1 => drop(bytes.drain(from..to)),
            2 => {
                let piece = bytes[from..to].to_vec();
                bytes.splice(from..from, piece);
            }
            3 => drop(bytes.splice(from..from, b"[{\"a\":".repeat(200))),
            4 => drop(bytes.splice(from..to, [0xff, 0, 0x80])),
            5 => {
                if let Some(byte) = bytes.get_mut(from) {
                    *byte ^= 1 << dice.below(8);
                }
            }
            // What stays JSON goes deepest.
            6 => {
                let range = token(bytes, from);
                bytes.splice(range, ODD[dice.below(ODD.len())].iter().copied());
            }
            7 => {
                let (one, other) = (token(bytes, from), token(bytes, to));
                let word = bytes[other].to_vec();
                bytes.splice(one, word);
            }
            _ => {
                let range = token(bytes, from);
                if let Some(byte) = bytes[range].last_mut() {
                    *byte = b"0123456789abcdef"[dice.below(16)];
                }
            }
        }
        bytes.truncate(LONGEST);
    }
}

/// Wraps a transport and corrupts some of its answers.
#[derive(Debug)]
pub(crate) struct Mangled {
    pub(crate) inner: Arc<dyn Transport>,
    pub(crate) dice: Mutex<Dice>,
    /// How many of a hundred answers are corrupted.
    pub(crate) share: usize,
    /// How many were.
    pub(crate) changed: AtomicU64,
}

impl Mangled {
    pub(crate) fn new(inner: Arc<dyn Transport>, seed: u64, share: usize) -> Arc<Self> {
        let (dice, changed) = (Mutex::new(Dice(seed)), AtomicU64::default());
        Arc::new(Self { inner, dice, share, changed })
    }
}

impl Transport for Mangled {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Response, TransportError>> {
        Box::pin(async move {
            let mut response = self.inner.send(request).await?;
            let mut dice = self.dice.lock().unwrap();
            if dice.below(100) < self.share {
                let mut body = response.body.to_vec();
                mangle(&mut body, &mut dice);
                response.body = body.into();
                self.changed.fetch_add(1, Ordering::Relaxed);
            }
            Ok(response)
        })
    }
}
