//! Behaviour tests: one binary, one module per subject.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "a test that cannot go on says so by panicking"
)]

#[cfg(unix)]
mod admin;
mod api;
mod api_live;
mod capacity;
mod corpus;
mod crash;
mod decode;
mod decode_hostile;
mod decode_oracle;
mod decode_orders;
mod decode_rounds;
mod decode_shape;
mod decode_venues;
mod decode_wire;
mod demo;
mod demo_decode;
mod demo_evm;
mod demo_evm_decode;
mod demo_evm_source;
mod demo_faults;
mod demo_prices;
mod demo_tron;
mod demo_tron_source;
mod doors;
mod doors_program;
mod dropin;
mod endurance;
mod estimates;
mod evm_bridges;
mod evm_by_others;
mod evm_conversions;
mod evm_corpus;
mod evm_decode;
mod evm_dividends;
mod evm_explain;
mod evm_likely;
mod evm_long_tail;
mod evm_payouts;
mod evm_proof;
mod evm_shape;
mod evm_source;
mod evm_standards;
mod evm_tables;
mod evm_v4;
mod evm_values;
mod evm_venues;
mod explain;
mod export;
mod filters;
mod first_key;
mod follow;
mod following;
mod frozen;
mod history;
mod hostile;
mod hostile_answers;
mod hostile_bodies;
mod hostile_bytes;
mod hostile_disk;
mod hostile_modes;
mod hostile_network;
mod hostile_numbers;
mod hostile_secrets;
mod kill;
mod maintenance;
mod openapi;
mod overload;
mod page_wait;
mod pnl;
mod pnl_api;
mod pnl_periods;
mod prices_candles;
mod prices_evm;
mod prices_solana;
mod prices_tron;
mod program;
mod proof;
mod properties;
mod refusals;
mod reload;
mod rpc;
mod rpc_ask;
mod rpc_refusals;
mod rpc_selection;
mod rpc_trouble;
#[cfg(feature = "postgres")]
mod shared;
#[cfg(feature = "postgres")]
mod shared_failover;
#[cfg(feature = "postgres")]
mod shared_faults;
#[cfg(feature = "postgres")]
mod shared_large;
mod sim;
mod site;
mod solana_gateway;
mod solana_late;
mod solana_pages;
mod solana_proof;
mod solana_source;
mod store;
mod store_files;
mod support;
mod tidy;
mod tidy_rooms;
mod tidy_words;
mod tron_decode;
mod tron_proof;
mod tron_source;
mod tron_venues;
mod upgrade;
mod values;
mod values_shares;
mod values_traces;
mod verify;
mod vetting;
mod wire;
