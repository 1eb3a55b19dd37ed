#![expect(clippy::unwrap_used, reason = "a failed setup step should stop the test")]
#![expect(clippy::indexing_slicing, reason = "as above")]

mod corpus;
mod crash;
mod store;
mod store_files;
mod support;
