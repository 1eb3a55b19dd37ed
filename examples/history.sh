#!/bin/sh
# Reads a wallet's whole history with curl and jq: stream, resume, filter. Prints the lines with
# trades exactly as they came; jq before 1.7 would round long numbers if it wrote them anew.
#
#     examples/history.sh URL KEY WALLET [CHAIN] [MORE_PARAMETERS]
#     examples/history.sh http://127.0.0.1:8080 blt_… 9WzD… sol 'side=buy&from=2026-01-01' |
#         jq -r '.trades[] | [.blockTime, .side, .token] | @tsv'
set -eu
url=$1 key=$2 wallet=$3 chain=${4:-sol} more=${5:+&$5}
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
cursor=
tries=0
while :; do
    # A stream that is cut leaves a part of a line; `fromjson?` passes over it.
    before=$cursor
    curl -sSN --fail-with-body -H "Authorization: Bearer $key" \
        "$url/v1/wallets/$wallet/history?chain=$chain$more${cursor:+&cursor=$cursor}" >"$lines" || {
        tries=$((tries + 1))
        [ "$tries" -lt 5 ] || { cat "$lines" >&2; exit 1; }
    }
    jq -rR 'select(fromjson? | .trades)' "$lines"
    jq -eR 'fromjson? | select(.complete == true)' "$lines" >/dev/null && exit 0
    # Where the server says that going on is of no use, the error is the last word.
    if jq -eR 'fromjson? | select(.error?.retryable? == false) | .error' "$lines" >&2; then exit 1; fi
    last=$(jq -rR 'fromjson? | .cursor // empty' "$lines" | tail -n 1)
    cursor=${last:-$cursor}
    [ "$cursor" = "$before" ] || tries=0
    sleep 1
done
