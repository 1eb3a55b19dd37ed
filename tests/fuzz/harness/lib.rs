//! What all targets share: a target is seeds and a function that tries bytes.

#[path = "../../it/support/mangle.rs"]
#[allow(dead_code, unreachable_pub, reason = "the other half is for the tests")]
mod mangle;
pub mod moved;
pub mod reading;
pub mod sample;
pub mod tape;

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use blotter::domain::{Clock, UnixMillis};
use blotter::registry::Registry;
pub use libfuzzer_sys;

/// Set to a folder, a target writes its seeds there instead of running.
const SEEDS_VARIABLE: &str = "BLOTTER_FUZZ_SEEDS";

pub static REGISTRY: LazyLock<Arc<Registry>> =
    LazyLock::new(|| Arc::new(Registry::embedded().expect("the tables are right")));

/// Makes a target of a function that gives seeds and one that tries bytes.
#[macro_export]
macro_rules! target {
    ($seeds:path, $attempt:path) => {
        $crate::libfuzzer_sys::fuzz_target!(
            init: $crate::write_seeds($seeds),
            |bytes: &[u8]| $attempt(bytes)
        );
        $crate::libfuzzer_sys::fuzz_mutator!(
            |data: &mut [u8], size: usize, max_size: usize, seed: u32| {
                $crate::mutate(data, size, max_size, seed)
            }
        );
    };
}

pub fn write_seeds(seeds: fn() -> Vec<Vec<u8>>) {
    let Some(folder) = std::env::var_os(SEEDS_VARIABLE) else { return };
    let folder = PathBuf::from(folder);
    std::fs::create_dir_all(&folder).expect("the folder for seeds");
    for (number, seed) in seeds().into_iter().enumerate() {
        write_seed(&folder.join(format!("seed-{number:03}")), &seed);
    }
    std::process::exit(0);
}

fn write_seed(path: &Path, seed: &[u8]) {
    std::fs::write(path, seed).expect("a seed");
}

/// Every other change is one that keeps texts and numbers whole, so that JSON stays JSON.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    if seed.is_multiple_of(2) {
        return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
    }
    let mut bytes = data[..size].to_vec();
    mangle::mangle(&mut bytes, &mut mangle::Dice(seed.into()));
    bytes.truncate(max_size);
    data[..bytes.len()].copy_from_slice(&bytes);
    bytes.len()
}

/// Runs to the end on one thread; waiting costs nothing.
pub fn on_paused_time<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(work)
}

/// The first day of 2026, for ever.
#[derive(Debug)]
pub struct Epoch;

impl Clock for Epoch {
    fn now(&self) -> UnixMillis {
        UnixMillis(1_767_225_600_000)
    }
}

/// The first byte, and the lines behind it.
pub fn choice_and_lines<const N: usize>(bytes: &[u8]) -> Option<(u8, [&[u8]; N])> {
    let (choice, rest) = bytes.split_first()?;
    let mut lines = rest.splitn(N, |byte| *byte == b'\n');
    let lines = [(); N].map(|()| lines.next().unwrap_or_default());
    Some((*choice, lines))
}
