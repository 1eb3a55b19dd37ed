//! What is running: version, and for a build that is given to others, its commit and target.

/// `docs/deploy/release` names the build; other builds are of some state of a working tree.
pub(super) const VERSION: &str = match option_env!("BLOTTER_BUILD") {
    Some(build) => build,
    None => concat!(env!("CARGO_PKG_VERSION"), " (no release)"),
};
