"""The store next to SQLite on one layout, and its costs by size: prints Markdown tables.

usage: python3 store.py OURS [--peer PROGRAM] [--scale] [--trades N] [--kills N] [--rounds N]
                        [--unjudged] [--json FILE] [--folder FOLDER]

OURS and PROGRAM take the commands of `benches/drive.rs`. Both are run in turn on the same trades, in
fresh folders that go again. "Cold" is after the files were written back and dropped from the
system's cache; the kill leaves that cache alone, so it tries atomicity, not the disk.
"""
import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHUNK = 1_000
ROWS = []


def note(text):
    print(text, file=sys.stderr, flush=True)


def run(program, *args):
    """All JSON lines that a command prints."""
    done = subprocess.run([program, *map(str, args)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{program} {args}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def files(folder):
    return [path for path in Path(folder).rglob("*") if path.is_file()]


def bytes_on_disk(folder):
    return sum(path.stat().st_blocks * 512 for path in files(folder))


def drop_cache(folder):
    for path in files(folder):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def fill(program, folder, wallets, each, chunk=CHUNK, at_once=1, order="back", first=0):
    (told,) = run(program, "load", folder, first, wallets, each, chunk, at_once, order)
    return told


def measure(program, folder, wallets, each, cold=2_000, warm=20_000):
    """Everything of one engine and one size."""
    told = fill(program, folder, wallets, each)
    rows = told["rows"]
    result = {"insert": rows / told["seconds"], "bytes": bytes_on_disk(folder) / rows}
    drop_cache(folder)
    (seeks,) = run(program, "seek", folder, wallets, each, cold, "cold", 100)
    result |= {"cold p50": seeks["p50_us"], "cold p99": seeks["p99_us"]}
    drop_cache(folder)
    (scan,) = run(program, "scan", folder, wallets, each)
    result |= {"cold scan": rows / scan["first_s"], "warm scan": rows / scan["second_s"]}
    hundred, page = run(program, "seek", folder, wallets, each, warm, "warm", 100, 1_000)
    result |= {"p50": hundred["p50_us"], "p99": hundred["p99_us"], "page": page["p50_us"]}
    result["sums"] = (scan["sum"], seeks["sum"], hundred["sum"], page["sum"])
    return result


def kill(program, folder, first, each, chunk, after):
    """Kills a writer in the middle, and returns what the next one finds."""
    child = subprocess.Popen([program, "hammer", str(folder), str(first), str(each), str(chunk)],
                             stdout=subprocess.PIPE, text=True)
    try:
        told = child.stdout.readline()
        time.sleep(after)
    finally:
        child.kill()
    # What is left in the pipe was reported before the end; a line that was cut was not.
    lines = (told + child.stdout.read()).split("\n")[:-1]
    child.wait()
    (found,) = run(program, "verify", folder, first, each, chunk, int(lines[-1]) if lines else 0)
    return found


def kills(program, folder, first, count):
    """Kills at random times, commits of 10 and of 1,000 in turn, each time on more wallets."""
    chance = random.Random(8)
    found = []
    for turn in range(count):
        one = kill(program, folder, first + turn * 1_000_000, 5_000, (10, CHUNK)[turn % 2], chance.uniform(0.05, 0.5))
        if not one["whole"]:
            note(f"  kill {turn}: {one}")
        found.append(one)
    opened = [one["open_us"] / 1e3 for one in found]
    return {"open p50": statistics.median(opened), "open max": max(opened), "lost": sum(one["lost"] for one in found),
            "broken": sum(not one["whole"] for one in found), "reported": sum(one["reported"] for one in found)}


def row(what, unit, ours, peer, floor, of_ratio=False):
    """One line; the floor is of our figure, or of the ratio to the peer's."""
    ratio = ours / peer if peer else None
    ok = None
    if floor:
        sign, bound = floor.split()
        judged = ratio if of_ratio else ours
        ok = judged >= float(bound) if sign == ">=" else judged <= float(bound)
    ROWS.append({"what": what, "unit": unit, "ours": ours, "peer": peer, "ratio": ratio, "floor": floor, "ok": ok})


def number(value):
    if value is None:
        return ""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "| --- " + "| ---: " * (len(head) - 1) + "|"]
    lines += ["| " + " | ".join(cell if isinstance(cell, str) else number(cell) for cell in cells) + " |" for cells in rows]
    print("\n".join(lines) + "\n", flush=True)


def middle(results, key):
    return statistics.median(result[key] for result in results)


def compare(args):
    wallets = 1_000 if args.trades >= 1_000_000 else 10
    each = args.trades // wallets
    ours, peer, ours_killed, peer_killed = [], [], None, None
    for turn in range(args.rounds):
        for program, results in ((args.ours, ours), (args.peer, peer)):
            folder = args.folder / "one"
            note(f"round {turn + 1}: {Path(program).name}, {args.trades} trades of {wallets} wallets")
            results.append(measure(program, folder, wallets, each, *args.seeks))
            if turn + 1 == args.rounds:
                note(f"  {args.kills} kills")
                killed = kills(program, folder, wallets, args.kills)
                if program == args.ours:
                    ours_killed = killed
                else:
                    peer_killed = killed
            shutil.rmtree(folder)
        if ours[-1]["sums"] != peer[-1]["sums"]:
            raise SystemExit("the two did not read the same rows")
    pairs = [
        ("insert, 1,000 a commit", "trades/s", "insert", ">= 1.2", True),
        ("bytes on disk", "a trade", "bytes", "<= 140", False),
        ("scan, warm", "trades/s", "warm scan", None, False),
        ("scan, cold", "trades/s", "cold scan", None, False),
        ("seek + 100 rows, warm, p50", "us", "p50", "<= 0.8", True),
        ("seek + 100 rows, warm, p99", "us", "p99", "<= 100", False),
        ("seek + 100 rows, cold, p50", "us", "cold p50", None, False),
        ("seek + 100 rows, cold, p99", "us", "cold p99", None, False),
        ("page of 1,000, warm, p50", "us", "page", None, False),
    ]
    for what, unit, key, floor, of_ratio in pairs:
        row(what, unit, middle(ours, key), middle(peer, key), floor, of_ratio)
    row("open after kill -9, median", "ms", ours_killed["open p50"], peer_killed["open p50"], None)
    row("open after kill -9, worst", "ms", ours_killed["open max"], peer_killed["open max"], "<= 50")
    row(f"acknowledged trades lost, of {ours_killed['reported']:,}", "trades", ours_killed["lost"], peer_killed["lost"], "<= 0")
    row(f"commits in parts, {args.kills} kills", "commits", ours_killed["broken"], peer_killed["broken"], "<= 0")
    kept = not (ours_killed["lost"] or ours_killed["broken"])
    print(f"{args.trades:,} trades of {wallets:,} wallets, median of {args.rounds} rounds\n")
    verdict = {True: "yes", False: "NO", None: ""}
    table(["what", "unit", "ours", "SQLite", "ratio", "floor", "kept"],
          [[r["what"], r["unit"], r["ours"], r["peer"], r["ratio"], r["floor"] or "", verdict[r["ok"]]] for r in ROWS])
    return kept, {"trades": args.trades, "rows": ROWS}


def sized(program, folder, wallets, each, seeks):
    """Costs at one size: of loading, of what is there, and of small commits on top of it."""
    note(f"{wallets * each} trades of {wallets} wallets")
    told = fill(program, folder, wallets, each)
    rows = told["rows"]
    disk = bytes_on_disk(folder)
    hundred, page = run(program, "seek", folder, wallets, each, seeks, "warm", 100, 1_000)
    small = fill(program, folder, 1, 2_000, chunk=10, first=wallets)
    shutil.rmtree(folder)
    per_row = page["p50_us"] * 1e3 / (page["rows"] / page["seeks"])
    return [f"{rows:,}", f"{wallets:,}", told["seconds"] / rows * 1e6, told["p99_us"], disk / rows,
            hundred["p50_us"], hundred["p99_us"], hundred["rows"] / hundred["seeks"], page["p50_us"], per_row, small["p50_us"], small["p99_us"]]


SIZED = ["trades", "wallets", "insert, us a trade", "commit of 1,000, p99 us", "bytes a trade", "seek + 100, p50 us",
         "seek + 100, p99 us", "rows a seek", "page of 1,000, p50 us", "page, ns a row", "commit of 10, p50 us", "commit of 10, p99 us"]


def orders(program, folder, wallets, each):
    """Bytes a trade by the order in which trades come."""
    plans = [
        ("one wallet after the other, 1,000 a commit", 1_000, 1, "back"),
        ("one wallet after the other, 50 a commit", 50, 1, "back"),
        ("8 wallets side by side, by 1,000", 1_000, 8, "back"),
        ("8 wallets side by side, by 200", 200, 8, "back"),
        ("8 wallets side by side, by 100", 100, 8, "back"),
        ("8 wallets side by side, by 50", 50, 8, "back"),
        ("8 wallets side by side, by 20", 20, 8, "back"),
        ("8 wallets side by side, by 10", 10, 8, "back"),
        ("all wallets followed side by side, by 10", 10, wallets, "front"),
        ("all wallets followed side by side, by 1", 1, wallets, "front"),
    ]
    lines = []
    for what, chunk, at_once, order in plans:
        note(what)
        told = fill(program, folder, wallets, each, chunk=chunk, at_once=at_once, order=order)
        lines.append([what, told["rows"] / told["seconds"], bytes_on_disk(folder) / told["rows"], told["p50_us"]])
        shutil.rmtree(folder)
    return lines


def scale(args):
    top = args.trades
    folder = args.folder / "one"
    sizes = [size for size in (10_000, 100_000, 1_000_000, 10_000_000) if size <= top]
    by_trades = [sized(args.ours, folder, 10, size // 10, args.seeks[1]) for size in sizes]
    wallets = [count for count in (1, 10, 100, 1_000, 10_000, 100_000) if count * 100 <= top]
    by_wallets = [sized(args.ours, folder, count, top // count, args.seeks[1]) for count in wallets]
    print("By trades stored, in 10 wallets\n")
    table(SIZED, by_trades)
    print("By wallets\n")
    table(SIZED, by_wallets)
    by_order = orders(args.ours, folder, 200, 5_000 if top >= 1_000_000 else 500)
    print("By the order in which trades come, 200 wallets\n")
    head = ["order", "trades/s", "bytes a trade", "commit, p50 us"]
    table(head, by_order)
    return True, {"columns": SIZED, "by_trades": by_trades, "by_wallets": by_wallets, "orders": {"columns": head, "rows": by_order}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ours")
    parser.add_argument("--peer")
    parser.add_argument("--scale", action="store_true")
    parser.add_argument("--trades", type=int, default=10_000_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--unjudged", action="store_true", help="only what was lost or broken makes it fail")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--folder", type=Path)
    args = parser.parse_args()
    args.seeks = (2_000, 20_000) if args.trades >= 1_000_000 else (200, 2_000)
    args.folder = Path(tempfile.mkdtemp(prefix="store-", dir=args.folder))
    try:
        kept, result = scale(args) if args.scale else compare(args)
    finally:
        shutil.rmtree(args.folder, ignore_errors=True)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n")
    sys.exit(not kept if args.unjudged else any(row["ok"] is False for row in ROWS))


main()
