"""The client."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Callable, Iterator

from ._errors import BlotterError, Passing
from ._trade import Trade

Parameters = dict[str, "str | int | None"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Trades that arrived together."""

    trades: list[Trade]
    #: Where a later call goes on, right behind them; ``None`` behind the last page of a complete history.
    cursor: str | None
    #: New trades of a stream that follows the chain, oldest first.
    live: bool


class Blotter:
    """One server and one key. Calls do not share state: use it from several threads."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        timeout: float = 45.0,
        failures_max: int = 8,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """``timeout``: silence after which a connection counts as dead; a stream sends a blank line
        every 10 seconds. ``failures_max``: failures in a row, without a row between, that are borne;
        the next one is raised."""
        self.url = url.rstrip("/")
        self._key = key
        self._timeout = timeout
        self._failures_max = failures_max
        self._sleep = sleep

    def stream(
        self, wallet: str, chain: str = "sol", *, cursor: str | None = None, **parameters: str | int | None
    ) -> Iterator[Trade]:
        """Every trade once, newest first. With ``follow=1`` it goes on with new ones, and never ends."""
        for batch in self.batches(wallet, chain, cursor=cursor, **parameters):
            yield from batch.trades

    def batches(
        self, wallet: str, chain: str = "sol", *, cursor: str | None = None, **parameters: str | int | None
    ) -> Iterator[Batch]:
        """Trades as they arrive, each with the cursor behind them, until the history is complete."""
        _refuse_empty(cursor)
        failures = 0
        while True:
            pause = 0.0
            try:
                given: Parameters = {"chain": chain, **parameters, "cursor": cursor, "numbers": "string"}
                for line in self._lines(wallet, given):
                    if "trades" in line:
                        cursor = line["cursor"]
                        failures = 0
                        trades = [Trade.of_row(row) for row in line["trades"]]
                        yield Batch(trades, line["cursor"], line.get("live", False))
                        continue
                    if line["complete"]:
                        return
                    cursor = line["cursor"]
                    error = line.get("error")
                    if error is not None:
                        if not error.get("retryable", True):
                            raise BlotterError.of_line(error)
                        raise Passing.of_line(error)
                    # The stream's window is over: the next one goes on at once.
                    break
                else:
                    raise ConnectionError("the connection was cut")
            except (OSError, http.client.HTTPException, ValueError, Passing) as error:
                failures += 1
                if failures > self._failures_max:
                    raise
                wait = error.wait if isinstance(error, Passing) else None
                pause = wait if wait is not None else min(2.0 ** (failures - 1) / 4, 30.0)
            if pause:
                self._sleep(pause)

    def pages(
        self, wallet: str, chain: str = "sol", *, limit: int = 1000, cursor: str | None = None, **parameters: str | int | None
    ) -> Iterator[Batch]:
        """Pages until the last one of a complete history; waits where one is not loaded yet."""
        _refuse_empty(cursor)
        path = f"/v1/wallets/{urllib.parse.quote(wallet, safe='')}/history"
        while True:
            page = self._get(path, {"chain": chain, **parameters, "limit": limit, "cursor": cursor, "numbers": "string"})
            trades = [Trade.of_row(row) for row in page["trades"]]
            cursor = page.get("cursor")
            if trades:
                yield Batch(trades, cursor, False)
            if cursor is None:
                return
            if not trades:
                self._sleep(1.0)

    def pnl(self, wallet: str, chain: str = "sol", **parameters: str | int | None) -> dict[str, Any]:
        """Gains of a complete history: waits until it is complete. Numbers with a fraction are
        ``Decimal``, whole ones ``int``."""
        path = f"/v1/wallets/{urllib.parse.quote(wallet, safe='')}/pnl"
        while True:
            answer: dict[str, Any] = self._get(path, {"chain": chain, **parameters})
            if answer["complete"]:
                return answer
            self._sleep(1.0)

    def explain(self, wallet: str, signature: str, chain: str = "sol") -> dict[str, Any]:
        parts = [urllib.parse.quote(part, safe="") for part in (wallet, signature)]
        answer: dict[str, Any] = self._get(f"/v1/wallets/{parts[0]}/explain/{parts[1]}", {"chain": chain})
        return answer

    def coverage(self, wallet: str, chain: str = "sol") -> dict[str, Any]:
        path = f"/v1/wallets/{urllib.parse.quote(wallet, safe='')}/coverage"
        answer: dict[str, Any] = self._get(path, {"chain": chain})
        return answer

    def usage(self) -> dict[str, Any]:
        answer: dict[str, Any] = self._get("/v1/usage", {})
        return answer

    def chains(self) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = self._get("/v1/chains", {})["chains"]
        return answer

    def _lines(self, wallet: str, parameters: Parameters) -> Iterator[dict[str, Any]]:
        path = f"/v1/wallets/{urllib.parse.quote(wallet, safe='')}/history"
        with self._open(path, parameters) as answer:
            for line in answer:
                if not line.endswith(b"\n"):
                    return  # cut inside a line
                if line.strip():
                    yield json.loads(line)

    def _get(self, path: str, parameters: Parameters) -> Any:
        failures = 0
        while True:
            try:
                with self._open(path, parameters) as answer:
                    return json.loads(answer.read(), parse_float=Decimal)
            except (OSError, http.client.HTTPException, ValueError, Passing) as error:
                failures += 1
                if failures > self._failures_max:
                    raise
                wait = error.wait if isinstance(error, Passing) else None
                self._sleep(wait if wait is not None else min(2.0 ** (failures - 1) / 4, 30.0))

    def _open(self, path: str, parameters: Parameters) -> http.client.HTTPResponse:
        given = {name: value for name, value in parameters.items() if value is not None}
        query = urllib.parse.urlencode(given)
        request = urllib.request.Request(
            f"{self.url}{path}?{query}", headers={"Authorization": f"Bearer {self._key}"}
        )
        try:
            answer: http.client.HTTPResponse = urllib.request.urlopen(request, timeout=self._timeout)
            return answer
        except urllib.error.HTTPError as error:
            raise _refusal(error) from None


def _refuse_empty(cursor: str | None) -> None:
    """The server takes an empty cursor for none: the whole history would come again."""
    if cursor == "":
        raise ValueError("cursor is empty: None begins anew")


def _refusal(error: urllib.error.HTTPError) -> Exception:
    with error:
        body = error.read()
    try:
        told: dict[str, Any] = json.loads(body)
        code, message, kind = told["error"]["code"], told["error"]["message"], told.get("type", "")
    except (ValueError, KeyError, TypeError):
        code, message, kind = "", f"the server answered {error.code}", ""
    if error.code in (408, 429) or error.code >= 500 and code != "HISTORY_CUT":
        wait = error.headers.get("Retry-After")
        passing = Passing(error.code, code, message, kind)
        passing.wait = float(wait) if wait is not None and wait.isdigit() else None
        return passing
    return BlotterError(error.code, code, message, kind)
