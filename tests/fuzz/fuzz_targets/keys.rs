//! The file of API keys: an error, or entries that are written as they were read.

#![no_main]

use blotter::cli::fuzzing::keys;
use blotter_fuzz::target;

fn seeds() -> Vec<Vec<u8>> {
    let hash = "0123456789abcdef".repeat(4);
    let plain = format!(
        "[[key]]\nid = \"0123456789ab\"\nhash = \"{hash}\"\ncreated = \"2026-01-31T00:00:00+00:00\"\n"
    );
    let more = "name = \"a\"\nrate = \"2.5/s\"\nquota = 7\nstreams = 3\nchains = [\"sol\", \"eth\"]\n\
        expires = \"2027-01-31T00:00:00+01:00\"\nrevoked = \"2026-02-01T00:00:00Z\"\n";
    vec![plain.clone().into_bytes(), format!("{plain}{plain}{more}").into_bytes()]
}

fn attempt(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        keys(text);
    }
}

target!(seeds, attempt);
