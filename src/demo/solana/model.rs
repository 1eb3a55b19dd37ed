//! The chain: its transactions and blocks, and the rows that they must give.

use std::ops::Deref;
use std::sync::Arc;

use super::history::{Content, MAKING, Script, Spec, TradeSpec, WalletHistory, WalletPlan};
use super::keys::{KnownAccount, ModelKey, Role, account};
use super::maker::{self, Maker};
use super::pools::PoolProgram;
use super::tokens::DemoToken;
use super::tx::Tx;
use super::wire::{self, Envelope};
use super::{TradeKind, TxKind, noise, references, slots, trades};
use crate::demo::mix;
use crate::demo::state::ChainState;
use crate::demo::timeline::{Class, Spot};
use crate::domain::{Address, Height, Price, Side, TxId, Units, UnixSeconds};

const SIGNATURE_TAG: u64 = u64::from_le_bytes(*b"demosign");
const FILLER_TAG: u64 = u64::from_le_bytes(*b"demofill");

/// A deterministic Solana. Cheap to clone; clones share the chain.
#[derive(Debug, Clone)]
pub struct SolanaModel {
    state: Arc<ChainState<32, TradeKind>>,
}

impl Deref for SolanaModel {
    type Target = ChainState<32, TradeKind>;

    fn deref(&self) -> &Self::Target {
        &self.state
    }
}

/// One row that the wallet's history must have, by construction of the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrueTrade {
    pub signature: TxId,
    pub slot: Height,
    pub index: u32,
    pub time: UnixSeconds,
    pub side: Side,
    pub mint: Address,
    pub units: Units,
    /// Lamports; `None` where the transaction does not contain the value.
    pub native: Option<Units>,
    /// Common name of the venue, and its program.
    pub venue: &'static str,
    pub program: Address,
    /// Sells before buys within a transaction.
    pub leg: u16,
    pub kind: TradeKind,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ListEntry {
    pub(super) signature: [u8; 64],
    pub(super) number: u64,
    pub(super) spot: Spot,
    pub(super) failed: bool,
}

#[derive(Debug, Clone)]
pub(super) enum ListSubject {
    Wallet(Arc<WalletHistory>),
    TokenAccount(Arc<WalletHistory>, DemoToken),
}

impl SolanaModel {
    /// A chain generated from one seed; its head is `DEFAULT_HEAD` until it is set.
    pub fn new(seed: u64) -> Self {
        Self { state: Arc::new(ChainState::new(seed, slots::DEFAULT_HEAD, MAKING)) }
    }

    pub fn slot_at(time: UnixSeconds) -> Height {
        slots::at_time(u64::from(time.0))
    }

    pub fn time_of(slot: Height) -> UnixSeconds {
        UnixSeconds(u32::try_from(slots::time(slot)).unwrap_or(u32::MAX))
    }

    /// The number of slots in so many seconds, at least one.
    pub fn slots_in(seconds: u64) -> u64 {
        slots::in_seconds(seconds).max(1)
    }

    /// Whether the slot has a block; some were skipped.
    pub fn has_block(slot: Height) -> bool {
        slots::has_block(slot)
    }

    /// The price of one SOL, by which trades against dollars are made.
    pub fn price_at(&self, slot: Height) -> Price {
        Price(references::price(self.seed(), slot))
    }

    pub fn block_hash(&self, slot: Height) -> [u8; 32] {
        let fork = u64::from(self.fork(slot));
        account(self.seed(), Role::Blockhash, [slot, fork])
    }

    /// Registers a wallet whose address is derived from a name; returns the address.
    pub fn add_named(&self, name: &str, plan: WalletPlan) -> Address {
        let number = mix::digest(self.seed(), name.as_bytes());
        let key = account(self.seed(), Role::Signer, [number, 0]);
        self.add_wallet(Address::Solana(key), plan);
        Address::Solana(key)
    }

    /// The subject of a list of an address; accounts that are not wallets have none.
    pub(super) fn subject(&self, key: &ModelKey) -> Option<ListSubject> {
        if KnownAccount::of(key).is_some() || DemoToken::from_mint(key).is_some() {
            return None;
        }
        if let Some((tag, token)) = maker::open_token_account(self.seed(), key) {
            let owner = self.tagged(tag)?;
            return Some(ListSubject::TokenAccount(self.history(&owner), token));
        }
        Some(ListSubject::Wallet(self.history(key)))
    }

    pub(super) fn script<'a>(&self, wallet: &'a WalletHistory) -> Script<'a> {
        Script { seed: self.seed(), wallet }
    }

    pub(super) fn signature(&self, wallet: &ModelKey, number: u64, fork: u32) -> [u8; 64] {
        let parts: [&[u8]; 3] = [wallet, &number.to_le_bytes(), &fork.to_le_bytes()];
        let body: [u8; 48] = mix::joined(&parts);
        mix::seal(self.seed() ^ SIGNATURE_TAG, &body)
    }

    /// The signature of a transaction that concerns no wallet.
    pub(super) fn filler(&self, slot: Height, index: u32) -> [u8; 64] {
        let body: [u8; 12] = mix::joined(&[&slot.to_le_bytes(), &index.to_le_bytes()]);
        mix::seal(self.seed() ^ FILLER_TAG, &body)
    }

    /// The slot of such a signature, and its position there.
    pub(super) fn filler_place(&self, signature: &[u8; 64]) -> Option<(Height, u32)> {
        let body: [u8; 12] = mix::open(self.seed() ^ FILLER_TAG, signature)?;
        let (slot, index) = body.split_first_chunk::<8>()?;
        Some((Height::from_le_bytes(*slot), u32::from_le_bytes(*index.first_chunk::<4>()?)))
    }

    /// The transaction with a signature, if it is on the current chain.
    pub(super) fn find(
        &self,
        signature: &[u8; 64],
    ) -> Option<(Arc<WalletHistory>, u64, Spot, u32)> {
        let body: [u8; 48] = mix::open(self.seed() ^ SIGNATURE_TAG, signature)?;
        let (address, rest) = body.split_first_chunk::<32>()?;
        let (number, rest) = rest.split_first_chunk::<8>()?;
        let (fork, _) = rest.split_first_chunk::<4>()?;
        let (number, fork) = (u64::from_le_bytes(*number), u32::from_le_bytes(*fork));
        let wallet = self.history(address);
        let spot = wallet.spot(number)?;
        (self.fork(spot.height) == fork).then_some((wallet, number, spot, fork))
    }

    /// Writes the `getTransaction` result of a transaction.
    pub(super) fn write_transaction(
        &self,
        out: &mut Vec<u8>,
        wallet: &WalletHistory,
        number: u64,
        with_index: bool,
    ) {
        let Some(spot) = wallet.spot(number) else { return out.extend_from_slice(b"null") };
        let fork = self.fork(spot.height);
        let script = self.script(wallet);
        let spec = script.spec(number, fork);
        let time = slots::time(spot.height);
        let tx = build(script, &spec, time);
        let signers = tx.accounts.iter().filter(|account| account.signer).count();
        let mut signatures = vec![self.signature(&wallet.address, number, fork)];
        for other in 1..u64::try_from(signers).unwrap_or(1) {
            let mut bytes = [0; 64];
            mix::fill(mix::hash(self.seed(), &[wallet.tag, number, other]), &mut bytes);
            signatures.push(bytes);
        }
        let envelope = Envelope {
            slot: spot.height,
            time,
            index: with_index.then_some(spot.index),
            signatures: &signatures,
            recent_blockhash: self.block_hash(spot.height.saturating_sub(40)),
            lookup_table: account(self.seed(), Role::LookupTable, [number % 7, 0]),
        };
        wire::transaction(out, &tx, &envelope);
    }

    pub(super) fn spec(&self, wallet: &WalletHistory, number: u64, spot: Spot) -> Spec {
        self.script(wallet).spec(number, self.fork(spot.height))
    }

    /// Every transaction of the wallet up to the head, trades and others, newest first.
    pub fn signatures(&self, address: Address) -> impl Iterator<Item = TxId> + use<> {
        let (model, (wallet, top)) = (self.clone(), self.to_head(address));
        (0..top).rev().filter_map(move |number| {
            let fork = model.fork(wallet.spot(number)?.height);
            Some(TxId::solana(&model.signature(&wallet.address, number, fork)))
        })
    }

    pub fn kind_of(&self, signature: &TxId) -> Option<TxKind> {
        let TxId::Solana(signature) = signature else { return None };
        let (wallet, number, spot, _) = self.find(&signature.to_bytes())?;
        Some(match self.spec(&wallet, number, spot).content {
            Content::Trade(trade) => TxKind::Trade(trade.kind),
            Content::Failed(_) => TxKind::Failed,
            Content::Funding | Content::Noise(..) => TxKind::Noise,
        })
    }

    /// Every row of the wallet up to the head, newest first, in the service's order.
    pub fn truth(&self, address: Address) -> impl Iterator<Item = TrueTrade> + use<> {
        let (model, (wallet, top)) = (self.clone(), self.to_head(address));
        (0..top).rev().flat_map(move |number| model.rows(&wallet, number))
    }

    fn rows(&self, wallet: &WalletHistory, number: u64) -> Vec<TrueTrade> {
        let (Class::Trade(_), Some(spot)) = (wallet.class(number), wallet.spot(number)) else {
            return Vec::new();
        };
        let fork = self.fork(spot.height);
        let Content::Trade(trade) = self.script(wallet).spec(number, fork).content else {
            return Vec::new();
        };
        let signature = TxId::solana(&self.signature(&wallet.address, number, fork));
        let row = |side, token: DemoToken, units: u64, venue: KnownAccount, leg| TrueTrade {
            signature,
            slot: spot.height,
            index: spot.index,
            time: Self::time_of(spot.height),
            side,
            mint: Address::Solana(token.mint()),
            units: Units::from(units),
            native: trade.native().map(Units::from),
            venue: venue.venue(),
            program: Address::Solana(venue.key()),
            leg,
            kind: trade.kind,
        };
        let coin = |leg| row(trade.side, trade.token, trade.units, trade.token_venue(), leg);
        let Some(usdc) = trade.usdc else { return vec![coin(0)] };
        // USDC is at the other end of the route.
        let venue = trade.hop_venue(trade.side == Side::Buy);
        let dollars = |side, leg| row(side, DemoToken::Usdc, usdc.units(), venue, leg);
        match trade.side {
            Side::Sell => vec![coin(0), dollars(Side::Buy, 1)],
            Side::Buy => vec![dollars(Side::Sell, 0), coin(1)],
        }
    }
}

/// Builds the transaction that a [`Spec`] describes.
pub(super) fn build<'a>(script: Script<'a>, spec: &'a Spec, time: u64) -> Tx {
    let tx = Tx::new(script.seed, spec.version);
    let dice = script.dice(spec.number, spec.fork, 6);
    let mut maker = Maker { script, spec, time, tx, dice };
    match &spec.content {
        Content::Funding => noise::funding(&mut maker),
        Content::Failed(n) => noise::failed(&mut maker, *n),
        Content::Noise(kind, n) => noise::make(&mut maker, *kind, *n),
        Content::Trade(trade) if trade.kind == TradeKind::Settlement => {
            trades::settlement(&mut maker, trade);
        }
        Content::Trade(trade) if trade.kind == TradeKind::LimitFill => {
            trades::limit_fill(&mut maker, trade);
        }
        Content::Trade(trade) => signed_trade(&mut maker, trade),
    }
    maker.tx
}

/// A trade that the wallet signs itself.
fn signed_trade(maker: &mut Maker<'_>, trade: &TradeSpec) {
    let wallet = maker.wallet();
    let price = maker.dice.range(1_000, 2_000_000);
    maker.tx.budget(price);
    let tip_first = maker.dice.percent(50);
    if tip_first {
        maker.tip(wallet, trade);
    }
    let coin = if trade.kind == TradeKind::PumpCreate {
        trades::create_coin(maker, wallet, trade)
    } else {
        let coin = maker.token(trade.token, trade.before);
        if trade.before.is_none() {
            maker.tx.create_associated(wallet, coin, wallet);
        }
        coin
    };
    match trade.kind {
        TradeKind::PumpFun | TradeKind::PumpCreate => trades::curve(maker, wallet, coin, trade),
        TradeKind::PumpSwap => trades::pump_swap(maker, wallet, coin, trade),
        TradeKind::RaydiumV4 => maker.direct(wallet, coin, trade, PoolProgram::RaydiumV4),
        TradeKind::Whirlpool => maker.direct(wallet, coin, trade, PoolProgram::Whirlpool),
        TradeKind::JupiterSol | TradeKind::JupiterUsdc => {
            trades::jupiter(maker, wallet, coin, trade);
        }
        TradeKind::Settlement | TradeKind::LimitFill => {}
    }
    if trade.close {
        maker.tx.close(coin, wallet, wallet);
    }
    maker.bot_fee(wallet, trade);
    if !tip_first {
        maker.tip(wallet, trade);
    }
    maker.pay_with_priority();
}
