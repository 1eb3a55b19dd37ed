//! Nets the wallet's movements in a group of instructions, without rent, tips and other transfers.

use std::ops::Range;

use super::action::Action;
use super::balances::{ACCOUNT_OVERHEAD, Asset, Flow, Ledger, Means};
use super::scene::Scene;
use crate::registry::{AccountKind, ProgramKind};

/// An account's data grows by at most this many bytes in one instruction.
const GROWTH_MAX: u64 = 10_240;
/// Rent in lamports per byte, if the transaction does not reveal it: the rate until 2026, and the
/// steps by which SIMD-0437 lowers it.
const RENT_RATES: [u64; 6] = [6_960, 6_333, 5_080, 2_575, 1_322, 696];

/// What was given and received, per asset.
#[derive(Debug, Clone, Default)]
pub(super) struct Net {
    /// Lamports; positive where the wallet received them.
    pub(super) native: i128,
    /// By index of the mint. Positive if the wallet received them.
    pub(super) tokens: Vec<(usize, i128)>,
    /// The wallet's shares of a pool were minted or burnt.
    pub(super) shares: bool,
    /// An unknown number of lamports moved too.
    pub(super) unvalued: bool,
    /// Mints of which the wallet gave more than moved, by an unknown amount.
    open: Vec<usize>,
}

impl Net {
    pub(super) fn add(&mut self, asset: Asset, amount: i128) {
        match asset {
            Asset::Native => self.native += amount,
            Asset::Token(mint) => match self.tokens.iter_mut().find(|(known, _)| *known == mint) {
                Some((_, sum)) => *sum += amount,
                None => self.tokens.push((mint, amount)),
            },
        }
    }

    pub(super) fn get(&self, asset: Asset) -> i128 {
        match asset {
            Asset::Native => self.native,
            Asset::Token(mint) => {
                self.tokens.iter().find(|(known, _)| *known == mint).map_or(0, |(_, sum)| *sum)
            }
        }
    }

    /// Every asset that moved, with its sum.
    pub(super) fn assets(&self) -> impl Iterator<Item = (Asset, i128)> {
        let tokens = self.tokens.iter().map(|(mint, sum)| (Asset::Token(*mint), *sum));
        tokens.chain([(Asset::Native, self.native)]).filter(|(_, sum)| *sum != 0)
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (asset, sum) in other.assets() {
            self.add(asset, sum);
        }
        self.shares |= other.shares;
        self.unvalued |= other.unvalued;
        self.open.extend(&other.open);
    }

    /// Marks that the wallet gave more of an asset than is known.
    pub(super) fn leave_open(&mut self, asset: Asset) {
        match asset {
            Asset::Native => self.unvalued = true,
            Asset::Token(mint) => self.open.push(mint),
        }
    }

    pub(super) fn is_open(&self, asset: Asset) -> bool {
        match asset {
            Asset::Native => self.unvalued,
            Asset::Token(mint) => self.open.contains(&mint),
        }
    }

    pub(super) fn gains(&self) -> bool {
        self.unvalued || self.assets().any(|(_, sum)| sum > 0)
    }

    pub(super) fn losses(&self) -> bool {
        self.assets().any(|(_, sum)| sum < 0)
    }

    pub(super) fn is_swap(&self) -> bool {
        !self.shares && self.gains() && self.losses()
    }
}

impl Scene<'_> {
    /// What the wallet's accounts gave and received in these instructions.
    pub(super) fn net(&self, ledger: &Ledger, range: &Range<usize>) -> Net {
        let mut net = Net::default();
        for flow in ledger.flows.iter().filter(|flow| range.contains(&flow.instruction)) {
            let (out, into) = (ledger.is_own(flow.from), ledger.is_own(flow.to));
            if out == into || self.moves_liquidity(flow.instruction) {
                continue;
            }
            if matches!(flow.means, Means::Mint | Means::Burn) {
                net.shares |= self.is_share(flow.instruction);
            }
            let amount = self.swapped(ledger, flow, out);
            net.add(flow.asset, if out { -amount } else { amount });
        }
        net.native -= returned_rent(ledger, range, |_| true);
        if !net.gains() {
            net.merge(&self.launched(ledger, range));
        }
        net
    }

    /// Tokens that were minted to the wallet earlier and that it handed to a curve. If the curve
    /// gave some of them back, that is the first purchase of a launch, and the supply is not a side
    /// of it.
    fn launched(&self, ledger: &Ledger, range: &Range<usize>) -> Net {
        let mut supply = minted_before(ledger, range);
        for (mint, units) in &mut supply.tokens {
            let dealt = self.dealt_with_curves(ledger, range, Asset::Token(*mint));
            *units = dealt.map_or(0, |handed| handed.min(*units));
        }
        supply
    }

    /// The amount of an asset that the wallet gave to curves, if they returned some of it and no
    /// other token.
    fn dealt_with_curves(
        &self,
        ledger: &Ledger,
        range: &Range<usize>,
        asset: Asset,
    ) -> Option<i128> {
        let at_curve = |flow: &&Flow| {
            let venue = || self.leaf(flow.instruction).map(|(_, program)| program.kind);
            let inside = flow.asset != Asset::Native && range.contains(&flow.instruction);
            inside && venue() == Some(ProgramKind::Curve)
        };
        let (mut gave, mut got) = (0, false);
        for flow in ledger.flows.iter().filter(at_curve) {
            match (ledger.is_own(flow.from), ledger.is_own(flow.to)) {
                (true, false) if flow.asset == asset => gave += i128::from(flow.amount),
                (false, true) if flow.asset == asset => got = true,
                (false, true) => return None,
                (true, _) | (false, false) => {}
            }
        }
        got.then_some(gave)
    }

    /// The part of a flow between the wallet and others that belongs to the swap.
    fn swapped(&self, ledger: &Ledger, flow: &Flow, out: bool) -> i128 {
        let amount = i128::from(if out { flow.amount } else { flow.received });
        match flow.means {
            Means::Create => beyond_rent(ledger, flow, out),
            Means::Pay if is_for_room(ledger, flow) => beyond_rent(ledger, flow, out),
            Means::Pay if out && self.is_side_payment(ledger, flow) => 0,
            Means::Pay if !out && self.is_funding(ledger, flow) => 0,
            Means::Transfer if out && self.is_wrapped_fee(ledger, flow) => 0,
            Means::Transfer if out && self.is_sponsors_fee(ledger, flow) => 0,
            Means::Pay | Means::Transfer | Means::Mint | Means::Burn => amount,
            Means::Close { rent } => amount - i128::from(rent),
        }
    }

    /// Whether lamports that the wallet pays inside a swap's instruction are not part of the swap.
    fn is_side_payment(&self, ledger: &Ledger, flow: &Flow) -> bool {
        let Some(to) = flow.to else { return false };
        let key = self.tx.key(to);
        match key.and_then(|key| self.tables.account(key)) {
            Some(AccountKind::Tip | AccountKind::BotFee) => return true,
            Some(AccountKind::ProtocolFee) => return false,
            None => {}
        }
        if ledger.account(to).mint.is_some() {
            return false;
        }
        if self.is_rent(ledger, flow, to) {
            return true;
        }
        let venue = self.leaf(flow.instruction).map(|(call, _)| call);
        if let Some(call) = venue.or_else(|| self.unlisted(flow.instruction)) {
            // In a venue's call that moves no token, the payment maintains the venue's accounts.
            let subtree = self.tx.subtree(call);
            return !ledger.flows.iter().any(|other| {
                subtree.contains(&other.instruction)
                    && matches!(other.means, Means::Transfer | Means::Mint | Means::Burn)
            });
        }
        // A payment in a router's own frame is a fee outside the swap, unless its receiver passes
        // the lamports on to a venue.
        !self.is_staked(ledger, flow.instruction) && !self.passes_on(ledger, flow.instruction, to)
    }

    /// Whether wrapped SOL that the wallet gives is the fee of a bot's router, in a table or not:
    /// the router itself sends it, venues exchange at least twice as much as it sends in all with
    /// the wallet's own accounts in the same group, and nothing comes for it: neither from the
    /// router, nor from a call outside of venues that took nothing, nor at a venue of the receiver.
    fn is_wrapped_fee(&self, ledger: &Ledger, flow: &Flow) -> bool {
        let frame = self.parent(flow);
        let is_native =
            flow.asset == Asset::Native && frame.is_some_and(|frame| self.is_bots(frame));
        let Some(to) = flow.to.filter(|_| is_native) else { return false };
        let Some(group) = self.groups.iter().find(|group| group.contains(&flow.instruction)) else {
            return false;
        };
        let crosses = |other: &&Flow| {
            let inside = group.contains(&other.instruction);
            inside && ledger.is_own(other.from) != ledger.is_own(other.to)
        };
        let crossing = || ledger.flows.iter().filter(crosses);
        let gives = |other: &Flow, call| ledger.is_own(other.from) && self.parent(other) == call;
        let is_given = |other: &Flow| {
            let moves = matches!(other.means, Means::Pay | Means::Transfer | Means::Mint);
            let call = self.parent(other);
            let took = || call != frame && crossing().any(|one| gives(one, call));
            let comes = moves && ledger.is_own(other.to);
            comes && self.leaf(other.instruction).is_none() && !took()
        };
        let sum = |counts: &dyn Fn(&Flow) -> bool| -> i128 {
            let native = crossing().filter(|other| other.asset == Asset::Native && counts(other));
            native.map(|other| i128::from(other.amount)).sum()
        };
        let traded = sum(&|other| self.leaf(other.instruction).is_some());
        let sent = sum(&|other| other.means == Means::Transfer && gives(other, frame));
        sent.saturating_mul(2) <= traded
            && !crossing().any(is_given)
            && !self.passes_on(ledger, flow.instruction, to)
    }

    /// Whether a call is that of a bot's router, in a table or not.
    pub(super) fn is_bots(&self, frame: usize) -> bool {
        match self.kind(frame) {
            Some(kind) => kind == ProgramKind::Router,
            // What another program calls may be a venue.
            None => self.instruction(frame).is_some_and(|call| call.parent.is_none()),
        }
    }

    /// Whether a step of an aggregator's route stakes what is paid in this instruction: it mints
    /// tokens for it. Where it burns some too, the payment is the rent of what they become.
    fn is_staked(&self, ledger: &Ledger, at: usize) -> bool {
        let step = self.conversion(at).filter(|call| self.is_routed(*call));
        let Some(step) = step.map(|call| self.tx.subtree(call)) else { return false };
        let any = |means: Means| {
            let mut inside = ledger.flows.iter().filter(|flow| step.contains(&flow.instruction));
            inside.any(|flow| flow.means == means)
        };
        any(Means::Mint) && !any(Means::Burn)
    }

    /// Whether an account passes lamports on to a venue or wraps them, also by way of others in the
    /// group of the instruction that pays it.
    fn passes_on(&self, ledger: &Ledger, paid_at: usize, account: u8) -> bool {
        let group = self.groups.iter().find(|group| group.contains(&paid_at));
        let (mut reached, mut next) = (vec![account], 0);
        while let Some(from) = reached.get(next).copied() {
            next += 1;
            if self.buys_for_itself(ledger, from) {
                continue;
            }
            let spends = |flow: &&Flow| {
                let pays = flow.asset == Asset::Native && flow.from == Some(from);
                pays && flow.amount > 0 && !is_bare_rent(ledger, flow)
            };
            for flow in ledger.flows.iter().filter(spends) {
                let wraps = flow.to.is_some_and(|to| ledger.account(to).wrapped);
                if wraps || self.leaf(flow.instruction).is_some() {
                    return true;
                }
                let inside = group.is_some_and(|group| group.contains(&flow.instruction));
                let other = flow.to.filter(|to| inside && !ledger.is_own(Some(*to)));
                reached.extend(other.filter(|to| !reached.contains(to)));
            }
        }
        false
    }

    /// Whether an aggregator sends more of a swap's proceeds to a receiver that its caller names
    /// than it leaves to the wallet.
    pub(super) fn sends_on(&self, ledger: &Ledger, net: &Net, ranges: &[Range<usize>]) -> bool {
        let inside = |flow: &&Flow| ranges.iter().any(|range| range.contains(&flow.instruction));
        let native =
            || ledger.flows.iter().filter(|flow| flow.asset == Asset::Native).filter(inside);
        let got = |flow: &&Flow| !ledger.is_own(flow.from) && ledger.is_own(flow.to);
        let Some(last) = native().filter(got).map(|flow| flow.instruction).max() else {
            return false;
        };
        let by_aggregator = |flow: &Flow| {
            let parent = self.parent(flow).and_then(|parent| self.kind(parent));
            parent == Some(ProgramKind::Aggregator)
        };
        // Accounts of the tables receive tips and fees, even of swaps of dust.
        let is_receiver = |to: u8| {
            let known = self.tx.key(to).and_then(|key| self.tables.account(key));
            known.is_none()
        };
        let is_sent = |flow: &&Flow| {
            flow.instruction > last
                && flow.means == Means::Pay
                && ledger.is_own(flow.from)
                && !ledger.is_own(flow.to)
                && by_aggregator(flow)
                && flow.to.is_some_and(|to| is_receiver(to) && !self.is_rent(ledger, flow, to))
                && self.is_side_payment(ledger, flow)
        };
        let sent: Vec<&Flow> = native().filter(is_sent).collect();
        // Who paid the rent of the wallet's accounts may get it back.
        let lends = |flow: &&Flow| {
            let is_rent = ledger.is_own(flow.to) && is_bare_rent(ledger, flow);
            is_rent && sent.iter().any(|paid| paid.to == flow.from)
        };
        let lent: i128 = ledger.flows.iter().filter(lends).map(|f| i128::from(f.amount)).sum();
        let sent: i128 = sent.iter().map(|flow| i128::from(flow.amount)).sum();
        net.native > 0 && sent.saturating_sub(lent).saturating_mul(2) > net.native
    }

    /// Whether the wallet keeps less than half of what venues gave it of the only token that it
    /// got: most of it went on to others, such as a bridge or a payment.
    pub(super) fn keeps_little(&self, ledger: &Ledger, net: &Net, ranges: &[Range<usize>]) -> bool {
        let mut got = net.assets().filter(|(_, sum)| *sum > 0);
        let (Some((asset, kept)), None) = (got.next(), got.next()) else { return false };
        let of_venue = |flow: &&Flow| {
            let at = flow.instruction;
            let in_venue = || self.leaf(at).is_some() || self.unlisted(at).is_some();
            let is_inside = ranges.iter().any(|range| range.contains(&at));
            flow.asset == asset && is_inside && in_venue() && !self.moves_liquidity(at)
        };
        let given = ledger.flows.iter().filter(of_venue).map(|flow| {
            match (ledger.is_own(flow.from), ledger.is_own(flow.to)) {
                (true, false) => -i128::from(flow.amount),
                (false, true) => i128::from(flow.received),
                (true, true) | (false, false) => 0,
            }
        });
        asset != Asset::Native && kept.saturating_mul(2) < given.sum::<i128>()
    }

    /// Whether lamports pay an account's rent.
    pub(super) fn is_rent(&self, ledger: &Ledger, flow: &Flow, to: u8) -> bool {
        if is_for_room(ledger, flow) {
            return true;
        }
        // A mint account never spends its lamports.
        if self.tx.key(to).is_some_and(|key| ledger.mints.contains(key)) {
            return true;
        }
        let known = ledger.rent_rate.as_ref();
        if flow.fresh {
            // A program may fund the accounts that it creates at an older, higher rate.
            let mut fixed = RENT_RATES.iter().chain(known);
            return fixed.any(|rate| flow.amount == ACCOUNT_OVERHEAD * rate);
        }
        let room =
            |rate: &u64| flow.amount.is_multiple_of(*rate) && flow.amount <= GROWTH_MAX * rate;
        let mut grown = RENT_RATES.iter().chain(known);
        grown.any(|rate| room(rate) && self.grows(ledger, flow, to, *rate))
    }

    /// Whether an account may grow by rent at this rate: it held nothing but rent, or it pays the
    /// price of the wallet's sale without an instruction, or receives a larger one in the same call.
    fn grows(&self, ledger: &Ledger, flow: &Flow, to: u8, rate: u64) -> bool {
        let (before, _) = self.tx.lamports.get(usize::from(to)).copied().unwrap_or_default();
        // An account without data, such as a vault of fees, does not grow.
        let has_data = !RENT_RATES.iter().any(|rate| before == ACCOUNT_OVERHEAD * rate);
        let holds_rent = before.is_multiple_of(rate) && before > ACCOUNT_OVERHEAD * rate;
        let residue = ledger.residue.get(usize::from(to)).copied().unwrap_or(0);
        // Next to a purchase the curve may pay for the sale of another account.
        let pays = residue < 0 && self.takes_tokens(ledger, flow.instruction);
        if (has_data && holds_rent) || pays {
            return true;
        }
        // A fee may be a multiple of a rate by chance.
        ledger.rent_rate.is_none_or(|known| known == rate)
            && ledger.flows.iter().any(|other| {
                other.means == Means::Pay
                    && other.to == Some(to)
                    && other.amount > flow.amount
                    && self.parent(other) == self.parent(flow)
            })
    }

    /// Whether the wallet gives tokens in the venue's call that contains an instruction.
    fn takes_tokens(&self, ledger: &Ledger, at: usize) -> bool {
        let Some((call, _)) = self.leaf(at) else { return false };
        let call = self.tx.subtree(call);
        let mut inside = ledger.flows.iter().filter(|flow| call.contains(&flow.instruction));
        inside.any(|flow| flow.asset != Asset::Native && ledger.is_own(flow.from))
    }

    pub(super) fn parent(&self, flow: &Flow) -> Option<usize> {
        self.instruction(flow.instruction).and_then(|instruction| instruction.parent)
    }

    /// Whether a mint or burn in this instruction creates or redeems a share of a pool.
    fn is_share(&self, at: usize) -> bool {
        !self.is_routed(at)
            && self.leaf(at).is_none_or(|(_, program)| program.kind != ProgramKind::Curve)
    }

    /// Lamports that programs gave the wallet from their own accounts, which needs no instruction:
    /// a curve's price, or the remainder of a closed account.
    pub(super) fn uninstructed(&self, ledger: &Ledger) -> i128 {
        let (got, refunds) = self.residues(ledger);
        (got - refunds).max(0)
    }

    /// The accounts that paid without an instruction and still hold lamports, with the amounts. Of
    /// the wallet's, only the wallet itself.
    pub(super) fn payers(&self, ledger: &Ledger) -> Vec<(u8, i128)> {
        let after = self.tx.lamports.iter().map(|(_, after)| *after);
        let accounts = (0..=u8::MAX).zip(&ledger.residue).zip(after);
        let paid = accounts.filter(|((_, residue), after)| **residue < 0 && *after > 0);
        let paid = paid.map(|((account, residue), _)| (account, -*residue));
        let counts = |account: u8| ledger.wallet == Some(account) || !ledger.is_own(Some(account));
        paid.filter(|(account, _)| counts(*account)).collect()
    }

    /// How much of these lamports closed accounts returned.
    pub(super) fn refunded(&self, ledger: &Ledger) -> i128 {
        let (got, refunds) = self.residues(ledger);
        got.min(refunds).max(0)
    }

    /// Lamports that moved without an instruction: those that the wallet's accounts received, and
    /// those of others that were emptied. What an own account gave the wallet cancels, such as rent
    /// that the Token program gives back.
    fn residues(&self, ledger: &Ledger) -> (i128, i128) {
        let mut taken = Vec::new();
        let own = ledger.accounts.iter().zip(&ledger.residue).filter(|(account, _)| account.own);
        let received: i128 = own.map(|(_, residue)| *residue).sum();
        let refunds: i128 = (0..=u8::MAX)
            .zip(&ledger.residue)
            .zip(&self.tx.lamports)
            .filter(|((_, residue), (_, after))| **residue < 0 && *after == 0)
            .filter(|((closed, _), _)| !ledger.is_own(Some(*closed)))
            .filter(|((closed, residue), _)| {
                self.may_refund(ledger, (*closed, -**residue), &mut taken)
            })
            .map(|((_, residue), _)| -*residue)
            .sum();
        (received, refunds)
    }

    /// Whether a closed account's remainder may have come to the wallet. A program moves lamports
    /// only between accounts that its call was given; another of them that gained exactly as many
    /// got the remainder. That one is then `taken` and accounts for no second closed account.
    fn may_refund(
        &self,
        ledger: &Ledger,
        (closed, lamports): (u8, i128),
        taken: &mut Vec<u8>,
    ) -> bool {
        let calls = self.tx.instructions.iter().filter(|call| call.action == Action::Call);
        let given: Vec<&[u8]> = calls
            .map(|call| self.tx.accounts_of(call))
            .filter(|given| given.contains(&closed))
            .collect();
        // `jsonParsed` lists no accounts for calls of some programs.
        if given.is_empty() {
            return true;
        }
        let is_given = |account: u8| given.iter().any(|listed| listed.contains(&account));
        let others = (0..=u8::MAX)
            .zip(&ledger.residue)
            .filter(|(account, residue)| ledger.wallet != Some(*account) && **residue == lamports);
        let mut others = others.map(|(other, _)| other);
        let other = others.find(|other| !taken.contains(other) && is_given(*other));
        taken.extend(other);
        other.is_none() && ledger.wallet.is_some_and(is_given)
    }
}

/// Tokens that were minted to the wallet before these instructions.
fn minted_before(ledger: &Ledger, range: &Range<usize>) -> Net {
    let mut minted = Net::default();
    for flow in ledger.flows.iter().take_while(|flow| flow.instruction < range.start) {
        if flow.means == Means::Mint && ledger.is_own(flow.to) {
            minted.add(flow.asset, i128::from(flow.received));
        }
    }
    minted
}

/// Rent of wrapped accounts that the wallet paid, that another account received when it closed
/// them, and that this account paid back to the wallet. Only for accounts that `counts` accepts.
pub(super) fn returned_rent(
    ledger: &Ledger,
    range: &Range<usize>,
    counts: impl Fn(Option<u8>) -> bool,
) -> i128 {
    let inside = || ledger.flows.iter().filter(|flow| range.contains(&flow.instruction));
    let amount = |flow: &Flow| i128::from(flow.amount);
    // Receiver of the rent, the amount, and the instruction of the close.
    let mut closers: Vec<(Option<u8>, i128, usize)> = Vec::new();
    for flow in inside() {
        let Means::Close { rent } = flow.means else { continue };
        let wrapped = flow.from.is_some_and(|from| ledger.account(from).wrapped);
        if !wrapped || ledger.is_own(flow.to) || !counts(flow.from) {
            continue;
        }
        let room = ledger.flows.iter().filter(|paid| {
            ledger.is_own(paid.from)
                && paid.to == flow.from
                && (paid.means == Means::Create || is_for_room(ledger, paid))
        });
        let rent = room.map(amount).sum::<i128>().min(i128::from(rent));
        match closers.iter_mut().find(|(closer, ..)| *closer == flow.to) {
            Some((_, sum, _)) => *sum += rent,
            None => closers.push((flow.to, rent, flow.instruction)),
        }
    }
    let returned = closers.into_iter().map(|(closer, rent, since)| {
        let paid = inside().filter(|paid| {
            paid.instruction > since
                && paid.means == Means::Pay
                && paid.from == closer
                && ledger.is_own(paid.to)
        });
        paid.map(amount).sum::<i128>().min(rent)
    });
    returned.sum()
}

/// What the wallet funds an account with beyond its rent: SOL that is wrapped. Its rent is what came
/// first since it was last closed.
pub(super) fn beyond_rent(ledger: &Ledger, flow: &Flow, out: bool) -> i128 {
    let account = flow.to.map(|to| ledger.account(to));
    let Some(account) = account.filter(|account| account.wrapped && out) else { return 0 };
    let before = ledger.flows.iter().rev().skip_while(|paid| paid.instruction >= flow.instruction);
    let closes = |paid: &&Flow| matches!(paid.means, Means::Close { .. }) && paid.from == flow.to;
    let paid = before.take_while(|paid| !closes(paid)).filter(|paid| paid.to == flow.to);
    let paid = paid.fold(0, |sum: u64, paid| sum.saturating_add(paid.amount));
    i128::from(flow.amount.saturating_sub(account.rent.saturating_sub(paid)))
}

/// Whether a payment makes an account with nothing but its rent.
fn is_bare_rent(ledger: &Ledger, flow: &Flow) -> bool {
    let makes = flow.means == Means::Create || is_for_room(ledger, flow);
    let account = flow.to.map(|to| ledger.account(to)).filter(|_| makes);
    account.is_some_and(|account| !account.wrapped || flow.amount <= account.rent)
}

/// Whether a payment funds an account whose data is allocated later in the transaction.
pub(super) fn is_for_room(ledger: &Ledger, flow: &Flow) -> bool {
    let allocated = flow.to.and_then(|to| ledger.account(to).allocated);
    allocated.is_some_and(|at| at > flow.instruction)
}
