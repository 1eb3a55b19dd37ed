//! A second, plain reading of `getTransaction` replies, to judge the decoder by: it walks the
//! instructions and the balance lists as they are written and shares no code with the decoder.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

const SYSTEM: &str = "11111111111111111111111111111111";
const TOKEN_PROGRAMS: [&str; 2] =
    ["TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA", "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb"];
pub(crate) const WRAPPED_SOL: &str = "So11111111111111111111111111111111111111112";

/// Units or lamports that one instruction moved; an end that is `None` is a mint.
#[derive(Debug, Clone)]
pub(crate) struct Move {
    pub(crate) from: Option<String>,
    pub(crate) to: Option<String>,
    /// `None`: lamports.
    pub(crate) mint: Option<String>,
    pub(crate) amount: i128,
    /// Lamports for a new account.
    pub(crate) creates: bool,
    pub(crate) outer: bool,
}

/// An outer instruction with all that it called.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) programs: BTreeSet<String>,
    pub(crate) moves: Vec<Move>,
}

/// One token account: mint, owner, before, after.
#[derive(Debug, Default, Clone)]
pub(crate) struct Held {
    pub(crate) mint: String,
    pub(crate) owner: Option<String>,
    pub(crate) before: i128,
    pub(crate) after: i128,
    /// The balance lists name it.
    pub(crate) listed: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) keys: Vec<String>,
    pub(crate) signers: usize,
    pub(crate) fee: i128,
    /// Per key, before and after.
    pub(crate) lamports: BTreeMap<String, (i128, i128)>,
    pub(crate) held: BTreeMap<String, Held>,
    pub(crate) groups: Vec<Group>,
    /// It holds something that this reading does not know.
    pub(crate) strange: bool,
}

fn integer(value: &Value) -> Option<i128> {
    value.as_u64().map(i128::from)
}

fn digits(value: &Value) -> Option<i128> {
    value.as_str()?.parse().ok()
}

fn le(data: &[u8], at: usize) -> Option<i128> {
    let bytes = data.get(at..at + 8)?;
    Some(bytes.iter().rev().fold(0, |sum, byte| sum * 256 + i128::from(*byte)))
}

impl Reply {
    /// `None` where the reply is not of the shape that nodes give.
    pub(crate) fn read(json: &Value) -> Option<Self> {
        let (message, meta) = (&json["transaction"]["message"], &json["meta"]);
        let mut reply = Self { fee: integer(&meta["fee"])?, ..Self::default() };
        for key in message["accountKeys"].as_array()? {
            let text = key.as_str().or_else(|| key["pubkey"].as_str())?;
            reply.keys.push(text.to_owned());
            reply.signers += usize::from(key["signer"] == true);
        }
        if let Some(signers) = message["header"]["numRequiredSignatures"].as_u64() {
            reply.signers = usize::try_from(signers).ok()?;
        }
        for list in ["writable", "readonly"] {
            for key in meta["loadedAddresses"][list].as_array().into_iter().flatten() {
                let text = key.as_str()?.to_owned();
                if !reply.keys.contains(&text) || message["accountKeys"][0].is_string() {
                    reply.keys.push(text);
                }
            }
        }
        let (pre, post) = (meta["preBalances"].as_array()?, meta["postBalances"].as_array()?);
        for (key, (pre, post)) in reply.keys.iter().zip(pre.iter().zip(post)) {
            reply.lamports.insert(key.clone(), (integer(pre)?, integer(post)?));
        }
        reply.read_held(meta)?;
        let inner = meta["innerInstructions"].as_array().map_or(&[][..], Vec::as_slice);
        for (at, outer) in message["instructions"].as_array()?.iter().enumerate() {
            let mut group = Group::default();
            reply.instruction(outer, true, &mut group)?;
            for list in inner.iter().filter(|list| list["index"].as_u64() == u64::try_from(at).ok())
            {
                for instruction in list["instructions"].as_array()? {
                    reply.instruction(instruction, false, &mut group)?;
                }
            }
            reply.groups.push(group);
        }
        Some(reply)
    }

    fn read_held(&mut self, meta: &Value) -> Option<()> {
        for (list, is_before) in [("preTokenBalances", true), ("postTokenBalances", false)] {
            for balance in meta[list].as_array().into_iter().flatten() {
                let at = usize::try_from(balance["accountIndex"].as_u64()?).ok()?;
                let held = self.held.entry(self.keys.get(at)?.clone()).or_default();
                balance["mint"].as_str()?.clone_into(&mut held.mint);
                let owner = balance["owner"].as_str().map(str::to_owned);
                self.strange |= owner.is_none();
                held.owner = owner.or(held.owner.take());
                held.listed = true;
                let amount = digits(&balance["uiTokenAmount"]["amount"])?;
                *(if is_before { &mut held.before } else { &mut held.after }) = amount;
            }
        }
        Some(())
    }

    fn instruction(&mut self, json: &Value, outer: bool, group: &mut Group) -> Option<()> {
        let name = |value: &Value, keys: &[String]| -> Option<String> {
            match value.as_str() {
                Some(text) => Some(text.to_owned()),
                None => keys.get(usize::try_from(value.as_u64()?).ok()?).cloned(),
            }
        };
        let program = if json["programId"].is_string() {
            &json["programId"]
        } else {
            &json["programIdIndex"]
        };
        let program = name(program, &self.keys)?;
        group.programs.insert(program.clone());
        let token = TOKEN_PROGRAMS.contains(&program.as_str());
        if !token && program != SYSTEM {
            return Some(());
        }
        if json["parsed"].is_object() {
            return self.parsed(&json["parsed"], token, outer, group);
        }
        let data = bs58::decode(json["data"].as_str()?).into_vec().ok()?;
        let accounts: Option<Vec<String>> =
            json["accounts"].as_array()?.iter().map(|account| name(account, &self.keys)).collect();
        let accounts = accounts?;
        let at = |at: usize| accounts.get(at).cloned();
        if token {
            let (from, to) = (at(0), at(1));
            match data.first().copied() {
                Some(3) => self.moved(group, from, to, le(&data, 1)?, outer),
                Some(12) => self.moved(group, from, at(2), le(&data, 1)?, outer),
                Some(26) if data.get(1) == Some(&1) => {
                    self.moved(group, from, at(2), le(&data, 2)?, outer);
                }
                Some(7 | 14) => self.moved(group, None, to, le(&data, 1)?, outer),
                Some(8 | 15) => self.moved(group, from, None, le(&data, 1)?, outer),
                Some(1) => self.opened(at(0)?, at(1)?, at(2)?),
                Some(16 | 18) => {
                    let owner = bs58::encode(data.get(1..33)?).into_string();
                    self.opened(at(0)?, at(1)?, owner);
                }
                Some(255 | 26 | 45) => self.strange = true,
                _ => {}
            }
            return Some(());
        }
        match data.first().copied() {
            Some(2) => self.paid(group, at(0), at(1), le(&data, 4)?, false, outer),
            Some(0) => self.paid(group, at(0), at(1), le(&data, 4)?, true, outer),
            Some(3) => {
                let seed = usize::try_from(le(&data, 36)?).ok()?;
                self.paid(group, at(0), at(1), le(&data, seed.checked_add(44)?)?, true, outer);
            }
            Some(5 | 11 | 13) => self.strange = true,
            _ => {}
        }
        Some(())
    }

    fn parsed(
        &mut self,
        parsed: &Value,
        token: bool,
        outer: bool,
        group: &mut Group,
    ) -> Option<()> {
        let info = &parsed["info"];
        let at = |name: &str| info[name].as_str().map(str::to_owned);
        let units = || digits(&info["amount"]).or_else(|| digits(&info["tokenAmount"]["amount"]));
        match (token, parsed["type"].as_str()?) {
            (true, "transfer" | "transferChecked" | "transferCheckedWithFee") => {
                self.moved(group, at("source"), at("destination"), units()?, outer);
            }
            (true, "mintTo" | "mintToChecked") => {
                self.moved(group, None, at("account"), units()?, outer);
            }
            (true, "burn" | "burnChecked") => {
                self.moved(group, at("account"), None, units()?, outer);
            }
            (true, "initializeAccount" | "initializeAccount2" | "initializeAccount3") => {
                self.opened(at("account")?, at("mint")?, at("owner")?);
            }
            (true, "unwrapLamports") => self.strange = true,
            (false, "transfer" | "transferWithSeed") => {
                self.paid(
                    group,
                    at("source"),
                    at("destination"),
                    integer(&info["lamports"])?,
                    false,
                    outer,
                );
            }
            (false, "createAccount" | "createAccountWithSeed") => {
                self.paid(
                    group,
                    at("source"),
                    at("newAccount"),
                    integer(&info["lamports"])?,
                    true,
                    outer,
                );
            }
            _ => {}
        }
        Some(())
    }

    fn opened(&mut self, account: String, mint: String, owner: String) {
        let held = self.held.entry(account).or_default();
        held.mint = mint;
        held.owner.get_or_insert(owner);
    }

    fn moved(
        &mut self,
        group: &mut Group,
        from: Option<String>,
        to: Option<String>,
        amount: i128,
        outer: bool,
    ) {
        let of = |end: &Option<String>| {
            let held = end.as_ref().and_then(|end| self.held.get(end));
            held.filter(|held| !held.mint.is_empty()).map(|held| held.mint.clone())
        };
        match of(&from).or_else(|| of(&to)) {
            Some(mint) => {
                group.moves.push(Move {
                    from,
                    to,
                    mint: Some(mint),
                    amount,
                    creates: false,
                    outer,
                });
            }
            None => self.strange = true,
        }
    }

    #[expect(clippy::unused_self, reason = "in the style of `moved`")]
    fn paid(
        &self,
        group: &mut Group,
        from: Option<String>,
        to: Option<String>,
        amount: i128,
        creates: bool,
        outer: bool,
    ) {
        group.moves.push(Move { from, to, mint: None, amount, creates, outer });
    }

    pub(crate) fn is_own(&self, wallet: &str, account: Option<&String>) -> bool {
        account.is_some_and(|account| {
            account == wallet
                || self.held.get(account).is_some_and(|held| held.owner.as_deref() == Some(wallet))
        })
    }

    /// What a group moved of each token for the wallet, positive where it got; not of wrapped SOL.
    pub(crate) fn net(&self, wallet: &str, group: &Group) -> BTreeMap<String, i128> {
        let mut net = BTreeMap::new();
        for step in &group.moves {
            let Some(mint) = step.mint.as_ref().filter(|mint| *mint != WRAPPED_SOL) else {
                continue;
            };
            let out = self.is_own(wallet, step.from.as_ref());
            let into = self.is_own(wallet, step.to.as_ref());
            *net.entry(mint.clone()).or_insert(0) +=
                step.amount * (i128::from(into) - i128::from(out));
        }
        net.retain(|_, sum| *sum != 0);
        net
    }

    /// By how much the wallet's balance of a token changed.
    pub(crate) fn change(&self, wallet: &str, mint: &str) -> i128 {
        let own = self
            .held
            .values()
            .filter(|held| held.owner.as_deref() == Some(wallet) && held.mint == mint);
        own.map(|held| held.after - held.before).sum()
    }

    /// All of a token that any balance shows.
    pub(crate) fn visible(&self, mint: &str) -> i128 {
        self.held
            .values()
            .filter(|held| held.mint == mint)
            .map(|held| held.before.max(held.after))
            .sum()
    }
}
