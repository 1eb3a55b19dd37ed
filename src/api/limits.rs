//! Every limit of the HTTP side, by name.

use std::time::Duration;

use super::arrival::Hosts;
use super::visitors::{Peer, Proxies};
use crate::domain::defaults;

/// Who may read `/metrics` where the API is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricsAccess {
    Open,
    /// Callers with a valid key.
    Key,
    /// No caller: they are served at an address of their own.
    Apart,
}

defaults! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ApiLimits {
        /// A stream ends after this time, with a cursor where the history is not complete.
        pub stream_window: Duration = Duration::from_secs(55),
        /// A stream's first step is waited for this long before its head is sent, so that what is no
        /// wallet has its status.
        pub stream_first_wait: Duration = Duration::from_millis(250),
        /// A page waits in all this long for rows that are still being loaded.
        pub page_wait: Duration = Duration::from_secs(20),
        /// A silent stream sends a blank line this often.
        pub heartbeat: Duration = Duration::from_secs(10),
        /// Lines that are ready together are sent together up to this size; one line may be larger.
        pub frame_bytes: usize = 64 * 1024,
        /// Bytes of a compressed stream that are packed together; as many wait to be packed.
        pub pack_slice_bytes: usize = 256 * 1024,
        /// Slices of one answer that are packed at one time, where its coding allows that.
        pub pack_slices_at_once: usize = 2,
        /// Threads that pack slices at one time, for all answers; it counts from the start.
        pub pack_threads_max: usize = 2,
        /// A page of more rows than this is written as a stream instead of being held in memory.
        pub page_rows_buffered_max: u64 = 1000,
        /// Streams at one time: NDJSON streams and pages that are written as a stream.
        pub streams_max: usize = 2048,
        /// The same for one key that does not set its own number.
        pub streams_per_key_max: u32 = 64,
        /// Gains worked out at one time, of all keys and of one: each holds its wallet's rows in memory.
        pub pnl_at_once_max: usize = 4,
        pub pnl_per_key_max: usize = 2,
        /// Rows of a wallet whose gains are worked out; one with more is refused. A row takes some 170
        /// bytes, its lot as many.
        pub pnl_rows_max: u64 = 500_000,
        /// Rows that are counted before other requests have their turn.
        pub pnl_slice_rows: usize = 2000,
        /// Transactions explained at one time, for all keys and for one.
        pub explain_at_once_max: usize = 64,
        pub explain_per_key_max: usize = 16,
        /// Requests that a key with a rate may have saved up, as time at that rate.
        pub rate_burst: Duration = Duration::from_secs(1),
        /// A longer `x-request-id` of a client is replaced.
        pub request_id_chars_max: usize = 128,
        /// The wait that a client is asked for after a temporary failure.
        pub retry_after: Duration = Duration::from_secs(5),
        /// Connections at one time; one more is answered 503 and closed.
        pub connections_max: u32 = 4096,
        /// The same of one address, trusted proxies left out; 0 is without limit.
        pub connections_per_address_max: u32 = 1024,
        /// Of those, connections whose first request has not arrived whole after this time.
        pub half_open_per_address_max: u32 = 256,
        pub half_open_grace: Duration = Duration::from_secs(1),
        /// A request's headers arrive within this time, counted from the connection's start or from
        /// the end of the answer before; so it is also how long an idle connection is kept.
        pub header_wait_max: Duration = Duration::from_secs(30),
        /// Request line and headers together.
        pub header_bytes_max: usize = 32 * 1024,
        pub headers_max: usize = 64,
        /// Answers that refuse a key on one connection; with the last one it is closed.
        pub refusals_per_connection_max: u32 = 10,
        /// Unsent bytes of one connection above which no more of its answer is produced.
        pub write_buffer_bytes: usize = 64 * 1024,
        /// A client that accepts no byte for this long is dropped.
        pub write_wait_max: Duration = Duration::from_secs(30),
        /// How long a stop waits for open answers to end.
        pub drain_wait_max: Duration = Duration::from_secs(10),
        /// Longest pause after the system refused to accept a connection.
        pub accept_pause_max: Duration = Duration::from_secs(1),
        /// Whether estimates are answered, which needs no key.
        pub estimates: bool = true,
        pub trusted_proxies: Proxies = Proxies::default(),
        /// Names other than those of loopback that a server on loopback answers to; with any, every server.
        pub allowed_hosts: Hosts = Hosts::default(),
        pub metrics: MetricsAccess = MetricsAccess::Open,
        /// Wallets of one estimate; each is one call to a node at most.
        pub estimate_addresses_max: usize = 20,
        pub estimate_body_bytes_max: usize = 16 * 1024,
        pub estimate_body_wait_max: Duration = Duration::from_secs(10),
        /// A node that takes longer leaves an estimate at what is stored, or fails it where that is nothing.
        pub estimate_wait_max: Duration = Duration::from_secs(5),
        /// More of it for each wallet of a list: public nodes take one call a second.
        pub estimate_wait_more: Duration = Duration::from_millis(1_200),
        /// Requests for estimates of one address without a key, in a thousand seconds.
        pub estimate_rate_millis: u64 = 500,
        /// Wallets estimated for all, in a thousand seconds.
        pub estimate_calls_millis: u64 = 4000,
        /// What may be saved up of both, as time.
        pub estimate_burst: Duration = Duration::from_secs(10),
        /// Addresses whose rate is remembered.
        pub visitors_max: usize = 10_000,
        /// Whether the access log holds paths, which may name wallets.
        pub log_paths: bool = false,
    }
}

impl ApiLimits {
    /// Whether connections of an address are counted: a trusted proxy may have any number.
    pub(super) fn is_counted(&self, peer: Peer) -> bool {
        self.connections_per_address_max > 0 && !self.trusted_proxies.hold(peer.0)
    }
}
