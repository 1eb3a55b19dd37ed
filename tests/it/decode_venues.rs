//! Hand-written Solana transactions of venues that do more than swap, one per rule.

use blotter::decode::NoteKind;
use blotter::domain::Side;
use sha2::Digest as _;

use crate::decode::{DFLOW, JUPITER, LIMIT, PUMP, RAYDIUM, WHIRLPOOL, check, run};
use crate::support::solana::{RENT, SYSTEM, Tx, WSOL, key};

const HEAVEN: &str = "HEAVENoP2qxoeuF8Dj2oT1GHEnu49U5mJYkdeC8BAX2o";
const OMNIPAIR: &str = "omnixgS8fnqHfCcTGKWj6JtKjzpJZ1Y5y9pyFkQDkYE";
const EXPRESS_RELAY: &str = "PytERJFhAKuNNuaiXkApLfWzwNwSNDACpigT3LwQfou";
const FUSION: &str = "HNarfxC3kYMMhFkxUFeYb8wHVdPzY5t9pupqW5fL2meM";
const AXIOM: &str = "FLASHX8DrLbgeR8FcfNV1F5krxYcYMUdBkrP1EPBtxB9";
const EXA6: &str = "ExA6GYhHAeRNMWVNLrDir1SKPJZcZA2oaPq6uriSmxfJ";
const PUMP_SWAP: &str = "pAMMBay6oceH9fJKBRHGP5D4bD4sWpmSwMn52FMfXEA";
const BISON_PREDICT: &str = "2DNbzPochEcyCcWMbL4d9S3u9QqQEj5bbe6cSZFvKsbh";
const FLASH: &str = "FLASH6Lo6h3iasJKWDs2F8TkW2UKf3s15C8PMGuVfgBn";
const DELTAFI: &str = "GNExJhNUhc9LN2DauuQAUJnXoy6DJ6zey3t9kT9A2PF3";
const DRADEX: &str = "dp2waEWSBy5yKmq65ergoU3G6qRLmqa6K7We4rZSKph";
const LEND_EARN: &str = "jup3YeL8QhtSx1e253b2FDvsMNC87fDrgQZivbrndc9";
const SQUADS: &str = "SQDS4ep65T869zMMBKyuUq6aD6EgTu8psMjkvj52pCf";
const DLMM: &str = "LBUZKhRxPF3XUpBCjp4YzTKgLccjZhTSDM9YuVaPwxo";
const EXPONENT: &str = "ExponentnaRg3CQbW6dqQNZKXp7gtZ9DGMp1cwC4HAS7";
const PERPS: &str = "PERPHjGBqRHArX4DySjwM6UJHiR3sWAatqfdBS2qQJu";
const EXPONENT_CLMM: &str = "XPC1MM4dYACDfykNuXYZ5una2DsMDWL24CrYubCvarC";
const GENESIS: &str = "GNS1S5J5AspKXgpjz6SvKL66kPaKWAhaGRhCqPRxii2B";
const FLIPCASH: &str = "ccJYP5gjZqcEHaphcxAZvkxCrnTVfYMjyhSYkpQtf8Z";
const NIRVANA: &str = "NirvHuZvrm2zSxjkBvSbaF2tHfP5j7cvMj9QmdoHVwb";
const RISE: &str = "RiseZSHaLdj7pfn1tisUoSdG2i3QcVz9sQKuaRG9rar";
const MAYFLOWER: &str = "AVMmmRzwc2kETQNhPiFVnyu62HrgsQXTD6D7SnSfEz7v";
const STRATA: &str = "TBondmkCYxaPCKG4CHYfVTcwQ8on31xnJrPzk8F8WsS";
const JUPITER_STAGING: &str = "JUPSjgjMFjU4453KMgxhqVmzep6W352bQpE4RsNqXAx";
const CONDITIONAL: &str = "AMMyu265tkBpRW21iGQxKGLaves3gKm2JcMUqfXNSpqD";
const LIQUID: &str = "LiquidsqH2a9gsPRf1M2QFhFqfLXWYTDZGzbsNQCDux";
const LIQUID_AMM: &str = "SwapMXcpJdXgnFG9BZak2fBZUiNeR2qYxzexF2ZxdW8";
const JANUS: &str = "JanusXpm3gsW3c9ErNoUgHppL8dGLvZKB7uekkJEYFP";
const BYREAL_RFQ: &str = "REALFP9S4VmrAixmeYa68FrPKn4NVD2QFxxMfz9arhz";
const BYREAL_ROUTER: &str = "REALp6iMBDTctQqpmhBo4PumwJGcybbnDpxtax3ara3";
const DBC: &str = "dbcij3LWUppWqq96dh6gJWwBifmcGfLSB5D4DuSMaqN";
const LAUNCH_LAB: &str = "LanMV9sAd7wArD4vJFi2qDdfnVhFxYSUg6eADduJ3uj";
const VIRTUAL_CURVE: &str = "virEFLZsQm1iFAs8py1XnziJ67gTzW2bfCWhxNPfccD";
const AUTO_FUN: &str = "autoiNVyGniA5dosggHy34BZYimthNzLy6WXL7qwzPA";
const AUTO_FUN_1: &str = "autoUmixaMaYKFjexMpQuBpNYntgbkzCo2b1ZqUaAZ5";
const GO_FUND_MEME: &str = "GFMioXjhuDWMEBtuaoaDPJFPEnL2yDHCWKoVPhj1MeA7";
const HEAVEN_AMM: &str = "HEAVEnMX7RoaYCucpyFterLWzFJR8Ah26oNSnqBs5Jtn";
const MAKE_NOW: &str = "G8Jeqq2C7vkvCEAsz2K3vymzcPFJNxUsQ5YN9eLBLRud";
const SUPER: &str = "super4XGGb7KWorPuoSNVQDHAVQjWzTpqcoRS86d9Us";
const MERCURIAL_AMM: &str = "5B23C376Kwtd1vzb5LCJHiHLPnoWSnnx661hhGGDEv8y";
const SWIM_TWO: &str = "SWimmSE5hgWsEruwPBLBVAFi3KyVfe8URU2pb4w7GZs";
const ONDO: &str = "XzTT4XB8m7sLD2xi6snefSasaswsKCxx5Tifjondogm";
const DEBOT: &str = "G7MVcM9YzGxrmLtmobUgyt8A6WhQ2dgQX3aSJcPejdEp";
/// The venue of `RAYDIUM`.
const POOL: &str = "Raydium AMM v4";

/// Anchor's discriminator of an instruction.
fn named(name: &str) -> Vec<u8> {
    sha2::Sha256::digest(format!("global:{name}"))[..8].to_vec()
}

/// The wallet mints `supply`, hands `handed` of it to a pool of `program` with some SOL, and gets
/// `back` of it.
fn launched(program: &str, [supply, handed, back]: [u64; 3]) -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w new", "NEW", "w", 0).account("p new", "NEW", "p", 0);
    tx.account("p sol", WSOL, "p", 50_000);
    tx.mint_to(1, "NEW", "w new", supply);
    tx.call(program, &["w", "w new", "p new", "p sol", "p"], &[1]);
    tx.transfer(2, "w new", "p new", "w", handed).pay(2, "w", "p sol", 530_000);
    if back > 0 {
        tx.transfer(2, "p new", "w new", "p", back);
    }
    tx
}

#[test]
fn the_supply_of_a_launch_is_no_side_of_its_first_purchase() {
    let bought = [(Side::Buy, "NEW", 15_000, Some(530_000), "Heaven")];
    check(&launched(HEAVEN, [1_000_000, 1_000_000, 15_000]), "w", &bought);
    // What the creator keeps is not bought.
    check(&launched(HEAVEN, [1_000_000, 900_000, 15_000]), "w", &bought);
    // Without a purchase, and at a pool that is no curve.
    assert_eq!(run(&launched(HEAVEN, [1_000_000, 1_000_000, 0]), "w").trades, []);
    assert_eq!(run(&launched(RAYDIUM, [1_000_000, 1_000_000, 15_000]), "w").trades, []);
}

#[test]
fn what_was_minted_may_be_sold_to_a_curve() {
    let mut tx = Tx::new("w");
    tx.account("w new", "NEW", "w", 0).account("p new", "NEW", "p", 0);
    tx.mint_to(1, "NEW", "w new", 1_000);
    tx.call(HEAVEN, &["w", "w new", "p new", "p"], &[2]);
    tx.transfer(2, "w new", "p new", "w", 1_000).drift("p", -600_000).drift("w", 600_000);
    check(&tx, "w", &[(Side::Sell, "NEW", 1_000, Some(600_000), "Heaven")]);
}

/// A bridge mints dollars in the same transaction, and the curve returns the unused rest.
#[test]
fn a_token_that_buys_another_is_no_supply_of_a_launch() {
    let mut tx = Tx::new("w");
    tx.account("w usd", "USD", "w", 0).account("p usd", "USD", "p", 0);
    tx.account("w new", "NEW", "w", 0).account("p new", "NEW", "p", 700);
    tx.mint_to(1, "USD", "w usd", 100);
    tx.call(HEAVEN, &["w", "w usd", "p usd", "w new", "p new", "p"], &[1]);
    tx.transfer(2, "w usd", "p usd", "w", 100).transfer(2, "p new", "w new", "p", 700);
    tx.transfer(2, "p usd", "w usd", "p", 5);
    let (sold, bought) = ((Side::Sell, "USD", 95), (Side::Buy, "NEW", 700));
    let row = |(side, mint, units)| (side, mint, units, None, "Heaven");
    check(&tx, "w", &[row(sold), row(bought)]);
}

/// The same if the purchase goes to another account: the rest of the dollars is not bought for SOL.
#[test]
fn a_token_that_buys_another_for_others_is_no_supply_of_a_launch() {
    let mut tx = Tx::new("w");
    tx.account("w usd", "USD", "w", 0).account("p usd", "USD", "p", 0);
    tx.account("w new", "NEW", "w", 0).account("p new", "NEW", "p", 700);
    tx.account("o new", "NEW", "o", 0).account("p sol", WSOL, "p", 50_000);
    tx.mint_to(1, "USD", "w usd", 100);
    let accounts = ["w", "w usd", "p usd", "w new", "p new", "o new", "p sol", "p"];
    tx.call(HEAVEN, &accounts, &[1]);
    tx.transfer(2, "w usd", "p usd", "w", 100).pay(2, "w", "p sol", 530_000);
    tx.transfer(2, "p new", "w new", "p", 700).transfer(2, "w new", "o new", "w", 700);
    tx.transfer(2, "p usd", "w usd", "p", 5);
    assert_eq!(run(&tx, "w").trades, []);
}

/// META to a pool and USDC from it by two calls of a smart wallet.
fn dealt(calls: [&str; 2]) -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w meta", "META", "w", 100).account("p meta", "META", "p", 0);
    tx.account("w usdc", "USDC", "w", 0).account("p usdc", "USDC", "p", 500);
    tx.call("smart wallet", &["w", "w meta", "p meta", "w usdc", "p usdc"], &[1]);
    tx.inner(2, OMNIPAIR, &["w", "w meta", "p meta"], &named(calls[0]));
    tx.transfer(3, "w meta", "p meta", "w", 100);
    tx.inner(2, OMNIPAIR, &["w", "w usdc", "p usdc", "p"], &named(calls[1]));
    tx.transfer(3, "p usdc", "w usdc", "p", 90);
    tx
}

#[test]
fn a_loan_by_a_pool_is_no_swap() {
    let lent = run(&dealt(["add_collateral", "borrow"]), "w");
    assert_eq!((lent.trades, lent.notes), (Vec::new(), Vec::new()));
    let swapped =
        [(Side::Sell, "META", 100, None, "Omnipair"), (Side::Buy, "USDC", 90, None, "Omnipair")];
    check(&dealt(["swap", "swap"]), "w", &swapped);
}

#[test]
fn a_quote_of_the_express_relay_is_a_trade_and_a_bid_is_not() {
    let filled = |call: &str| {
        let mut tx = Tx::new("w");
        tx.account("w bonk", "BONK", "w", 0).account("m bonk", "BONK", "m", 700);
        tx.account("w usdc", "USDC", "w", 90).account("m usdc", "USDC", "m", 0);
        tx.call(EXPRESS_RELAY, &["m", "relayer", "receiver"], &named("submit_bid"));
        tx.pay(2, "m", "receiver", 5_000);
        tx.call(EXPRESS_RELAY, &["m", "w", "m bonk", "w bonk", "w usdc", "m usdc"], &named(call));
        tx.transfer(2, "m bonk", "w bonk", "m", 700).transfer(2, "w usdc", "m usdc", "w", 90);
        tx
    };
    let (sold, bought) = ((Side::Sell, "USDC", 90), (Side::Buy, "BONK", 700));
    let row = |(side, mint, units)| (side, mint, units, None, "Pyth Express Relay");
    check(&filled("swap"), "w", &[row(sold), row(bought)]);
    assert_eq!(run(&filled("check_permission"), "w").trades, []);
}

#[test]
fn a_route_through_a_vault_of_a_lender_alone_is_a_conversion() {
    let routed = |through: &[&str]| {
        let mut tx = Tx::new("w");
        tx.account("w share", "SHARE", "w", 0).account("w usdc", "USDC", "w", 100);
        tx.account("v usdc", "USDC", "v", 0);
        tx.call(JUPITER, &["w", "w share", "w usdc", "v usdc"], &[1]);
        for program in through {
            tx.inner(2, program, &["w", "w share", "w usdc", "v usdc"], &named("deposit"));
        }
        tx.transfer(3, "w usdc", "v usdc", "w", 100).mint_to(3, "SHARE", "w share", 95);
        tx
    };
    // The relay's check of a bid next to it exchanges nothing.
    for through in [vec![LEND_EARN], vec![EXPRESS_RELAY, LEND_EARN]] {
        let decoded = run(&routed(&through), "w");
        let kinds: Vec<NoteKind> = decoded.notes.iter().map(|note| note.kind).collect();
        assert_eq!((decoded.trades, kinds), (Vec::new(), vec![NoteKind::Conversion]));
    }
}

/// A 1inch Fusion order for SOL: its account closes to the maker with the fill. A resolver that
/// cancels it gets the account's rent and passes on what it does not keep.
#[test]
fn an_order_of_fusion_is_a_trade_when_it_is_filled_and_not_when_it_is_cancelled() {
    let escrowed = |call: &str| {
        let mut tx = Tx::new("taker");
        tx.account("t usdc", "USDC", "taker", 0).account("m usdc", "USDC", "maker", 0);
        tx.account("escrow", "USDC", "order", 500);
        let accounts = ["taker", "maker", "order", "escrow", "t usdc", "m usdc"];
        tx.call(FUSION, &accounts, &named(call));
        tx
    };
    let mut filled = escrowed("fill");
    filled.transfer(2, "escrow", "t usdc", "order", 500).pay(2, "taker", "maker", 3_000_000);
    filled.close(2, "escrow", "maker", "order");
    check(&filled, "maker", &[(Side::Sell, "USDC", 500, Some(3_000_000), "1inch Fusion")]);
    assert_eq!(run(&filled, "taker").trades, []);
    let mut cancelled = escrowed("cancel_by_resolver");
    cancelled.transfer(2, "escrow", "m usdc", "order", 500);
    cancelled.close(2, "escrow", "taker", "order").pay(2, "taker", "maker", 2_000_000);
    assert_eq!(run(&cancelled, "maker").trades, []);
}

/// USDC to SOL to a token: the SOL of the sale values both, and the router takes a part of it
/// before the purchase. Amounts of `uyEeVWMnHBCKGhAg…`.
#[test]
fn a_route_is_worth_what_its_first_pool_gave() {
    let mut tx = Tx::new("w");
    tx.account("w usdc", "USDC", "w", 239_428_022).account("e usdc", "USDC", "e", 0);
    tx.account("e sol", WSOL, "e", 2_028_541_917_796).account("w sol", WSOL, "w", 0);
    tx.account("w new", "NEW", "w", 0).account("p new", "NEW", "p", 97_692_262_779_272);
    tx.account("p sol", WSOL, "p", 184_053_344_554).account("fees", WSOL, "f", 0);
    tx.call(AXIOM, &["w"], &[0]);
    tx.inner(2, EXA6, &["w", "e usdc", "e sol", "w usdc", "w sol", "e"], &named("swap"));
    tx.transfer(3, "e sol", "w sol", "e", 583_488_660);
    tx.transfer(3, "w usdc", "e usdc", "w", 49_500_000);
    tx.inner(2, PUMP_SWAP, &["w", "p new", "w new", "p sol", "w sol", "fees", "p"], &[1]);
    tx.transfer(3, "p new", "w new", "p", 302_184_876_540);
    tx.transfer(3, "w sol", "p sol", "w", 572_228_453);
    tx.transfer(3, "w sol", "fees", "w", 285_544 + 5_139_777);
    tx.close(2, "w sol", "router fees", "w");
    let value = Some(583_488_660);
    let rows = [
        (Side::Sell, "USDC", 49_500_000, value, EXA6),
        (Side::Buy, "NEW", 302_184_876_540, value, "PumpSwap"),
    ];
    check(&tx, "w", &rows);
}

/// A market maker that pays half of a pair's price itself, and sells one of the two outcomes it mints.
/// Amounts of `3RiwzFhC9x6rUkfK…`.
#[test]
fn an_outcome_of_a_pair_is_bought_from_the_creator_of_the_pair() {
    let mut tx = Tx::new("w");
    tx.account("w usdc", "USDC", "w", 6_000_000).account("m usdc", "USDC", "m", 20_000_000);
    tx.account("pair usdc", "USDC", "pair", 0).account("fees", "USDC", "f", 0);
    tx.account("m yes", "YES", "m", 0).account("m no", "NO", "m", 0);
    tx.account("w yes", "YES", "w", 0);
    tx.call(JUPITER, &["w", "w usdc", "w yes"], &[1]);
    tx.inner(2, BISON_PREDICT, &["w", "w usdc", "w yes", "m"], &[5]);
    tx.transfer(3, "w usdc", "m usdc", "w", 5_994_000);
    tx.inner(3, "pairs", &["m", "m usdc", "pair usdc", "m yes", "m no"], &[9]);
    tx.transfer(4, "m usdc", "pair usdc", "m", 11_968_621);
    tx.mint_to(4, "YES", "m yes", 11_968_621).mint_to(4, "NO", "m no", 11_968_621);
    tx.transfer(3, "m yes", "w yes", "m", 11_968_621);
    tx.transfer(2, "w usdc", "fees", "w", 6_000);
    let rows = [
        (Side::Sell, "USDC", 6_000_000, None, "BisonFi Predict"),
        (Side::Buy, "YES", 11_968_621, None, "BisonFi Predict"),
    ];
    check(&tx, "w", &rows);
    // A call that sets its prices moves nothing.
    let mut quoted = Tx::new("w");
    quoted.call(BISON_PREDICT, &["w", "m"], &[1]);
    assert_eq!(run(&quoted, "w").notes, []);
}

/// The same of a market maker that has the outcome minted to its buyer. Amounts of a purchase that a
/// reference of World's programs states.
#[test]
fn an_outcome_that_is_minted_to_its_buyer_is_bought() {
    let mut tx = Tx::new("w");
    tx.account("w cash", "CASH", "w", 3_531_378).account("m cash", "CASH", "m", 20_000_000);
    tx.account("pair cash", "CASH", "pair", 0).account("fees", "CASH", "f", 0);
    tx.account("m no", "NO", "m", 0).account("w yes", "YES", "w", 0);
    tx.call(DFLOW, &["w", "w cash", "w yes"], &[1]);
    tx.inner(2, JANUS, &["w", "w cash", "w yes", "m"], &[1]);
    tx.transfer(3, "w cash", "m cash", "w", 3_224_808);
    tx.inner(3, "pairs", &["m", "m cash", "pair cash", "w yes", "m no"], &named("split"));
    tx.transfer(4, "m cash", "pair cash", "m", 14_218_261);
    tx.mint_to(4, "YES", "w yes", 14_218_261).mint_to(4, "NO", "m no", 14_218_261);
    tx.transfer(2, "w cash", "fees", "w", 306_570);
    let rows = [
        (Side::Sell, "CASH", 3_531_378, None, "JanusFi"),
        (Side::Buy, "YES", 14_218_261, None, "JanusFi"),
    ];
    check(&tx, "w", &rows);
}

/// META for USDC by one call of a program.
fn exchanged(program: &str, data: &[u8]) -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w meta", "META", "w", 100).account("p meta", "META", "p", 0);
    tx.account("w usdc", "USDC", "w", 0).account("p usdc", "USDC", "p", 500);
    tx.call(program, &["w", "w meta", "p meta", "w usdc", "p usdc", "p"], data);
    tx.transfer(2, "w meta", "p meta", "w", 100).transfer(2, "p usdc", "w usdc", "p", 90);
    tx
}

#[test]
fn only_the_swaps_of_a_venue_that_does_more_are_trades() {
    for (program, venue, swap, other) in [
        (FLASH, "Flash Trade", named("swap"), named("close_position")),
        (DELTAFI, "DeltaFi", named("stable_swap"), named("withdraw_from_stable_swap")),
        (GENESIS, "Metaplex Genesis", vec![65, 1], vec![52]),
        (FLIPCASH, "Flipcash", vec![5], vec![1]),
        (NIRVANA, "Nirvana", named("sell2"), named("realize")),
        (RISE, "Rise", named("sell_with_exact_token_in"), named("borrow")),
        (STRATA, "Strata", named("sell_v1"), named("transfer_reserves_v0")),
        (AUTO_FUN, "auto.fun", named("swap"), named("withdraw")),
        (AUTO_FUN_1, "auto.fun", named("launch_and_swap"), named("withdraw")),
        (GO_FUND_MEME, "GoFundMeme", named("swap"), named("multi_claim")),
        (GO_FUND_MEME, "GoFundMeme", named("swap_v2"), named("invest_in_pool")),
    ] {
        let rows = [(Side::Sell, "META", 100, None, venue), (Side::Buy, "USDC", 90, None, venue)];
        check(&exchanged(program, &swap), "w", &rows);
        assert_eq!(run(&exchanged(program, &other), "w").trades, [], "{venue}");
    }
}

#[test]
fn a_venue_that_only_swaps_needs_no_list_of_its_calls() {
    for (program, venue) in [
        (JUPITER_STAGING, "Jupiter v6"),
        (CONDITIONAL, "MetaDAO"),
        (LIQUID, "LiquidAF"),
        (LIQUID_AMM, "LiquidAF AMM"),
        (BYREAL_RFQ, "Byreal RFQ"),
        (BYREAL_ROUTER, "Byreal Router"),
        (DEBOT, "DeBot"),
        (VIRTUAL_CURVE, "Meteora Virtual Curve"),
        (HEAVEN_AMM, "Heaven"),
        (MAKE_NOW, "MakeNow.Meme"),
        (SUPER, "Super.exchange"),
        (MERCURIAL_AMM, "Mercurial"),
        (SWIM_TWO, "Swim"),
    ] {
        let rows = [(Side::Sell, "META", 100, None, venue), (Side::Buy, "USDC", 90, None, venue)];
        check(&exchanged(program, &named("swap")), "w", &rows);
    }
}

/// A tokenized share is minted to its buyer, and burnt when it is sold.
#[test]
fn a_tokenized_share_is_bought_from_its_issuer_and_sold_to_it() {
    let dealt = |call: &str| {
        let mut tx = Tx::new("w");
        tx.account("w usdc", "USDC", "w", 500).account("v usdc", "USDC", "v", 500);
        tx.account("w aapl", "AAPLON", "w", 9);
        tx.call(ONDO, &["w", "w usdc", "v usdc", "w aapl", "AAPLON", "v"], &named(call));
        tx
    };
    let mut bought = dealt("mint_with_usdc");
    bought.transfer(2, "w usdc", "v usdc", "w", 230).mint_to(2, "AAPLON", "w aapl", 1);
    let row = |side, mint, units| (side, mint, units, None, "Ondo Global Markets");
    check(&bought, "w", &[row(Side::Sell, "USDC", 230), row(Side::Buy, "AAPLON", 1)]);
    let mut sold = dealt("redeem_for_usdc");
    sold.burn(2, "AAPLON", "w aapl", 2).transfer(2, "v usdc", "w usdc", "v", 458);
    check(&sold, "w", &[row(Side::Sell, "AAPLON", 2), row(Side::Buy, "USDC", 458)]);
}

/// Mayflower's markets mint what they sell; a launchpad that runs them is the venue.
#[test]
fn a_purchase_from_a_market_that_mints_is_one() {
    let buy = named("buy_with_exact_cash_in");
    for (outer, venue) in [(RISE, "Rise"), ("another", "Mayflower")] {
        let mut tx = Tx::new("w");
        tx.account("w usdc", "USDC", "w", 100).account("m usdc", "USDC", "m", 0);
        tx.account("w new", "NEW", "w", 0);
        tx.call(outer, &["w", "w usdc", "m usdc", "w new"], &buy);
        tx.inner(2, MAYFLOWER, &["w", "w usdc", "m usdc", "w new"], &buy);
        tx.transfer(3, "w usdc", "m usdc", "w", 100).mint_to(3, "NEW", "w new", 700);
        let rows = [(Side::Sell, "USDC", 100, None, venue), (Side::Buy, "NEW", 700, None, venue)];
        check(&tx, "w", &rows);
    }
}

/// Side, limit price, amount, the client's id and the type of an order at Dradex.
fn dradex_order(price: u64, kind: u8) -> Vec<u8> {
    let mut data = named("create_order");
    data.push(0);
    for number in [price, 100, 7] {
        data.extend(number.to_le_bytes());
    }
    data.push(kind);
    data
}

/// A limit order gives its whole amount to the market, also where only a part is matched.
#[test]
fn an_order_at_dradex_is_a_trade_where_nothing_of_it_rests() {
    let rows = [(Side::Sell, "META", 100, None, "Dradex"), (Side::Buy, "USDC", 90, None, "Dradex")];
    for (price, kind) in [(0, 0), (5_000, 1)] {
        check(&exchanged(DRADEX, &dradex_order(price, kind)), "w", &rows);
    }
    let limit = run(&exchanged(DRADEX, &dradex_order(5_000, 0)), "w");
    let kinds: Vec<NoteKind> = limit.notes.iter().map(|note| note.kind).collect();
    assert_eq!((limit.trades, kinds), (Vec::new(), vec![NoteKind::Order]));
}

/// Dollars to a token by a router that claims other dollars in the same call.
#[test]
fn what_is_claimed_in_the_call_of_a_swap_is_no_part_of_it() {
    for (program, venue, claim) in [
        (PUMP_SWAP, "PumpSwap", "claim_cashback"),
        (PUMP_SWAP, "PumpSwap", "collect_coin_creator_fee"),
        (PUMP_SWAP, "PumpSwap", "claim_token_incentives"),
        (PUMP, "Pump.fun", "claim_cashback_v2"),
        (PUMP, "Pump.fun", "collect_creator_fee_v2"),
        (PUMP, "Pump.fun", "distribute_creator_fees_v2"),
        (DBC, "Meteora DBC", "claim_creator_trading_fee"),
        (DBC, "Meteora DBC", "claim_trading_fee"),
        (DBC, "Meteora DBC", "creator_withdraw_surplus"),
        (DBC, "Meteora DBC", "partner_withdraw_surplus"),
        (DBC, "Meteora DBC", "claim_partner_pool_creation_fee"),
        (DBC, "Meteora DBC", "withdraw_leftover"),
        (DBC, "Meteora DBC", "withdraw_migration_fee"),
        (LAUNCH_LAB, "Raydium LaunchLab", "claim_creator_fee"),
        (LAUNCH_LAB, "Raydium LaunchLab", "claim_platform_fee"),
        (LAUNCH_LAB, "Raydium LaunchLab", "claim_platform_fee_from_vault"),
        (LAUNCH_LAB, "Raydium LaunchLab", "claim_vested_token"),
    ] {
        let mut tx = Tx::new("w");
        tx.account("w usd", "USD", "w", 500).account("saved usd", "USD", "saved", 40);
        tx.account("w new", "NEW", "w", 0).account("p new", "NEW", "p", 700);
        tx.account("p usd", "USD", "p", 0);
        tx.call(AXIOM, &["w"], &[0]);
        tx.inner(2, program, &["w", "saved usd", "w usd", "saved"], &named(claim));
        tx.transfer(3, "saved usd", "w usd", "saved", 40);
        tx.inner(2, program, &["w", "w usd", "p usd", "p new", "w new", "p"], &named("buy"));
        tx.transfer(3, "w usd", "p usd", "w", 100).transfer(3, "p new", "w new", "p", 700);
        let rows = [(Side::Sell, "USD", 100, None, venue), (Side::Buy, "NEW", 700, None, venue)];
        check(&tx, "w", &rows);
    }
}

/// A program takes what one order in a pool brought, and places another one on the other side.
#[test]
fn orders_in_a_pool_that_one_call_moves_are_no_swap() {
    const CLMM: &str = "CAMMCzo5YL8w4VFF8KVHrK22GGUsp5VTaW7grrKgrWqK";
    for (program, taken, placed) in [
        (DLMM, "cancel_limit_order", "place_limit_order"),
        (CLMM, "settle_limit_order", "open_limit_order"),
        (CLMM, "decrease_limit_order", "increase_limit_order"),
    ] {
        let mut tx = Tx::new("w");
        tx.account("w usd", "USD", "w", 500).account("p usd", "USD", "p", 0);
        tx.account("w new", "NEW", "w", 0).account("p new", "NEW", "p", 700);
        tx.call("some bot", &["w"], &[0]);
        tx.inner(2, program, &["order", "p new", "w new", "w"], &named(taken));
        tx.transfer(3, "p new", "w new", "p", 700);
        tx.inner(2, program, &["other", "w usd", "p usd", "w"], &named(placed));
        tx.transfer(3, "w usd", "p usd", "w", 100);
        assert_eq!(run(&tx, "w").trades, [], "{placed}");
    }
}

/// A router takes a token and SOL out of one pool and swaps the token at another.
#[test]
fn liquidity_in_the_call_of_a_swap_neither_values_nor_names_it() {
    for taken in [100, 900] {
        let mut tx = Tx::new("w");
        tx.account("w usd", "USD", "w", 0).account("d usd", "USD", "d", 900);
        tx.account("w sol", WSOL, "w", 0).account("d sol", WSOL, "d", 5_000);
        tx.account("w new", "NEW", "w", 0).account("p new", "NEW", "p", 700);
        tx.account("p usd", "USD", "p", 0);
        tx.call(AXIOM, &["w"], &[0]);
        let accounts = ["w", "d usd", "w usd", "d sol", "w sol", "d"];
        tx.inner(2, DLMM, &accounts, &named("remove_liquidity2"));
        tx.transfer(3, "d usd", "w usd", "d", taken).transfer(3, "d sol", "w sol", "d", 5_000);
        tx.inner(2, RAYDIUM, &["w usd", "p usd", "p new", "w new", "w", "p"], &[9]);
        tx.transfer(3, "w usd", "p usd", "w", 100).transfer(3, "p new", "w new", "p", 700);
        let rows = [(Side::Sell, "USD", 100, None, POOL), (Side::Buy, "NEW", 700, None, POOL)];
        check(&tx, "w", &rows);
    }
}

/// The purchase claims what the venue had set aside for the wallet, which adds to the payment.
#[test]
fn lamports_that_are_claimed_in_the_call_of_a_purchase_are_no_part_of_its_price() {
    for (program, venue) in [(PUMP, "Pump.fun"), (PUMP_SWAP, "PumpSwap")] {
        let mut tx = Tx::new("w");
        tx.account("w new", "NEW", "w", 0).account("p new", "NEW", "p", 700);
        tx.call(AXIOM, &["w"], &[0]);
        tx.inner(2, program, &["w", "saved"], &named("claim_cashback"));
        tx.inner(3, program, &["events"], &[1]).drift("saved", -70_000).drift("w", 70_000);
        tx.inner(2, program, &["w", "p new", "w new", "p", "saved"], &named("buy"));
        tx.transfer(3, "p new", "w new", "p", 700).pay(3, "w", "p", 40_000_000);
        check(&tx, "w", &[(Side::Buy, "NEW", 700, Some(40_000_000), venue)]);
    }
}

/// SOL to WETH, which is deposited in a pool for a share, by the accounts of `owner`. Amounts of
/// `2kai9Wa4rc433U3J…`.
fn laid_in_by(program: &str, owner: &str) -> Tx {
    let mut tx = Tx::new("w");
    for (party, [sol, weth, share, usdc]) in [
        ("w", [500_000_000, 0, 0, 0]),
        ("hub", [0, 0, 0, 0]),
        ("p", [900_000_000, 9_000_000, 90_000_000, 90_000_000]),
    ] {
        for (mint, units) in [(WSOL, sol), ("WETH", weth), ("JLP", share), ("USDC", usdc)] {
            tx.account(&format!("{party} {mint}"), mint, party, units);
        }
    }
    tx.call(program, &["w"], &[1]);
    if owner != "w" {
        tx.transfer(2, &format!("w {WSOL}"), &format!("{owner} {WSOL}"), "w", 500_000_000);
    }
    step(&mut tx, owner, (WSOL, 500_000_000), ("WETH", 2_945_866));
    tx.inner(2, PERPS, &["p", owner], &named("add_liquidity2"));
    tx.transfer(3, &format!("{owner} WETH"), "p WETH", owner, 2_945_866);
    tx.mint_to(3, "JLP", &format!("{owner} JLP"), 23_753_244);
    tx
}

fn step(tx: &mut Tx, owner: &str, (sold, gave): (&str, u64), (bought, got): (&str, u64)) {
    let [from, to] = [sold, bought].map(|mint| format!("{owner} {mint}"));
    let [into, out] = [sold, bought].map(|mint| format!("p {mint}"));
    tx.inner(2, WHIRLPOOL, &[&from, &into, &out, &to, owner, "p"], &[9]);
    tx.transfer(3, &from, &into, owner, gave).transfer(3, &out, &to, "p", got);
}

#[test]
fn what_an_aggregator_lays_into_a_pool_is_a_step_of_its_route() {
    let mut tx = laid_in_by(JUPITER, "w");
    check(&tx, "w", &[(Side::Buy, "JLP", 23_753_244, Some(500_000_000), "Jupiter Perps")]);
    step(&mut tx, "w", ("JLP", 23_753_244), ("USDC", 76_612_586));
    check(&tx, "w", &[(Side::Buy, "USDC", 76_612_586, Some(500_000_000), "Orca Whirlpool")]);
    // Through the aggregator's accounts, which pass on all that they get.
    let mut tx = laid_in_by(JUPITER, "hub");
    step(&mut tx, "hub", ("JLP", 23_753_244), ("USDC", 76_612_586));
    tx.transfer(2, "hub USDC", "w USDC", "hub", 76_612_586);
    check(&tx, "w", &[(Side::Buy, "USDC", 76_612_586, Some(500_000_000), "Orca Whirlpool")]);
    assert_eq!(run(&tx, "hub").trades, []);
    // Who adds liquidity by another program gets a share for what was bought.
    let tx = laid_in_by(AXIOM, "w");
    check(&tx, "w", &[(Side::Buy, "WETH", 2_945_866, Some(500_000_000), "Orca Whirlpool")]);
}

#[test]
fn what_an_aggregator_takes_out_of_a_pool_is_a_step_of_its_route() {
    let taken_out = |routed: bool| {
        let mut tx = Tx::new("w");
        tx.account("w share", "JLP", "w", 700).account("w sol", WSOL, "w", 0);
        tx.account("p sol", WSOL, "p", 9_000);
        let height = 1 + u8::from(routed);
        if routed {
            tx.call(JUPITER, &["w share", "w sol", "w"], &[1]);
        }
        tx.inner(height, PERPS, &["w share", "w sol", "p sol"], &named("remove_liquidity2"));
        tx.burn(height + 1, "JLP", "w share", 700).transfer(
            height + 1,
            "p sol",
            "w sol",
            "p",
            5_000,
        );
        tx
    };
    check(&taken_out(true), "w", &[(Side::Sell, "JLP", 700, Some(5_000), "Jupiter Perps")]);
    check(&taken_out(false), "w", &[]);
}

/// A member has a multisig's vault execute what follows at height 2.
fn batch() -> Tx {
    let mut tx = Tx::new("member");
    for (name, mint, held) in [("usdc", "USDC", 500), ("x", "X", 5_000), ("y", "Y", 900)] {
        tx.account(&format!("v {name}"), mint, "vault", held);
        tx.account(&format!("p {name}"), mint, "p", 90_000);
    }
    tx.account("v sol", WSOL, "vault", 50_000).account("p sol", WSOL, "p", 90_000);
    tx.account("contractor usdc", "USDC", "contractor", 0);
    tx.account("member usdc", "USDC", "member", 0);
    tx.call(SQUADS, &["member", "vault"], &named("vault_transaction_execute"));
    tx
}

/// `gave` of one of the vault's accounts to the pool by an aggregator, and `got` from it.
fn swap_at_2(tx: &mut Tx, (from, gave): (&str, u64), (to, got): (&str, u64)) {
    let (into, out) = (from.replace("v ", "p "), to.replace("v ", "p "));
    let accounts: [&str; 6] = [from, &into, &out, to, "vault", "p"];
    tx.inner(2, JUPITER, &accounts, &[1]).inner(3, RAYDIUM, &accounts, &[9]);
    tx.transfer(4, from, &into, "vault", gave).transfer(4, &out, to, "p", got);
}

#[test]
fn what_a_smart_account_pays_next_to_a_swap_is_no_part_of_it() {
    let rows = [(Side::Sell, "X", 1_000, None, POOL), (Side::Buy, "USDC", 100, None, POOL)];
    for calls in [1, 2] {
        let mut tx = batch();
        swap_at_2(&mut tx, ("v x", 1_000), ("v usdc", 100));
        if calls == 2 {
            tx.call(SQUADS, &["member", "vault"], &named("vault_transaction_execute"));
        }
        tx.transfer(2, "v usdc", "contractor usdc", "vault", 100);
        check(&tx, "vault", &rows);
    }
    // A payment to the fee payer for the network fee.
    let mut tx = batch();
    swap_at_2(&mut tx, ("v x", 1_000), ("v usdc", 100));
    tx.transfer(2, "v usdc", "member usdc", "vault", 2);
    check(&tx, "vault", &rows);
    let mut tx = batch();
    swap_at_2(&mut tx, ("v sol", 8_000), ("v x", 700));
    tx.burn(2, "X", "v x", 300);
    check(&tx, "vault", &[(Side::Buy, "X", 700, Some(8_000), POOL)]);
}

#[test]
fn each_swap_of_a_smart_account_has_its_own_value() {
    let mut tx = batch();
    swap_at_2(&mut tx, ("v sol", 8_000), ("v x", 700));
    swap_at_2(&mut tx, ("v sol", 3_000), ("v usdc", 60));
    let rows =
        [(Side::Buy, "X", 700, Some(8_000), POOL), (Side::Buy, "USDC", 60, Some(3_000), POOL)];
    check(&tx, "vault", &rows);
}

#[test]
fn what_a_smart_account_does_in_several_calls_is_no_swap() {
    let mut lent = batch();
    lent.account("lender usdc", "USDC", "lender", 0).account("lender x", "X", "lender", 900);
    lent.inner(2, "lending market", &["vault", "v usdc", "lender usdc"], &named("deposit"));
    lent.transfer(3, "v usdc", "lender usdc", "vault", 100);
    lent.inner(2, "lending market", &["vault", "v x", "lender x", "lender"], &named("borrow"));
    lent.transfer(3, "lender x", "v x", "lender", 50);
    lent.inner(2, DLMM, &["vault", "v y", "p y", "p"], &named("add_liquidity2"));
    lent.transfer(3, "v y", "p y", "vault", 90);
    assert_eq!(run(&lent, "vault").trades, []);
    // An order is placed, and a venue pays for something else.
    let mut placed = batch();
    placed.account("escrow", "USDC", "order", 0);
    placed.inner(2, LIMIT, &["vault", "v usdc", "escrow", "order"], &[1]);
    placed.transfer(3, "v usdc", "escrow", "vault", 100);
    placed.inner(2, RAYDIUM, &["vault", "v x", "p x", "p"], &[9]);
    placed.transfer(3, "p x", "v x", "p", 50);
    assert_eq!(run(&placed, "vault").trades, []);
}

/// If no heights are known, a step of a route could be an instruction of the smart account.
#[test]
fn a_route_of_a_smart_account_stays_whole_where_heights_are_guessed() {
    let mut tx = batch();
    tx.account("hub y", "Y", "hub", 0);
    tx.inner(2, JUPITER, &["v x", "v usdc", "vault"], &[1]);
    tx.inner(3, RAYDIUM, &["v x", "p x", "p y", "hub y", "vault", "p"], &[9]);
    tx.transfer(4, "v x", "p x", "vault", 1_000).transfer(4, "p y", "hub y", "p", 70);
    tx.inner(3, RAYDIUM, &["hub y", "p y", "p usdc", "v usdc", "hub", "p"], &[9]);
    tx.transfer(4, "hub y", "p y", "hub", 70).transfer(4, "p usdc", "v usdc", "p", 100);
    let rows = [(Side::Sell, "X", 1_000, None, POOL), (Side::Buy, "USDC", 100, None, POOL)];
    check(&tx, "vault", &rows);
    tx.heights = false;
    check(&tx, "vault", &rows);
    tx.logs = vec!["Log truncated".to_owned()];
    check(&tx, "vault", &rows);
}

/// Between a pool's call and its transfers is a call for the fee, and after them one for the event.
/// Amounts of `3PHQEygDTZZG6BjQ…`.
#[test]
fn guessed_heights_give_a_transfer_to_the_call_that_was_given_its_accounts() {
    let mut tx = Tx::new("w");
    tx.account("w new", "NEW", "w", 47_658_377_222).account("p new", "NEW", "p", 0);
    tx.account("p sol", WSOL, "p", 900_000_000).account("w sol", WSOL, "w", 0);
    tx.account("fees", WSOL, "f", 0).account("w usdc", "USDC", "w", 0);
    tx.account("e usdc", "USDC", "e", 90_000_000).account("e sol", WSOL, "e", 0);
    tx.call(AXIOM, &["w"], &[0]);
    let pool = ["w", "w new", "p new", "p sol", "w sol", "fees", "p", "config", "fee program"];
    tx.inner(2, PUMP_SWAP, &[&pool[..], &["event authority"]].concat(), &[1]);
    tx.inner(3, "fee program", &["config", PUMP_SWAP], &[7]);
    tx.transfer(3, "w new", "p new", "w", 47_658_377_222);
    tx.transfer(3, "p sol", "w sol", "p", 223_458_040);
    tx.transfer(3, "p sol", "fees", "p", 112_858 + 1_692_864);
    tx.inner(3, PUMP_SWAP, &["event authority"], &[0xe4]);
    tx.inner(2, EXA6, &["w", "e usdc", "e sol", "w usdc", "w sol", "e"], &named("swap"));
    tx.transfer(3, "e usdc", "w usdc", "e", 19_336_212);
    tx.transfer(3, "w sol", "e sol", "w", 221_223_460);
    // The rest is left for the bot's fee.
    let rows = [
        (Side::Sell, "NEW", 47_658_377_222, Some(223_458_040), "PumpSwap"),
        (Side::Buy, "USDC", 19_336_212, Some(221_223_460), EXA6),
    ];
    check(&tx, "w", &rows);
    tx.heights = false;
    check(&tx, "w", &rows);
    tx.logs = vec!["Log truncated".to_owned()];
    check(&tx, "w", &rows);
}

/// A router that calls one pool twice: neither call is inside the other.
#[test]
fn guessed_heights_keep_two_calls_of_a_pool_apart() {
    let mut tx = Tx::new("w");
    tx.account("w new", "NEW", "w", 1_000).account("p new", "NEW", "p", 0);
    tx.account("p sol", WSOL, "p", 900_000).account("w sol", WSOL, "w", 0);
    tx.account("e usdc", "USDC", "e", 90_000).account("e sol", WSOL, "e", 0);
    tx.account("w usdc", "USDC", "w", 0);
    tx.call(AXIOM, &["w"], &[0]);
    for (sold, lamports) in [(600, 60), (400, 38)] {
        tx.inner(2, RAYDIUM, &["w", "w new", "p new", "p sol", "w sol", "p"], &[9]);
        tx.transfer(3, "w new", "p new", "w", sold).transfer(3, "p sol", "w sol", "p", lamports);
    }
    tx.inner(2, EXA6, &["w", "e usdc", "e sol", "w usdc", "w sol", "e"], &named("swap"));
    tx.transfer(3, "e usdc", "w usdc", "e", 500).transfer(3, "w sol", "e sol", "w", 98);
    let rows =
        [(Side::Sell, "NEW", 1_000, Some(98), POOL), (Side::Buy, "USDC", 500, Some(98), EXA6)];
    check(&tx, "w", &rows);
    tx.heights = false;
    tx.logs = vec!["Log truncated".to_owned()];
    check(&tx, "w", &rows);
}

/// Payments to accounts that were passed to the curve are its price; a payment to another account
/// is a router's fee. Amounts of `622CrdnBz4KMNbs9N…`.
#[test]
fn guessed_heights_keep_the_fee_of_a_router_out_of_the_price_at_a_curve() {
    let mut tx = Tx::new("w");
    tx.account("w new", "NEW", "w", 0).account("c new", "NEW", "curve", 1_739_306_808_717);
    tx.call(AXIOM, &["w", "w new", "curve", "router fees"], &[0]);
    tx.inner(2, PUMP, &["w", "w new", "c new", "curve", "fees", "config", "fee program"], &[1]);
    tx.inner(3, "fee program", &["config", PUMP], &[7]);
    tx.transfer(3, "c new", "w new", "curve", 1_739_306_808_717);
    tx.pay(3, "w", "curve", 476_345_679).pay(3, "w", "fees", 1_429_038);
    tx.inner(3, PUMP, &["config"], &[0xe4]);
    tx.pay(2, "w", "router fees", 4_871_717);
    let rows = [(Side::Buy, "NEW", 1_739_306_808_717, Some(476_345_679 + 1_429_038), "Pump.fun")];
    check(&tx, "w", &rows);
    tx.heights = false;
    tx.logs.clear();
    check(&tx, "w", &rows);
}

/// The wallet's accounts of the base token, of SY, PT and YT, and those of a market of Exponent.
fn splitting() -> Tx {
    let mut tx = Tx::new("w");
    for (owner, units) in [("w", [500, 0, 2_000, 2_000]), ("m", [500, 5_000, 5_000, 5_000])] {
        for (mint, units) in ["BASE", "SY", "PT", "YT"].into_iter().zip(units) {
            tx.account(&format!("{owner} {mint}"), mint, owner, units);
        }
    }
    tx
}

/// 100 of the base token become 98 of SY by the program that wraps it.
fn wrap(tx: &mut Tx) {
    tx.inner(2, "wrapper", &["w BASE", "m BASE", "w SY", "w"], &[1]);
    tx.transfer(3, "w BASE", "m BASE", "w", 100).mint_to(3, "SY", "w SY", 98);
}

/// YT comes from SY that is split, most of it lent by the market in return for the PT; the wrapper
/// deposits the YT in the wallet's position.
#[test]
fn a_purchase_of_yield_that_is_laid_into_a_position_is_one() {
    let mut tx = splitting();
    tx.call(EXPONENT, &["w", "m", "w SY"], &[0x1f]);
    wrap(&mut tx);
    tx.inner(2, EXPONENT, &["w", "m", "w SY", "w YT", "w PT"], &[0]);
    tx.transfer(3, "m SY", "w SY", "m", 900);
    tx.inner(3, EXPONENT, &["w", "w SY", "w YT", "w PT"], &[4]);
    tx.transfer(4, "w SY", "m SY", "w", 998);
    tx.mint_to(4, "PT", "w PT", 1_000).mint_to(4, "YT", "w YT", 1_000);
    tx.inner(3, EXPONENT, &["w", "m", "w SY", "w PT"], &[0x11]);
    tx.transfer(4, "w PT", "m PT", "w", 1_000).transfer(4, "m SY", "w SY", "m", 900);
    tx.transfer(3, "w SY", "m SY", "w", 900);
    tx.inner(2, EXPONENT, &["w", "w YT", "m YT"], &[7]).transfer(3, "w YT", "m YT", "w", 1_000);
    let rows =
        [(Side::Sell, "BASE", 100, None, "Exponent"), (Side::Buy, "YT", 1_000, None, "Exponent")];
    check(&tx, "w", &rows);
}

#[test]
fn a_sale_of_yield_that_is_taken_from_a_position_is_one() {
    let mut tx = splitting();
    tx.call(EXPONENT_CLMM, &["w", "m", "w SY"], &[0x11]);
    tx.inner(2, EXPONENT, &["w", "w YT", "m YT"], &[8]).transfer(3, "m YT", "w YT", "m", 1_000);
    tx.inner(2, EXPONENT_CLMM, &["w", "m", "w YT", "w PT", "w SY"], &[0x0d]);
    tx.transfer(3, "m PT", "w PT", "m", 1_000);
    tx.inner(3, EXPONENT, &["w", "w SY", "w YT", "w PT"], &[5]);
    tx.burn(4, "PT", "w PT", 1_000).burn(4, "YT", "w YT", 1_000);
    tx.transfer(4, "m SY", "w SY", "m", 998);
    tx.transfer(3, "w SY", "m SY", "w", 900).transfer(3, "m PT", "w PT", "m", 1_000);
    tx.transfer(3, "w PT", "m PT", "w", 1_000);
    tx.inner(2, "wrapper", &["m BASE", "w BASE", "w SY", "m"], &[2]);
    tx.burn(3, "SY", "w SY", 98).transfer(3, "m BASE", "w BASE", "m", 97);
    let rows =
        [(Side::Sell, "YT", 1_000, None, "Exponent"), (Side::Buy, "BASE", 97, None, "Exponent")];
    check(&tx, "w", &rows);
}

/// The wrapped token is minted to the wallet on the way.
#[test]
fn a_purchase_of_principal_is_a_trade_and_a_split_is_none() {
    let mut bought = splitting();
    bought.call(EXPONENT, &["w", "m", "w SY"], &[0x1d]);
    wrap(&mut bought);
    bought.inner(2, EXPONENT, &["w", "m", "w SY", "w PT"], &[0x11]);
    bought.transfer(3, "m PT", "w PT", "m", 105).transfer(3, "w SY", "m SY", "w", 98);
    let row = |(side, mint, units)| (side, mint, units, None, "Exponent");
    check(&bought, "w", &[row((Side::Sell, "BASE", 100)), row((Side::Buy, "PT", 105))]);
    // Split by the base token's wrapper, or laid into a position by itself.
    let mut split = splitting();
    split.call(EXPONENT, &["w", "m", "w SY"], &[0x26]);
    wrap(&mut split);
    split.inner(2, EXPONENT, &["w", "w SY", "w YT", "w PT"], &[4]);
    split.transfer(3, "w SY", "m SY", "w", 98);
    split.mint_to(3, "PT", "w PT", 100).mint_to(3, "YT", "w YT", 100);
    split.call(EXPONENT, &["w", "w YT", "m YT"], &[7]).transfer(2, "w YT", "m YT", "w", 1_000);
    assert_eq!(run(&split, "w").trades, []);
}

/// BONK at a pool for 1,000,000 lamports of the wallet's wrapped SOL, of which the pool's caller
/// sends others elsewhere.
fn with_wrapped_fee(program: &str, sells: bool, fee: u64) -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w sol", WSOL, "w", 5_000_000).account("p sol", WSOL, "p", 9_000_000);
    tx.account("w bonk", "BONK", "w", 1_000).account("p bonk", "BONK", "p", 5_000);
    tx.account("bot sol", WSOL, "bot", 0).account("bot bonk", "BONK", "bot", 50);
    tx.call(program, &["w", "w sol", "p sol", "p bonk", "w bonk", "bot sol", "bot", "p"], &[1]);
    tx.transfer(2, "w sol", "bot sol", "w", fee);
    tx.inner(2, RAYDIUM, &["w sol", "p sol", "p bonk", "w bonk", "w", "p"], &[9]);
    if sells {
        tx.transfer(3, "w bonk", "p bonk", "w", 700).transfer(3, "p sol", "w sol", "p", 1_000_000);
    } else {
        tx.transfer(3, "w sol", "p sol", "w", 1_000_000).transfer(3, "p bonk", "w bonk", "p", 700);
    }
    tx
}

/// A bot's router, also one that no table has, takes its fee in wrapped SOL as it does in loose
/// SOL; an aggregator's is in the price.
#[test]
fn wrapped_sol_that_a_bots_router_sends_to_itself_is_outside_the_swap() {
    let bots = [AXIOM, "some bot"].map(|bot| (bot, 1_000_000, 1_000_000));
    for (program, bought, sold) in bots.into_iter().chain([(JUPITER, 1_010_000, 990_000)]) {
        let buys = [(Side::Buy, "BONK", 700, Some(bought), POOL)];
        check(&with_wrapped_fee(program, false, 10_000), "w", &buys);
        let sells = [(Side::Sell, "BONK", 700, Some(sold), POOL)];
        check(&with_wrapped_fee(program, true, 10_000), "w", &sells);
    }
    // What the router passes on to a pool, or gives a token for, is a part of the price.
    let mut passed = with_wrapped_fee(AXIOM, false, 10_000);
    passed.inner(2, RAYDIUM, &["bot sol", "p sol", "p bonk", "w bonk", "bot", "p"], &[9]);
    passed.transfer(3, "bot sol", "p sol", "bot", 9_000).transfer(3, "p bonk", "w bonk", "p", 6);
    let mut given = with_wrapped_fee(AXIOM, false, 10_000);
    given.transfer(2, "bot bonk", "w bonk", "bot", 6);
    for tx in [passed, given] {
        check(&tx, "w", &[(Side::Buy, "BONK", 706, Some(1_010_000), POOL)]);
    }
    // What another program pays may be the price of a venue that no table has.
    let mut other = with_wrapped_fee("some bot", false, 10_000);
    other.inner(2, "some pool", &["w sol", "bot sol", "bot bonk", "w bonk", "w", "bot"], &[1]);
    other.transfer(3, "w sol", "bot sol", "w", 9_000).transfer(3, "bot bonk", "w bonk", "bot", 6);
    check(&other, "w", &[(Side::Buy, "BONK", 706, Some(1_009_000), POOL)]);
    // All that a sale brought is no fee: here it comes back as loose SOL.
    let mut back = with_wrapped_fee(AXIOM, true, 1_000_000);
    back.close(2, "bot sol", "bot", "bot").drift("bot", -990_000).drift("w", 990_000);
    check(&back, "w", &[(Side::Sell, "BONK", 700, Some(990_000), POOL)]);
}

#[test]
fn wrapped_sol_that_comes_back_or_pays_for_more_is_no_fee() {
    // The router takes what a sale brought in two parts, and pays out loose SOL.
    let mut back = with_wrapped_fee(AXIOM, true, 500_000);
    back.transfer(2, "w sol", "bot sol", "w", 500_000).close(2, "bot sol", "bot", "bot");
    back.drift("bot", -990_000).drift("w", 990_000);
    check(&back, "w", &[(Side::Sell, "BONK", 700, Some(990_000), POOL)]);
    // A pool in no table is paid first, and gives its tokens in a call behind that.
    let mut paid = with_wrapped_fee("some bot", false, 400_000);
    paid.inner(2, "some pool", &["bot sol", "bot bonk", "w bonk", "bot"], &[1]);
    paid.transfer(3, "bot bonk", "w bonk", "bot", 6);
    check(&paid, "w", &[(Side::Buy, "BONK", 706, Some(1_400_000), POOL)]);
}

/// NEW is paired with OLD, which trades for SOL: one call of `PumpSwap` goes through both.
fn two_hops() -> Tx {
    let mut tx = Tx::new("w");
    tx.account("w sol", WSOL, "w", 5_000_000).account("w new", "NEW", "w", 1_000);
    tx.account("new new", "NEW", "new curve", 9_000).account("new old", "OLD", "new curve", 9_000);
    tx.account("old old", "OLD", "old curve", 9_000).account("old sol", WSOL, "old curve", 0);
    let accounts = [
        "w",
        "w sol",
        "w new",
        "new new",
        "new old",
        "new curve",
        "old old",
        "old sol",
        "old curve",
    ];
    tx.call(PUMP_SWAP, &accounts, &named("multi_hop_swap"));
    tx
}

/// The call of the curves' program in it.
fn curves(tx: &mut Tx) {
    let accounts = ["w", "w new", "new new", "new old", "new curve", "old old", "old curve"];
    tx.inner(2, PUMP, &accounts, &named("multi_hop_curve_swap"));
}

#[test]
fn a_curve_that_a_pools_program_calls_is_the_venue() {
    // OLD at a pool, NEW at its curve.
    let mut tx = two_hops();
    tx.transfer(2, "w sol", "old sol", "w", 1_000_000);
    tx.transfer(2, "old old", "new old", "old curve", 5_000);
    curves(&mut tx);
    tx.transfer(3, "new new", "w new", "new curve", 700);
    check(&tx, "w", &[(Side::Buy, "NEW", 700, Some(1_000_000), "Pump.fun")]);
    // OLD at its curve, NEW at a pool.
    let mut tx = two_hops();
    curves(&mut tx);
    tx.pay(3, "w", "old curve", 1_000_000).transfer(3, "old old", "new old", "old curve", 5_000);
    tx.transfer(2, "new new", "w new", "new curve", 700);
    check(&tx, "w", &[(Side::Buy, "NEW", 700, Some(1_000_000), "PumpSwap")]);
}

/// `Pump.fun`'s event of a sale by the wallet at a price, of which 1,000 are fees, in `quote`.
fn sale_event(price: u64, quote: &str) -> Vec<u8> {
    let mut event = vec![0xe4, 0x45, 0xa5, 0x2e, 0x51, 0xcb, 0x9a, 0x1d];
    event.extend([0xbd, 0xdb, 0x7f, 0xd3, 0x4e, 0xe6, 0x61, 0xee]);
    let mut body = vec![0; 250];
    body[32..40].copy_from_slice(&price.to_le_bytes());
    body[49..81].copy_from_slice(&key("w"));
    body[161..169].copy_from_slice(&1_000_u64.to_le_bytes());
    event.extend(body);
    event.extend(14_u32.to_le_bytes());
    event.extend(b"multi_hop_swap");
    // A flag, cashback and buyback, and two who share the creator's fee.
    event.extend([0; 1 + 4 * 8]);
    event.extend(2_u32.to_le_bytes());
    event.extend([7; 2 * 34]);
    event.extend(key(quote));
    event.extend([0; 24]);
    event
}

/// Next to a claim of 70,000 lamports the events decide, of which one states an amount of OLD. The
/// mint of SOL is empty.
#[test]
fn a_sale_by_way_of_another_coins_curve_has_its_price_in_sol() {
    for claims in [false, true] {
        let mut tx = two_hops();
        curves(&mut tx);
        tx.transfer(3, "w new", "new new", "w", 700);
        tx.inner(3, PUMP, &["events"], &sale_event(6_000, "OLD"));
        tx.transfer(3, "new old", "old old", "new curve", 5_000);
        tx.inner(3, PUMP, &["events"], &sale_event(1_001_000, SYSTEM));
        tx.drift("old curve", -1_000_000).drift("w", 1_000_000);
        if claims {
            tx.call(PUMP, &["w", "saved"], &named("claim_cashback"));
            tx.inner(2, PUMP, &["events"], &[1]).drift("saved", -70_000).drift("w", 70_000);
        }
        check(&tx, "w", &[(Side::Sell, "NEW", 700, Some(1_000_000), "Pump.fun")]);
    }
}

/// A sale for a wallet without SOL: who pays for the network makes its account for wrapped SOL, and
/// gets that rent back out of what the account leaves when it is closed.
#[test]
fn rent_that_goes_back_to_a_gas_sponsor_is_no_part_of_the_price() {
    let sale = |price: u64, receiver: &str| {
        let mut tx = Tx::new("sponsor");
        tx.signers = 2;
        tx.lamports("w", 0).account("w bonk", "BONK", "w", 1_000);
        tx.account("p bonk", "BONK", "p", 0).account("p sol", WSOL, "p", 900_000_000);
        tx.call(JUPITER, &["w", "w sol", "p sol", "p bonk", "w bonk", "p", receiver], &[1]);
        tx.open(2, "sponsor", "w sol", WSOL, "w", RENT);
        tx.inner(2, RAYDIUM, &["w sol", "p sol", "p bonk", "w bonk", "w", "p"], &[9]);
        tx.transfer(3, "w bonk", "p bonk", "w", 700).transfer(3, "p sol", "w sol", "p", price);
        tx.close(2, "w sol", "w", "w").pay(2, "w", receiver, RENT);
        tx
    };
    for price in [1_000_000, 100_000_000] {
        check(&sale(price, "sponsor"), "w", &[(Side::Sell, "BONK", 700, Some(price), POOL)]);
    }
    // Another account did not pay that rent: most of the proceeds were sent on to it.
    assert_eq!(run(&sale(1_000_000, "friend"), "w").trades, []);
}

/// A sale at a pool by a router that keeps its proceeds in an account of its own program, and pays
/// out of that without an instruction.
fn sold_by_a_router(tx: &mut Tx, wallet: &str, token: &str) {
    let own = format!("{token} of {wallet}");
    let pool = format!("pool of the {own}");
    let proceeds = format!("proceeds of the {own}");
    tx.account(&own, token, wallet, 1_000).account(&pool, token, "p", 0);
    tx.account(&proceeds, WSOL, "vault", 0);
    tx.call("some bot", &[wallet, "vault", &own, &pool, &proceeds, "p sol", "p"], &[1]);
    tx.inner(2, RAYDIUM, &[&own, &pool, &proceeds, "p sol", wallet, "p"], &[9]);
    tx.transfer(3, &own, &pool, wallet, 700).transfer(3, "p sol", &proceeds, "p", 1_000_000);
    tx.close(2, &proceeds, "vault", "vault").drift("vault", -990_000).drift(wallet, 990_000);
}

/// Two wallets sell in one transaction; or one of them sells two tokens, each for an unknown part.
#[test]
fn a_router_pays_several_sales_without_an_instruction() {
    for (second, token, value) in [("v", "BONK", Some(990_000)), ("w", "WIF", None)] {
        let mut tx = Tx::new("w");
        tx.account("p sol", WSOL, "p", 900_000_000);
        sold_by_a_router(&mut tx, "w", "BONK");
        sold_by_a_router(&mut tx, second, token);
        let mut sells = vec![(Side::Sell, "BONK", 700, value, POOL)];
        if second == "w" {
            sells.push((Side::Sell, token, 700, value, POOL));
        }
        check(&tx, "w", &sells);
    }
}
