//! House rules as a test: who may import whom, what no file may hold, and that nothing is left out
//! of the lists that name it.
//!
//! It reads lines, so a string that holds `//` hides the rest of its line.

use std::fs;
use std::path::{Path, PathBuf};

const FILE_LINE_COUNT_MAX: usize = 600;

/// A layer, the layers that it may import, and the outside crates that only the layers which list
/// them may name.
struct Layer {
    name: &'static str,
    imports: &'static [&'static str],
    crates: &'static [&'static str],
}

const LAYERS: &[Layer] = &[
    Layer { name: "domain", imports: &[], crates: &[] },
    Layer { name: "registry", imports: &["domain"], crates: &["toml"] },
    Layer { name: "pnl", imports: &["domain"], crates: &[] },
    Layer { name: "decode", imports: &["domain", "registry"], crates: &[] },
    Layer {
        name: "store",
        imports: &["domain"],
        crates: &["redb", "bincode", "rustls", "tokio_postgres", "deadpool"],
    },
    Layer { name: "rpc", imports: &["domain"], crates: &["reqwest", "rustls"] },
    Layer { name: "sources", imports: &["domain", "registry", "decode", "rpc"], crates: &[] },
    Layer {
        name: "enrich",
        imports: &["domain", "registry", "decode", "store", "rpc", "sources"],
        crates: &[],
    },
    Layer {
        name: "history",
        imports: &["domain", "registry", "decode", "store", "rpc", "sources", "enrich"],
        crates: &[],
    },
    Layer {
        name: "api",
        imports: &["domain", "registry", "pnl", "history"],
        crates: &["warp", "hyper", "hyper_util"],
    },
    Layer {
        name: "demo",
        imports: &["domain", "registry", "rpc"],
        crates: &["hyper", "hyper_util"],
    },
    Layer {
        name: "cli",
        imports: &[
            "domain", "registry", "pnl", "decode", "store", "rpc", "sources", "history", "api",
            "demo",
        ],
        crates: &[
            "clap",
            "clap_complete",
            "clap_mangen",
            "indicatif",
            "toml",
            "hyper",
            "hyper_util",
        ],
    },
];

/// A text that only some files may hold.
struct Banned {
    text: &'static str,
    /// Paths below `src` that begin so may hold it.
    allowed: &'static [&'static str],
    reason: &'static str,
    /// Whether test code is held to it too.
    in_tests: bool,
}

const BANNED: &[Banned] = &[
    Banned {
        text: "crate::{",
        allowed: &[],
        reason: "import one module a line, so that this test can read it",
        in_tests: true,
    },
    Banned {
        text: "std::fs",
        allowed: &["cli/", "store/"],
        reason: "only cli and store touch files",
        in_tests: false,
    },
    Banned {
        text: "tokio::fs",
        allowed: &["cli/", "store/"],
        reason: "only cli and store touch files",
        in_tests: false,
    },
    Banned {
        text: "std::env",
        allowed: &["cli/"],
        reason: "only cli reads flags and the environment",
        in_tests: false,
    },
    Banned {
        text: "SystemTime::now",
        allowed: &["cli/clock.rs"],
        reason: "take a Clock",
        in_tests: true,
    },
    Banned {
        text: "tokio::spawn",
        allowed: &["history/tasks.rs"],
        reason: "spawn through Tasks, so that a stop can await it",
        in_tests: false,
    },
    Banned {
        text: "task::spawn",
        allowed: &["history/tasks.rs"],
        reason: "spawn through Tasks, so that a stop can await it",
        in_tests: false,
    },
    Banned {
        text: "spawn_blocking(",
        allowed: &["api/packing.rs"],
        reason: "a slice of an answer is packed, and its answer awaits it; spawn else through Tasks",
        in_tests: false,
    },
    Banned {
        text: "use super::*",
        allowed: &[],
        reason: "say what is used; only a test module takes all",
        in_tests: false,
    },
    Banned { text: "dbg!(", allowed: &[], reason: "left over", in_tests: true },
    Banned { text: "todo!(", allowed: &[], reason: "unfinished", in_tests: true },
    Banned { text: "unimplemented!(", allowed: &[], reason: "unfinished", in_tests: true },
    Banned { text: "#[allow(", allowed: &[], reason: "use #[expect(…, reason)]", in_tests: true },
    Banned { text: "#[ignore", allowed: &[], reason: "a test runs or goes", in_tests: true },
];

/// Words that mark work left over, in comments too. Written in halves so that this file passes.
const MARKERS: &[&str] = &[concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All files below a folder, by path.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

pub(crate) fn rust_files(folder: &str) -> Vec<(String, String)> {
    let folder = root().join(folder);
    let rust =
        files(&folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs"));
    rust.map(|path| {
        let name = path.strip_prefix(&folder).unwrap().to_string_lossy().replace('\\', "/");
        (name, fs::read_to_string(&path).unwrap())
    })
    .collect()
}

/// Checks one source file; `path` is below `src`.
fn check_source(path: &str, text: &str) -> Vec<String> {
    let mut reports = Vec::new();
    let mut report = |line: usize, what: String| reports.push(format!("src/{path}:{line}: {what}"));
    if text.lines().count() > FILE_LINE_COUNT_MAX {
        report(FILE_LINE_COUNT_MAX, format!("more than {FILE_LINE_COUNT_MAX} lines"));
    }
    let module = path.split(['/', '.']).next().unwrap();
    // How this file spells the crate's root without `crate`.
    let depth = path.matches('/').count() + usize::from(!path.ends_with("/mod.rs"));
    let root = format!("{}super", "super::".repeat(depth - 1));
    let mut in_tests = path.ends_with("/tests.rs");
    for (index, line) in text.lines().enumerate() {
        in_tests |= line.trim_start().starts_with("#[cfg(test)]");
        let code = line.split("//").next().unwrap();
        for what in check_imports(module, &root, code) {
            report(index + 1, what);
        }
        for banned in BANNED {
            let free = banned.allowed.iter().any(|start| path.starts_with(start));
            if code.contains(banned.text) && !free && (banned.in_tests || !in_tests) {
                report(index + 1, format!("{} ({})", banned.text, banned.reason));
            }
        }
        for marker in MARKERS.iter().filter(|marker| names(line, marker)) {
            report(index + 1, format!("{marker} marks unfinished work"));
        }
    }
    reports
}

/// Layers and outside crates that one line of `module` must not name.
fn check_imports(module: &str, root: &str, code: &str) -> Vec<String> {
    let Some(layer) = LAYERS.iter().find(|layer| layer.name == module) else { return Vec::new() };
    let mut reports = Vec::new();
    for other in LAYERS.iter().filter(|other| other.name != module) {
        let name = other.name;
        let imported =
            ["crate", "blotter", root].iter().any(|root| names(code, &format!("{root}::{name}")));
        if imported && !layer.imports.contains(&name) {
            reports.push(format!("{module} must not import {name}"));
        }
        for outside in other.crates.iter().filter(|outside| !layer.crates.contains(outside)) {
            if names(code, &format!("{outside}::")) {
                reports.push(format!("{module} must not name {outside}"));
            }
        }
    }
    // Two layers may share a crate: one report is enough.
    reports.dedup();
    reports
}

/// True where `needle` stands in `code` and is not part of a longer name.
fn names(code: &str, needle: &str) -> bool {
    code.match_indices(needle).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + needle.len()..].chars().next();
        let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
        // `foo::redb::` is another crate's module of that name.
        let inner = code[..at].ends_with("::") && needle.ends_with("::");
        !word(before) && !inner && (needle.ends_with(':') || !word(after))
    })
}

#[test]
fn sources_keep_the_house_rules() {
    let sources = rust_files("src");
    assert!(sources.len() > 10, "the sources were not found");
    let reports: Vec<String> =
        sources.iter().flat_map(|(path, text)| check_source(path, text)).collect();
    assert!(reports.is_empty(), "\n{}\n", reports.join("\n"));
}

/// The same of tests, of what holds there too.
#[test]
fn tests_keep_the_house_rules() {
    let sources = rust_files("tests/it");
    assert!(sources.len() > 10, "the tests were not found");
    // This file names what it looks for.
    for (path, text) in sources.iter().filter(|(path, _)| path != "tidy.rs") {
        for banned in BANNED.iter().filter(|banned| banned.in_tests) {
            assert!(!text.contains(banned.text), "{path}: {} ({})", banned.text, banned.reason);
        }
    }
}

#[test]
fn every_folder_of_src_is_a_layer() {
    for (path, _) in rust_files("src") {
        let module = path.split(['/', '.']).next().unwrap();
        let known = LAYERS.iter().any(|layer| layer.name == module);
        assert!(
            known || ["base", "lib", "main"].contains(&module),
            "src/{path} belongs to no layer"
        );
    }
}

#[test]
fn every_test_file_is_listed_in_main() {
    let main = fs::read_to_string(root().join("tests/it/main.rs")).unwrap();
    for (path, _) in rust_files("tests/it") {
        let name = path.trim_end_matches(".rs");
        let listed = name == "main" || name.contains('/') || main.contains(&format!("mod {name};"));
        assert!(listed, "tests/it/{path} is not listed in tests/it/main.rs");
    }
}

#[test]
fn every_data_file_is_embedded() {
    let sources = rust_files("src");
    for path in files(&root().join("data")) {
        let below = path.strip_prefix(root().join("data")).unwrap();
        let name = below.to_string_lossy().replace('\\', "/");
        // A macro joins the names of the page's files to their folder.
        let (folder, file) = name.rsplit_once('/').unwrap_or(("", &name));
        let embedded = |(_, text): &(String, String)| {
            let joined = text.contains(&format!("data/{folder}/\", $name"));
            let named = text.contains(&format!("data/{name}\""))
                || joined && text.contains(&format!("\"{file}\","));
            named && text.contains("include_")
        };
        assert!(name == "README.md" || sources.iter().any(embedded), "data/{name} is not embedded");
    }
}

#[test]
fn wrong_lines_are_found() {
    let check = |path: &str, text: &str| check_source(path, text).len();
    // Who imports whom, however it is written.
    assert_eq!(check("store/mod.rs", "use crate::api::Server;"), 1);
    assert_eq!(check("store/mod.rs", "use super::api::Server;"), 1);
    assert_eq!(check("store/view.rs", "use super::super::api::Server;"), 1);
    assert_eq!(check("decode/solana/swaps.rs", "use super::super::super::api::Server;"), 1);
    assert_eq!(check("store/mod.rs", "let x = blotter::history::History;"), 1);
    assert_eq!(check("domain/time.rs", "use crate::registry::Chain;"), 1);
    assert_eq!(check("rpc/pool.rs", "use crate::store::Store;"), 1);
    assert_eq!(check("api/handlers.rs", "use crate::store::Store;"), 1);
    assert_eq!(check("store/mod.rs", "use crate::{api, domain};"), 1);
    // Outside crates.
    assert_eq!(check("history/worker.rs", "use redb::Database;"), 1);
    assert_eq!(check("cli/serve.rs", "fn f(x: ::warp::Reply) {}"), 0, "a leading :: is not read");
    assert_eq!(check("cli/serve.rs", "fn f(x: warp::Reply) {}"), 1);
    assert_eq!(check("decode/solana.rs", "let v: toml::Value;"), 1);
    // Files, clocks, tasks, leftovers.
    assert_eq!(check("api/mod.rs", "std::fs::read(path)"), 1);
    assert_eq!(check("history/worker.rs", "tokio::spawn(run())"), 1);
    assert_eq!(check("cli/serve.rs", "let now = SystemTime::now();"), 1);
    assert_eq!(check("cli/serve.rs", concat!("// TO", "DO: later")), 1);
    assert_eq!(check("cli/serve.rs", "#[allow(dead_code)]"), 1);
    assert_eq!(check("cli/serve.rs", "use super::*;"), 1);
    assert_eq!(check("cli/serve.rs", &"\n".repeat(FILE_LINE_COUNT_MAX + 1)), 1);
}

#[test]
fn right_lines_pass() {
    let check = |path: &str, text: &str| check_source(path, text);
    assert_eq!(check("history/mod.rs", "use crate::store::Store; // crate::api"), [""; 0]);
    assert_eq!(check("store/mod.rs", "use redb::Database;"), [""; 0]);
    assert_eq!(check("demo/solana/wallet.rs", "use super::history::Spot;"), [""; 0]);
    assert_eq!(check("demo/loopback.rs", "use hyper::body::Incoming;"), [""; 0]);
    assert_eq!(check("cli/config.rs", "toml::from_str(text)"), [""; 0]);
    assert_eq!(check("history/tasks.rs", "tokio::spawn(run())"), [""; 0]);
    assert_eq!(check("domain/time.rs", "#[cfg(test)]\nmod tests {\n    use super::*;\n}"), [""; 0]);
    assert_eq!(check("cli/history.rs", "use crate::history::History;"), [""; 0]);
    assert_eq!(check("rpc/pool.rs", "let api_key = my_store::open();"), [""; 0]);
}
