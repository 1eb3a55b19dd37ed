//! The version of the program; in a release build also its commit and target.

/// `docs/deploy/release` sets `BLOTTER_BUILD`. Other builds are of a working tree.
pub(super) const VERSION: &str = match option_env!("BLOTTER_BUILD") {
    Some(build) => build,
    None => concat!(env!("CARGO_PKG_VERSION"), " (no release)"),
};
