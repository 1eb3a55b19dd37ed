#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a failed setup step should stop the test"
)]

mod corpus;
mod decode;
mod decode_wire;
mod support;
