//! Native coin through routers on nodes without traces: a wrap or unwrap that the call is known to
//! spend or pay out in full, and events that state the payment. Amounts are worked out by hand.

use blotter::decode::NoteKind;
use blotter::decode::evm::{Account, CoinSale, CoinTo, Log, Terms};
use blotter::domain::Units;

use crate::evm_decode::{
    AAA, BBB, Case, OTHER, POOL, ROUTER, WALLET, ZERO, account, call, case, log, number, sell,
    swap, transfer, unwrap, v2_swap, weth, word,
};

const DEPOSIT: &str = "Deposit(address,uint256)";
const WITHDRAWAL: &str = "Withdrawal(address,uint256)";
const ROUTE: &str = "Route(address,address,address,address,uint256,uint256,uint256)";

/// How a chain's wrapped coin logs that coin goes in and out.
#[derive(Debug, Clone, Copy)]
enum Logged {
    /// By events of their own, as WETH9.
    ByEvents,
    /// As transfers from and to zero, as Arbitrum's.
    ByTransfers,
}

/// A router on a chain, called by the wallet.
struct Through {
    chain: &'static str,
    router: Account,
    coin: Account,
    logged: Logged,
}

impl Through {
    fn on_eth(router: &str) -> Self {
        let router = account(router);
        Self { chain: "eth", router, coin: weth(), logged: Logged::ByEvents }
    }

    fn wrap(&self, amount: u64) -> Log {
        match self.logged {
            Logged::ByEvents => log(self.coin, DEPOSIT, &[word(self.router)], &[number(amount)]),
            Logged::ByTransfers => transfer(self.coin, ZERO, self.router, amount),
        }
    }

    fn unwrap_by(&self, who: Account, amount: u64) -> Log {
        match self.logged {
            Logged::ByEvents => log(self.coin, WITHDRAWAL, &[word(who)], &[number(amount)]),
            Logged::ByTransfers => transfer(self.coin, who, ZERO, amount),
        }
    }

    /// 500 AAA for this much wrapped coin, which the router unwraps.
    fn sale(&self, paid: u64) -> Case {
        let mut logs = swap(POOL, (AAA, 500, WALLET), (self.coin, paid, self.router));
        logs.push(self.unwrap_by(self.router, paid));
        case(logs).to(self.router).on(self.chain).unknown()
    }

    /// `sent` native coin, of which `wrapped` is wrapped and exchanged for 500 AAA.
    fn purchase(&self, sent: u64, wrapped: u64) -> Case {
        let mut logs = vec![self.wrap(wrapped)];
        logs.extend(swap(POOL, (self.coin, wrapped, self.router), (AAA, 500, WALLET)));
        case(logs).to(self.router).on(self.chain).value(sent).unknown()
    }
}

fn calling(mut case: Case, selector: [u8; 4]) -> Case {
    case.tx.selector = Some(selector);
    case
}

fn sold(case: &Case, native: Option<u64>) {
    case.gives(&[('s', AAA, 500, native)]);
}

fn bought(case: &Case, native: Option<u64>) {
    case.gives(&[('b', AAA, 500, native)]);
}

/// `ParaSwap` v5: `simpleSwap` and its like pay out what they unwrapped; `megaSwap` may keep a fee that
/// no event shows.
#[test]
fn the_calls_of_paraswap_v5_that_pay_out_whole_are_valued() {
    let paraswap = Through::on_eth("def171fe48cf0115b1d80b88dc8eab59176fee57");
    let simple_swap = [0x54, 0x84, 0x0d, 0x1a];
    let mega_swap = [0x46, 0xc6, 0x7b, 0x6d];
    sold(&calling(paraswap.sale(73), simple_swap), Some(73));
    sold(&calling(paraswap.sale(73), mega_swap), None);
    // Another contract unwraps too: which of the two paid is unknown.
    let mut two = calling(paraswap.sale(73), simple_swap);
    two.tx.logs.push(paraswap.unwrap_by(OTHER, 8));
    sold(&two, None);
    // What was not wrapped was refunded.
    bought(&calling(paraswap.purchase(130, 100), simple_swap), Some(100));
    bought(&calling(paraswap.purchase(130, 100), mega_swap), None);
}

/// What `ParaSwap`'s fifth version states of a sale to native coin: the partner and its terms, what
/// came out and what was expected.
fn of_paraswap(
    router: Account,
    name: &str,
    partner: Account,
    terms: u64,
    amounts: [u64; 2],
) -> Log {
    let kind = if name == "SwappedDirect" { "uint8," } else { "" };
    let rest = "address,address,address,uint256,uint256,uint256";
    let signature = format!("{name}(bytes16,address,uint256,address,{kind}{rest})");
    let topics = [word(WALLET), word(AAA), word([0xee; 20])];
    // The version of the terms stands in the first byte.
    let mut version = number(terms);
    version[0] = 1;
    let mut data = vec![number(0), word(partner), version, word(WALLET)];
    data.extend((name == "SwappedDirect").then(|| number(2)));
    data.push(number(500));
    data.extend(amounts.map(number));
    log(router, &signature, &topics, &data)
}

/// The fees are those of recorded transactions: 0xf4d28d1c… kept 11308417 of 1190359719 by the
/// terms 0x405f, 0x606413e4… nothing by 0x4000 without a partner, 0x92a422b7… nothing by 0x31388,
/// and 0x83ac5abc… a surplus by the same terms.
#[test]
fn a_partner_of_paraswap_v5_takes_what_the_terms_of_its_event_say() {
    let paraswap = Through::on_eth("def171fe48cf0115b1d80b88dc8eab59176fee57");
    let mega_swap = [0x46, 0xc6, 0x7b, 0x6d];
    let whole = 1_190_359_719;
    let sale = |name, partner, terms, expected| {
        let mut case = calling(paraswap.sale(whole), mega_swap);
        case.tx.logs.push(of_paraswap(paraswap.router, name, partner, terms, [whole, expected]));
        case
    };
    for name in ["SwappedV3", "SwappedDirect"] {
        let sale = |partner, terms, expected| sale(name, partner, terms, expected);
        sold(&sale(OTHER, 0x405f, whole), Some(whole - 11_308_417));
        // A fee of more than 0.5 % takes the place of a share of the surplus.
        sold(&sale(OTHER, 0x405f, whole - 9), Some(whole - 11_308_417));
        sold(&sale(OTHER, 0x13, whole), Some(whole - 2_261_683));
        sold(&sale(OTHER, 0x13, whole - 9), None);
        for (partner, terms) in [(ZERO, 0x4000), (ZERO, 0x405f), (OTHER, 0x31388), (OTHER, 0xc05f)]
        {
            sold(&sale(partner, terms, whole), Some(whole));
            sold(&sale(partner, terms, whole + 9), Some(whole));
            sold(&sale(partner, terms, whole - 9), None);
        }
        // Terms that versions read differently, and a fee above the maximum.
        sold(&sale(OTHER, 0x2_0013, whole), None);
        sold(&sale(OTHER, 501, whole), None);
    }
    // The expected cost of a purchase does not limit what it gave.
    sold(&sale("BoughtV3", OTHER, 0x31388, 1), Some(whole));
    sold(&sale("BoughtV3", OTHER, 0x405f, 1), Some(whole - 11_308_417));
}

/// A part of the stated amount of native coin may have been refunded.
#[test]
fn paraswap_v5_does_not_say_that_all_that_was_sent_was_spent() {
    let paraswap = Through::on_eth("def171fe48cf0115b1d80b88dc8eab59176fee57");
    let mut said = of_paraswap(paraswap.router, "SwappedV3", ZERO, 0x4000, [9, 9]);
    said.data[4 * 32..5 * 32].copy_from_slice(&number(130));
    let mut case = calling(paraswap.purchase(130, 98), [0x46, 0xc6, 0x7b, 0x6d]);
    case.tx.logs.push(said);
    bought(&case, None);
}

/// Transit Swap's routers and Kyber's last proxy: places of words as in recorded transactions
/// 0xa155f476… and 0xf01b5065… on Ethereum.
#[test]
fn routers_that_state_what_was_given_and_got_are_valued() {
    let of_transit = |tokens: [_; 2], to: Account, given: u64, got: u64| {
        let topics = [tokens[0], tokens[1], word(to)];
        let amounts = [given, got, got / 2, 3, 0].map(number);
        let head = [word(WALLET), number(1)];
        let tail = [number(288), number(9), number(0)];
        let rest = "address,bool,uint256,uint256,uint256,uint256,uint256,string,uint256";
        let fourth = format!("TransitSwapped(address,address,address,{rest})");
        let fifth = "TransitSwapped(address,address,address,uint256,uint256,uint256,string)";
        let long = [head.as_slice(), &amounts, &tail].concat();
        let short = [number(given), number(got), number(0), number(128), number(0)];
        [log(ROUTER, &fourth, &topics, &long), log(ROUTER, fifth, &topics, &short)]
    };
    let of_kyber = |tokens: [_; 2], to: Account, given: u64, got: u64| {
        let rest = "address,address,address,uint256,uint256,address,uint256";
        let amounts = [number(given), number(got), word(OTHER), number(8)];
        let data = [[tokens[0], tokens[1], word(to)].as_slice(), &amounts].concat();
        log(ROUTER, &format!("ExecuteTrade(address,{rest})"), &[word(WALLET)], &data)
    };
    let (coin, zero) = (word([0xee; 20]), word(ZERO));
    let with = |mut case: Case, said: Log| {
        case.tx.logs.push(said);
        case.to(ROUTER)
    };
    let by_other = || {
        let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, OTHER));
        logs.push(unwrap(OTHER, 100));
        case(logs).unknown()
    };
    let purchase = || Through::on_eth(&hex::encode(ROUTER)).purchase(130, 98);
    let sales = |to, got| {
        let [fourth, fifth] = of_transit([word(AAA), zero], to, 500, got);
        [fourth, fifth, of_kyber([word(AAA), coin], to, 500, got)]
    };
    for said in sales(WALLET, 97) {
        sold(&with(by_other(), said), Some(97));
    }
    for said in sales(OTHER, 97) {
        with(by_other(), said).gives_none(Some(NoteKind::OneSided));
    }
    // A bridge by the same router states that nothing was got here.
    for said in sales(WALLET, 0) {
        case(vec![transfer(AAA, WALLET, ROUTER, 500), said])
            .unknown()
            .gives_none(Some(NoteKind::OneSided));
    }
    let [fourth, fifth] = of_transit([zero, word(AAA)], WALLET, 130, 500);
    for said in [fourth, fifth, of_kyber([coin, word(AAA)], WALLET, 130, 500)] {
        bought(&with(purchase(), said), Some(130));
    }
    bought(&with(purchase(), of_kyber([coin, word(AAA)], WALLET, 98, 130)), None);
}

/// Sushi's route processors name in an event to whom they paid how much of what.
#[test]
fn the_event_of_a_route_processor_values_both_sides() {
    let sushi = Through::on_eth("ac4c6e212a361c968f1725b4d055b47e63f80b75");
    let native = word([0xee; 20]);
    let route = |to: Account, tokens: [_; 2], amounts: [u64; 2]| {
        let topics = [word(WALLET), tokens[0], tokens[1]];
        let [given, got] = amounts.map(number);
        log(sushi.router, ROUTE, &topics, &[word(to), given, got, got])
    };
    let with = |mut case: Case, said: Log| {
        case.tx.logs.push(said);
        case
    };
    // A fee of 3 stays with the processor: the event has what was paid.
    let paid = route(WALLET, [word(AAA), native], [500, 97]);
    sold(&with(sushi.sale(100), paid), Some(97));
    sold(&sushi.sale(100), None);
    // To another account: the wallet got nothing. A token of that name in place of native coin.
    let elsewhere = route(OTHER, [word(AAA), native], [500, 97]);
    with(sushi.sale(100), elsewhere.clone()).gives_none(Some(NoteKind::OneSided));
    // A known contract passes on what it is paid; another contract's event is a part of a route.
    let vault = account("ba12222222228d8ba445958a75a0704d566bf2c8");
    let passed_on = route(vault, [word(AAA), native], [500, 97]);
    sold(&with(sushi.sale(100), passed_on), None);
    let mut inner = elsewhere;
    inner.address = OTHER;
    sold(&with(sushi.sale(100), inner), None);
    let in_tokens = route(WALLET, [word(AAA), word(weth())], [500, 97]);
    sold(&with(sushi.sale(100), in_tokens), None);
    // All that was sent was spent, although less was wrapped.
    let taken = route(WALLET, [native, word(AAA)], [100, 500]);
    bought(&with(sushi.purchase(100, 98), taken), Some(100));
    let less = route(WALLET, [native, word(AAA)], [98, 500]);
    bought(&with(sushi.purchase(100, 98), less), None);
}

/// Events of Odos and OKX name the caller; the receiver is in the call's input.
#[test]
fn an_event_that_names_the_caller_values_a_sale_whose_input_does_too() {
    let odos = Through::on_eth("cf5540fffcdc3d510b18bfca6d2b9987b0772559");
    let okx = Through::on_eth("3b3ae790df4f312e745d270119c6052904fb6790");
    let by_odos = {
        let words = [word(WALLET), number(500), word(AAA), number(97), word(ZERO), number(0)];
        let signature = "Swap(address,uint256,address,uint256,address,int256,uint32)";
        log(odos.router, signature, &[], &[words.as_slice(), &[number(1)]].concat())
    };
    let by_okx = {
        let words = [word(AAA), word([0xee; 20]), word(WALLET), number(500), number(97)];
        let signature = "OrderRecord(address,address,address,uint256,uint256)";
        log(okx.router, signature, &[], &words)
    };
    for (through, said) in [(odos, by_odos), (okx, by_okx)] {
        let with = |terms: Terms| {
            let mut case = through.sale(100);
            case.tx.logs.push(said.clone());
            case.tx.terms = terms;
            case
        };
        let of_caller = Terms { coin: CoinTo::Sender, ..Terms::default() };
        sold(&with(of_caller), Some(97));
        sold(&with(Terms { receiver: Some(WALLET), ..of_caller }), Some(97));
        // An input that cannot be decoded, and one that names another account.
        sold(&with(Terms::default()), None);
        let to_other = Terms { receiver: Some(OTHER), ..Terms::default() };
        with(to_other).gives_none(Some(NoteKind::OneSided));
        // Another contract called it, with another input.
        sold(&with(of_caller).to([0x77; 20]), None);
    }
}

/// Of what it unwraps, others may keep a part.
#[test]
fn the_router_of_bebop_states_what_the_receiver_got() {
    let bebop = Through::on_eth("beb0009aca35087ce7ccf11637e24dd1aad3bf2a");
    let amounts = "uint256,uint256,uint256,uint256,uint256";
    let signature = format!("BebopRouterSwap(uint128,uint256,address,address,address,{amounts})");
    let sale = |to: Account| {
        let mut case = bebop.sale(100);
        let mut data = vec![word(AAA), word([0xee; 20])];
        data.extend([500, 97, 0, 0, 0].map(number));
        let topics = [number(9), number(1), word(to)];
        case.tx.logs.push(log(bebop.router, &signature, &topics, &data));
        case
    };
    sold(&sale(WALLET), Some(97));
    sale(OTHER).gives_none(Some(NoteKind::OneSided));
}

/// OKX states the payment before its commission, and in later routers after it. A commission on
/// what was sent precedes both.
#[test]
fn a_commission_of_okx_is_of_the_payment_that_it_follows_or_of_what_was_sent() {
    let okx = Through::on_eth("3b3ae790df4f312e745d270119c6052904fb6790");
    let native = word([0xee; 20]);
    let record = |tokens: [_; 2], amounts: [u64; 2]| {
        let [given, got] = amounts.map(number);
        let signature = "OrderRecord(address,address,address,uint256,uint256)";
        log(okx.router, signature, &[], &[tokens[0], tokens[1], word(WALLET), given, got])
    };
    let fee = |by: Account, token, amount| {
        let signature = "CommissionToTokenRecord(address,uint256,address)";
        log(by, signature, &[], &[token, number(amount), word(OTHER)])
    };
    let later = |name: &str, token, amount| {
        let signature = format!("{name}(address,uint256,address,uint256)");
        log(okx.router, &signature, &[], &[token, number(amount), word(OTHER), number(9)])
    };
    let sale = |said: &[Log]| {
        let mut case = okx.sale(100);
        case.tx.logs.extend_from_slice(said);
        case.tx.terms = Terms { coin: CoinTo::Sender, ..Terms::default() };
        case
    };
    let whole = record([word(AAA), native], [500, 100]);
    let rest = record([word(AAA), native], [500, 96]);
    let [one, three] = [1, 3].map(|amount| fee(okx.router, native, amount));
    sold(&sale(&[whole.clone(), one.clone(), three.clone()]), Some(96));
    let trim = "PositiveSlippageTrimRecord(address,uint256,address)";
    let trim = log(okx.router, trim, &[], &[native, number(1), word(OTHER)]);
    sold(&sale(&[later("CommissionToTokenRecord", native, 3), trim, rest.clone()]), Some(96));
    sold(&sale(&[one.clone(), three.clone(), rest.clone()]), Some(96));
    // Out of the token that was sold.
    sold(&sale(&[later("CommissionFromTokenRecord", word(AAA), 3), rest]), Some(96));
    // By another router, and of one of two payments.
    sold(&sale(&[whole.clone(), fee(OTHER, native, 4)]), None);
    sold(&sale(&[whole.clone(), whole, three]), None);
    // No payment is stated.
    sold(&sale(&[one]), None);

    let later_okx = Through {
        router: [0x77; 20],
        ..Through::on_eth("3b3ae790df4f312e745d270119c6052904fb6790")
    };
    let purchase = |sent, token, said| {
        let mut case = later_okx.purchase(sent, 97);
        let mut bought = record([native, word(AAA)], [said, 500]);
        let mut kept = later("CommissionFromTokenRecord", token, 3);
        (bought.address, kept.address) = (later_okx.router, later_okx.router);
        case.tx.logs.extend([kept, bought]);
        case
    };
    bought(&purchase(100, native, 97), Some(100));
    bought(&purchase(101, native, 97), None);
    bought(&purchase(100, word(AAA), 97), None);
    bought(&purchase(100, native, 96), None);
}

/// Transactions 0x0688bd57… and 0x27259f99… on Robinhood Chain, of which the fee of one in a hundred was
/// paid out of what was unwrapped and out of what was sent; the amounts of the token are made up.
#[test]
fn the_event_of_gmgn_values_both_sides() {
    let gmgn = Through {
        chain: "robinhood",
        router: account("65050a9b7e5075a2ba5ced7b1b64ee66262c40dc"),
        coin: account("0bd7d308f8e1639fab988df18a8011f41eacad73"),
        logged: Logged::ByTransfers,
    };
    let earlier = |to: Account, fee_in, amounts: [u64; 2]| {
        let mut said =
            log(gmgn.router, "", &[word(WALLET), word(to), fee_in], &amounts.map(number));
        let topic = "8619026a40d38bedb4002fe511cea4bc4a9b336710efe8f21a61869a7ee0f02a";
        let first = hex::decode(topic).unwrap().try_into().unwrap();
        said.topics = [&[first], said.topics.get(1..).unwrap()].concat().into();
        said
    };
    let later = |to: Account, fee_in, amounts: [u64; 2]| {
        let signature = "Swap(address,address,address,uint256,uint256,\
                         (uint8,address,address,address,uint24,int24,address,bytes)[])";
        log(gmgn.router, signature, &[word(WALLET), word(to), fee_in], &amounts.map(number))
    };
    let with = |mut case: Case, said: Log| {
        case.tx.logs.push(said);
        case
    };
    let (gross, net) = (22_251_309_406_981_553, 22_028_796_312_911_738);
    let (sent, wrapped) = (20_000_000_000_000_000, 19_800_000_000_000_000);
    sold(&gmgn.sale(gross), None);
    sold(&with(gmgn.sale(gross), earlier(WALLET, word(ZERO), [500, net])), Some(net));
    sold(&with(gmgn.sale(gross), later(WALLET, word(ZERO), [500, net])), Some(net));
    // To another account, and in a token.
    let elsewhere = with(gmgn.sale(gross), later(OTHER, word(ZERO), [500, net]));
    elsewhere.gives_none(Some(NoteKind::OneSided));
    sold(&with(gmgn.sale(gross), later(WALLET, word(BBB), [500, net])), None);
    bought(&gmgn.purchase(sent, wrapped), None);
    bought(
        &with(gmgn.purchase(sent, wrapped), earlier(WALLET, word(ZERO), [sent, 500])),
        Some(sent),
    );
    bought(&with(gmgn.purchase(sent, wrapped), later(WALLET, word(ZERO), [wrapped, 500])), None);
}

const EXCHANGED: &str = "TokenExchange(address,int128,uint256,int128,uint256)";

/// 500 AAA that the wallet gives a pool of Curve, and 90 of something that its event states.
fn exchanged(more: Vec<Log>) -> Case {
    let said = [number(1), number(500), number(0), number(90)];
    let mut logs = vec![transfer(AAA, WALLET, POOL, 500)];
    logs.extend(more);
    logs.push(log(POOL, EXCHANGED, &[word(WALLET)], &said));
    case(logs).to(POOL).unknown()
}

/// Curve's event has the same amount for coin and for any token.
#[test]
fn what_a_pool_states_is_coin_where_it_may_have_given_coin() {
    sold(&exchanged(vec![]), Some(90));
    sold(&exchanged(vec![unwrap(POOL, 90)]), Some(90));
    // Paid as a token to another account.
    exchanged(vec![transfer(BBB, POOL, OTHER, 90)]).gives_none(Some(NoteKind::OneSided));
    exchanged(vec![transfer(weth(), POOL, OTHER, 90)]).gives_none(Some(NoteKind::OneSided));
    // Paid as wrapped coin to the wallet.
    sold(&exchanged(vec![transfer(weth(), POOL, WALLET, 90)]), Some(90));
    // The call names another account than the caller that the event has.
    let mut elsewhere = exchanged(vec![]);
    elsewhere.tx.terms.receiver = Some(OTHER);
    elsewhere.gives_none(Some(NoteKind::OneSided));
}

/// `ShibaSwap`'s router is a copy of Uniswap's: it unwraps for its caller and refunds the rest.
#[test]
fn shibaswap_pays_as_the_router_that_it_was_made_of() {
    let shiba = Through::on_eth("03f7724180aa6b939894b5ca4314783b0b36b329");
    sold(&shiba.sale(64), Some(64));
    bought(&shiba.purchase(90, 64), Some(64));
    bought(&shiba.purchase(64, 64), Some(64));
    // An unknown contract with the same calls may keep a part.
    let unknown = Through {
        router: [0x77; 20],
        ..Through::on_eth("03f7724180aa6b939894b5ca4314783b0b36b329")
    };
    sold(&unknown.sale(64), None);
    bought(&unknown.purchase(90, 64), None);
}

/// Forks of Uniswap's routers on rollups, with the wrapped coin of each chain.
#[test]
fn forks_on_rollups_pay_by_one_unwrap() {
    let op = "4200000000000000000000000000000000000006";
    let arbitrum = "82af49447d8a07e3bd95bd0d56f35241523fbab1";
    let sushi = "1b02da8cb0d097eb8d57a175b88c7d8b47997506";
    let routers = [
        ("arbitrum", sushi, arbitrum, Logged::ByTransfers),
        ("arbitrum", "4752ba5dbc23f44d87826276bf6fd6b1c372ad24", arbitrum, Logged::ByTransfers),
        ("base", "cf77a3ba9a5ca399b7c97c74d54e5b1beb874e43", op, Logged::ByEvents),
        ("base", "4752ba5dbc23f44d87826276bf6fd6b1c372ad24", op, Logged::ByEvents),
        ("base", "fcd3842f85ed87ba2889b4d35893403796e67ff1", op, Logged::ByEvents),
        ("optimism", "4a7b5da61326a6379179b40d00f57e5bbdc962c2", op, Logged::ByEvents),
        ("optimism", "a062ae8a9c5e11aaa026fc2670b0d65ccc8b2858", op, Logged::ByEvents),
        ("polygon", sushi, "0d500b1d8e8ef31e21c99d1db9a6444d3adf1270", Logged::ByEvents),
    ];
    for (chain, router, coin, logged) in routers {
        let fork = Through { chain, router: account(router), coin: account(coin), logged };
        sold(&fork.sale(41), Some(41));
        bought(&fork.purchase(60, 41), Some(41));
        let mut two = fork.sale(41);
        two.tx.logs.push(fork.unwrap_by(OTHER, 5));
        sold(&two, None);
        // The pool paid another account, so the router did not pay.
        let logs = vec![
            transfer(AAA, WALLET, POOL, 500),
            transfer(fork.coin, POOL, OTHER, 41),
            v2_swap(POOL, [500, 0, 0, 41]),
        ];
        let kept = case(logs).to(fork.router).on(chain).unknown();
        assert_eq!(kept.decode().trades, []);
    }
}

/// 500 AAA for 3 native coins by an unknown contract, and the words of an event after the unwrap.
fn sale_with(said: &[u64]) -> Case {
    let coin = 3_000_000_000_000_000_000;
    let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), coin, ROUTER));
    let said: Vec<_> = said.iter().map(|value| number(*value)).collect();
    logs.push(unwrap(ROUTER, coin));
    logs.push(log(OTHER, "Kept(address,uint256)", &[word(OTHER)], &said));
    case(logs).unknown()
}

#[test]
fn a_fee_kept_out_of_unwrapped_coin_leaves_a_sale() {
    let fee = 30_000_000_000_000_000;
    sale_with(&[0, fee]).gives(&[('s', AAA, 500, None)]);
    sale_with(&[0, 1_499_999_999_999_999_999]).gives(&[('s', AAA, 500, None)]);
    // An amount of half the coin may be what the wallet had sent on, even next to a fee.
    sale_with(&[0, 1_500_000_000_000_000_000]).gives_none(Some(NoteKind::OneSided));
    sale_with(&[fee, 2_970_000_000_000_000_000]).gives_none(Some(NoteKind::OneSided));
    // An event without an amount, only an index or a time.
    sale_with(&[7, 1_760_000_000]).gives_none(Some(NoteKind::OneSided));
    sale_with(&[]).gives_none(Some(NoteKind::OneSided));
}

/// Bots and launchpads take a fee, or forward a tip, from the value that a sale sends.
#[test]
fn coin_that_comes_with_a_sale_leaves_it_one() {
    let with = |value: u64| sell().value(value);
    let calls = [call(weth(), ROUTER, 100), call(ROUTER, WALLET, 100)];
    with(3).calls(&calls).gives(&[('s', AAA, 500, Some(97))]);
    with(3).unknown().gives(&[('s', AAA, 500, None)]);
    // A value as large as what was unwrapped may be the other side of a deposit.
    with(50).unknown().gives_none(Some(NoteKind::OneSided));
}

/// What any contract unwraps inside a call of 1inch's v5 router is its caller's, unless another
/// account sold something there too.
#[test]
fn a_sale_of_another_account_below_the_call_leaves_the_payment_unknown() {
    let router = Through::on_eth("1111111254eeb25477b68fb85ed929f73a960582");
    let with = |more: Vec<Log>| {
        let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 100, OTHER));
        logs.push(unwrap(OTHER, 100));
        logs.extend(more);
        case(logs).to(router.router).unknown()
    };
    sold(&with(vec![]), Some(100));
    let (seller, pool, helper) = ([0x71; 20], [0x72; 20], [0x73; 20]);
    let mut sale = swap(pool, (BBB, 7, seller), (weth(), 40, helper));
    sale.push(unwrap(helper, 40));
    sold(&with(sale.clone()), None);
    // An account that got a token in return is part of the route.
    sale.insert(0, transfer(BBB, OTHER, seller, 7));
    sale.insert(0, transfer(BBB, POOL, OTHER, 7));
    sold(&with(sale), Some(140));
}

/// A Universal Router unwraps to itself, and its commands pay a share to another account.
#[test]
fn a_part_of_what_a_router_unwraps_is_left_out() {
    let router = Through::on_eth("66a9893cc07d91d95644aedd05d03f95e1dba8af");
    let with = |part: Option<u64>| {
        let mut case = router.sale(1_000_399);
        let parts = |part| [Units::from(part), Units::ZERO];
        let sale = part.map(|part| CoinSale { parts: parts(part), ..CoinSale::default() });
        case.tx.terms = Terms { coin: CoinTo::Shared, sale, ..Terms::default() };
        case
    };
    sold(&with(None), None);
    sold(&with(Some(0)), Some(1_000_399));
    sold(&with(Some(25)), Some(997_899));
    // Another contract unwraps too.
    let mut two = with(Some(25));
    two.tx.logs.push(router.unwrap_by(OTHER, 8));
    sold(&two, None);
}

/// Called through `AllowanceHolder`, a Settler unwraps, and its actions pay shares to others.
#[test]
fn a_settler_pays_what_it_unwraps_less_the_parts_of_others() {
    let holder = Through::on_eth("0000000000001ff3684f28c67538d4d072c22734");
    let settler = [0x75; 20];
    let with = |by: Option<Account>, parts: [u64; 2], most: Option<u64>| {
        let mut logs = swap(POOL, (AAA, 500, WALLET), (weth(), 1_000_399, settler));
        logs.push(unwrap(settler, 1_000_399));
        let mut case = case(logs).to(holder.router).unknown();
        let (parts, most) = (parts.map(Units::from), most.map(Units::from));
        let sale = Some(CoinSale { by, parts, most, ..CoinSale::default() });
        case.tx.terms = Terms { sale, coin: CoinTo::Sender, ..Terms::default() };
        case
    };
    let by = Some(settler);
    sold(&with(by, [0, 0], None), Some(1_000_399));
    // 70 hundredths of a percent are 7002, and 15 of the rest 1490.
    sold(&with(by, [70, 15], Some(1_000_399)), Some(991_907));
    sold(&with(by, [0, 0], Some(1_000_398)), None);
    sold(&with(Some(OTHER), [0, 0], None), None);
    sold(&with(None, [0, 0], None), None);
    // The token that it unwraps: the chain's wrapped coin, or another token.
    for (token, native) in [(weth(), Some(1_000_399)), (BBB, None)] {
        let mut case = with(by, [0, 0], None);
        let sale = CoinSale { by, unwraps: Some(token), ..CoinSale::default() };
        case.tx.terms.sale = Some(sale);
        sold(&case, native);
    }
    // Another contract with the same call is not 0x's.
    sold(&with(by, [0, 0], None).to(ROUTER), None);
}
