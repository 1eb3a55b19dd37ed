"""Prints a wallet's trades, one a line, newest first.

python -m blotter_client URL KEY WALLET [CHAIN] [NAME=VALUE ...]
"""

from __future__ import annotations

import sys

from . import Blotter, BlotterError


def main() -> None:
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    url, key, wallet, *rest = sys.argv[1:]
    chain = rest[0] if rest else "sol"
    parameters = dict(part.split("=", 1) for part in rest[1:])
    count = 0
    try:
        for trade in Blotter(url, key).stream(wallet, chain, **parameters):
            count += 1
            fields = [trade.block_time.isoformat(), trade.side, trade.amount, trade.token, trade.token_mint,
                      trade.amount_sol, trade.dex, trade.signature]
            print(*("" if field is None else _text(field) for field in fields), sep="\t", flush=True)
    except BlotterError as error:
        sys.exit(str(error))
    print(f"{count} trades", file=sys.stderr)


def _text(field: object) -> str:
    return format(field, "f") if hasattr(field, "as_tuple") else str(field)


if __name__ == "__main__":
    main()
