#!/usr/bin/env python3
"""Holds a running blotter against trades made on a real EVM node with real contracts.

    python3 tests/real_node/run.py BLOTTER [--heavy N] [--chain eth|tron] [--no-internal] [--no-index] [--suspend-every N]
                                        [--prices PROGRAM]

BLOTTER is the program to test; with --chain tron the node is shown to it as a Tron node (tron_facade.py, whose options
the last three are). The lab beside this file starts anvil, deploys Uniswap v2, v3, v4, routers and others
at their mainnet addresses, trades with several wallets and writes down what their balances say happened (its
dependencies must be installed: `npm ci --ignore-scripts --legacy-peer-deps` in lab/). Then, for every wallet:

  - each trade of the truth file is a row with exactly that amount, and with exactly that native amount where the wallet
    itself gave or got it; where it did not, the row's value is exactly the route's or, where it passed through none,
    null or within 3 % of what the dollars on the other side were worth;
  - what is no trade has no row;
  - with --prices (the example `native_price`): for every trade against dollars whose native side is known, that side is
    hidden, told by the reference pools' price alone, and compared: median below 0.3 %, 99th percentile below 2 %;
  - a stream that is cut again and again and resumed from its last cursor gives the same rows, each once.
"""
import argparse, json, os, pathlib, signal, socket, subprocess, sys, tempfile, time, urllib.parse, urllib.request
from collections import Counter
from decimal import Decimal

from tron_facade import hex20, t_address

LAB = pathlib.Path(__file__).parent / "lab"
# Decimals of the coin, and what one unit of it is in the lab's truth.
DECIMALS = {"eth": 18, "tron": 6}
CUT_EVERY = 997
# What every pool of the lab begins with.
DOLLARS_PER_COIN = 2500
# Streams in a row that end incomplete without a row, after which a wallet is given up.
STALLED_MAX = 3


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def line_with(process, text):
    for line in process.stdout:
        if text in line:
            return line.strip()
    sys.exit(f"{process.args[0]} ended before it said {text!r}")


def open_stream(url, key, wallet, cursor=None):
    query = {"chain": wallet["chain"], **({"cursor": cursor} if cursor else {})}
    request = urllib.request.Request(
        f"{url}/v1/wallets/{wallet['address']}/history?{urllib.parse.urlencode(query)}", headers={"Authorization": f"Bearer {key}"}
    )
    return urllib.request.urlopen(request, timeout=120)


def read(url, key, wallet, cut_every=None):
    """All rows of a wallet; with `cut_every`, hanging up after so many rows and going on from the last cursor."""
    rows, cursor, final, stalled = [], None, None, 0
    while not (final and final["complete"]) and stalled < STALLED_MAX:
        before = len(rows)
        with open_stream(url, key, wallet, cursor) as stream:
            for line in stream:
                if not line.strip():
                    continue
                one = json.loads(line, parse_float=Decimal)
                if "complete" in one:
                    cursor = one.get("cursor", cursor)
                    final = one
                    break
                rows += one["trades"]
                cursor = one["cursor"]
                if cut_every and len(rows) - before >= cut_every:
                    break
        stalled = 0 if len(rows) > before else stalled + 1
    return rows, final


def row_key(row):
    return row["signature"].lower().removeprefix("0x"), row["side"], row["tokenMint"].lower()


def dollar_worth(trade, wallet):
    """Native coin that a trade without a native side is worth, by its dollars at the lab's price."""
    sides = [t for t in wallet["trades"] if t["signature"] == trade["signature"] and t["symbol"] == "USDC"]
    # The lab's coin has 18 decimals, whatever the chain that it is shown as.
    scale = 18 - DECIMALS[wallet["chain"]]
    return (Decimal(sides[0]["amount"]) / DOLLARS_PER_COIN).scaleb(scale) if sides else None


def measure_prices(program, node, truth):
    """How far the reference pools' price is off where the native side is known."""
    sides = [
        t
        for wallet in truth["wallets"]
        for t in wallet["trades"]
        if t["symbol"] == "USDC" and t["amountNativeRaw"] is not None and Decimal(t["amount"]) >= 1
    ]
    heights = sorted({t["blockNumber"] for t in sides})
    told = {}
    for at in range(0, len(heights), 500):
        command = [program, "eth", node, *map(str, heights[at : at + 500])]
        lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split("\n")
        told |= {int(line.split()[0]): line.split()[1] for line in lines if line}
    prices = [(t, Decimal(told[t["blockNumber"]])) for t in sides if told[t["blockNumber"]] != "null"]
    errors = sorted(
        abs(Decimal(t["amount"]) / price * 10**18 / abs(Decimal(t["amountNativeRaw"])) - 1) * 100 for t, price in prices
    )
    missing = len(sides) - len(errors)
    median, high = errors[len(errors) // 2], errors[(len(errors) - 1) * 99 // 100]
    print(f"reference pools: {len(errors)} trades told, {missing} not; median {median:.3f} % off, 99th percentile {high:.3f} %")
    failures = [] if median < Decimal("0.3") and high < 2 else ["the reference pools' price is too far off"]
    return failures + (["too many without a price"] if missing * 20 > len(sides) else [])


def judge(wallet, rows, final, truth):
    """What is wrong with the rows of a wallet, as texts."""
    wrong = []
    ambiguous = {t["signature"].lower().removeprefix("0x") for t in truth["notTrades"]["ambiguous"]}
    rows = [r for r in rows if row_key(r)[0] not in ambiguous]
    got = Counter(map(row_key, rows))
    expected = {row_key(t): t for t in wallet["trades"]}
    wrong += [f"{n} times {k}" for k, n in got.items() if n > 1]
    wrong += [f"no trade, yet a row: {k}" for k in got if k not in expected]
    wrong += [f"missing: {k} ({t['label']})" for k, t in expected.items() if k not in got]
    for row in rows:
        t = expected.get(row_key(row))
        if t is None:
            continue
        raw = t["amountNativeRaw"]
        native = None if raw is None else Decimal(raw).scaleb(-DECIMALS[wallet["chain"]])
        own = (t["amountNativeBasis"] or "").startswith("wallet")
        same = {"amount": Decimal(str(row["amount"])) == Decimal(t["amount"])}
        told = None if row["amountSol"] is None else Decimal(str(row["amountSol"]))
        if told is None:
            same["amountSol"] = not own
        elif native is None:
            worth = dollar_worth(t, wallet)
            same["amountSol"] = worth is not None and abs(told - worth) <= worth * 3 / 100
        else:
            same["amountSol"] = told == native
        # A pool whose factory no table knows is named by its address, never by the router's.
        is_address = row["dex"].startswith("0x")
        same["dex"] = row["dex"].lower() != (t.get("router") or "").lower() if is_address else bool(row["dex"])
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(t["blockTime"]))
        same["blockTime"] = row["blockTime"] == seconds
        wrong += [f"{name} of {t['label']}: {row} expected {t}" for name, ok in same.items() if not ok]
    if not final or not final["complete"] or final["wallet"].lower() != wallet["address"].lower():
        wrong.append(f"final line: {final}")
    return wrong


def check(url, key, truth):
    failures, count = [], 0
    for wallet in truth["wallets"]:
        rows, final = read(url, key, wallet)
        wrong = judge(wallet, rows, final, truth)
        resumed, _ = read(url, key, wallet, CUT_EVERY if len(rows) > CUT_EVERY else 3)
        if resumed != rows:
            wrong.append(f"a stream that was cut gave {len(resumed)} rows, another order or others than the whole one")
        count += len(rows)
        failures += [f"{wallet['name']}: {w}" for w in wrong]
        print(f"{wallet['name']:8} {len(rows):6} rows, {len(wrong)} wrong", flush=True)
    return failures, count


def as_tron(a, node, truth, start):
    """Starts the facade, and turns the truth's addresses and amounts into Tron's."""
    for wallet in truth["wallets"]:
        wallet["address"] = t_address(hex20(wallet["address"]))
        for trade in wallet["trades"]:
            trade["tokenMint"] = t_address(hex20(trade["tokenMint"]))
            if a.no_internal:
                # Null is right where no event tells what came back, or what an account spent.
                trade["amountNativeBasis"] = "told by inner calls alone"
        if a.no_internal:
            # Somebody else sent it, and nothing tells that the wallet was paid.
            wallet["trades"] = [t for t in wallet["trades"] if t["label"] != "relayed sell, wallet gets native ETH"]
    flags = [f for f, on in (("--no-internal", a.no_internal), ("--no-index", a.no_index)) if on]
    facade = [sys.executable, str(LAB.parent / "tron_facade.py"), node, "--suspend-every", str(a.suspend_every), *flags]
    return line_with(start(*facade), "READY").split()[-1]


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("blotter")
    ap.add_argument("--heavy", type=int, default=0, help="swaps of one more wallet")
    ap.add_argument("--chain", choices=DECIMALS, default="eth")
    ap.add_argument("--no-internal", action="store_true")
    ap.add_argument("--no-index", action="store_true")
    ap.add_argument("--prices", metavar="PROGRAM", help="the example native_price")
    ap.add_argument("--suspend-every", type=int, default=0)
    a = ap.parse_args()
    blotter = os.path.abspath(a.blotter)
    children = []

    def start(*command, **how):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **how)
        children.append(child)
        return child

    with tempfile.TemporaryDirectory() as scratch:
        try:
            port, truth_file = free_port(), os.path.join(scratch, "truth.json")
            # The states of five thousand blocks are 5 GB on disk, and nothing here asks for old ones.
            pruned = ["--prune"] if a.heavy else []
            lab = start("node", "lab.mjs", "--port", str(port), "--keep", *pruned, "--heavy", str(a.heavy), "--out", truth_file, cwd=LAB)
            node = line_with(lab, "READY").split()[-1]
            truth = json.load(open(truth_file))
            for wallet in truth["wallets"]:
                wallet["chain"] = a.chain
            if a.chain == "tron":
                node = as_tron(a, node, truth, start)
            data = os.path.join(scratch, "data")
            made = subprocess.run([blotter, "keys", "create", "--json", "--data-dir", data], check=True, capture_output=True, text=True)
            environment = {**os.environ, f"BLOTTER_CHAINS_{a.chain.upper()}_RPC": node}
            serve = start(blotter, "serve", "--listen", "127.0.0.1:0", "--data-dir", data, env=environment)
            url = line_with(serve, "listening on").split()[-1]
            started = time.monotonic()
            failures, count = check(url, json.loads(made.stdout)["key"], truth)
            if a.prices and a.chain == "eth":
                failures += measure_prices(os.path.abspath(a.prices), node, truth)
            for failure in failures[:40]:
                print("  wrong:", failure)
            print(f"{count} rows in {time.monotonic() - started:.1f} s, {len(failures)} wrong")
            return 1 if failures else 0
        finally:
            for child in reversed(children):
                child.send_signal(signal.SIGTERM)
                try:
                    child.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    child.kill()


if __name__ == "__main__":
    sys.exit(main())
