"""Gains worked out a third time, from the rule alone, and held against `GET …/pnl`.

    python3 tests/pnl/third.py BINARY          starts the demo, tries its wallets on sol, eth and tron

Every method, all time and each calendar year, the figures of each token and the lots of each sale.
Prices are fractions; the one rule of rounding is that a share of an integer amount is cut down and
that the last share takes what is left.
"""

import json
import re
import subprocess
import sys
import time
import urllib.request
from collections import defaultdict
from decimal import Decimal
from fractions import Fraction
from math import floor

METHODS = ["fifo", "lifo", "hifo", "average"]
CHAINS = {"sol": 9, "eth": 18, "tron": 6}


class Server:
    def __init__(self, url, key):
        self.url, self.key = url, key

    def get(self, path):
        request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {self.key}"})
        with urllib.request.urlopen(request, timeout=90) as answer:
            return answer.read().decode()

    def rows(self, wallet, chain):
        """Oldest first; numbers as text."""
        rows, cursor = [], ""
        while True:
            page = json.loads(
                self.get(f"/v1/wallets/{wallet}/history?chain={chain}&numbers=string&limit=2000{cursor}")
            )
            rows += page["trades"]
            if "cursor" not in page:
                return rows[::-1]
            cursor = "&cursor=" + page["cursor"]

    def pnl(self, wallet, chain, **parameters):
        query = "".join(f"&{name}={value}" for name, value in parameters.items())
        return json.loads(self.get(f"/v1/wallets/{wallet}/pnl?chain={chain}&numbers=string{query}"))


def units(text, decimals):
    """Integer units of a decimal text; none where there is no number."""
    if text is None:
        return None
    scaled = Fraction(Decimal(text)) * 10**decimals
    assert scaled.denominator == 1, text
    return int(scaled)


class Lot:
    def __init__(self, quantity, cost, row, number):
        self.quantity, self.cost, self.row, self.number = quantity, cost, row, number
        self.price = None if cost is None else Fraction(cost, quantity)

    def give(self, wanted):
        part = min(wanted, self.quantity)
        cost = None if self.cost is None else floor(Fraction(self.cost * part, self.quantity))
        self.quantity -= part
        if cost is not None:
            self.cost -= cost
        return part, cost


class Book:
    """The lots of one token."""

    def __init__(self, method):
        self.method, self.lots, self.bought = method, [], 0

    def buy(self, quantity, cost, row):
        pool = [lot for lot in self.lots if (lot.cost is None) == (cost is None)]
        if self.method == "average" and pool:
            pool[0].quantity += quantity
            pool[0].cost = None if cost is None else pool[0].cost + cost
            return
        self.lots.append(Lot(quantity, cost, row, self.bought))
        self.bought += 1

    def order(self):
        if self.method == "fifo":
            return list(self.lots)
        if self.method == "lifo":
            return self.lots[::-1]
        if self.method == "average":
            return sorted(self.lots, key=lambda lot: lot.cost is None)
        known = [lot for lot in self.lots if lot.price is not None]
        unknown = [lot for lot in self.lots if lot.price is None]
        return sorted(known, key=lambda lot: (-lot.price, lot.number)) + unknown

    def sell(self, quantity):
        """Parts: quantity, cost, the lot's row."""
        parts, wanted = [], quantity
        for lot in self.order():
            if wanted == 0:
                break
            if lot.quantity == 0:
                continue
            part, cost = lot.give(wanted)
            parts.append((part, cost, lot.row))
            wanted -= part
        self.lots = [lot for lot in self.lots if lot.quantity > 0]
        return parts, wanted

    def held(self):
        return sum(lot.quantity for lot in self.lots)

    def held_cost(self):
        return sum(lot.cost for lot in self.lots if lot.cost is not None)

    def held_unvalued(self):
        return sum(lot.quantity for lot in self.lots if lot.cost is None)


def shares(value, quantity, parts, unmatched):
    """The proceeds of each part and of what was not held."""
    matched = quantity - unmatched
    of_matched = floor(Fraction(value * matched, quantity))
    out = [floor(Fraction(value * part, quantity)) for part, _, _ in parts]
    if out:
        out[-1] = of_matched - sum(out[:-1])
    return out, value - of_matched


def count(rows, native, method, begins, ends):
    """Figures by mint and disposals of the period; `begins` and `ends` are texts of times."""
    decimals = defaultdict(int)
    for row in rows:
        digits = (row["amount"] or "0").partition(".")[2]
        decimals[row["tokenMint"]] = max(decimals[row["tokenMint"]], len(digits))
    books, figures, disposals, opened = {}, defaultdict(lambda: defaultdict(int)), [], set()
    scale = decimals

    def open_period():
        for mint, book in books.items():
            if mint not in opened:
                opened.add(mint)
                figures[mint]["opening"] = book.held()
                figures[mint]["openingCost"] = book.held_cost()

    began = begins is None
    for row in rows:
        if ends is not None and row["blockTime"] >= ends:
            break
        if not began and row["blockTime"] >= begins:
            began = True
            open_period()
        mint = row["tokenMint"]
        book = books.setdefault(mint, Book(method))
        quantity, value = units(row["amount"], scale[mint]), units(row["amountSol"], native)
        own = figures[mint] if began else defaultdict(int)
        own["buys" if row["side"] == "buy" else "sells"] += 1
        if not quantity:
            own["withoutAmount"] += 1
            continue
        own["withoutValue"] += value is None
        if row["side"] == "buy":
            own["bought"] += quantity
            own["spent"] += value or 0
            book.buy(quantity, value, row)
            continue
        own["sold"] += quantity
        own["received"] += value or 0
        parts, unmatched = book.sell(quantity)
        own["unmatched"] += unmatched
        lots, gain = [], None
        proceeds, beyond = shares(value, quantity, parts, unmatched) if value is not None else ([None] * len(parts), None)
        own["unmatchedProceeds"] += beyond or 0
        for (part, cost, bought), got in zip(parts, proceeds):
            realised = None if got is None or cost is None else got - cost
            if realised is not None:
                gain = (gain or 0) + realised
                own["realisedCost"] += cost
            elif got is not None:
                own["unvaluedProceeds"] += got
            elif cost is not None:
                own["unvaluedCost"] += cost
            lots.append((True, None if method == "average" else bought["signature"], part, got, cost, realised))
        if unmatched:
            lots.append((False, None, unmatched, beyond, None, None))
        if gain is not None:
            own["realised"] += gain
            own["judgedSells"] += 1
            own["wins"] += gain > 0
        if began:
            disposals.append((row["signature"], mint, quantity, value, gain, lots))
    if not began:
        open_period()
    for mint, book in books.items():
        figures[mint]["open"] = book.held()
        figures[mint]["openCost"] = book.held_cost()
        figures[mint]["openUnvalued"] = book.held_unvalued()
    kept = {mint: own for mint, own in figures.items() if own["buys"] or own["sells"] or own["opening"]}
    return kept, disposals, scale


QUANTITIES = ["bought", "sold", "opening", "open", "openUnvalued", "unmatched"]
VALUES = ["spent", "received", "realised", "realisedCost", "openingCost", "openCost", "unmatchedProceeds",
          "unvaluedProceeds", "unvaluedCost"]
COUNTS = ["buys", "sells", "withoutAmount", "withoutValue", "judgedSells", "wins"]


def compare(answer, own, native):
    figures, disposals, scale = own
    assert answer["complete"] is True
    found = {token["tokenMint"]: token for token in answer["tokens"]}
    assert found.keys() == figures.keys(), (len(found), len(figures))
    for mint, wanted in figures.items():
        token = found[mint]
        for name in COUNTS:
            assert token[name] == wanted[name], (mint, name, token[name], wanted[name])
        for name in QUANTITIES:
            assert units(token[name], scale[mint]) == wanted[name], (mint, name, token[name], wanted[name])
        for name in VALUES:
            assert units(token[name], native) == wanted[name], (mint, name, token[name], wanted[name])
    for name in VALUES:
        assert units(answer["totals"][name], native) == sum(one[name] for one in figures.values()), name
    assert len(answer["disposals"]) == len(disposals)
    for seen, (signature, mint, quantity, value, gain, lots) in zip(answer["disposals"], disposals):
        assert (seen["signature"], seen["tokenMint"]) == (signature, mint)
        assert units(seen["quantity"], scale[mint]) == quantity
        assert (units(seen["proceeds"], native), units(seen["realised"], native)) == (value, gain)
        found_lots = [
            (lot["matched"], lot["signature"], units(lot["quantity"], scale[mint]),
             units(lot["proceeds"], native), units(lot["cost"], native), units(lot["realised"], native))
            for lot in seen["lots"]
        ]
        assert found_lots == lots, (signature, found_lots, lots)


def check(server, chain, wallet):
    native = CHAINS[chain]
    rows = server.rows(wallet, chain)
    years = sorted({row["blockTime"][:4] for row in rows})
    for method in METHODS:
        whole = server.pnl(wallet, chain, method=method, disposals=1)
        compare(whole, count(rows, native, method, None, None), native)
        total = units(whole["totals"]["realised"], native)
        for year in years:
            begins, ends = (f"{at}-01-01T00:00:00+00:00" for at in (year, int(year) + 1))
            part = server.pnl(wallet, chain, method=method, year=year, disposals=1)
            compare(part, count(rows, native, method, begins, ends), native)
            total -= units(part["totals"]["realised"], native)
        assert total == 0, "the years do not add up"
        realised, sales = whole["totals"]["realised"], len(whole["disposals"])
        print(f"{chain} {method}: {len(rows)} rows, {sales} sales, {len(years)} years, realised {realised}")


def main():
    demo = subprocess.Popen(
        [sys.argv[1], "demo", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        url, key, wallets = None, None, {}
        for line in demo.stdout:
            if found := re.match(r"listening on (\S+)", line):
                url = found[1]
            elif found := re.match(r"key +(\S+)", line):
                key = found[1]
            elif found := re.match(r"wallet +(\S+) \((\w+),", line):
                wallets[found[2]] = found[1]
            if url and key and line.startswith("listening"):
                break
        began = time.monotonic()
        for chain in CHAINS:
            check(Server(url, key), chain, wallets[chain])
        print(f"all agree, {time.monotonic() - began:.0f} s")
    finally:
        demo.terminate()
        demo.wait()


if __name__ == "__main__":
    main()
