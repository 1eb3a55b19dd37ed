#!/usr/bin/env bash
# Recorded `getTransaction` answers to trades, on one core: this decoder beside the npm package
# solana-dex-parser, in turns of one run.
# usage: bash benches/compare-decode.sh [FOLDER]     (default ../shared/corpus/sol; needs node and npm)
# The package is installed into a scratch folder that is removed again.
set -euo pipefail
cd "$(dirname "$0")/.."

PEER=solana-dex-parser@2.6.7
FLOOR=40
TURNS=2
folder=$(realpath "${1:-../shared/corpus/sol}")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

[ -d "$folder" ] || { printf 'no folder %s\n' "$folder" >&2; exit 1; }
printf '{"private":true}\n' >"$scratch/package.json"
npm install --prefix "$scratch" --no-audit --no-fund --ignore-scripts --silent "$PEER" >&2
cargo bench --bench decode --no-run >&2
estimates=${CARGO_TARGET_DIR:-target}/criterion/answers

# Nanoseconds of Criterion's median over the whole folder.
nanoseconds() {
    node -p "JSON.parse(fs.readFileSync('$estimates/$1/new/estimates.json')).median.point_estimate"
}

for turn in $(seq "$TURNS"); do
    node benches/peer-decode.mjs "$folder" "$scratch" >>"$scratch/peer"
    BLOTTER_CORPUS=$folder cargo bench --bench decode -- --noplot '^answers/' >&2
    printf '%s %s\n' "$(nanoseconds trades)" "$(nanoseconds scan)" >>"$scratch/ours"
done

# The peer's faster turn against our slower one.
paste -d ' ' "$scratch/peer" "$scratch/ours" | awk -v floor="$FLOOR" '
    { answers = $4; readable = $3
      if ($1 > peer) { peer = $1; way = $2 }
      if ($5 > trades) trades = $5
      if ($6 > scan) scan = $6 }
    END { ours = answers * 1e9 / trades; limit = answers * 1e9 / scan; ratio = ours / peer
      printf "%-34s %12s\n", answers " answers, one core", "tx/s"
      printf "%-34s %12.0f\n", "bare JSON scan", limit
      printf "%-34s %12.0f\n", "blotter, bytes to trades", ours
      printf "%-34s %12.0f   (%d readable)\n", "peer, text to trades (" way ")", peer, readable
      printf "%-34s %12.1f   (floor %d)\n", "ratio", ratio, floor
      exit ratio < floor }'
