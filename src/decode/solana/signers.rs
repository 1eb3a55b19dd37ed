//! What other signers take or give that is no part of the wallet's swaps: a gas sponsor its fee,
//! and wallets that trade in the same instructions the lamports for one another's purchases.

use super::PLATFORM_FEE_PART_MIN;
use super::balances::{Asset, Flow, Ledger};
use super::scene::Scene;
use super::transaction::TokenAccount;

impl Scene<'_> {
    /// Whether a transfer goes to the account that paid the network's fee for the wallet.
    pub(super) fn pays_sponsor(&self, ledger: &Ledger, flow: &Flow) -> bool {
        // The first key pays the fee.
        let payer = self.tx.key(0).filter(|_| ledger.wallet != Some(0));
        let Some(payer) = payer else { return false };
        let to = self.tx.tokens.iter().find(|token| Some(token.account) == flow.to);
        to.is_some_and(|to| [to.owner_before, to.owner_after].contains(&Some(*payer)))
    }

    /// Whether what the wallet gives within a swap's instructions is its gas sponsor's fee: small,
    /// and outside of venues. A market maker that pays for the transaction takes most of a token.
    pub(super) fn is_sponsors_fee(&self, ledger: &Ledger, flow: &Flow) -> bool {
        let at = flow.instruction;
        let in_venue = || self.leaf(at).is_some() || self.unlisted(at).is_some();
        if !self.pays_sponsor(ledger, flow) || in_venue() {
            return false;
        }
        let (mut gave, mut got) = (0_i128, 0_i128);
        for other in self.movements_with(ledger, at).filter(|other| other.asset == flow.asset) {
            match (ledger.is_own(other.from), ledger.is_own(other.to)) {
                (true, false) => gave += i128::from(other.amount),
                (false, true) => got += i128::from(other.received),
                (true, true) | (false, false) => {}
            }
        }
        i128::from(flow.amount).saturating_mul(PLATFORM_FEE_PART_MIN) <= gave.max(got)
    }

    /// Whether an account that is not the wallet's signs, keeps most of the tokens that venues gave
    /// it, and gives the wallet none: the lamports that it pays there are for its own trade.
    pub(super) fn buys_for_itself(&self, ledger: &Ledger, account: u8) -> bool {
        if !self.signs(ledger, account) {
            return false;
        }
        let key = self.tx.key(account).copied();
        let keeps = |token: &TokenAccount| {
            let of_venue = |flow: &&Flow| {
                let is_token = matches!(flow.asset, Asset::Token(_));
                is_token && flow.to == Some(token.account) && self.leaf(flow.instruction).is_some()
            };
            let given = ledger.flows.iter().filter(of_venue);
            let given = given.fold(0_u64, |sum, flow| sum.saturating_add(flow.received));
            let grown = token.after.unwrap_or(0).saturating_sub(token.before.unwrap_or(0));
            let sells = |flow: &Flow| flow.from == Some(token.account) && ledger.is_own(flow.to);
            given > 0 && grown > given / 2 && !ledger.flows.iter().any(sells)
        };
        self.tx.tokens.iter().any(|token| token.owner_after == key && keeps(token))
    }

    /// Whether lamports that a bot's router has another signer pay to the wallet are what it buys
    /// with in the same instructions, not proceeds.
    pub(super) fn is_funding(&self, ledger: &Ledger, flow: &Flow) -> bool {
        let at = flow.instruction;
        let funds = flow.from.is_some_and(|from| self.signs(ledger, from));
        let is_bots = self.parent(flow).is_some_and(|frame| self.is_bots(frame));
        if !funds || !is_bots || self.leaf(at).is_some() {
            return false;
        }
        let at_venue =
            || self.movements_with(ledger, at).filter(|one| self.leaf(one.instruction).is_some());
        let pays = |one: &Flow| one.asset == Asset::Native && ledger.is_own(one.from);
        let buys = |one: &Flow| one.asset != Asset::Native && ledger.is_own(one.to);
        // At a venue or elsewhere: the lamports may be their price.
        let sells = |one: &Flow| {
            one.asset != Asset::Native && ledger.is_own(one.from) && !ledger.is_own(one.to)
        };
        let sold = self.movements_with(ledger, at).any(sells);
        at_venue().any(pays) && at_venue().any(buys) && !sold
    }

    fn signs(&self, ledger: &Ledger, account: u8) -> bool {
        usize::from(account) < self.tx.signers && !ledger.is_own(Some(account))
    }

    /// All movements in the group of an instruction.
    fn movements_with<'l>(&self, ledger: &'l Ledger, at: usize) -> impl Iterator<Item = &'l Flow> {
        let group = self.groups.iter().find(|group| group.contains(&at)).cloned();
        let group = group.unwrap_or_default();
        ledger.flows.iter().filter(move |flow| group.contains(&flow.instruction))
    }
}
