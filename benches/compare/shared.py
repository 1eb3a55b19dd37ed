"""The shared store next to the embedded one and next to Node on the same database: prints a table of ratios.

usage: python3 shared.py --binary PROGRAM [--short] [--rows N] [--rounds N]

One wallet is loaded into a folder and copied into a PostgreSQL database; a server of the folder, three servers of the
database and Node with PostgreSQL answer the same requests in turns. Each ratio is of two figures of one run. The short
form runs everything, small, and demands nothing."""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import report as reports
from kit import Bench, Server, cpu, get, history, load, median, note
from serving import ROWS_A_TRADE, Serving, rows_sum

PROCESSES = 3


class Shared:
    def __init__(self, args):
        self.args, self.bench = args, Bench(args)
        self.serving = Serving(self.bench)
        self.trades = round(args.rows / ROWS_A_TRADE)

    def start(self, name, url=None):
        """A demo whose wallet is stored already, on its own file or on the database; the key is its own."""
        bench, folder = self.bench, self.bench.scratch / name
        folder.mkdir(exist_ok=True, mode=0o700)
        more = {"env": {**os.environ, "BLOTTER_STORAGE_URL": url}} if url else {}
        child = bench.spawn([self.args.binary, "demo", "--listen", "127.0.0.1:0", "--data-dir", folder, "--large", self.trades,
                             "--config", bench.config(name)], ready="http://", name=name, **more)
        lines = [line.split() for line in child.log.read_text().splitlines()]
        key = next(parts[1] for parts in lines if parts[:1] == ["key"])
        wallets = {parts[0]: parts[1] for parts in lines if len(parts) > 2 and parts[0] in ("wallet", "large") and parts[2] == "(sol,"}
        return Server(child, key, wallets)

    def copy(self, source, target):
        """Seconds of the whole copy, and of the writes of its chunks alone."""
        began = time.perf_counter()
        made = subprocess.run([self.args.binary, "--log-json", "storage", "copy", "--from", source, "--to", target], check=True,
                              env={**os.environ, "BLOTTER_LOG": "warn,blotter::store=debug"}, capture_output=True, text=True)
        whole = time.perf_counter() - began
        chunks = [json.loads(line)["fields"] for line in made.stderr.splitlines() if '"a chunk was copied"' in line]
        if sum(chunk["rows"] for chunk in chunks) != self.rows:
            raise SystemExit(f"the log names {sum(chunk['rows'] for chunk in chunks)} of {self.rows} rows")
        return whole, sum(chunk["micros"] for chunk in chunks) / 1e6

    def prepare(self, report):
        bench = self.bench
        first = self.start("embedded")
        note(f"loading a wallet of {self.trades} trades")
        self.rows = load(first, first.wallets["large"])
        self.path = history(first.wallets["large"])
        bench.stop(first.child)
        url = self.serving.postgres()
        self.url = url
        folder = bench.scratch / "embedded"
        note("copying it to a folder and into the database, in turns")
        pairs = []
        for turn in range(1 if self.args.short else 3):
            there = bench.scratch / f"copy-{turn}"
            database = f"copy_{turn}" if turn else "service"
            bench.run(["psql", "-q", "-d", url, "-c", f"CREATE DATABASE {database}"])
            to_file = self.copy(folder, there)
            to_database = self.copy(folder, url.replace("/postgres?", f"/{database}?"))
            pairs.append((to_file, to_database))
            shutil.rmtree(there)
        self.database = url.replace("/postgres?", "/service?")
        bench.run(["psql", "-q", "-d", self.database, "-c", "VACUUM ANALYZE"])
        rate = lambda seconds: f"{self.rows / seconds / 1e3:.0f} k rows/s"
        for at, what, floor in [(1, "writes by 1,000", ">= 0.25"), (0, "the whole copy: writes, reads and the comparison", None)]:
            files, databases = [f[at] for f, _ in pairs], [d[at] for _, d in pairs]
            ratio = median([f / d for f, d in zip(files, databases)])
            report.row(what, rate(median(databases)), rate(median(files)), ratio, floor)

    def servers(self):
        self.embedded = self.start("embedded")
        self.shared = [self.start(f"shared-{at}", self.database) for at in range(PROCESSES)]
        # What is counted once is counted: usage is no part of what is compared.
        texts = [server.body(self.path) for server in [self.embedded, *self.shared]]
        if len({rows_sum(text) for text in texts}) != 1:
            raise SystemExit("the servers serve other rows")
        self.stored = self.bench.files / "rows.ndjson"
        self.stored.write_bytes(texts[0])
        self.peer = self.node()
        if rows_sum(texts[0]) != self.sum_of(self.peer):
            raise SystemExit("the peer serves other rows")

    def sum_of(self, port):
        sink = []
        get(port, "/", sink=sink)
        from kit import split
        return rows_sum(split(b"".join(sink))[2])

    def node(self):
        """Node next to it, in the same server of PostgreSQL."""
        from kit import HERE, free_port
        bench, peers = self.bench, self.bench.scratch / "peers"
        peers.mkdir()
        for name in ("package.json", "package-lock.json", "postgres_server.mjs"):
            shutil.copy(HERE / name, peers / name)
        note("installing the peer")
        bench.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"], cwd=peers)
        script = peers / "postgres_server.mjs"
        with open(self.stored) as source:
            bench.run(["node", script, "load", self.url], stdin=source)
        port = free_port()
        bench.spawn(["node", script, "serve", self.url, port], ready="ready", name="node")
        return port

    def stream(self, report):
        note("streaming")
        rounds, one = [], self.shared[0]
        for turn in range(self.args.rounds + 1):
            before = cpu(self.embedded.pid)
            _, embedded, _ = get(self.embedded.port, self.path, self.embedded.key)
            between = cpu(one.pid)
            size, shared, _ = get(one.port, self.path, one.key)
            spent = cpu(one.pid) - between
            _, peer, _ = get(self.peer, "/")
            if turn:
                rounds.append((size, embedded, shared, peer, spent))
        mb = lambda at: f"{median([r[0] / r[at] for r in rounds]) / 1e6:.0f} MB/s"
        report.row(f"stream of {self.rows:,} rows, against the embedded store", mb(2), mb(1), median([r[1] / r[2] for r in rounds]), ">= 0.25")
        seconds = lambda at: f"{median([r[at] for r in rounds]):.2f} s"
        report.row("the same, against Node + PostgreSQL", seconds(2), seconds(3), median([r[3] / r[2] for r in rounds]), ">= 4")
        self.alone = median([r[4] for r in rounds]) / self.rows

    def processes(self, report):
        """All three stream at once: what a row costs each of them."""
        note("three processes")
        costs, began = [], time.perf_counter()
        for _ in range(max(2, self.args.rounds // 2)):
            before = [cpu(server.pid) for server in self.shared]
            children = []
            for server in self.shared:
                child = os.fork()
                if child == 0:
                    get(server.port, self.path, server.key)
                    os._exit(0)
                children.append(child)
            for child in children:
                os.waitpid(child, 0)
            spent = sum(cpu(server.pid) - was for server, was in zip(self.shared, before))
            costs.append(spent / (PROCESSES * self.rows))
        cost = median(costs)
        nanos = lambda seconds: f"{seconds * 1e9:.0f} ns"
        report.row("processor time a row of three processes, against one", nanos(cost), nanos(self.alone), cost / self.alone, "<= 1.2")

    def pages(self, report):
        import re
        import random
        from kit import body
        cursors = [found.decode() for found in re.findall(rb'"cursor":"([^"]+)"', self.stored.read_bytes())][:-1]
        some = random.Random(7).sample(cursors, min(400, len(cursors)))
        theirs, after = [], ""
        for _ in range(200):
            after = json.loads(body(self.peer, f"/?limit=1000&cursor={after}"))["cursor"]
            if not after:
                break
            theirs.append(after)
        one = self.shared[0]
        for limit in (1000, 1):
            note(f"pages of {limit}")
            ours = [f"{self.path}?limit={limit}&cursor={cursor}" for cursor in some]
            peers = [f"/?limit={limit}&cursor={cursor}" for cursor in theirs]
            runs = []
            for _ in range(1 if self.args.short else 5):
                # A key counts a row once: the first turn counts, as a client's does not twice.
                runs.append((self.bench.wrk(one.port, ours, 1, one.key), self.bench.wrk(self.embedded.port, ours, 1, self.embedded.key), self.bench.wrk(self.peer, peers, 1)))
            shared, embedded, peer = ([run[at] for run in runs] for at in range(3))
            last = lambda all: f"{median([run[0] for run in all]):,.0f}/s, p50 {median([run[1] for run in all]):.2f}, p99 {median([run[2] for run in all]):.2f} ms"
            times = median([s[1] / e[1] for s, e in zip(shared, embedded)])
            report.row(f"pages of {limit}, 1 connection: p50 against the embedded store", last(shared), last(embedded), times, "<= 5" if limit == 1000 else None)
            faster = median([s[0] / p[0] for s, p in zip(shared, peer)])
            report.row(f"pages of {limit}, 1 connection, against Node + PostgreSQL", last(shared), last(peer), faster, ">= 3" if limit == 1000 else None)
            if limit == 1:
                report.row("page of 1, p50", f"{median([run[1] for run in shared]):.2f} ms", "", median([run[1] for run in shared]), "<= 0.7", "ms")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True, type=lambda text: Path(text).resolve())
    parser.add_argument("--short", action="store_true", help="everything, small; floors are not enforced")
    parser.add_argument("--rows", type=int, help="rows of the wallet")
    parser.add_argument("--rounds", type=int, help="rounds of the stream")
    args = parser.parse_args()
    args.rows = args.rows or (20_000 if args.short else 400_000)
    args.rounds = args.rounds or (2 if args.short else 7)
    args.keep = None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    trial, report = Shared(args), reports.Report()
    try:
        trial.prepare(report)
        trial.servers()
        for section in [trial.stream, trial.processes, trial.pages]:
            section(report)
    finally:
        trial.bench.close()
    print(reports.text({"sections": {"shared": {"rows": report.rows}}}))
    missed = [row["what"] for row in report.rows if row["ok"] is False]
    for what in missed:
        print(f"MISSED: {what}")
    sys.exit(bool(missed) and not args.short)


main()
