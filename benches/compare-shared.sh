#!/usr/bin/env bash
# The shared store next to the embedded one, and next to Node on the same database, in one run.
# usage: bash benches/compare-shared.sh [--short] [--binary PROGRAM]
# Installs PostgreSQL, wrk and Node from Debian where they are missing.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
command -v wrk >/dev/null || missing+=(wrk)
command -v npm >/dev/null || missing+=(nodejs npm)
compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || missing+=(postgresql)
if [ "${#missing[@]}" -gt 0 ]; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"
fi
case " $* " in
*" --binary "*) ;;
*)
    cargo build --release --locked
    set -- "$@" --binary "${CARGO_TARGET_DIR:-target}/release/blotter"
    ;;
esac
exec python3 benches/compare/shared.py "$@"
