#![expect(clippy::unwrap_used, reason = "a failed setup step should stop the test")]

mod corpus;
mod store;
