//! Minimum values of settings below which the server would be unusable.

use std::time::Duration;

use super::Layer;
use super::units::{Size, Wait};

/// As in `data/default.toml`: a smaller file has no space for its own pages.
const MAX_SIZE_MIN: Size = Size(64 << 20);
/// A stream needs time for a line.
const WINDOW_MIN: Wait = Wait(Duration::from_millis(100));
/// Below this, most of a stream would be blank lines.
const HEARTBEAT_MIN: Wait = Wait(Duration::from_millis(100));

/// The first setting of a layer below its minimum, and the error text.
pub(super) fn too_small(layer: &Layer) -> Option<(&'static str, String)> {
    let server = &layer.server;
    let max_size = layer.storage.max_size.and_then(|size| size.0);
    let found = [
        ("server.connections", least(server.connections, 1)),
        ("server.stream_window", least(server.stream_window, WINDOW_MIN)),
        ("server.heartbeat", least(server.heartbeat, HEARTBEAT_MIN)),
        ("storage.max_size", least(max_size, MAX_SIZE_MIN)),
    ];
    found.into_iter().find_map(|(key, wrong)| Some((key, wrong?)))
}

fn least<T: Copy + PartialOrd + std::fmt::Display>(value: Option<T>, min: T) -> Option<String> {
    let value = value.filter(|value| *value < min)?;
    Some(format!("expected at least {min}, not {value}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_serve_nothing_is_refused_with_what_is_right() {
        let read = |text: &str| Layer::parse(text, "blotter.toml");
        for (text, key, least) in [
            ("[server]\nconnections = 0\n", "server.connections", "at least 1,"),
            ("[server]\nstream_window = '0s'\n", "server.stream_window", "at least 100ms"),
            ("[server]\nheartbeat = '0s'\n", "server.heartbeat", "at least 100ms"),
            ("[storage]\nmax_size = '63MiB'\n", "storage.max_size", "at least 64MiB, not 63MiB"),
        ] {
            let error = read(text).unwrap_err().to_string();
            let parts = ["blotter.toml", key, least];
            assert!(parts.iter().all(|part| error.contains(part)), "{error}");
        }
        let server = "[server]\nconnections = 1\nstream_window = '100ms'\n";
        for text in [server, "[storage]\nmax_size = '64MiB'\n", "[storage]\nmax_size = ''\n"] {
            read(text).unwrap();
        }
    }
}
