//! Generated trades, as plain fields: what the stores that are compared are filled with.
//! It names nothing of the program, so that a peer can be built without it.

/// Five digits of base58.
const LIMB: u64 = 656_356_768;
const MINTS: u64 = 5_000;
pub(crate) const VENUES: [&str; 4] = ["Raydium", "Orca", "Meteora", "Pump.fun"];

pub(crate) struct RawTrade<'a> {
    pub(crate) time: u32,
    pub(crate) height: u64,
    /// As the store keeps it: 18 limbs of five base58 digits.
    pub(crate) tx: [u8; 72],
    pub(crate) sell: bool,
    pub(crate) mint: [u8; 32],
    pub(crate) units: u64,
    pub(crate) native: u64,
    pub(crate) venue: &'a str,
}

/// Trade `at` of a wallet, counted from the newest: a pure function, so nothing has to be kept.
pub(crate) fn raw_trade(wallet: u64, at: u64, trades: u64) -> RawTrade<'static> {
    let mut seed = wallet << 32 | at;
    let mut next = || splitmix(&mut seed);
    let height = (trades - at) * 150 + next() % 100;
    let mut tx = [0; 72];
    for (at, limb) in tx.chunks_mut(4).enumerate() {
        // The first one of 64 bytes is no larger.
        let bound = if at == 0 { 17_000 } else { LIMB };
        limb.copy_from_slice(&u32::try_from(next() % bound).unwrap().to_be_bytes());
    }
    // Few mints have most of the trades.
    let number = (next() % MINTS).min(next() % MINTS).min(next() % MINTS);
    let mut mint = [7; 32];
    mint[..8].copy_from_slice(&number.to_be_bytes());
    RawTrade {
        time: u32::try_from(1_600_000_000 + height * 2 / 5).unwrap(),
        height,
        tx,
        sell: !next().is_multiple_of(2),
        mint,
        units: next() >> (next() % 32),
        native: next() >> (24 + next() % 20),
        venue: VENUES[usize::try_from(next() % 4).unwrap()],
    }
}

/// The lowest and the highest height of the trades of a chunk, with the gap below the last.
pub(crate) fn heights(from: u64, end: u64, trades: u64) -> (u64, u64) {
    let low = if end == trades { 0 } else { (trades - end) * 150 + 100 };
    (low, (trades - from) * 150 + 99)
}

pub(crate) fn address(wallet: u64) -> [u8; 32] {
    let mut bytes = [3; 32];
    bytes[..8].copy_from_slice(&wallet.to_be_bytes());
    bytes
}

pub(crate) fn splitmix(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *seed;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
