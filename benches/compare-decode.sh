#!/usr/bin/env bash
# Recorded answers of nodes to trades, on one core, in turns of one run: each family next to a bare
# scan of the same JSON, Solana's next to the npm package solana-dex-parser too.
# usage: bash benches/compare-decode.sh [CORPUS]     (default ../shared/corpus; needs node and npm)
# The package is installed into a scratch folder that is removed again.
set -euo pipefail
cd "$(dirname "$0")/.."

PEER=solana-dex-parser@2.6.7
FLOOR_PEER=40
FLOOR_SCAN=0.40
TURNS=3
corpus=$(realpath "${1:-../shared/corpus}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

[ -d "$corpus/sol" ] || { printf 'no folder %s\n' "$corpus/sol" >&2; exit 1; }
printf '{"private":true}\n' >"$scratch/package.json"
npm install --prefix "$scratch" --no-audit --no-fund --ignore-scripts --silent "$PEER" >&2
cargo bench --bench decode --no-run >&2
criterion=${CARGO_TARGET_DIR:-target}/criterion

# Transactions a second, by Criterion's median over all of a family.
rate() {
    node -p "const of = (name) => JSON.parse(fs.readFileSync('$criterion/$1/new/' + name));
        of('benchmark.json').throughput.Elements * 1e9 / of('estimates.json').median.point_estimate"
}

for turn in $(seq "$TURNS"); do
    node benches/peer-decode.mjs "$corpus/sol" "$scratch" >>"$scratch/peer"
    BLOTTER_CORPUS=$corpus cargo bench --bench decode -- --noplot '^answers-.*/(scan|trades)' >&2
    for family in sol evm tron; do
        [ -d "$corpus/$family" ] || continue
        printf '%s %s\n' "$(rate "answers-$family/trades")" "$(rate "answers-$family/scan")" \
            >>"$scratch/$family"
    done
done

# The turn in the middle, by its ratio: what stands next to each other ran right after each other.
middle() { sort -g -k 3 | sed -n "$((TURNS / 2 + 1))p"; }
failed=0
row() {
    awk -v family="$1" -v what="$2" -v floor="$3" \
        '{ printf "%-6s %-36s %12.0f %12.0f %8.2f   %s\n", family, what, $1, $2, $3, floor
           exit $3 < floor }' || failed=1
}

printf '%-6s %-36s %12s %12s %8s   %s\n' "" "transactions/s, one core" ours other ratio floor
for family in sol evm tron; do
    [ -f "$scratch/$family" ] || continue
    row "$family" "bare JSON scan" "$FLOOR_SCAN" < <(awk '{ print $1, $2, $1 / $2 }' "$scratch/$family" | middle)
done
read -r _ way readable _ <"$scratch/peer"
row sol "solana-dex-parser ($way, $readable read)" "$FLOOR_PEER" \
    < <(paste -d ' ' "$scratch/sol" "$scratch/peer" | awk '{ print $1, $3, $1 / $3 }' | middle)
exit "$failed"
