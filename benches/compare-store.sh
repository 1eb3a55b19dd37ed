#!/usr/bin/env bash
# The store next to SQLite on one layout: insert, scan, seek, size, kill and reopen, in one table.
# With --scale: what it costs by trades, by wallets and by the order in which trades come.
# usage: bash benches/compare-store.sh [--short] [--scale] [arguments of compare/store.py]
# --short tries all of it on a small file with a debug build, and judges only what must hold there.
# The peer is a small program of its own, built next to the main build; it needs a C compiler.
set -euo pipefail
cd "$(dirname "$0")/.."

build=(bench --no-run)
peer_profile=release
arguments=()
for argument; do
    case $argument in
        --short)
            build=(build)
            peer_profile=dev
            arguments+=(--trades 20000 --rounds 1 --kills 4 --unjudged)
            ;;
        *) arguments+=("$argument") ;;
    esac
done
target=${CARGO_TARGET_DIR:-$PWD/target}/sqlite-peer
measure=$(cargo "${build[@]}" --locked --bench measure --message-format json | python3 -c '
import json, sys
for line in sys.stdin:
    built = json.loads(line)
    if built.get("executable") and built["target"]["name"] == "measure":
        print(built["executable"])')
cargo build --profile "$peer_profile" --locked --manifest-path benches/compare/sqlite/Cargo.toml --target-dir "$target"
peer=$target/${peer_profile/dev/debug}/sqlite-peer
python3 benches/compare/store.py "$measure" --peer "$peer" "${arguments[@]}"
