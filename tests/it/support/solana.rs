//! Builds Solana transactions by hand: accounts have names, their keys are hashes of them, and
//! balances follow what the instructions say.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

pub(crate) const SYSTEM: &str = "11111111111111111111111111111111";
pub(crate) const TOKEN: &str = "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA";
pub(crate) const TOKEN_2022: &str = "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb";
pub(crate) const WSOL: &str = "So11111111111111111111111111111111111111112";
pub(crate) const RENT: u64 = 2_039_280;
/// Every account's lamports unless a test says otherwise.
const LAMPORTS: u64 = 10_000_000_000;
pub(crate) const DECIMALS: u8 = 6;

/// The key that a name stands for; what is an address already stays.
pub(crate) fn key(name: &str) -> [u8; 32] {
    let mut key = [0; 32];
    if bs58::decode(name).onto(&mut key).ok() == Some(32) {
        return key;
    }
    Sha256::digest(name).into()
}

pub(crate) fn text(name: &str) -> String {
    bs58::encode(key(name)).into_string()
}

#[derive(Clone)]
struct Token {
    mint: String,
    owner: Option<String>,
    before: Option<u64>,
    after: Option<u64>,
}

/// One transaction under construction.
#[derive(Clone)]
pub(crate) struct Tx {
    keys: Vec<String>,
    /// How many of the keys sign.
    pub(crate) signers: usize,
    lamports: BTreeMap<String, (u64, u64)>,
    tokens: BTreeMap<String, Token>,
    outer: Vec<Value>,
    inner: Vec<Vec<Value>>,
    pub(crate) logs: Vec<String>,
    pub(crate) heights: bool,
    pub(crate) owners: bool,
    pub(crate) failed: bool,
    pub(crate) version: Value,
    /// How many of the last keys come from a look-up table.
    pub(crate) loaded: usize,
}

impl Tx {
    /// `payer` pays a fee of 5,000 lamports.
    pub(crate) fn new(payer: &str) -> Self {
        let mut tx = Self {
            keys: Vec::new(),
            signers: 1,
            lamports: BTreeMap::new(),
            tokens: BTreeMap::new(),
            outer: Vec::new(),
            inner: Vec::new(),
            logs: Vec::new(),
            heights: true,
            owners: true,
            failed: false,
            version: json!("legacy"),
            loaded: 0,
        };
        tx.index(payer);
        tx.drift(payer, -5_000);
        tx
    }

    fn index(&mut self, name: &str) -> usize {
        self.keys.iter().position(|known| known == name).unwrap_or_else(|| {
            self.keys.push(name.to_owned());
            self.lamports.entry(name.to_owned()).or_insert((LAMPORTS, LAMPORTS));
            self.keys.len() - 1
        })
    }

    /// What an account holds before.
    pub(crate) fn lamports(&mut self, name: &str, before: u64) -> &mut Self {
        self.index(name);
        self.lamports.insert(name.to_owned(), (before, before));
        self
    }

    /// Lamports that move without an instruction.
    pub(crate) fn drift(&mut self, name: &str, change: i64) -> &mut Self {
        self.index(name);
        let (_, after) = self.lamports.get_mut(name).unwrap();
        *after = after.checked_add_signed(change).unwrap();
        self
    }

    /// A token account that exists before.
    pub(crate) fn account(&mut self, name: &str, mint: &str, owner: &str, units: u64) -> &mut Self {
        let extra = if mint == WSOL { units } else { 0 };
        self.lamports(name, RENT + extra);
        let owner = Some(owner.to_owned());
        let (before, after) = (Some(units), Some(units));
        let token = Token { mint: mint.to_owned(), owner, before, after };
        self.tokens.insert(name.to_owned(), token);
        self
    }

    /// An outer call.
    pub(crate) fn call(&mut self, program: &str, accounts: &[&str], data: &[u8]) -> &mut Self {
        let instruction = self.instruction(1, program, accounts, data);
        self.outer.push(instruction);
        self.inner.push(Vec::new());
        self.log(1, program);
        self
    }

    /// A call inside the last outer one.
    pub(crate) fn inner(
        &mut self,
        height: u8,
        program: &str,
        accounts: &[&str],
        data: &[u8],
    ) -> &mut Self {
        if height == 1 {
            return self.call(program, accounts, data);
        }
        let instruction = self.instruction(height, program, accounts, data);
        self.inner.last_mut().unwrap().push(instruction);
        self.log(height, program);
        self
    }

    fn log(&mut self, height: u8, program: &str) {
        self.logs.push(format!("Program {} invoke [{height}]", text(program)));
        self.logs.push(format!("Program {} success", text(program)));
    }

    fn instruction(&mut self, height: u8, program: &str, accounts: &[&str], data: &[u8]) -> Value {
        let program = self.index(program);
        let accounts: Vec<usize> = accounts.iter().map(|account| self.index(account)).collect();
        let data = bs58::encode(data).into_string();
        json!({"programIdIndex": program, "accounts": accounts, "data": data, "stackHeight": height})
    }

    /// A System transfer.
    pub(crate) fn pay(&mut self, height: u8, from: &str, to: &str, lamports: u64) -> &mut Self {
        let mut data = vec![2, 0, 0, 0];
        data.extend(lamports.to_le_bytes());
        self.inner(height, SYSTEM, &[from, to], &data);
        self.drift(from, -i64::try_from(lamports).unwrap());
        self.drift(to, i64::try_from(lamports).unwrap())
    }

    /// Creates an account that holds nothing else.
    pub(crate) fn create(
        &mut self,
        height: u8,
        from: &str,
        to: &str,
        lamports: u64,
        space: u64,
    ) -> &mut Self {
        self.lamports(to, 0);
        let mut data = vec![0, 0, 0, 0];
        data.extend(lamports.to_le_bytes());
        data.extend(space.to_le_bytes());
        data.extend(key(TOKEN));
        self.inner(height, SYSTEM, &[from, to], &data);
        self.drift(from, -i64::try_from(lamports).unwrap());
        self.drift(to, i64::try_from(lamports).unwrap())
    }

    /// Creates and opens a token account; more lamports than the rent are wrapped SOL.
    pub(crate) fn open(
        &mut self,
        height: u8,
        payer: &str,
        name: &str,
        mint: &str,
        owner: &str,
        lamports: u64,
    ) -> &mut Self {
        self.create(height, payer, name, lamports, 165);
        let mut data = vec![18];
        data.extend(key(owner));
        self.inner(height, TOKEN, &[name, mint], &data);
        let (owner, after) = (Some(owner.to_owned()), Some(lamports - RENT));
        let token = Token { mint: mint.to_owned(), owner, before: None, after };
        self.tokens.insert(name.to_owned(), token);
        self
    }

    /// A token transfer; `TransferChecked` where the mint is given.
    pub(crate) fn transfer(
        &mut self,
        height: u8,
        from: &str,
        to: &str,
        authority: &str,
        units: u64,
    ) -> &mut Self {
        let mut data = vec![3];
        data.extend(units.to_le_bytes());
        self.inner(height, TOKEN, &[from, to, authority], &data);
        self.move_units(from, to, units, units)
    }

    /// A Token-2022 transfer of which the mint keeps a fee.
    pub(crate) fn transfer_less_fee(
        &mut self,
        height: u8,
        [from, to, authority]: [&str; 3],
        mint: &str,
        units: u64,
        fee: u64,
    ) -> &mut Self {
        let mut data = vec![12];
        data.extend(units.to_le_bytes());
        data.push(DECIMALS);
        self.inner(height, TOKEN_2022, &[from, mint, to, authority], &data);
        self.move_units(from, to, units, units - fee)
    }

    fn move_units(&mut self, from: &str, to: &str, units: u64, received: u64) -> &mut Self {
        let wrapped = self.tokens.get(from).unwrap().mint == WSOL;
        let less = self.tokens.get_mut(from).unwrap().after.as_mut().unwrap();
        *less = less.checked_sub(units).unwrap();
        *self.tokens.get_mut(to).unwrap().after.as_mut().unwrap() += received;
        if wrapped {
            self.drift(from, -i64::try_from(units).unwrap());
            self.drift(to, i64::try_from(units).unwrap());
        }
        self
    }

    pub(crate) fn mint_to(&mut self, height: u8, mint: &str, to: &str, units: u64) -> &mut Self {
        let mut data = vec![7];
        data.extend(units.to_le_bytes());
        self.inner(height, TOKEN, &[mint, to, "mint authority"], &data);
        *self.tokens.get_mut(to).unwrap().after.as_mut().unwrap() += units;
        self
    }

    pub(crate) fn burn(&mut self, height: u8, mint: &str, from: &str, units: u64) -> &mut Self {
        let mut data = vec![8];
        data.extend(units.to_le_bytes());
        self.inner(height, TOKEN, &[from, mint, "owner"], &data);
        *self.tokens.get_mut(from).unwrap().after.as_mut().unwrap() -= units;
        self
    }

    /// Closes a token account: all its lamports go to `to`.
    pub(crate) fn close(&mut self, height: u8, name: &str, to: &str, owner: &str) -> &mut Self {
        self.inner(height, TOKEN, &[name, to, owner], &[9]);
        let (_, left) = *self.lamports.get(name).unwrap();
        self.drift(name, -i64::try_from(left).unwrap());
        self.drift(to, i64::try_from(left).unwrap());
        self.tokens.get_mut(name).unwrap().after = None;
        self
    }

    fn balances(&self, of: impl Fn(&Token) -> Option<u64>) -> Value {
        let balance = |(name, token): (&String, &Token)| {
            let units = of(token)?;
            let index = self.keys.iter().position(|known| known == name)?;
            let decimals = if token.mint == WSOL { 9 } else { DECIMALS };
            let mut balance = json!({
                "accountIndex": index,
                "mint": text(&token.mint),
                "programId": TOKEN,
                "uiTokenAmount": {"amount": units.to_string(), "decimals": decimals, "uiAmountString": "0"},
            });
            if let Some(owner) = token.owner.as_ref().filter(|_| self.owners) {
                balance["owner"] = json!(text(owner));
            }
            Some(balance)
        };
        self.tokens.iter().filter_map(balance).collect()
    }

    /// The reply of `getTransaction` with encoding `json`.
    pub(crate) fn json(&self) -> Value {
        let mut inner = self.inner.clone();
        if !self.heights {
            for instruction in inner.iter_mut().flatten() {
                instruction.as_object_mut().unwrap().remove("stackHeight");
            }
        }
        let groups: Vec<Value> = (0..)
            .zip(&inner)
            .filter(|(_, list)| !list.is_empty())
            .map(|(index, list): (usize, _)| json!({"index": index, "instructions": list}))
            .collect();
        let texts: Vec<String> = self.keys.iter().map(|name| text(name)).collect();
        let (listed, loaded) = texts.split_at(texts.len() - self.loaded);
        let (writable, readonly) = loaded.split_at(loaded.len() / 2);
        let lamports = |side: fn(&(u64, u64)) -> u64| -> Vec<u64> {
            self.keys.iter().map(|name| side(self.lamports.get(name).unwrap())).collect()
        };
        let err =
            if self.failed { json!({"InstructionError": [0, {"Custom": 1}]}) } else { Value::Null };
        json!({
            "slot": 250_000_000,
            "blockTime": 1_700_000_000,
            "transactionIndex": 7,
            "version": self.version,
            "transaction": {
                "signatures": [bs58::encode([7_u8; 64]).into_string()],
                "message": {
                    "accountKeys": listed,
                    "header": {
                        "numRequiredSignatures": self.signers,
                        "numReadonlySignedAccounts": 0,
                        "numReadonlyUnsignedAccounts": 0,
                    },
                    "instructions": self.outer,
                    "recentBlockhash": text("blockhash"),
                },
            },
            "meta": {
                "err": err,
                "fee": 5_000,
                "preBalances": lamports(|(before, _)| *before),
                "postBalances": lamports(|(_, after)| *after),
                "preTokenBalances": self.balances(|token| token.before),
                "postTokenBalances": self.balances(|token| token.after),
                "innerInstructions": groups,
                "logMessages": self.logs,
                "loadedAddresses": {"writable": writable, "readonly": readonly},
            },
        })
    }
}

/// The form of `jsonParsed`: whole key list with roles, addresses for indexes, instructions of
/// known programs read.
pub(crate) fn as_parsed(mut tx: Value) -> Value {
    let keys = tx["transaction"]["message"]["accountKeys"].take();
    let name = |index: &Value| keys[usize::try_from(index.as_u64().unwrap()).unwrap()].clone();
    let rewrite = |instruction: &mut Value| {
        let program = name(&instruction["programIdIndex"]);
        let accounts: Vec<Value> =
            instruction["accounts"].as_array().unwrap().iter().map(name).collect();
        let data = bs58::decode(instruction["data"].as_str().unwrap()).into_vec().unwrap();
        let amount = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap());
        let mut parsed = json!({"programId": program});
        let (from, to) = (accounts.first().cloned(), accounts.get(1).cloned());
        if program == TOKEN && data[0] == 3 {
            let info = json!({"source": from, "destination": to,
                "authority": accounts[2], "amount": amount(1).to_string()});
            parsed["parsed"] = json!({"type": "transfer", "info": info});
        } else if program == TOKEN && data[0] == 9 {
            let info = json!({"account": from, "destination": to, "owner": accounts[2]});
            parsed["parsed"] = json!({"type": "closeAccount", "info": info});
        } else if program == TOKEN && data[0] == 18 {
            let owner = bs58::encode(&data[1..33]).into_string();
            let info = json!({"account": from, "mint": to, "owner": owner});
            parsed["parsed"] = json!({"type": "initializeAccount3", "info": info});
        } else if program == SYSTEM && data[0] == 2 {
            let info = json!({"source": from, "destination": to, "lamports": amount(4)});
            parsed["parsed"] = json!({"type": "transfer", "info": info});
        } else if program == SYSTEM && data[0] == 0 {
            let info = json!({"source": from, "newAccount": to,
                "lamports": amount(4), "space": amount(12), "owner": text("owner")});
            parsed["parsed"] = json!({"type": "createAccount", "info": info});
        } else {
            parsed["accounts"] = accounts.into();
            parsed["data"] = instruction["data"].clone();
        }
        parsed["stackHeight"] = instruction["stackHeight"].clone();
        *instruction = parsed;
    };
    for instruction in tx["transaction"]["message"]["instructions"].as_array_mut().unwrap() {
        rewrite(instruction);
    }
    for group in tx["meta"]["innerInstructions"].as_array_mut().unwrap() {
        for instruction in group["instructions"].as_array_mut().unwrap() {
            rewrite(instruction);
        }
    }
    let listed = keys.as_array().unwrap().iter().enumerate().map(|(at, key)| {
        json!({"pubkey": key, "signer": at == 0, "writable": true, "source": "transaction"})
    });
    tx["transaction"]["message"]["accountKeys"] = listed.collect();
    tx["transaction"]["message"].as_object_mut().unwrap().remove("header");
    tx
}
