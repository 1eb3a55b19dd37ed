#!/usr/bin/env bash
# The real binary next to its limits and its peers, in one run: prints one table of ratios.
# usage: bash benches/compare.sh [--short] [arguments of compare/compare.py]
# Installs nginx, wrk, PostgreSQL and Node from Debian where they are missing. Results are kept in
# target/compare, so that `--only SECTION,...` runs sections again and the table has all of them.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=()
command -v nginx >/dev/null || missing+=(nginx-light)
command -v wrk >/dev/null || missing+=(wrk)
command -v npm >/dev/null || missing+=(nodejs npm)
compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null || missing+=(postgresql)
if [ "${#missing[@]}" -gt 0 ]; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}"
fi

form=long
for argument in "$@"; do
    if [ "$argument" = --short ]; then form=short; fi
done
# The long form measures what is given to others; the short one what everybody builds, in half the time.
profile=release
cargo build --profile "$profile" --locked
# Small folders are filled fast enough by the build that tests have made.
if [ "$form" = short ]; then build=(build --bench fill); else build=(bench --bench fill --no-run); fi
fill=$(cargo "${build[@]}" --locked --message-format json 2>/dev/null | python3 -c '
import json, sys
for line in sys.stdin:
    built = json.loads(line)
    if built.get("executable") and built["target"]["name"] == "fill":
        print(built["executable"])')
folder=${CARGO_TARGET_DIR:-target}
python3 benches/compare/compare.py "$folder/$profile/blotter" --fill "$fill" --json "$folder/compare/$form.json" "$@"
