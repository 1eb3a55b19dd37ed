"""A client without dependencies: streams a wallet's history through cuts and windows.

    python3 examples/blotter.py URL KEY WALLET [CHAIN] [NAME=VALUE ...]
    python3 examples/blotter.py http://127.0.0.1:8080 blt_... 9WzD... sol side=buy from=2026-01-01

As a module:

    client = Blotter("http://127.0.0.1:8080", "blt_...")
    for trade in client.stream("9WzD...", chain="sol"):
        print(trade["side"], trade["amount"], trade["tokenMint"])
"""

import http.client
import json
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from decimal import Decimal


class BlotterError(Exception):
    """An answer that says what is wrong."""

    def __init__(self, status, code, message):
        super().__init__(f"{status} {code}: {message}")
        self.status, self.code = status, code


class Blotter:
    def __init__(self, url, key, timeout=60):
        self.url, self.key, self.timeout = url.rstrip("/"), key, timeout

    def stream(self, wallet, chain="sol", cursor=None, **parameters):
        """Every trade once, newest first. Amounts are Decimal. With follow=1 it never ends."""
        silent = 0
        while True:
            before = cursor
            try:
                with self._open(wallet, chain=chain, cursor=cursor, **parameters) as answer:
                    for line in answer:
                        if not line.endswith(b"\n"):
                            break  # cut in the middle of a line
                        if not line.strip():
                            continue  # keeps the connection alive
                        line = _read(line)
                        yield from line.get("trades", [])
                        cursor = line.get("cursor", cursor)
                        if line.get("complete"):
                            return
                        if line.get("error", {}).get("code") == "QUOTA_EXCEEDED":
                            raise BlotterError(402, "QUOTA_EXCEEDED", line["error"]["message"])
            except (OSError, http.client.HTTPException):
                silent = 0 if cursor != before else silent + 1
                if silent == 5:
                    raise
            time.sleep(1)

    def pages(self, wallet, limit=1000, chain="sol", cursor=None, **parameters):
        """Pages as they come, until the last one of a complete history."""
        while True:
            with self._open(wallet, chain=chain, limit=limit, cursor=cursor, **parameters) as answer:
                page = _read(answer.read())
            if page["trades"]:
                yield page
            cursor = page.get("cursor")
            if cursor is None:
                return
            if not page["trades"]:
                time.sleep(1)  # still loading: the same cursor again

    def _open(self, wallet, **parameters):
        given = {name: value for name, value in parameters.items() if value is not None}
        path = f"{self.url}/v1/wallets/{urllib.parse.quote(wallet)}/history?"
        request = urllib.request.Request(
            path + urllib.parse.urlencode(given), headers={"Authorization": f"Bearer {self.key}"}
        )
        while True:
            try:
                return urllib.request.urlopen(request, timeout=self.timeout)
            except urllib.error.HTTPError as error:
                wait = error.headers.get("Retry-After")
                if wait is None:
                    told = _read(error.read())["error"]
                    raise BlotterError(error.code, told["code"], told["message"]) from None
                time.sleep(int(wait))


def _read(text):
    return json.loads(text, parse_float=Decimal)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    url, key, wallet, *rest = sys.argv[1:]
    chain = rest[0] if rest else "sol"
    parameters = dict(part.split("=", 1) for part in rest[1:])
    count = 0
    for trade in Blotter(url, key).stream(wallet, chain=chain, **parameters):
        count += 1
        print(trade["blockTime"], trade["side"], trade["amount"], trade["token"],
              trade["amountSol"], trade["dex"], sep="\t", flush=True)
    print(f"{count} trades", file=sys.stderr)


if __name__ == "__main__":
    main()
