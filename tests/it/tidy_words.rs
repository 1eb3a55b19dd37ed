//! The language of the tree as a test: words that comments, texts and documents must not use, and
//! the glossary.

use std::collections::BTreeSet;
use std::fs;

use crate::tidy::{files, root, rust_files};

/// Words with a plainer term of the field; written in halves so that this file passes.
const BANNED: [&str; 8] = [
    concat!("te", "ll"),
    concat!("te", "lls"),
    concat!("to", "ld"),
    concat!("no", "body"),
    concat!("some", "body"),
    concat!("who", "ever"),
    concat!("what", "ever"),
    concat!("be", "side"),
];

/// Values of the public API, which stay.
const PUBLIC: [&str; 1] = [concat!("be", "side the trade")];

/// Where text for people is looked for.
const FOLDERS: [&str; 6] = ["src", "tests", "benches", "examples", "docs", "data"];
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "ARCHITECTURE.md", "SECURITY.md"];
const TERMS_MIN: usize = 55;

/// The comments and string literals of a Rust file, each with its line.
fn prose_of_rust(text: &str) -> Vec<(usize, String)> {
    let (mut found, mut line, mut rest) = (Vec::new(), 1, text);
    while let Some(at) = rest.find(['/', '"', '\'', 'r', '\n']) {
        let (_, from) = rest.split_at(at);
        let hashes = from[1..].chars().take_while(|c| *c == '#').count();
        let (len, is_prose) = if from.starts_with("//") {
            (from.find('\n').unwrap_or(from.len()), true)
        } else if from.starts_with('"') {
            (string_len(from), true)
        } else if from.starts_with('r') && from[1 + hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = 2 + hashes;
            (from[body..].find(&end).map_or(from.len(), |at| body + at + end.len()), true)
        } else if from.starts_with("'\"'") {
            (3, false)
        } else {
            (from.chars().next().unwrap().len_utf8(), false)
        };
        let piece = &from[..len];
        if is_prose {
            let lines = piece.lines().enumerate();
            found.extend(lines.map(|(at, text)| (line + at, text.to_owned())));
        }
        line += piece.matches('\n').count();
        rest = &from[len..];
    }
    found
}

/// Bytes of a string literal with both quotes.
fn string_len(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The words of a text; names with underscores are one word.
fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_lowercase)
}

fn check(path: &str, text: &str) -> Vec<String> {
    let rust = path.rsplit_once('.').is_some_and(|(_, end)| end == "rs");
    let whole = |(at, line): (usize, &str)| (at + 1, line.to_owned());
    let prose =
        if rust { prose_of_rust(text) } else { text.lines().enumerate().map(whole).collect() };
    let bad = |(line, text): (usize, String)| {
        let own = PUBLIC.iter().fold(text, |text, name| text.replace(name, ""));
        let word = words(&own).find(|word| BANNED.contains(&word.as_str()))?;
        Some(format!("{path}:{line}: {word} (docs/glossary.md has the term)"))
    };
    prose.into_iter().filter_map(bad).collect()
}

/// Rust sources, documents, tables and the API's description, by path.
fn texts() -> Vec<(String, String)> {
    let in_folders = FOLDERS.iter().flat_map(|folder| files(&root().join(folder)));
    let paths = in_folders.chain(DOCUMENTS.iter().map(|name| root().join(name)));
    let ends = ["rs", "md", "toml"];
    let read = paths.filter_map(|path| {
        let end = path.extension()?.to_str()?;
        let name = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
        let is_text = ends.contains(&end) || name == "data/openapi.json";
        let is_ours = !["/target/", "/node_modules/", "fixtures/", "plants.toml"]
            .iter()
            .any(|not| name.contains(not));
        (is_text && is_ours).then(|| Some((name, fs::read_to_string(&path).ok()?)))?
    });
    read.collect()
}

#[test]
fn no_text_uses_a_banned_word() {
    let texts = texts();
    assert!(texts.len() > 100, "the tree was not found");
    let reports: Vec<String> = texts.iter().flat_map(|(path, text)| check(path, text)).collect();
    assert!(reports.is_empty(), "\n{}\n", reports.join("\n"));
}

#[test]
fn banned_words_are_found_in_comments_and_strings_alone() {
    let word = BANNED[2];
    let count = |text: &str| check("src/x.rs", text).len();
    assert_eq!(count(&format!("// It {word} so.")), 1);
    assert_eq!(count(&format!("let x = \"it {word} so\";")), 1);
    assert_eq!(count(&format!("let x = r#\"a \"quoted\" {word}\"#;")), 1);
    assert_eq!(count(&format!("let x = '\"'; let {word} = 1;")), 0);
    assert_eq!(count(&format!("let x = \"a \\\" b\"; {word}();")), 0);
    assert_eq!(count(&format!("fn is_{word}() {{}} // is_{word}")), 0);
    assert_eq!(check("docs/x.md", &format!("one\n{word} two")).len(), 1);
}

/// The terms of `docs/glossary.md`: the first cells of its table.
fn terms() -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ")).skip(1);
    rows.filter_map(|row| Some(row.split('|').nth(1)?.trim().to_owned())).collect()
}

/// A term counts as used where its words stand in a row, in a comment or as a name.
#[test]
fn every_term_of_the_glossary_is_used() {
    let terms = terms();
    assert!(terms.len() >= TERMS_MIN, "{} terms", terms.len());
    let plain = |text: &str| text.to_lowercase().replace([' ', '_', '-', '\n'], "");
    let bare = |line: &str| line.trim().trim_start_matches('/').trim_start().to_owned();
    let tree: String = rust_files("src")
        .iter()
        .flat_map(|(_, text)| text.lines().map(bare).collect::<Vec<_>>())
        .map(|line| plain(&line))
        .collect();
    let unused: Vec<&String> = terms.iter().filter(|term| !tree.contains(&plain(term))).collect();
    assert!(unused.is_empty(), "not used in src: {unused:?}");
    let once: BTreeSet<&String> = terms.iter().collect();
    assert_eq!(once.len(), terms.len(), "a term stands twice");
}

#[test]
fn the_changelog_has_each_change_once_and_names_the_version() {
    let text = include_str!("../../CHANGELOG.md");
    let mut changes: Vec<&str> = text.lines().filter(|line| line.starts_with("- ")).collect();
    changes.sort_unstable();
    let twice: Vec<&[&str]> = changes.windows(2).filter(|pair| pair[0] == pair[1]).collect();
    assert!(twice.is_empty(), "{twice:#?}");
    let versions: Vec<&str> = text.lines().filter(|line| line.starts_with("## ")).collect();
    assert_eq!(versions.first(), Some(&"## Unreleased"));
    let version = concat!("## ", env!("CARGO_PKG_VERSION"), " (");
    assert_eq!(versions.iter().filter(|line| line.starts_with(version)).count(), 1, "{versions:?}");
}

/// Where the text of a planted defect stands no more, nothing is planted and nothing is tried.
#[test]
fn the_text_of_each_planted_defect_occurs_once_in_its_file() {
    let plants: toml::Table = include_str!("../planted/plants.toml").parse().unwrap();
    let plants = plants["plant"].as_array().unwrap();
    assert!(!plants.is_empty());
    let of = |plant: &toml::Value, name: &str| plant[name].as_str().unwrap().to_owned();
    let stands_once = |plant: &&toml::Value| {
        let file = fs::read_to_string(root().join(of(plant, "file"))).unwrap_or_default();
        file.matches(&of(plant, "find").replace(['«', '»'], "")).count() == 1
    };
    let stale: Vec<String> =
        plants.iter().filter(|plant| !stands_once(plant)).map(|plant| of(plant, "name")).collect();
    assert!(stale.is_empty(), "{stale:#?}");
}
