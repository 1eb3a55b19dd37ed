//! `blotter verify`: rows and transfers of the demo chains against their nodes' balances.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use blotter::demo::solana::{SolanaModel, WalletPlan};
use blotter::demo::{DemoChains, DemoNode, evm};
use blotter::registry::Registry;
use serde_json::{Value, json as value};

use crate::explain::{json, units};
use crate::support::loops::with_nodes;
use crate::support::program::Place;

/// What the node itself says: base units and decimals by mint.
fn held(node: &DemoNode, wallet: &str) -> BTreeMap<String, (i128, usize)> {
    let programs = [
        "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
        "TokenzQdBNbLqP5VEhdkAS6EPFLC1PHnBqCXEpPxuEb",
    ];
    let mut held = BTreeMap::new();
    for program in programs {
        let params = value!([wallet, {"programId": program}, {"encoding": "jsonParsed"}]);
        let method = "getTokenAccountsByOwner";
        let ask = value!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let body = node.respond(ask.to_string().as_bytes()).unwrap();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        for account in answer["result"]["value"].as_array().unwrap() {
            let info = &account["account"]["data"]["parsed"]["info"];
            let amount = &info["tokenAmount"];
            let units: i128 = amount["amount"].as_str().unwrap().parse().unwrap();
            let decimals = usize::try_from(amount["decimals"].as_u64().unwrap()).unwrap();
            let sum =
                held.entry(info["mint"].as_str().unwrap().to_owned()).or_insert((0, decimals));
            sum.0 += units;
        }
    }
    held
}

#[tokio::test(flavor = "multi_thread")]
async fn trades_and_transfers_of_a_solana_wallet_are_what_its_node_says_it_holds() {
    let model = SolanaModel::new(61);
    let plan = WalletPlan { noise_percent: 40, ..WalletPlan::trades(300) };
    let wallet = model.add_named("moved", plan);
    let rows = model.truth(wallet).count();
    let held = held(&DemoNode::new(model.clone(), 9), &wallet.to_string());
    assert!(held.len() > 8, "{held:?}");
    let nodes = vec![("sol".to_owned(), DemoNode::new(model, 1))];
    with_nodes(nodes, move |urls| {
        let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", &urls[0]);
        let wallet = wallet.to_string();
        let ran = place.run(&["verify", &wallet, "--json"]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
        let report = json(&ran.stdout);
        assert_eq!(report["trades"], rows.to_string());
        assert!(report["note"].is_null() && report["differences"].is_null());
        let tokens = report["tokens"].as_array().unwrap();
        let mut seen = BTreeSet::new();
        for token in tokens {
            assert_eq!(
                (&token["residue"], &token["rowsAgree"]),
                (&"0".into(), &true.into()),
                "{token}"
            );
            let mint = token["tokenMint"].as_str().unwrap();
            let (expected, decimals) = held.get(mint).copied().unwrap_or_default();
            assert_eq!(units(&token["balance"], decimals), expected, "{token}");
            seen.insert(mint.to_owned());
        }
        // Nothing that the node says is held was overlooked.
        let missed: Vec<_> =
            held.iter().filter(|(mint, (units, _))| *units > 0 && !seen.contains(*mint)).collect();
        assert!(missed.is_empty(), "{missed:?}");
        let moved = |name: &str| tokens.iter().filter(|token| token[name] != "0").count();
        assert!(moved("transfersIn") > 1 && moved("transfersOut") > 0, "{tokens:#?}");
        // Spam was never traded, and is there all the same.
        assert!(tokens.iter().any(|token| token["bought"] == "0" && token["balance"] != "0"));

        let shown = place.run(&["verify", &wallet]).stdout;
        let all = tokens.len();
        assert!(shown.contains(&format!("{all} tokens: {all} agree with what is held (not shown")));
        assert!(!shown.contains("RESIDUE") && !shown.contains("A residue may"), "{shown}");
        let shown = place.run(&["verify", &wallet, "--all"]).stdout;
        assert_eq!(
            shown.lines().filter(|line| line.contains("  agrees  ")).count(),
            all,
            "{shown}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_are_missing_stay_as_a_residue() {
    let model = SolanaModel::new(62);
    let wallet = model.add_named("short", WalletPlan::trades(120));
    let behind = SolanaModel::new(62);
    behind.add_named("short", WalletPlan::trades(120));
    behind.set_head(behind.head() - 400_000_000 / 4);
    let mut missing: BTreeMap<String, i128> = BTreeMap::new();
    let known: HashSet<String> =
        behind.truth(wallet).map(|row| row.signature.to_string()).collect();
    for row in model.truth(wallet).filter(|row| !known.contains(&row.signature.to_string())) {
        let units: i128 = row.units.to_string().parse().unwrap();
        let is_buy = row.side == blotter::domain::Side::Buy;
        *missing.entry(row.mint.to_string()).or_default() += if is_buy { units } else { -units };
    }
    missing.retain(|_, units| *units != 0);
    assert!(!missing.is_empty());
    let nodes = vec![
        ("sol".to_owned(), DemoNode::new(model, 1)),
        ("behind".to_owned(), DemoNode::new(behind, 2)),
    ];
    with_nodes(nodes, move |urls| {
        // The server's rows end where its node does.
        let server = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", &urls[1]);
        let server = server.serve(&["serve", "--listen", "127.0.0.1:0"]);
        let key = server.stderr.lines().find(|line| line.starts_with("blt_")).unwrap().to_owned();
        let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", &urls[0]);
        let (wallet, url) = (wallet.to_string(), server.url());
        let args = ["verify", &wallet, "--url", &url, "--key", &key];
        let ran = place.run(&[&args[..], &["--json"]].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "a residue is no failure");
        let report = json(&ran.stdout);
        let tokens = report["tokens"].as_array().unwrap();
        let residue = |token: &&Value| token["residue"] != "0";
        let found: Vec<&Value> = tokens.iter().filter(residue).collect();
        let mints = found.iter().map(|token| token["tokenMint"].as_str().unwrap());
        assert_eq!(mints.collect::<BTreeSet<_>>(), missing.keys().map(String::as_str).collect());
        // They come first, and are as much as the missing rows.
        assert!(tokens.iter().take(found.len()).all(|token| residue(&token)));
        for token in found {
            assert_eq!(token["rowsAgree"], false, "{token}");
            // The same sign and digits; where the point stands, the test above holds to the node.
            let residue = token["residue"].as_str().unwrap().replace('.', "");
            let units = missing[token["tokenMint"].as_str().unwrap()].to_string();
            assert_eq!(residue.starts_with('-'), units.starts_with('-'), "{token}");
            let digits = |text: &str| text.trim_matches(['-', '0']).to_owned();
            assert_eq!(digits(&residue), digits(&units), "{token}");
        }
        let shown = place.run(&args).stdout;
        assert!(shown.contains("RESIDUE") && shown.contains("A residue may"), "{shown}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_evm_chain_says_what_is_not_read() {
    let chains = DemoChains::new(63, &Registry::embedded().unwrap());
    let eth = chains.evm("eth").unwrap();
    let wallet = eth.add_named("verified", evm::WalletPlan::trades(25));
    let rpc = chains.paths("eth").unwrap().rpc;
    let nodes = chains.nodes().into_iter().filter(|(path, _)| *path == rpc).collect();
    with_nodes(nodes, move |urls| {
        let place = Place::new().variable("BLOTTER_CHAINS_ETH_RPC", &urls[0]);
        let wallet = wallet.to_string();
        let args = ["verify", &wallet, "--chain", "eth"];
        let ran = place.run(&[&args[..], &["--json"]].concat());
        assert_eq!(ran.code, Some(1), "nothing was held against the chain: {}", ran.stderr);
        assert!(ran.stderr.contains("BLOTTER_CHAINS_ETH_RPC"), "{}", ran.stderr);
        let report = json(&ran.stdout);
        for token in report["tokens"].as_array().unwrap() {
            // The demo's node has no `balanceOf`: that is said, and nothing is guessed.
            assert_eq!(token["rowsAgree"], true, "{token}");
            assert!(token["balance"].is_null() && token["residue"].is_null(), "{token}");
            assert!(!token["expected"].is_null(), "{token}");
            assert_eq!(token["verdict"], "the node does not report the balance; try another");
        }
        let note = "Tokens that strangers only sent to the wallet";
        assert!(report["note"].as_str().unwrap().starts_with(note));
        assert!(place.run(&args).stdout.contains(note));
    })
    .await;
}

/// Nothing is read before: no store is opened, and the chain's own node, which is away too, is not asked.
#[test]
fn another_node_that_does_not_answer_is_named_at_once() {
    let wallets = [
        ("sol", "So11111111111111111111111111111111111111112"),
        ("eth", "0x00000000000000000000000000000000000000aa"),
        ("tron", "TNUC9Qb1rRpS5CbWLmNMxXBjyFoydXjWFR"),
    ];
    for (chain, wallet) in wallets {
        let place = Place::new()
            .variable("BLOTTER_STORAGE_PATH", "folder")
            .variable("BLOTTER_CHAINS_SOL_RPC", "http://127.0.0.1:9")
            .variable("BLOTTER_CHAINS_ETH_RPC", "http://127.0.0.1:9")
            .variable("BLOTTER_CHAINS_TRON_RPC", "http://127.0.0.1:9");
        let away = ["--against", "http://127.0.0.1:9/planted"];
        let ran = place.run(&[&["verify", wallet, "--chain", chain], &away[..]].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains("--against") && ran.stderr.contains("127.0.0.1:9"));
        assert!(!ran.stderr.contains("planted"), "{}", ran.stderr);
        assert!(!place.path().join("folder").exists(), "{}", ran.stderr);
    }
}

/// Such a node refuses to report its chain, as some nodes of the right chain do. Nothing is read
/// before, as above.
#[tokio::test(flavor = "multi_thread")]
async fn another_node_that_is_of_another_family_is_named_at_once() {
    let chains = DemoChains::new(63, &Registry::embedded().unwrap());
    let (sol, eth) = (chains.paths("sol").unwrap().rpc, chains.paths("eth").unwrap().rpc);
    let nodes = chains.nodes().into_iter().filter(|(path, _)| [&sol, &eth].contains(&path));
    with_nodes(nodes.collect(), move |urls| {
        let of = |path: &str| urls.iter().find(|url| url.ends_with(path)).unwrap().as_str();
        // Answers 404 everywhere, as an EVM node does at the paths of Tron.
        let pathless = format!("{}-absent", of(&eth));
        for (chain, wallet, other, asked) in [
            ("sol", "So11111111111111111111111111111111111111112", of(&eth), "getSlot"),
            ("eth", "0x00000000000000000000000000000000000000aa", of(&sol), "eth_blockNumber"),
            ("tron", "TNUC9Qb1rRpS5CbWLmNMxXBjyFoydXjWFR", &pathless, "getnowblock"),
        ] {
            let place = Place::new()
                .variable("BLOTTER_STORAGE_PATH", "folder")
                .variable("BLOTTER_CHAINS_SOL_RPC", "http://127.0.0.1:9")
                .variable("BLOTTER_CHAINS_ETH_RPC", "http://127.0.0.1:9")
                .variable("BLOTTER_CHAINS_TRON_RPC", "http://127.0.0.1:9");
            let ran = place.run(&["verify", wallet, "--chain", chain, "--against", other]);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
            let named = ["--against", &format!("as a node of {chain}"), asked];
            assert!(named.iter().all(|part| ran.stderr.contains(part)), "{}", ran.stderr);
            assert!(!place.path().join("folder").exists(), "{}", ran.stderr);
        }
    })
    .await;
}

/// Nothing is read before, as above.
#[tokio::test(flavor = "multi_thread")]
async fn another_node_that_is_of_another_chain_is_named_at_once() {
    let chains = DemoChains::new(63, &Registry::embedded().unwrap());
    let rpc = chains.paths("base").unwrap().rpc;
    let nodes = chains.nodes().into_iter().filter(|(path, _)| *path == rpc).collect();
    with_nodes(nodes, move |urls| {
        let place = Place::new()
            .variable("BLOTTER_STORAGE_PATH", "folder")
            .variable("BLOTTER_CHAINS_ETH_RPC", "http://127.0.0.1:9");
        let wallet = "0x00000000000000000000000000000000000000aa";
        let ran = place.run(&["verify", wallet, "--chain", "eth", "--against", &urls[0]]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
        assert!(ran.stderr.contains("reports the chain 0x2105, not 0x1"), "{}", ran.stderr);
        assert!(!place.path().join("folder").exists(), "{}", ran.stderr);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_with_different_rows_is_a_failure() {
    let model = SolanaModel::new(53);
    let wallet = model.add_named("verified", WalletPlan::trades(80));
    let rows = model.truth(wallet).count();
    let other = SolanaModel::new(53);
    other.add_named("verified", WalletPlan::trades(80));
    other.set_head(other.head() - 400_000_000 / 4);
    let nodes = vec![
        ("sol".to_owned(), DemoNode::new(model.clone(), 1)),
        ("same".to_owned(), DemoNode::new(model, 2)),
        ("less".to_owned(), DemoNode::new(other, 3)),
    ];
    with_nodes(nodes, move |urls| {
        let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", &urls[0]);
        let wallet = wallet.to_string();
        let args = ["verify", wallet.as_str(), "--json", "--against"];
        let ran = place.run(&[&args[..], &[&urls[1]]].concat());
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
        let report = json(&ran.stdout);
        assert_eq!(report["trades"], rows.to_string());
        assert_eq!(report["differences"], Value::Array(Vec::new()));
        for token in report["tokens"].as_array().unwrap() {
            assert_eq!(token["residue"], "0", "{token}");
        }
        // A chain that is shorter knows less.
        let ran = place.run(&[&args[..], &[&urls[2]]].concat());
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let report = json(&ran.stdout);
        let found = report["differences"].as_array().unwrap();
        assert!(!found.is_empty());
        assert!(found.iter().all(|one| one["what"] == "only here"), "{found:?}");
    })
    .await;
}

/// What a database holds is compared with the other node, and not with itself.
#[cfg(feature = "postgres")]
#[tokio::test(flavor = "multi_thread")]
async fn another_node_is_compared_with_a_database_too() {
    let Some(database) = crate::support::arms::database().await else { return };
    let (model, other) = (SolanaModel::new(53), SolanaModel::new(53));
    let wallet = model.add_named("verified", WalletPlan::trades(80));
    other.add_named("verified", WalletPlan::trades(80));
    other.set_head(other.head() - 400_000_000 / 4);
    let node = |name: &str, model, seed| (name.to_owned(), DemoNode::new(model, seed));
    with_nodes(vec![node("sol", model, 1), node("less", other, 2)], move |urls| {
        let place = Place::new()
            .variable("BLOTTER_CHAINS_SOL_RPC", &urls[0])
            .variable("BLOTTER_STORAGE_URL", &database);
        let wallet = wallet.to_string();
        let ran = place.run(&["verify", &wallet, "--json", "--against", &urls[1]]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let report = json(&ran.stdout);
        assert!(!report["differences"].as_array().unwrap().is_empty(), "{report}");
    })
    .await;
}
