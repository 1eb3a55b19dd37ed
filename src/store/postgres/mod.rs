//! The shared arm: a PostgreSQL database that several processes use as one store.
