//! A transaction with the tables' entries for its programs: each instruction's caller and group.

use std::ops::Range;

use super::action::Action;
use super::transaction::{Instruction, Transaction};
use crate::registry::{Program, ProgramKind, SolanaTables};

#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) tx: &'a Transaction,
    pub(super) tables: &'a SolanaTables,
    /// Per key.
    programs: Vec<Option<&'a Program>>,
    /// Per instruction: whether it is inside a call of a pool or curve that only moves liquidity or
    /// pays out earlier earnings.
    liquidity: Vec<bool>,
    /// Each outer instruction with its calls. What a smart account executes counts as outer.
    pub(super) groups: Vec<Range<usize>>,
    /// All instructions.
    pub(super) whole: Range<usize>,
}

impl<'a> Scene<'a> {
    /// `None` if no program of the tables that trades ran.
    pub(super) fn new(tx: &'a Transaction, tables: &'a SolanaTables) -> Option<Self> {
        let mut scene = Self::bare(tx, tables);
        if !scene.may_trade(&scene.whole) {
            return None;
        }
        let mut smart_accounts: Vec<usize> = Vec::new();
        for (at, instruction) in tx.instructions.iter().enumerate() {
            let program = scene.program(instruction);
            let kind = program.map(|program| program.kind);
            let is_inner =
                instruction.parent.is_some_and(|parent| !smart_accounts.contains(&parent));
            // A guessed height may mistake a step of a route for an instruction of the account.
            if kind == Some(ProgramKind::SmartAccount) && !is_inner && !tx.has_guessed_heights {
                smart_accounts.push(at);
            }
            match scene.groups.last_mut() {
                Some(group) if is_inner => group.end = at + 1,
                _ => scene.groups.push(at..at + 1),
            }
            let above = instruction.parent.is_some_and(|parent| scene.moves_liquidity(parent));
            // Only calls with inner instructions move anything. Others are events, whose data is
            // not read.
            let calls = tx.instructions.get(at + 1).is_some_and(|next| next.parent == Some(at));
            // A curve's claim that is an outer instruction is a group without a trade.
            let pool =
                kind == Some(ProgramKind::Amm) || (is_inner && kind == Some(ProgramKind::Curve));
            let moves = |data: &[u8]| {
                tables.moves_liquidity(data)
                    || program.is_some_and(|program| program.moves_position(data))
            };
            let moves = calls && pool && moves(&tx.data_of(instruction));
            scene.liquidity.push(above || moves && !scene.is_step(at));
        }
        Some(scene)
    }

    /// A transaction in which no program of the tables ran; `None` for others.
    pub(super) fn of_unknown(tx: &'a Transaction, tables: &'a SolanaTables) -> Option<Self> {
        let scene = Self::bare(tx, tables);
        scene.programs.iter().all(Option::is_none).then_some(scene)
    }

    /// The programs alone.
    fn bare(tx: &'a Transaction, tables: &'a SolanaTables) -> Self {
        // Looks up only the accounts that are called, which few are.
        let mut called = vec![false; tx.keys.len()];
        for instruction in &tx.instructions {
            if let Some(called) = called.get_mut(usize::from(instruction.program)) {
                *called = true;
            }
        }
        let program = |(key, called): (_, bool)| called.then(|| tables.program(key)).flatten();
        let programs = tx.keys.iter().zip(called).map(program).collect();
        let whole = 0..tx.instructions.len();
        Self { tx, tables, programs, liquidity: Vec::new(), groups: Vec::new(), whole }
    }

    pub(super) fn program(&self, instruction: &Instruction) -> Option<&'a Program> {
        self.programs.get(usize::from(instruction.program)).copied().flatten()
    }

    pub(super) fn instruction(&self, at: usize) -> Option<&'a Instruction> {
        self.tx.instructions.get(at)
    }

    pub(super) fn moves_liquidity(&self, at: usize) -> bool {
        self.liquidity.get(at).copied().unwrap_or(false)
    }

    /// Whether a curve's program pays out earlier earnings, which a curve may have held until then.
    pub(super) fn claims_at_curve(&self) -> bool {
        // A program calls itself only to log events, whose data is long.
        let is_event = |call: &Instruction| {
            let caller = call.parent.and_then(|at| self.instruction(at));
            caller.is_some_and(|caller| caller.program == call.program)
        };
        self.tx.instructions.iter().any(|call| {
            self.program(call).is_some_and(|program| program.kind == ProgramKind::Curve)
                && !is_event(call)
                && self.tables.moves_liquidity(&self.tx.data_of(call))
        })
    }

    /// Whether an aggregator is among the callers of an instruction.
    pub(super) fn is_routed(&self, at: usize) -> bool {
        self.callers(at).any(|at| self.kind(at) == Some(ProgramKind::Aggregator))
    }

    /// Whether a pool's call mints or burns shares for an aggregator, for which they are a token
    /// like any other: adding and removing liquidity is then a step of its route.
    fn is_step(&self, at: usize) -> bool {
        let calls = self.tx.instructions.get(self.tx.subtree(at)).unwrap_or_default();
        let shares =
            |call: &Instruction| matches!(call.action, Action::Mint { .. } | Action::Burn { .. });
        calls.iter().any(shares) && self.is_routed(at)
    }

    /// Whether an order book's outer call takes. Its other calls place and cancel orders.
    pub(super) fn takes(&self, at: usize) -> bool {
        self.instruction(at).is_some_and(|call| {
            self.program(call).is_some_and(|program| program.may_swap(|| self.tx.data_of(call)))
        })
    }

    /// Whether these instructions only convert at a fixed price.
    pub(super) fn converts(&self, range: &Range<usize>) -> bool {
        let any = |wanted: fn(ProgramKind) -> bool| self.acting(range).any(|p| wanted(p.kind));
        any(|kind| kind == ProgramKind::Conversion) && !any(exchanges)
    }

    /// The kind of the program that an instruction calls.
    pub(super) fn kind(&self, at: usize) -> Option<ProgramKind> {
        self.instruction(at).and_then(|i| self.program(i)).map(|program| program.kind)
    }

    /// The programs of the tables that run in these instructions, in order.
    pub(super) fn programs(&self, range: &Range<usize>) -> impl Iterator<Item = &'a Program> {
        let calls = self.tx.instructions.get(range.clone()).unwrap_or_default();
        calls.iter().filter_map(|call| self.program(call))
    }

    /// The same, without calls in which a program does not swap.
    pub(super) fn acting(&self, range: &Range<usize>) -> impl Iterator<Item = &'a Program> {
        range.clone().filter_map(|at| {
            let call = self.instruction(at)?;
            self.program(call).filter(|program| acts(self.tx, call, program))
        })
    }

    /// Whether a program that trades runs in these instructions.
    pub(super) fn may_trade(&self, range: &Range<usize>) -> bool {
        self.acting(range).any(|program| trades(program.kind))
    }

    /// Whether a venue or an order program runs in these instructions, not only a router.
    pub(super) fn may_exchange(&self, range: &Range<usize>) -> bool {
        self.programs(range).any(|program| exchanges(program.kind) || keeps_orders(program.kind))
    }

    /// Whether an instruction fills orders.
    pub(super) fn may_fill(&self, at: usize, program: &Program) -> bool {
        let call = self
            .instruction(at)
            .filter(|call| self.program(call).is_some_and(|called| called.id == program.id));
        call.is_some_and(|call| {
            keeps_orders(program.kind) || program.fills(|| self.tx.data_of(call))
        })
    }

    /// Whether an outer call fills others' orders. An order book trades for its caller.
    pub(super) fn serves_orders(&self, at: usize) -> bool {
        let program = self.instruction(at).and_then(|call| self.program(call));
        let mut keeper = program.filter(|one| one.kind != ProgramKind::OrderBook).into_iter();
        keeper.any(|program| self.may_fill(at, program))
    }

    /// The instruction itself if it is a call, then its callers, nearest first.
    pub(super) fn callers(&self, at: usize) -> impl Iterator<Item = usize> {
        let mut next = Some(at);
        std::iter::from_fn(move || {
            let at = next?;
            next = self.instruction(at)?.parent;
            Some(at)
        })
        .filter(|at| matches!(self.instruction(*at).map(|i| i.action), Some(Action::Call)))
    }

    /// The venue's call that contains an instruction: the outermost that exchanges assets, because
    /// pools may trade on their own order book. A curve that a pool's program calls is the venue
    /// itself: `PumpSwap` routes through several pools and curves in one call.
    pub(super) fn leaf(&self, at: usize) -> Option<(usize, &'a Program)> {
        let calls = self.callers(at).filter_map(|at| {
            let program = self.program(self.instruction(at)?)?;
            (exchanges(program.kind) && self.takes(at)).then_some((at, program))
        });
        let is_curve = |program: &Program| program.kind == ProgramKind::Curve;
        calls.reduce(|one, outer| if is_curve(one.1) && !is_curve(outer.1) { one } else { outer })
    }

    /// The outermost call that contains an instruction, of those that an aggregator or a router makes
    /// and in which no program of the tables runs: an exchange with a venue that no table has.
    pub(super) fn unlisted(&self, at: usize) -> Option<usize> {
        // A guessed height may place a router's own payment in the call of its venue.
        if self.tx.has_guessed_heights {
            return None;
        }
        let is_venue = |at: &usize| {
            let caller = self.instruction(*at).and_then(|call| call.parent);
            let kind = caller.and_then(|caller| self.kind(caller));
            let is_routed = matches!(kind, Some(ProgramKind::Aggregator | ProgramKind::Router));
            is_routed && self.programs(&self.tx.subtree(*at)).next().is_none()
        };
        self.callers(at).filter(is_venue).last()
    }

    /// The outermost conversion that contains an instruction, if no venue runs in it.
    pub(super) fn conversion(&self, at: usize) -> Option<usize> {
        let converts = |at: &usize| self.kind(*at) == Some(ProgramKind::Conversion);
        let call = self.callers(at).filter(converts).last()?;
        self.converts(&self.tx.subtree(call)).then_some(call)
    }
}

/// Whether a call swaps as its program's kind implies, unlike a pool's loan. Every call of an order
/// book counts: those that do not take place and cancel orders.
pub(super) fn acts(tx: &Transaction, call: &Instruction, program: &Program) -> bool {
    program.kind == ProgramKind::OrderBook || program.may_swap(|| tx.data_of(call))
}

/// Whether programs of this kind trade.
pub(super) fn trades(kind: ProgramKind) -> bool {
    !matches!(kind, ProgramKind::Conversion | ProgramKind::Part | ProgramKind::SmartAccount)
}

/// Whether a program of this kind keeps orders that keepers fill.
pub(super) fn keeps_orders(kind: ProgramKind) -> bool {
    matches!(kind, ProgramKind::Limit | ProgramKind::Dca)
}

/// Whether a program of this kind is itself the counterparty of a trade.
fn exchanges(kind: ProgramKind) -> bool {
    match kind {
        ProgramKind::Amm | ProgramKind::Curve | ProgramKind::OrderBook | ProgramKind::Rfq => true,
        ProgramKind::Aggregator
        | ProgramKind::Router
        | ProgramKind::Limit
        | ProgramKind::Dca
        | ProgramKind::Conversion
        | ProgramKind::Part
        | ProgramKind::SmartAccount => false,
    }
}
