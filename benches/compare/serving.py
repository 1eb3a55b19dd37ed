"""One server with the demo's large wallet next to nginx with the same bytes and Node with PostgreSQL:
streams, pages, and readers that do nothing."""
import hashlib
import json
import os
import random
import re
import shutil
import socket
import selectors
import time
from pathlib import Path

from kit import HERE, Failed, ask, body, cpu, free_port, get, history, load, median, note, percentile, request, status_of

# Of a hundred trades of the demo's wallets, twenty-five have a second row.
ROWS_A_TRADE = 1.25
ROW = re.compile(rb'\{"signature":.*?\}')
# Wraps SOL: no row names it, so this filter leaves a stream with nothing to deliver.
NO_TOKEN = "So11111111111111111111111111111111111111112"


class Serving:
    """What the sections of this file share, made when the first of them asks for it."""

    def __init__(self, bench):
        self.bench = bench
        self._demo = self._stored = self._nginx = self._peer = None
        self._peer_failed = False

    @property
    def demo(self):
        """The server, with its large wallet loaded to the end."""
        if self._demo is None:
            bench = self.bench
            server = self.start()
            self.wallet = server.wallets["large"]
            self.path = history(self.wallet)
            note(f"loading the demo's wallet of {self.trades} trades")
            began, before = time.perf_counter(), cpu(server.pid)
            self.rows = load(server, self.wallet)
            note(f"{self.rows} rows, loaded in {time.perf_counter() - began:.0f} s, {cpu(server.pid) - before:.0f} s of processor")
            self._demo = server
        return self._demo

    def start(self):
        return self.bench.demo(self.folder, self.trades)

    def fresh(self):
        """The same folder, served by a new process."""
        self.bench.stop(self.demo.child)
        self._demo = self.start()
        return self._demo

    def apart(self):
        """The same folder, served by a process that asks the demo's node in another one."""
        self.bench.stop(self.demo.child)
        self._demo = None
        return self.bench.serve(self.folder, self.bench.node(self.trades))

    @property
    def trades(self):
        return round(self.bench.args.rows / ROWS_A_TRADE)

    @property
    def folder(self):
        return self.bench.keep / f"demo-{self.trades}"

    @property
    def stored(self):
        """The stream's bytes as a file, and the cursors in it."""
        server = self.demo
        if self._stored is None:
            text = server.body(self.path)
            again = server.body(self.path)
            if text != again:
                raise Failed("two streams of the same rows differ")
            self._stored = self.bench.files / "rows.ndjson"
            self._stored.write_bytes(text)
            self.size = len(text)
            self.cursors = [found.decode() for found in re.findall(rb'"cursor":"([^"]+)"', text)][:-1]
            self.sum = rows_sum(text)
        return self._stored

    @property
    def nginx_port(self):
        if self._nginx is None:
            self._nginx = self.bench.nginx("nginx.conf")
        return self._nginx

    @property
    def peer_port(self):
        """Node and PostgreSQL with the same rows; tried once."""
        if self._peer_failed:
            raise Failed("the peer could not be set up, see above")
        if self._peer is None:
            self._peer_failed = True
            rows = self.stored
            bench = self.bench
            peers = bench.scratch / "peers"
            peers.mkdir()
            for name in ("package.json", "package-lock.json", "postgres_server.mjs"):
                shutil.copy(HERE / name, peers / name)
            note("installing the peer")
            bench.run(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"], cwd=peers)
            url = self.postgres()
            script = peers / "postgres_server.mjs"
            note("filling PostgreSQL")
            with open(rows) as source:
                bench.run(["node", script, "load", url], stdin=source)
            port = free_port()
            self.peer = bench.spawn(["node", script, "serve", url, port], ready="ready", name="node")
            if rows_sum(body(port, "/")) != self.sum:
                raise Failed("the peer serves other rows")
            self._peer, self._peer_failed = port, False
        return self._peer

    def postgres(self):
        bench = self.bench
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        folder = bench.scratch / "pg"
        folder.mkdir()
        as_user = []
        if os.getuid() == 0:
            # The server refuses to run as root.
            shutil.chown(folder, "postgres")
            as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        bench.run([*as_user, programs / "initdb", "-D", folder / "data", "--auth=trust", "-U", "bench", "--locale=C", "-E", "UTF8"], cwd=folder)
        bench.spawn([*as_user, programs / "postgres", "-D", folder / "data", "-k", folder, "-c", "listen_addresses=",
                     "-c", "shared_buffers=2GB", "-c", "max_wal_size=8GB"], name="postgres")
        for _ in range(300):
            if (folder / ".s.PGSQL.5432").exists():
                time.sleep(0.5)
                return f"postgresql://bench@/postgres?host={folder}"
            time.sleep(0.1)
        raise Failed("PostgreSQL did not start")

    # Sections.

    def stream(self, report):
        """All rows by one raw socket reader: ours, the same bytes from nginx, Node and PostgreSQL, in turns."""
        server, _, peer = self.demo, self.stored, self.peer_port
        ours, nginx, spent = [], [], []
        note("streaming")
        for turn in range(self.bench.args.rounds + 1):
            before = cpu(server.pid)
            size, seconds, _ = get(server.port, self.path, server.key)
            if turn:
                # The first round warms all up.
                spent.append(cpu(server.pid) - before)
                ours.append((size / seconds, seconds))
            size, seconds, _ = get(self.nginx_port, "/rows.ndjson")
            if turn:
                nginx.append(size / seconds)
        pg = [get(peer, "/") for _ in range(2)]
        pg_rate = max(size / seconds for size, seconds, _ in pg)
        our_rate, nginx_rate = median([rate for rate, _ in ours]), median(nginx)
        our_seconds, pg_seconds = median([seconds for _, seconds in ours]), min(seconds for _, seconds, _ in pg)
        mb = lambda rate: f"{rate / 1e6:.0f} MB/s"
        ratio = median([o / n for (o, _), n in zip(ours, nginx)])
        report.row(f"stream of {self.rows:,} rows, against nginx with the same bytes", mb(our_rate), mb(nginx_rate), ratio, ">= 0.25")
        report.row("the same rows, against Node + PostgreSQL", f"{our_seconds:.2f} s", f"{pg_seconds:.2f} s", pg_seconds / our_seconds, ">= 10")
        cost = median(spent) / self.rows
        report.value("processor time of the server a row", f"{cost * 1e9:.0f} ns")
        report.bars("Stream of stored rows", "MB/s", [("nginx, same bytes", nginx_rate / 1e6), ("blotter", our_rate / 1e6), ("Node + PostgreSQL", pg_rate / 1e6)])
        # Time to first byte, in turns.
        pages, streams = [], []
        for _ in range(101):
            pages.append(get(server.port, self.path + "?limit=1", server.key)[2])
            streams.append(self.first_byte(server))
        beyond = (median(streams) - median(pages)) * 1e3
        report.row("first byte of the stream, beyond that of a page of 1", f"{median(streams) * 1e3:.2f} ms", f"{median(pages) * 1e3:.2f} ms", beyond, "<= 5", "ms")

    def first_byte(self, server):
        with socket.socket() as s:
            s.settimeout(60)
            began = time.perf_counter()
            s.connect(("127.0.0.1", server.port))
            s.sendall(request(self.path, server.key))
            s.recv(1)
            return time.perf_counter() - began

    def pages(self, report):
        """Pages from random places: ours, Node and PostgreSQL, nginx with the same bytes, and the same server's constant answer, in turns."""
        server, _, peer = self.demo, self.stored, self.peer_port
        some = random.Random(7).sample(self.cursors, min(400, len(self.cursors)))
        peer_cursors, after = [], ""
        for _ in range(200):
            after = json.loads(body(peer, f"/?limit=1000&cursor={after}"))["cursor"]
            if not after:
                break
            peer_cursors.append(after)
        for at, cursor in enumerate(some[:50]):
            (self.bench.files / f"page-{at}").write_bytes(server.body(f"{self.path}?limit=1000&cursor={cursor}"))
        files = [f"/page-{at}" for at in range(len(some[:50]))]
        for limit in (1000, 1):
            ours_paths = [f"{self.path}?limit={limit}&cursor={cursor}" for cursor in some]
            peer_paths = [f"/?limit={limit}&cursor={cursor}" for cursor in peer_cursors]
            for connections in (1, 64):
                note(f"pages of {limit}, {connections} connections")
                told = {"ours": [], "peer": [], "other": []}
                # One connection is at the mercy of where the two processes are put: the median of many.
                for _ in range(1 if self.bench.args.short else 7 if connections == 1 else 3):
                    told["ours"].append(self.bench.wrk(server.port, ours_paths, connections, server.key))
                    told["peer"].append(self.bench.wrk(peer, peer_paths, connections))
                    other = (self.nginx_port, files) if limit == 1000 else (server.port, ["/healthz"])
                    told["other"].append(self.bench.wrk(*other, connections))
                self.tell_pages(report, limit, connections, told)

    @staticmethod
    def tell_pages(report, limit, connections, told):
        runs = {name: sorted(runs)[len(runs) // 2] for name, runs in told.items()}
        rate = {name: run[0] for name, run in runs.items()}
        last = {name: f"{run[0]:,.0f}/s, p50 {run[1]:.2f}, p99 {run[2]:.2f} ms" for name, run in runs.items()}
        what = f"pages of {limit}, {connections} connection{'s' if connections > 1 else ''}"
        floor = {(1000, 1): ">= 12", (1000, 64): ">= 25"}.get((limit, connections))
        report.row(f"{what}, against Node + PostgreSQL", last["ours"], last["peer"], rate["ours"] / rate["peer"], floor)
        if limit == 1000:
            report.row(f"{what}, against nginx with the same bytes", last["ours"], last["other"], rate["ours"] / rate["other"], None)
        else:
            report.row(f"{what}, against a constant answer (/healthz)", last["ours"], last["other"], rate["ours"] / rate["other"], ">= 0.7" if connections == 1 else None)
        third = "nginx, same bytes" if limit == 1000 else "blotter, constant answer"
        report.bars(f"Pages of {limit}, {connections} connection{'s' if connections > 1 else ''}", "pages/s",
                    [(third, rate["other"]), ("blotter", rate["ours"]), ("Node + PostgreSQL", rate["peer"])])

    def sockets(self, count, path, receive=None):
        """Connections from two hundred addresses, so that the ports of one are enough."""
        server, made = self.demo, []
        for at in range(count):
            s = socket.socket()
            if receive:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
            s.bind((f"127.0.0.{2 + at % 200}", 0))
            s.connect(("127.0.0.1", server.port))
            s.sendall(request(path, server.key, close=False))
            made.append(s)
        return made

    def stalled(self, report):
        """Readers of the whole history that accept nothing: a page is served nevertheless."""
        server = self.demo
        count = 100 if self.bench.args.short else 600
        calm = [get(server.port, f"{self.path}?limit=1", server.key)[1] for _ in range(301)]
        base = status_of(server.pid, "VmRSS")
        note(f"{count} stalled readers")
        made = self.sockets(count, self.path, receive=64 << 10)
        time.sleep(3)
        used = status_of(server.pid, "VmRSS") - base
        busy = [get(server.port, f"{self.path}?limit=1", server.key)[1] for _ in range(301)]
        for s in made:
            s.close()
        worst, usual = percentile(busy, 0.99) * 1e3, percentile(calm, 0.99) * 1e3
        report.row(f"{count} stalled readers: page of 1, p99, against the same without them", f"{worst:.2f} ms", f"{usual:.2f} ms", worst / usual, None)
        report.row("the same, in milliseconds", f"{worst:.2f} ms", "", worst, "<= 1000", "ms")
        report.value("memory of a stalled reader", f"{used / count:.0f} KiB")
        settle(server)

    def idle(self, report):
        """Streams that have delivered all and wait for more: resident memory of each. Each number of them in a
        process of its own that has read the wallet once: next to what another one has freed, which
        streams take up again, they would seem to cost nothing."""
        # Half of a server's connections may be streams, and it keeps some files for itself.
        most = (self.bench.fds - 200) // 2
        for count in (100, 500) if self.bench.args.short else (1_000, min(10_000, most)):
            server = self.fresh()
            small = server.wallets["wallet"]
            load(server, small)
            base = status_of(server.pid, "VmRSS")
            note(f"{count} idle streams")
            made = self.sockets(count, history(small, f"?follow=1&token={NO_TOKEN}"))
            answered = heads(made)
            if answered < count:
                raise Failed(f"{answered} of {count} streams were answered with 200")
            time.sleep(3)
            used = status_of(server.pid, "VmRSS") - base
            times = [get(server.port, f"{self.path}?limit=1", server.key)[1] for _ in range(101)]
            report.row(f"{count:,} idle streams: memory of each", f"{used / count:.1f} KiB", f"page of 1 next to them: p99 {percentile(times, 0.99) * 1e3:.1f} ms", used / count, "<= 20", "KiB")
            for s in made:
                s.close()
            settle(server)


def settle(server):
    """Until the server has let go of connections that were closed."""
    for _ in range(300):
        text = ask(server.port, "/metrics")[2]
        found = re.search(rb"^blotter_http_streams (\d+)", text, re.M)
        if found is None or int(found[1]) == 0:
            return
        time.sleep(0.1)


def heads(made, wait=60):
    """Of how many connections the answer has begun with status 200."""
    poll, good = selectors.DefaultSelector(), 0
    for s in made:
        poll.register(s, selectors.EVENT_READ)
    end = time.monotonic() + wait
    while poll.get_map() and time.monotonic() < end:
        for ready, _ in poll.select(1):
            good += ready.fileobj.recv(12) == b"HTTP/1.1 200"
            poll.unregister(ready.fileobj)
    return good


def rows_sum(text):
    """The same for the same rows in any order."""
    total = count = 0
    for found in ROW.finditer(text):
        total += int.from_bytes(hashlib.blake2b(found[0], digest_size=8).digest(), "big")
        count += 1
    return count, total % 2**64
