//! Exports of a history: every format, read back, and resumed after an interruption.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use blotter::demo::solana::{SolanaModel, TradeKind, WalletPlan};
use blotter::demo::{DemoNode, Faults};
use serde_json::Value;

use crate::support::loops::with_nodes;
use crate::support::program::{PATIENCE, Place};

/// Cells of a CSV text by RFC 4180.
fn csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, quoted) {
            ('"', true) if chars.peek() == Some(&'"') => cell.push(chars.next().unwrap()),
            ('"', _) => quoted = !quoted,
            (',', false) => row.push(std::mem::take(&mut cell)),
            ('\n', false) => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            _ => cell.push(c),
        }
    }
    assert!(row.is_empty() && cell.is_empty(), "it does not end with a line break");
    rows
}

/// Any Thrift value of the compact protocol: written from its description, apart from the writer.
#[derive(Debug, Clone)]
enum Thrift {
    Bool,
    Number(i64),
    Text(Vec<u8>),
    List(Vec<Thrift>),
    Struct(HashMap<i64, Thrift>),
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap();
        self.0 = rest;
        *first
    }

    fn varint(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return value;
            }
            shift += 7;
        }
    }

    fn number(&mut self) -> i64 {
        let raw = self.varint();
        i64::try_from(raw >> 1).unwrap() ^ -i64::try_from(raw & 1).unwrap()
    }

    fn value(&mut self, kind: u8) -> Thrift {
        match kind {
            1 | 2 => Thrift::Bool,
            5 | 6 => Thrift::Number(self.number()),
            8 => {
                let length = usize::try_from(self.varint()).unwrap();
                let (text, rest) = self.0.split_at(length);
                self.0 = rest;
                Thrift::Text(text.to_vec())
            }
            9 => {
                let head = self.byte();
                let length = match head >> 4 {
                    15 => self.varint(),
                    short => u64::from(short),
                };
                Thrift::List((0..length).map(|_| self.value(head & 15)).collect())
            }
            12 => self.structure(),
            other => panic!("type {other}"),
        }
    }

    fn structure(&mut self) -> Thrift {
        let (mut fields, mut last) = (HashMap::new(), 0);
        loop {
            let head = self.byte();
            if head == 0 {
                return Thrift::Struct(fields);
            }
            last = if head >> 4 == 0 { self.number() } else { last + i64::from(head >> 4) };
            let value = self.value(head & 15);
            fields.insert(last, value);
        }
    }
}

impl Thrift {
    fn at(&self, field: i64) -> &Self {
        let Self::Struct(fields) = self else { panic!("no struct") };
        &fields[&field]
    }

    fn number(&self) -> i64 {
        let Self::Number(number) = self else { panic!("no number") };
        *number
    }

    fn list(&self) -> &[Self] {
        let Self::List(list) = self else { panic!("no list") };
        list
    }

    fn text(&self) -> String {
        let Self::Text(text) = self else { panic!("no text") };
        String::from_utf8(text.clone()).unwrap()
    }
}

/// Columns by name, values as text.
fn parquet(path: &Path) -> (i64, HashMap<String, Vec<Option<String>>>) {
    let bytes = std::fs::read(path).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let tail = bytes.len() - 8;
    let length = u32::from_le_bytes(bytes[tail..tail + 4].try_into().unwrap());
    let footer = tail - usize::try_from(length).unwrap();
    let file = Reader(&bytes[footer..tail]).structure();
    let schema = &file.at(2).list()[1..];
    let mut columns: HashMap<String, Vec<Option<String>>> = HashMap::new();
    for group in file.at(4).list() {
        for (chunk, element) in group.at(1).list().iter().zip(schema) {
            let meta = chunk.at(3);
            let start = usize::try_from(meta.at(9).number()).unwrap();
            let mut reader = Reader(&bytes[start..footer]);
            let head = reader.structure();
            let (plain, packed) = (head.at(2).number(), head.at(3).number());
            let packed = &reader.0[..usize::try_from(packed).unwrap()];
            let page = zstd::bulk::decompress(packed, usize::try_from(plain).unwrap()).unwrap();
            let head_bytes = bytes[start..footer].len() - reader.0.len();
            let whole = usize::try_from(meta.at(7).number()).unwrap();
            assert_eq!(whole, head_bytes + packed.len());
            let count = usize::try_from(head.at(5).at(1).number()).unwrap();
            let is_optional = element.at(3).number() == 1;
            let values = values(&page, count, is_optional, element.at(1).number());
            columns.entry(element.at(4).text()).or_default().extend(values);
        }
    }
    (file.at(3).number(), columns)
}

fn values(page: &[u8], count: usize, optional: bool, kind: i64) -> Vec<Option<String>> {
    let (mut present, mut data) = (vec![true; count], page);
    if optional {
        let (length, rest) = page.split_at(4);
        let length = usize::try_from(u32::from_le_bytes(length.try_into().unwrap())).unwrap();
        let mut levels = Reader(&rest[..length]);
        present.clear();
        while !levels.0.is_empty() {
            let run = levels.varint();
            assert_eq!(run & 1, 0, "runs of equal levels only");
            let level = levels.byte() == 1;
            present.extend((0..run >> 1).map(|_| level));
        }
        data = &rest[length..];
    }
    assert_eq!(present.len(), count);
    let mut read = |size: usize| {
        let (value, rest) = data.split_at(size);
        data = rest;
        value.to_vec()
    };
    let mut value = || {
        if kind == 2 {
            return i64::from_le_bytes(read(8).try_into().unwrap()).to_string();
        }
        let size = u32::from_le_bytes(read(4).try_into().unwrap());
        String::from_utf8(read(usize::try_from(size).unwrap())).unwrap()
    };
    let all = present.into_iter().map(|present| present.then(&mut value)).collect();
    assert!(data.is_empty(), "bytes are left");
    all
}

fn is_null(cell: &str) -> Option<String> {
    (!cell.is_empty()).then(|| cell.to_owned())
}

/// Writes each form to a file and gives what is in it.
fn written(place: &Place, wallet: &str, format: &str) -> Vec<u8> {
    let file = format!("out.{format}");
    let ran = place.run(&["history", wallet, "--format", format, "--output", &file]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
    std::fs::read(place.path().join(file)).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_holds_the_same_trades() {
    let model = SolanaModel::new(41);
    let wallet = model.add_named("forms", WalletPlan::trades(300));
    let rows = model.truth(wallet).count();
    let swaps: Vec<(String, usize)> = model
        .truth(wallet)
        .map(|row| (row.signature.to_string(), usize::from(row.kind == TradeKind::JupiterUsdc)))
        .collect();
    let nodes = vec![("sol".to_owned(), DemoNode::new(model, 1))];
    with_nodes(nodes, move |urls| {
        let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", &urls[0]);
        let text =
            |format| String::from_utf8(written(&place, &wallet.to_string(), format)).unwrap();
        let cells = csv(&text("csv"));
        assert_eq!(cells.len(), rows + 1);
        let json: Value = serde_json::from_str(&text("json")).unwrap();
        assert_eq!(json["trades"].as_array().unwrap().len(), rows);
        let lines = text("ndjson");
        let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
        assert_eq!((&last["complete"], &last["tradeCount"]), (&true.into(), &rows.into()));

        written(&place, &wallet.to_string(), "parquet");
        let (count, columns) = parquet(&place.path().join("out.parquet"));
        assert_eq!(usize::try_from(count).unwrap(), rows);
        for (at, cells) in cells.iter().enumerate().skip(1) {
            for (name, cell) in cells_by_name(cells) {
                let found = &columns[name][at - 1];
                if name == "blockTime" {
                    let time: jiff::Timestamp = cell.parse().unwrap();
                    assert_eq!(*found, Some(time.as_millisecond().to_string()));
                } else {
                    assert_eq!(*found, is_null(cell), "{name} of row {at}");
                }
            }
        }

        let cut = [
            "history",
            &wallet.to_string(),
            "--format",
            "parquet",
            "--output",
            "cut",
            "--limit",
            "3",
        ];
        assert_eq!(place.run(&cut).code, Some(0));
        for (file, complete) in [("out.parquet", "true"), ("cut", "false")] {
            let bytes = std::fs::read(place.path().join(file)).unwrap();
            let footer =
                String::from_utf8_lossy(&bytes).rsplit_once("complete").unwrap().1.to_owned();
            assert_eq!(footer.get(2..2 + complete.len()), Some(complete), "{file}: {footer:?}");
        }

        // One line a swap: of token for token both rows are one.
        let signatures: std::collections::BTreeSet<&String> =
            swaps.iter().map(|(s, _)| s).collect();
        for (format, hash) in [("koinly", 11), ("cointracking", 12)] {
            let lines = csv(&text(format));
            assert_eq!(lines.len(), signatures.len() + 1, "{format}");
            let found: std::collections::BTreeSet<&String> =
                lines.iter().skip(1).map(|cells| &cells[hash]).collect();
            assert_eq!(found, signatures, "{format}");
        }
        let koinly = csv(&text("koinly"));
        let both = koinly.iter().filter(|cells| !cells[1].is_empty() && !cells[3].is_empty());
        assert_eq!(both.count(), koinly.len(), "a side is missing");
    })
    .await;
}

fn cells_head() -> [&'static str; 8] {
    ["signature", "side", "token", "tokenMint", "amountSol", "amount", "dex", "blockTime"]
}

fn cells_by_name(cells: &[String]) -> impl Iterator<Item = (&'static str, &String)> {
    cells_head().into_iter().zip(cells)
}

/// A pipe stays a pipe, a link keeps its target, and `-` is stdout.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn what_output_names_stays_what_it_is() {
    use std::os::unix::fs::FileTypeExt as _;
    let model = SolanaModel::new(43);
    let wallet = model.add_named("kept", WalletPlan::trades(30));
    let nodes = vec![("sol".to_owned(), DemoNode::new(model, 1))];
    with_nodes(nodes, move |urls| {
        let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", &urls[0]);
        let wallet = wallet.to_string();
        let at = |name: &str| place.path().join(name);
        let to = |name: &str| {
            place.run(&["history", &wallet, "--format", "csv", "--output", name, "--quiet"])
        };
        let plain = to("-");
        assert_eq!(plain.code, Some(0), "{}", plain.stderr);
        assert!(plain.stdout.lines().count() > 20 && !at("-").exists(), "{}", plain.stdout);

        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        let mut reader = std::process::Command::new("timeout");
        reader.args(["60", "cat"]).arg(at("pipe")).stdout(Stdio::piped());
        let reader = reader.spawn().unwrap();
        let ran = to("pipe");
        assert!(std::fs::metadata(at("pipe")).unwrap().file_type().is_fifo(), "{}", ran.stderr);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
        let read = reader.wait_with_output().unwrap().stdout;
        assert_eq!(String::from_utf8(read).unwrap(), plain.stdout);

        // By the name of what stdout leads to, what others wrote there stays.
        let shared = at("shared.csv");
        std::fs::write(&shared, "before\n").unwrap();
        let args = ["history", &wallet, "--format", "csv", "--output", "/dev/stdout", "--quiet"];
        let end = std::fs::OpenOptions::new().append(true).open(&shared).unwrap();
        let status = place.command(&args).stdout(end).stderr(Stdio::null()).status().unwrap();
        let whole = format!("before\n{}", plain.stdout);
        assert_eq!((status.code(), std::fs::read_to_string(&shared).unwrap()), (Some(0), whole));

        std::fs::create_dir(at("deep")).unwrap();
        std::fs::write(at("deep/old.csv"), "old").unwrap();
        for (link, target) in [("old.csv", "deep/old.csv"), ("new.csv", "deep/new.csv")] {
            std::os::unix::fs::symlink(target, at(link)).unwrap();
            assert_eq!(to(link).code, Some(0));
            assert!(std::fs::symlink_metadata(at(link)).unwrap().is_symlink(), "{link}");
            assert_eq!(std::fs::read_to_string(at(target)).unwrap(), plain.stdout);
        }
        let ran = to("deep");
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("--output deep is a folder"), "{}", ran.stderr);
        let mut left: Vec<_> = std::fs::read_dir(at("deep")).unwrap().flatten().collect();
        left.sort_by_key(std::fs::DirEntry::file_name);
        let left: Vec<_> = left.iter().map(std::fs::DirEntry::file_name).collect();
        assert_eq!(left, ["new.csv", "old.csv"]);
    })
    .await;
}

/// Without `--format` a file is what its name says; with it, that is what counts.
#[tokio::test(flavor = "multi_thread")]
async fn the_ending_of_a_file_is_its_form() {
    let model = SolanaModel::new(44);
    let wallet = model.add_named("endings", WalletPlan::trades(30));
    let nodes = vec![("sol".to_owned(), DemoNode::new(model, 1))];
    with_nodes(nodes, move |urls| {
        let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", &urls[0]);
        let (wallet, csv) = (wallet.to_string(), cells_head().join(","));
        for (file, asked, begins) in [
            ("a.csv", &[][..], csv.as_str()),
            ("a.NDJSON", &[], "{\"trades\":["),
            ("a.json", &[], "{\"wallet\":"),
            ("a.parquet", &[], "PAR1"),
            ("a.txt", &[], "TIME "),
            ("csv", &[], "TIME "),
            ("b.json", &["--format", "csv"], csv.as_str()),
        ] {
            let args = [&["history", &wallet, "--output", file], asked].concat();
            let ran = place.run(&args);
            assert_eq!(ran.code, Some(0), "{file}: {}", ran.stderr);
            let written = std::fs::read(place.path().join(file)).unwrap();
            assert!(written.starts_with(begins.as_bytes()), "{file} is of another form");
        }
    })
    .await;
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_call_is_resumed() {
    let model = SolanaModel::new(42);
    let wallet = model.add_named("cut", WalletPlan::trades(2_500));
    let node = DemoNode::new(model, 1);
    node.set_faults(Faults::latency(Duration::from_millis(200)));
    let nodes = vec![("sol".to_owned(), node.clone())];
    with_nodes(nodes, move |urls| {
        let wallet = wallet.to_string();
        for format in ["csv", "koinly", "parquet"] {
            node.set_faults(Faults::latency(Duration::from_millis(200)));
            let place = Place::new().variable("BLOTTER_CHAINS_SOL_RPC", &urls[0]);
            let args = ["history", &wallet, "--format", format, "--output", "cut"];
            let mut child = place.command(&args).stderr(Stdio::null()).spawn().unwrap();
            let (side, part) = (place.path().join("cut.resume"), place.path().join("cut.part"));
            // A column file is only whole between two groups: it is stopped, the others are killed.
            let started = Instant::now();
            let begun = |path: &Path| std::fs::metadata(path).is_ok_and(|file| file.len() > 3);
            let wait = |child: &mut std::process::Child| {
                std::thread::yield_now();
                assert!(child.try_wait().unwrap().is_none(), "it was done before it was cut");
                assert!(started.elapsed() < PATIENCE);
            };
            if format == "parquet" {
                while !begun(&place.path().join("blotter-data")) || started.elapsed().as_secs() < 2
                {
                    wait(&mut child);
                }
                let id = child.id().to_string();
                std::process::Command::new("kill").args(["-s", "INT", &id]).status().unwrap();
            } else {
                while !side.exists() {
                    wait(&mut child);
                }
                child.kill().unwrap();
            }
            let code = child.wait().unwrap().code();
            assert_eq!(code, (format == "parquet").then_some(3));
            assert!(part.exists() && side.exists() && !place.path().join("cut").exists());
            node.set_faults(Faults::none());
            // Another format cannot resume it.
            let other = ["history", &wallet, "--format", "json", "--output", "cut", "--resume"];
            assert_eq!(place.run(&other).code, Some(2));
            let ran = place.run(&[args.as_slice(), &["--resume"]].concat());
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{}", ran.stderr);
            assert!(!part.exists() && !side.exists());
            let whole = written(&place, &wallet, format);
            let resumed = place.path().join("cut");
            if format == "parquet" {
                let once = place.path().join("out.parquet");
                assert_eq!(parquet(&resumed), parquet(&once));
            } else {
                assert_eq!(std::fs::read(resumed).unwrap(), whole, "{format}");
            }
        }
    })
    .await;
}
