"""What was not seen next to a peer before: compressed streams next to the tools that pack the same bytes, filters
that match nothing next to SQLite's scan of the same rows, and exports and gains on their own."""
import calendar
import hashlib
import json
import os
import socket
import sqlite3
import subprocess
import threading
import time

from kit import BUFFER, READ_WAIT_MAX, Failed, cpu, history, median, note, request
from serving import NO_TOKEN


def fetch(server, path, coding):
    """A stream in a coding, unparsed: bytes, seconds, seconds to the first byte of the body."""
    with socket.socket() as s:
        s.settimeout(READ_WAIT_MAX)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        began = time.perf_counter()
        s.connect(("127.0.0.1", server.port))
        s.sendall(request(path, server.key).replace(b"\r\n\r\n", f"\r\nAccept-Encoding: {coding}\r\n\r\n".encode()))
        total, first, head = 0, None, b""
        while n := s.recv_into(BUFFER):
            if first is None:
                head += bytes(BUFFER[:min(n, 4096)])
                if head.partition(b"\r\n\r\n")[2]:
                    first = time.perf_counter() - began
            total += n
        return total, time.perf_counter() - began, first


def piped(tool, file):
    """Seconds of `TOOL -1` between two pipes."""
    began = time.perf_counter()
    child = subprocess.Popen([tool, "-1", "-c"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def feed():
        with open(file, "rb") as source, child.stdin as sink:
            while part := source.read(1 << 20):
                sink.write(part)

    feeder = threading.Thread(target=feed)
    feeder.start()
    while child.stdout.read(1 << 20):
        pass
    feeder.join()
    if child.wait():
        raise Failed(f"{tool} ended with {child.returncode}")
    return time.perf_counter() - began


def packed(serving, report):
    """Ours and the tool in turns over the same bytes; the first round is left out."""
    server, file = serving.demo, serving.stored
    plain = median([fetch(server, serving.path, "identity")[2] for _ in range(31)])
    for coding, floor in (("gzip", ">= 3.5"), ("zstd", ">= 1.2")):
        note(f"streams in {coding}")
        ours, tool = [], []
        for _ in range(serving.bench.args.rounds + 1):
            ours.append(fetch(server, serving.path, coding)[1])
            tool.append(piped(coding, file))
        ratio = median([t / o for o, t in list(zip(ours, tool))[1:]])
        mb = lambda seconds: f"{serving.size / median(seconds) / 1e6:.0f} MB/s"
        report.row(f"stream of {serving.rows:,} rows in {coding}, against `{coding} -1` of the same bytes in a pipe", mb(ours), mb(tool), ratio, floor)
        first = median([fetch(server, serving.path, coding)[2] for _ in range(31)])
        report.row(f"first byte in {coding}, against that of a plain stream", f"{first * 1e3:.2f} ms", f"{plain * 1e3:.2f} ms", first / plain, None)


def table(serving):
    """The rows in SQLite, in the store's order and with its numbers in place of names."""
    base = sqlite3.connect(serving.bench.scratch / "rows.sqlite")
    base.execute("pragma cache_size = -65536")
    base.execute("create table trades (wallet int, time int, at int, tx blob, side int, token int, units blob, native blob, venue int,"
                 " primary key (wallet, time, at)) without rowid")
    tokens, venues = {}, {}

    def number(value):
        digits = int((value or "0").replace(".", ""))
        return digits.to_bytes((digits.bit_length() + 7) // 8, "big")

    def rows():
        at = 0
        for line in serving.stored.read_bytes().splitlines():
            for row in json.loads(line, parse_float=str, parse_int=str).get("trades", []):
                at += 1
                seconds = calendar.timegm(time.strptime(row["blockTime"][:19], "%Y-%m-%dT%H:%M:%S"))
                yield (1, -seconds, at, hashlib.sha512(row["signature"].encode()).digest(), row["side"] == "sell", tokens.setdefault(row["tokenMint"], len(tokens)),
                       number(row["amount"]), number(row["amountSol"]), venues.setdefault(row["dex"], len(venues)))

    base.executemany("insert into trades values (?, ?, ?, ?, ?, ?, ?, ?, ?)", rows())
    base.commit()
    return base


def filters(serving, report):
    """A filter that no row matches reads all of them: ours by one stream, SQLite's by a scan of the wallet."""
    server, base = serving.demo, table(serving)
    for name, query, where in (("token", f"?token={NO_TOKEN}", "token = -1"), ("dex", "?dex=none", "venue = -1")):
        ours, peer, spent, busy = [], [], [], []
        for _ in range(serving.bench.args.rounds + 1):
            before = cpu(server.pid)
            ours.append(fetch(server, history(serving.wallet, query), "identity")[1])
            spent.append(cpu(server.pid) - before)
            began, before = time.perf_counter(), time.process_time()
            if base.execute(f"select count(*) from trades where wallet = 1 and {where}").fetchone() != (0,):
                raise Failed("SQLite found a row")
            peer.append(time.perf_counter() - began)
            busy.append(time.process_time() - before)
        ratio = median([p / o for o, p in list(zip(ours, peer))[1:]])
        rate = lambda seconds: f"{serving.rows / median(seconds) / 1e6:.1f} M rows/s"
        report.row(f"filter by {name} that matches none of {serving.rows:,} rows, against SQLite's scan of them", rate(ours), rate(peer), ratio, ">= 1")
        each = lambda seconds: sum(seconds[1:]) / len(seconds[1:]) / serving.rows * 1e9
        report.value("the same: processor time a row, ours and SQLite's", f"{each(spent):.0f} and {each(busy):.0f} ns")


def exports(serving, report):
    """What a command takes for the stored wallet, in a process of its own: with its start and the reading of the rows."""
    bench = serving.bench
    serving.stored
    folder = bench.keep / f"demo-{round(bench.args.rows / 1.25)}"
    bench.stop(serving.demo.child)
    serving._demo = None
    config = bench.config("export", '[chains.sol]\nrpc = ["http://127.0.0.1:9"]\n')
    common = [serving.wallet, "--chain", "sol", "--config", config, "--data-dir", folder, "--quiet"]
    commands = {form: ["history", *common, "--format", form, "--output", bench.scratch / f"rows.{form}"] for form in ("ndjson", "csv", "parquet")}
    commands["pnl, average cost"] = ["pnl", *common, "--format", "json", "--method", "average"]
    for name, command in commands.items():
        took = []
        for _ in range(3):
            began = time.perf_counter()
            bench.run([bench.args.binary, *command])
            took.append(time.perf_counter() - began)
            if name in ("ndjson", "csv", "parquet"):
                os.remove(bench.scratch / f"rows.{name}")
        report.value(f"{name} of {serving.rows:,} rows, by the command", f"{serving.rows / median(took) / 1e3:,.0f} k rows/s, {median(took):.2f} s")
