//! How fast the demo node answers: load tests need it to be no bottleneck.

#![expect(clippy::unwrap_used, reason = "a bench that cannot go on says so by panicking")]

use std::hint::black_box;

use blotter::demo::DemoNode;
use blotter::demo::solana::{SolanaModel, WalletPlan};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

fn demo_node(c: &mut Criterion) {
    let model = SolanaModel::new(1);
    let address = model.add_named("bench", WalletPlan::trades(200_000));
    let node = DemoNode::new(model.clone(), 1);
    let call = |method: &str, params: String| {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#).into_bytes()
    };
    let options = r#"{"encoding":"json","maxSupportedTransactionVersion":1}"#;
    let requests: Vec<Vec<u8>> = model
        .truth(address)
        .take(1_000)
        .map(|row| call("getTransaction", format!(r#"["{}",{options}]"#, row.signature)))
        .collect();

    let mut group = c.benchmark_group("demo_node");
    group.throughput(Throughput::Elements(1));
    let mut turn = requests.iter().cycle();
    group.bench_function("get_transaction", |b| {
        b.iter(|| black_box(node.respond(turn.next().unwrap())));
    });
    group.throughput(Throughput::Elements(1_000));
    let list = call("getSignaturesForAddress", format!(r#"["{address}"]"#));
    group.bench_function("page_of_1000", |b| b.iter(|| black_box(node.respond(&list))));
    group.bench_function("truth_of_1000_rows", |b| {
        b.iter(|| black_box(model.truth(address).take(1_000).count()));
    });
    group.finish();
}

criterion_group!(benches, demo_node);
criterion_main!(benches);
