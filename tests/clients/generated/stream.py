"""Reads every trade of a wallet with a client that a generator made from /openapi.json.

    python3 stream.py URL KEY WALLET CHAIN

The generated package is `blotter_api`. A generator has no word for lines that come one by one, so
the request is the generated one and each line is read as the generated type of its kind.
"""

import json
import sys
from collections.abc import Iterator
from http import HTTPStatus

from blotter_api import AuthenticatedClient
from blotter_api.api.history import history
from blotter_api.api.service import chains
from blotter_api.models.batch_line import BatchLine
from blotter_api.models.chain_list import ChainList
from blotter_api.models.complete_line import CompleteLine
from blotter_api.models.history_numbers import HistoryNumbers
from blotter_api.models.incomplete_line import IncompleteLine
from blotter_api.models.page import Page
from blotter_api.models.problem import Problem
from blotter_api.models.trade import Trade
from blotter_api.types import UNSET, Unset


def text(trade: Trade) -> str:
    """One line of tab-separated members; amounts are text with `numbers=string`."""
    amounts = [trade.amount, trade.amount_sol]
    assert all(amount is None or isinstance(amount, str) for amount in amounts), amounts
    amount, native = ("" if value is None else str(value) for value in amounts)
    members = [trade.block_time, trade.side.value, amount, trade.token, trade.token_mint, native, trade.dex]
    return "\t".join([*members, trade.signature])


def streamed(client: AuthenticatedClient, wallet: str, chain: str) -> Iterator[Trade]:
    """All trades, over as many streams as it takes."""
    cursor: str | Unset = UNSET
    while True:
        request = history._get_kwargs(wallet, chain=chain, cursor=cursor, numbers=HistoryNumbers.STRING)
        with client.get_httpx_client().stream(**request) as response:
            if response.status_code != HTTPStatus.OK:
                raise SystemExit(Problem.from_dict(json.loads(response.read())).error.code)
            for line in filter(None, response.iter_lines()):
                members = json.loads(line)
                if "trades" in members:
                    batch = BatchLine.from_dict(members)
                    yield from batch.trades
                    cursor = batch.cursor
                elif members["complete"]:
                    CompleteLine.from_dict(members)
                    return
                else:
                    last = IncompleteLine.from_dict(members)
                    if not isinstance(last.error, Unset) and not last.error.retryable:
                        raise SystemExit(last.error.code)
                    cursor = last.cursor


def paged(client: AuthenticatedClient, wallet: str, chain: str) -> Iterator[Trade]:
    """The same by pages, with generated code alone."""
    cursor: str | Unset = UNSET
    while True:
        page = history.sync(
            wallet, client=client, chain=chain, limit=5000, cursor=cursor, numbers=HistoryNumbers.STRING
        )
        if not isinstance(page, Page):
            raise SystemExit("no page" if page is None else page.error.code)
        yield from page.trades
        if isinstance(page.cursor, Unset):
            return
        cursor = page.cursor


def main() -> None:
    url, key, wallet, chain = sys.argv[1:]
    client = AuthenticatedClient(base_url=url, token=key)
    served = chains.sync(client=client)
    assert isinstance(served, ChainList) and any(one.slug == chain for one in served.chains), served
    rows = [text(trade) for trade in streamed(client, wallet, chain)]
    assert rows == [text(trade) for trade in paged(client, wallet, chain)], "pages differ from the stream"
    print("\n".join(rows))


if __name__ == "__main__":
    main()
