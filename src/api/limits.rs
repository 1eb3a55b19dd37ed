//! All limits of the HTTP interface.

use std::time::Duration;

use super::arrival::Hosts;
use super::clients::{Peer, Proxies};
use crate::domain::defaults;

/// Who may read `/metrics` at the API's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsAccess {
    Open,
    /// Callers with a valid key.
    Key,
    /// No caller: the metrics have an address of their own.
    Apart,
}

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ApiLimits {
        /// A stream ends after this time, with a cursor if the history is not complete.
        pub stream_window: Duration = Duration::from_secs(55),
        /// A stream waits this long for its first step before its headers are sent, so that an
        /// address that is no wallet gets an error status.
        pub stream_first_wait: Duration = Duration::from_millis(250),
        /// A page waits this long in total for rows that are still being loaded.
        pub page_wait: Duration = Duration::from_secs(20),
        /// A stream without new rows sends a blank line at this interval.
        pub heartbeat: Duration = Duration::from_secs(10),
        /// Lines that are ready together form a frame of up to this size; a single line may be
        /// larger.
        pub frame_bytes: usize = 64 * 1024,
        /// Bytes of a stream that are compressed together; as many are buffered for compression.
        pub pack_slice_bytes: usize = 256 * 1024,
        /// Slices of one response that are compressed concurrently, if its coding allows that.
        pub pack_slices_at_once: usize = 2,
        /// Threads that compress slices for all responses; a reload does not change it.
        pub pack_threads_max: usize = 2,
        /// A page of more rows than this is streamed instead of buffered.
        pub page_rows_buffered_max: u64 = 1000,
        /// Concurrent streams: NDJSON streams and streamed pages.
        pub streams_max: usize = 2048,
        /// Concurrent streams of a key without a number of its own.
        pub streams_per_key_max: u32 = 64,
        /// Concurrent computations of gains, of all keys and of one; each holds a wallet's rows in
        /// memory.
        pub pnl_at_once_max: usize = 4,
        pub pnl_per_key_max: usize = 2,
        /// Most rows of a wallet whose gains are computed. A row takes about 170 bytes, and its lot
        /// as many.
        pub pnl_rows_max: u64 = 500_000,
        /// Rows that are processed before other requests get their turn.
        pub pnl_slice_rows: usize = 2000,
        /// Concurrent explanations of transactions, for all keys and for one.
        pub explain_at_once_max: usize = 64,
        pub explain_per_key_max: usize = 16,
        /// The burst of a key with a rate, as time at that rate.
        pub rate_burst: Duration = Duration::from_secs(1),
        /// Longest `x-request-id` of a client; a longer one is replaced.
        pub request_id_chars_max: usize = 128,
        /// The `retry-after` of temporary failures.
        pub retry_after: Duration = Duration::from_secs(5),
        /// Concurrent connections; one more gets a 503 and is closed.
        pub connections_max: u32 = 4096,
        /// Concurrent connections of one address, unless it is a trusted proxy; 0 is unlimited.
        pub connections_per_address_max: u32 = 1024,
        /// Of those, connections without a complete first request after `half_open_grace`.
        pub half_open_per_address_max: u32 = 256,
        pub half_open_grace: Duration = Duration::from_secs(1),
        /// Longest time until a request's headers are complete, from the start of the connection or
        /// the end of the response before; so also the time that an idle connection is kept.
        pub header_wait_max: Duration = Duration::from_secs(30),
        /// Request line and headers together.
        pub header_bytes_max: usize = 32 * 1024,
        pub headers_max: usize = 64,
        /// Authentication failures of one connection; the last one closes it.
        pub refusals_per_connection_max: u32 = 10,
        /// Unsent bytes of a connection above which no more of its response is produced.
        pub write_buffer_bytes: usize = 64 * 1024,
        /// Longest time in which a client may accept next to nothing (see `slow_reader.rs`).
        pub write_wait_max: Duration = Duration::from_secs(30),
        /// How long a shutdown waits for open responses.
        pub drain_wait_max: Duration = Duration::from_secs(10),
        /// Longest pause after a failed accept.
        pub accept_pause_max: Duration = Duration::from_secs(1),
        /// Whether estimates, which need no key, are served.
        pub estimates: bool = true,
        pub trusted_proxies: Proxies = Proxies::default(),
        /// Host names that the server accepts in addition to those of loopback. If empty, only a
        /// server on loopback checks the host.
        pub allowed_hosts: Hosts = Hosts::default(),
        pub metrics: MetricsAccess = MetricsAccess::Open,
        /// Wallets of one estimate, each of which is at most one call to a node.
        pub estimate_addresses_max: usize = 20,
        pub estimate_body_bytes_max: usize = 16 * 1024,
        pub estimate_body_wait_max: Duration = Duration::from_secs(10),
        /// Longest wait for a node. Then the estimate is of the stored rows, or fails without any.
        pub estimate_wait_max: Duration = Duration::from_secs(5),
        /// Additional wait for each wallet of a list, since public nodes allow one call per second.
        pub estimate_wait_more: Duration = Duration::from_millis(1_200),
        /// Estimates for one client address without a key, per 1,000 seconds.
        pub estimate_rate_millis: u64 = 500,
        /// Estimated wallets of all clients, per 1,000 seconds.
        pub estimate_calls_millis: u64 = 4000,
        /// The burst of both, as time.
        pub estimate_burst: Duration = Duration::from_secs(10),
        /// Client addresses whose rate is remembered.
        pub visitors_max: usize = 10_000,
        /// Whether the access log contains paths, which may name wallets.
        pub log_paths: bool = false,
    }
}

impl ApiLimits {
    /// Whether connections of an address are limited; those of trusted proxies are not.
    pub(super) fn is_counted(&self, peer: Peer) -> bool {
        self.connections_per_address_max > 0 && !self.trusted_proxies.hold(peer.0)
    }
}
