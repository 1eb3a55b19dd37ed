//! No other user of the machine may read the program's files, for any command that created them.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::program::Place;

const WALLET: &str = "7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU";

/// Every file and folder below, with its mode.
fn modes(folder: &Path) -> Vec<(String, bool, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        found.push((path.display().to_string(), path.is_dir(), mode));
        if path.is_dir() {
            found.extend(modes(&path));
        }
    }
    found
}

/// Runs the program with a umask that grants everything to all users.
fn open_handed(place: &Place, node: &str, args: &[&str]) {
    let mut command = Command::new("sh");
    command.args(["-c", "umask 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_blotter")]).args(args);
    command.current_dir(place.path()).env_clear().stdin(Stdio::null());
    command.env("BLOTTER_CHAINS_SOL_RPC", node).env("BLOTTER_STORAGE_PATH", "data");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{args:?}: {ran:?}");
}

#[test]
fn all_files_are_readable_by_their_owner_alone() {
    let elsewhere = Place::new();
    let demo = elsewhere.serve(&["demo", "--listen", "127.0.0.1:0", "--node", "127.0.0.1:0"]);
    let node = demo.printed("node:");
    for first in [&["keys", "create"][..], &["history", WALLET, "--limit", "1"]] {
        let place = Place::new();
        let data = place.path().join("data");
        open_handed(&place, &node, first);
        for args in [
            &["keys", "create"][..],
            &["history", WALLET, "--limit", "1"],
            &["pnl", WALLET],
            &["forget", WALLET],
            &["compact"],
            &["backup", "copy"],
        ] {
            open_handed(&place, &node, args);
        }
        // A running server, with what it has open.
        let server = place.serve(&["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"]);
        let mut all = modes(&data);
        all.extend(modes(&place.path().join("copy")));
        drop(server);
        let of = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!([of(&data), of(&place.path().join("copy"))], [0o700; 2], "after {first:?}");
        assert!(all.iter().any(|(path, ..)| path.ends_with("copy/trades.redb")), "{all:?}");
        assert!(all.iter().any(|(path, ..)| path.ends_with("data/keys.toml")), "{all:?}");
        for (path, is_folder, mode) in all {
            assert_eq!(mode, if is_folder { 0o700 } else { 0o600 }, "{path}, after {first:?}");
        }
    }
}

/// A copy that was put back with everybody's rights is made private at the next start.
#[test]
fn files_put_back_with_everybodys_rights_are_made_private() {
    let elsewhere = Place::new();
    let demo = elsewhere.serve(&["demo", "--listen", "127.0.0.1:0", "--node", "127.0.0.1:0"]);
    let node = demo.printed("node:");
    let place = Place::new();
    let data = place.path().join("data");
    open_handed(&place, &node, &["keys", "create"]);
    open_handed(&place, &node, &["history", WALLET, "--limit", "1"]);
    for (path, is_folder, _) in modes(&data) {
        assert!(!is_folder, "{path}");
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let server = place.serve(&["serve", "--listen", "127.0.0.1:0", "--data-dir", "data"]);
    let all = modes(&data);
    drop(server);
    for name in ["trades.redb", "keys.toml"] {
        let (path, _, mode) = all.iter().find(|(path, ..)| path.ends_with(name)).unwrap();
        assert_eq!(*mode, 0o600, "{path}");
    }
}
