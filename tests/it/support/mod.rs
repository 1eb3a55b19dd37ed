//! Helpers of the tests.

pub(crate) mod solana;
