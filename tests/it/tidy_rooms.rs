//! The shape of the tree as a test: no import circles between the files of a room, few type names
//! that stand twice, short functions.

use std::collections::{BTreeMap, BTreeSet};

use crate::tidy::rust_files;

/// Import circles that are left, by room. It only shrinks.
const CIRCLES_LEFT: &[(&str, usize)] = &[];
/// Names of public types that stand in more than one file: parallels of the families.
const TWIN_NAMES_MAX: usize = 24;
const FUNCTION_LINES_MAX: usize = 60;
const FUNCTION_LINES_MEDIAN: usize = 8;

/// A module as its names below `src`.
type Module = Vec<String>;

fn module(path: &str) -> Module {
    let mut names: Module = path.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    names.pop_if(|last| last == "mod");
    names
}

/// The code without comments and without the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// The paths that a file names from `crate`, `super` or `self`, from the root down.
fn named_paths(of: &Module, code: &str) -> Vec<Module> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut paths = Vec::new();
    for start in ["crate::", "super::", "self::"] {
        for (at, _) in code.match_indices(start) {
            if code[..at].ends_with(|c: char| is_name(c) || c == ':') {
                continue;
            }
            let rest = &code[at..];
            let len = rest.find(|c: char| !is_name(c) && c != ':').unwrap_or(rest.len());
            let mut names: Vec<&str> = rest[..len].split("::").collect();
            let mut path = match names.remove(0) {
                "crate" => Vec::new(),
                "self" => of.clone(),
                _ => of[..of.len().saturating_sub(1)].to_vec(),
            };
            while names.first() == Some(&"super") {
                names.remove(0);
                path.pop();
            }
            path.extend(names.iter().filter(|name| !name.is_empty()).map(ToString::to_string));
            match rest[len..].strip_prefix('{') {
                Some(group) => paths.extend(grouped(group).map(|name| {
                    let mut path = path.clone();
                    path.push(name);
                    path
                })),
                None => paths.push(path),
            }
        }
    }
    paths
}

/// The first names of the members of `{…}`, whose opening bracket is passed.
fn grouped(text: &str) -> impl Iterator<Item = String> {
    let (mut depth, mut names, mut name) = (1, Vec::new(), String::new());
    let mut inside = false;
    for c in text.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth == 0 || (depth == 1 && c == ',') {
            names.push(std::mem::take(&mut name));
            inside = false;
        } else if depth == 1 && !inside {
            inside = c == ':' || (c == ' ' && !name.trim().is_empty());
            name.push(c);
        }
        if depth == 0 {
            break;
        }
    }
    names.into_iter().map(|name| name.trim().trim_end_matches(':').to_owned())
}

/// Imports inside each room: from one member (a file, or a folder with all in it) to another.
fn imports(sources: &[(String, String)]) -> BTreeMap<Module, BTreeSet<(String, String)>> {
    let modules: BTreeSet<Module> = sources.iter().map(|(path, _)| module(path)).collect();
    let mut rooms: BTreeMap<Module, BTreeSet<(String, String)>> = BTreeMap::new();
    for (path, text) in sources {
        let from = module(path);
        for named in named_paths(&from, &code(text)) {
            let prefixes = (1..=named.len()).rev().map(|len| named[..len].to_vec());
            let Some(to) = prefixes.into_iter().find(|to| modules.contains(to)) else { continue };
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (1.., Some(a), Some(b)) = (shared, from.get(shared), to.get(shared)) {
                rooms.entry(to[..shared].to_vec()).or_default().insert((a.clone(), b.clone()));
            }
        }
    }
    rooms
}

/// What can be reached from a member.
fn reached(edges: &BTreeSet<(String, String)>, from: &str) -> BTreeSet<String> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(at) = open.pop() {
        for (_, to) in edges.iter().filter(|(a, _)| *a == at) {
            if seen.insert(to.clone()) {
                open.push(to.clone());
            }
        }
    }
    seen
}

/// The groups of members of a room that reach each other.
fn circles(edges: &BTreeSet<(String, String)>) -> BTreeSet<BTreeSet<String>> {
    let members: BTreeSet<&String> = edges.iter().map(|(from, _)| from).collect();
    let below: BTreeMap<&String, BTreeSet<String>> =
        members.iter().map(|member| (*member, reached(edges, member))).collect();
    let circle = |member: &&String| {
        let mutual =
            |other: &&String| below.get(other).is_some_and(|reached| reached.contains(*member));
        let group: BTreeSet<String> = below[*member].iter().filter(mutual).cloned().collect();
        (!group.is_empty()).then_some(group)
    };
    members.iter().filter_map(circle).collect()
}

#[test]
fn files_of_a_room_import_in_no_circle() {
    let rooms = imports(&rust_files("src"));
    assert!(rooms.len() > 5, "the rooms were not found");
    let mut reports = Vec::new();
    for (room, edges) in rooms {
        let (room, found) = (room.join("/"), circles(&edges));
        let left = CIRCLES_LEFT.iter().find(|(name, _)| *name == room).map_or(0, |(_, n)| *n);
        if found.len() > left {
            reports.push(format!("{room}: {} circles, {left} listed: {found:?}", found.len()));
        }
    }
    assert!(reports.is_empty(), "\n{}\n", reports.join("\n"));
}

#[test]
fn circles_are_found() {
    let sources = |texts: &[(&str, &str)]| -> Vec<(String, String)> {
        texts.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect()
    };
    let count = |texts: &[(&str, &str)]| -> usize {
        imports(&sources(texts)).values().map(|edges| circles(edges).len()).sum()
    };
    let b = ("x/b.rs", "use super::a::{A, B};");
    assert_eq!(count(&[("x/a.rs", "use super::b::C;"), b, ("x/mod.rs", "")]), 1);
    assert_eq!(count(&[("x/a.rs", "use crate::x::{b::C, D};"), b]), 1);
    assert_eq!(count(&[("x/a.rs", "fn f() { super::b::g() }"), b]), 1);
    assert_eq!(count(&[("x/a/d.rs", "use super::super::b::C;"), ("x/a/mod.rs", ""), b]), 1);
    assert_eq!(count(&[("x/a.rs", "// super::b::C"), b]), 0);
    assert_eq!(
        count(&[("x/a.rs", "#[cfg(test)]\nmod tests {\n use super::super::b::C;\n}"), b]),
        0
    );
    assert_eq!(count(&[("x/a.rs", "use super::c::C;"), b, ("x/c.rs", "")]), 0);
}

/// The name that a line of code gives to a public type.
fn public_type(line: &str) -> Option<&str> {
    let rest = line.trim_start().strip_prefix("pub")?;
    let rest = match rest.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => rest,
    };
    let (kind, rest) = rest.strip_prefix(' ')?.split_once(' ')?;
    let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    ["struct", "enum", "trait", "type"].contains(&kind).then(|| &rest[..end])
}

#[test]
fn few_type_names_stand_twice() {
    let sources = rust_files("src");
    let mut places: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, text) in &sources {
        for name in text.lines().filter_map(public_type) {
            places.entry(name).or_default().insert(path);
        }
    }
    places.retain(|_, files| files.len() > 1);
    assert!(places.len() <= TWIN_NAMES_MAX, "{}: {places:#?}", places.len());
}

/// Names and lengths of the functions of a file, as rustfmt sets them.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let bare = line.trim_start();
        let starts = ["fn ", "pub", "async fn ", "const fn "];
        let Some((_, name)) = line
            .split_once("fn ")
            .filter(|_| starts.iter().any(|start| bare.starts_with(start)) && !bare.contains('"'))
        else {
            continue;
        };
        let name: String = name.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let close = format!("{}}}", &line[..line.len() - bare.len()]);
        let one = line.ends_with('}');
        let end = lines[at..].iter().position(|line| *line == close).filter(|_| !one);
        let declared =
            lines[at..].iter().position(|line| line.ends_with(';')).unwrap_or(usize::MAX);
        let opened = lines[at..].iter().position(|line| line.ends_with('{')).unwrap_or(usize::MAX);
        match end {
            _ if one => found.push((name, 1)),
            Some(end) if opened < declared || declared > end => found.push((name, end + 1)),
            _ => {}
        }
    }
    found
}

#[test]
fn functions_are_short() {
    let mut lengths = Vec::new();
    for (path, text) in rust_files("src") {
        for (name, length) in functions(&text) {
            assert!(length <= FUNCTION_LINES_MAX, "src/{path}: {name} has {length} lines");
            lengths.push(length);
        }
    }
    lengths.sort_unstable();
    assert!(lengths.len() > 1_000, "the functions were not found");
    assert!(lengths[lengths.len() / 2] <= FUNCTION_LINES_MEDIAN);
}
