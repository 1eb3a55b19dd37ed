"""The real binary beside its limits and its peers, in one run: prints a table of ratios.

usage: python3 compare.py BINARY [--fill PROGRAM] [--scale N] [--rounds N] [--only stream,pages,...] [--json FILE]

What is compared, and how, is said at each section. Everything runs on 127.0.0.1 and is stopped by
its process id; scratch files go.
"""
import argparse
import json
import os
import random
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUFFER = bytearray(1 << 20)
ROWS = []


def note(text):
    print(text, file=sys.stderr, flush=True)


def row(what, ours, peer, ratio, floor, ok=None):
    """One line of the table; `floor` is text such as '>= 0.25'."""
    if ok is None and floor:
        sign, bound = floor.split()
        ok = ratio >= float(bound) if sign == ">=" else ratio <= float(bound)
    ROWS.append({"what": what, "ours": ours, "peer": peer, "ratio": ratio, "floor": floor, "ok": ok})
    note(f"  {what}: {ours} | {peer} | {ratio:.3g} | {floor}")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(port, path, key=None, sink=None, buffer=4 << 20):
    """One GET to the end of the connection, unparsed. Returns (bytes, seconds, seconds to the first)."""
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        s.connect(("127.0.0.1", port))
        auth = f"Authorization: Bearer {key}\r\n" if key else ""
        began = time.perf_counter()
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n{auth}Connection: close\r\n\r\n".encode())
        total, first = 0, None
        while n := s.recv_into(BUFFER):
            first = first or time.perf_counter() - began
            total += n
            if sink is not None:
                sink.append(bytes(BUFFER[:n]))
        return total, time.perf_counter() - began, first


def body(parts):
    """The body of a chunked or plain answer."""
    raw = b"".join(parts)
    head, _, rest = raw.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"answer: {head[:200]!r} {rest[:300]!r}")
    if b"chunked" not in head.lower():
        return rest
    out, at = [], 0
    while True:
        end = rest.index(b"\r\n", at)
        size = int(rest[at:end], 16)
        if size == 0:
            return b"".join(out)
        out.append(rest[end + 2:end + 2 + size])
        at = end + 4 + size


def stat(pid, field):
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith(field):
                return int(line.split()[1])
    return 0


def cpu(pid):
    with open(f"/proc/{pid}/stat") as f:
        parts = f.read().rsplit(")", 1)[1].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


class Bench:
    def __init__(self, args):
        self.args = args
        self.scratch = Path(tempfile.mkdtemp(prefix="compare-"))
        os.chmod(self.scratch, 0o755)
        self.children = []
        self.files = self.scratch / "files"
        self.files.mkdir()

    def spawn(self, command, ready=None, **more):
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=open(self.scratch / "log", "ab"), text=True, **more)
        self.children.append(child)
        if ready:
            for line in child.stdout:
                if ready in line:
                    threading.Thread(target=child.stdout.read, daemon=True).start()
                    return child, line
            raise SystemExit(f"{command[0]} ended: {open(self.scratch / 'log').read()[-2000:]}")
        return child, None

    def stop(self, child):
        child.terminate()
        try:
            child.wait(20)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()

    def close(self):
        for child in self.children:
            if child.poll() is None:
                self.stop(child)
        shutil.rmtree(self.scratch, ignore_errors=True)

    # Set-up.

    def demo(self):
        """The demo's large wallet, loaded to its end."""
        data = self.scratch / "data"
        log = self.scratch / "demo.log"
        config = self.scratch / "config.toml"
        config.write_text('[server]\nfreshness = "1d"\nstream_window = "1h"\nconnections = 16000\n')
        command = [self.args.binary, "demo", "--listen", "127.0.0.1:0", "--data-dir", str(data), "--config", str(config)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=open(log, "w"), text=True)
        self.children.append(child)
        line = child.stdout.readline()
        if "http://" not in line:
            raise SystemExit(log.read_text())
        self.port = int(line.rsplit(":", 1)[1].strip().rstrip("/"))
        self.server = child
        text = log.read_text()
        self.wallet = next(l.split()[1] for l in text.splitlines() if l.startswith("large") and "(sol," in l)
        made = subprocess.run([self.args.binary, "keys", "create", "--json", "--streams", "20000", "--data-dir", str(data)],
                              capture_output=True, text=True, check=True)
        self.key = json.loads(made.stdout)["key"]
        time.sleep(2.5)  # a running server takes new keys within two seconds
        self.path = f"/v1/wallets/{self.wallet}/history"
        note("loading the demo's wallet")
        began = time.perf_counter()
        while True:
            parts = []
            get(self.port, self.path, self.key, parts)
            self.bytes = body(parts)
            if b'"complete":true' in self.bytes[-300:]:
                break
        self.rows = json.loads(self.bytes[self.bytes[:-1].rindex(b"\n") + 1:])["tradeCount"]
        note(f"{self.rows} rows, {len(self.bytes) >> 20} MiB, loaded in {time.perf_counter() - began:.0f} s")
        parts = []
        get(self.port, self.path, self.key, parts)
        self.bytes = body(parts)
        (self.files / "rows.ndjson").write_bytes(self.bytes)
        cursors = [json.loads(l)["cursor"] for l in self.bytes.splitlines() if l.startswith(b'{"trades"')]
        self.cursors = cursors[:-1]

    def nginx(self):
        self.nginx_port = free_port()
        conf = (HERE / "nginx.conf").read_text().replace("FOLDER", str(self.scratch)).replace("PORT", str(self.nginx_port))
        if os.getuid() == 0:
            conf = "user root;\n" + conf
        (self.scratch / "nginx.conf").write_text(conf)
        self.spawn(["nginx", "-c", str(self.scratch / "nginx.conf")])
        for _ in range(100):
            try:
                get(self.nginx_port, "/")
                return
            except OSError:
                time.sleep(0.05)
        raise SystemExit("nginx did not start")

    def postgres(self):
        bin_dir = sorted(Path("/usr/lib/postgresql").glob("*/bin"))[-1]
        folder = self.scratch / "pg"
        folder.mkdir()
        as_user = []
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
            as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        subprocess.run([*as_user, bin_dir / "initdb", "-D", folder / "data", "--auth=trust", "-U", "bench", "--locale=C", "-E", "UTF8"],
                       check=True, stdout=subprocess.DEVNULL)
        self.spawn([*as_user, str(bin_dir / "postgres"), "-D", str(folder / "data"), "-k", str(folder), "-c", "listen_addresses=",
                    "-c", "shared_buffers=2GB", "-c", "max_wal_size=8GB"])
        url = f"postgresql://bench@/postgres?host={folder}"
        for _ in range(100):
            if (folder / ".s.PGSQL.5432").exists():
                break
            time.sleep(0.1)
        script = str(self.peers / "postgres_server.mjs")
        note("filling PostgreSQL")
        with open(self.files / "rows.ndjson") as rows:
            subprocess.run(["node", script, "load", url], stdin=rows, check=True)
        self.pg_port = free_port()
        self.spawn(["node", script, "serve", url, str(self.pg_port)], ready="ready")

    def install_peers(self):
        self.peers = self.scratch / "peers"
        self.peers.mkdir()
        for name in ("package.json", "postgres_server.mjs"):
            shutil.copy(HERE / name, self.peers / name)
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--silent"], cwd=self.peers, check=True)

    # Sections.

    def stream(self):
        """All rows by one raw socket reader: ours, the same bytes from nginx, Node and PostgreSQL, in turns."""
        speeds = {"ours": [], "nginx": [], "pg": []}
        spent = []
        for turn in range(self.args.rounds + 1):
            before = cpu(self.server.pid)
            size, seconds, first = get(self.port, self.path, self.key)
            spent.append(cpu(self.server.pid) - before)
            ours = size / seconds
            size, seconds, _ = get(self.nginx_port, "/rows.ndjson")
            nginx = size / seconds
            if turn:
                speeds["ours"].append(ours)
                speeds["nginx"].append(nginx)
        for _ in range(2):
            size, seconds, _ = get(self.pg_port, "/")
            speeds["pg"].append(size / seconds)
        ratio = statistics.median(o / n for o, n in zip(speeds["ours"], speeds["nginx"]))
        median = {name: statistics.median(values) for name, values in speeds.items()}
        mb = {name: f"{value / 1e6:.0f} MB/s" for name, value in median.items()}
        row(f"stream of {self.rows} rows / nginx, same bytes", mb["ours"], mb["nginx"], ratio, ">= 0.25")
        row("the same / Node + PostgreSQL", mb["ours"], mb["pg"], median["ours"] / median["pg"], ">= 10")
        ns = statistics.median(spent[1:]) / self.rows * 1e9
        row("server's processor time a row", f"{ns:.0f} ns", "", ns, None)
        firsts = sorted(get(self.port, self.path + "?limit=1", self.key)[2] for _ in range(51))
        streams = sorted(self.first_byte() for _ in range(51))
        row("first byte of the stream, beyond a page of one", f"{streams[25] * 1e3:.2f} ms", f"{firsts[25] * 1e3:.2f} ms",
            (streams[25] - firsts[25]) * 1e3, "<= 5")

    def first_byte(self):
        with socket.socket() as s:
            s.connect(("127.0.0.1", self.port))
            began = time.perf_counter()
            s.sendall(f"GET {self.path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.key}\r\n\r\n".encode())
            s.recv(1)
            return time.perf_counter() - began

    def wrk(self, port, paths, connections, seconds=3):
        names = self.scratch / "paths"
        names.write_text("\n".join(paths))
        out = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(HERE / "pages.lua"), f"http://127.0.0.1:{port}"],
                             env={**os.environ, "PATHS": str(names), "KEY": self.key}, capture_output=True, text=True, check=True).stdout
        done = next(l for l in out.splitlines() if l.startswith("RESULT")).split()
        requests, micros, bad, p50, p99 = (int(x) for x in done[1:6])
        if bad:
            raise SystemExit(f"{bad} answers failed: {out}")
        return requests / (micros / 1e6), p50 / 1e3, p99 / 1e3

    def pages(self):
        """Pages from random places: ours, Node and PostgreSQL, and the same server's constant answer, in turns."""
        some = random.Random(7).sample(self.cursors, min(400, len(self.cursors)))
        parts = []
        get(self.pg_port, "/?limit=1000", sink=parts)
        pg_cursors = []
        after = ""
        for _ in range(60):
            parts = []
            get(self.pg_port, f"/?limit=1000&cursor={after}", sink=parts)
            after = json.loads(body(parts))["cursor"]
            if not after:
                break
            pg_cursors.append(after)
        for limit, floors in ((1000, {1: 12, 64: 25}), (1, {})):
            ours_paths = [f"{self.path}?limit={limit}&cursor={c}" for c in some]
            pg_paths = [f"/?limit={limit}&cursor={c}" for c in pg_cursors]
            for connections in (1, 64):
                ours, peer, constant = [], [], []
                for _ in range(2):
                    ours.append(self.wrk(self.port, ours_paths, connections))
                    peer.append(self.wrk(self.pg_port, pg_paths, connections))
                    if limit == 1:
                        constant.append(self.wrk(self.port, ["/healthz"], connections))
                rate = statistics.mean(o[0] for o in ours)
                other = statistics.mean(p[0] for p in peer)
                floor = f">= {floors[connections]}" if connections in floors else None
                what = f"pages of {limit}, {connections} connection{'s' if connections > 1 else ''}"
                row(f"{what} / Node + PostgreSQL", f"{rate:.0f}/s, p99 {ours[-1][2]:.2f} ms", f"{other:.0f}/s, p99 {peer[-1][2]:.2f} ms", rate / other, floor)
                if constant:
                    flat = statistics.mean(c[0] for c in constant)
                    row(f"{what} / a constant answer", f"{rate:.0f}/s", f"{flat:.0f}/s", rate / flat, ">= 0.7" if connections == 1 else None)

    def sockets(self, count, path, receive=None):
        made = []
        for at in range(count):
            s = socket.socket()
            if receive:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
            s.bind((f"127.0.0.{2 + at % 200}", 0))
            s.connect(("127.0.0.1", self.port))
            s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.key}\r\n\r\n".encode())
            made.append(s)
        return made

    def idle(self):
        """Streams that have told all and wait for more: resident memory a stream."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        text = (self.scratch / "demo.log").read_text()
        small = next(l.split()[1] for l in text.splitlines() if l.startswith("wallet") and "(sol," in l)
        path = f"/v1/wallets/{small}/history?follow=1&side=buy&token=So11111111111111111111111111111111111111112"
        base = stat(self.server.pid, "VmRSS")
        for count in (1_000, 10_000):
            made = self.sockets(count, path)
            time.sleep(3)
            used = stat(self.server.pid, "VmRSS") - base
            began = time.perf_counter()
            get(self.port, f"{self.path}?limit=1", self.key)
            page = (time.perf_counter() - began) * 1e3
            row(f"{count} idle streams, KiB each", f"{used / count:.1f} KiB", f"page of one: {page:.1f} ms", used / count, "<= 20")
            for s in made:
                s.close()
            time.sleep(2)

    def stalled(self):
        """Readers of the whole history that accept nothing: a page is served nevertheless."""
        made = self.sockets(600, self.path, receive=64 << 10)
        time.sleep(3)
        times = sorted(get(self.port, f"{self.path}?limit=1", self.key)[1] for _ in range(101))
        row("600 stalled readers: p99 of a page of one, ms", f"{times[99] * 1e3:.2f} ms", "", times[99] * 1e3, "<= 1000")
        for s in made:
            s.close()
        time.sleep(1)

    def together(self):
        """Many streams of the stored history at once, against one alone: what all get of one core's work."""
        _, alone, _ = get(self.port, self.path, self.key)
        count = 16
        ends = []

        def read():
            buffer = bytearray(1 << 20)
            with socket.socket() as s:
                s.connect(("127.0.0.1", self.port))
                s.sendall(f"GET {self.path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.key}\r\nConnection: close\r\n\r\n".encode())
                total = 0
                while n := s.recv_into(buffer):
                    total += n
                ends.append((time.perf_counter(), total))

        began = time.perf_counter()
        threads = [threading.Thread(target=read) for _ in range(count)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        whole = max(e for e, _ in ends) - began
        first = min(e for e, _ in ends) - began
        row(f"{count} streams at once: rate of all / rate of one", f"{count * self.rows / whole / 1e6:.2f} M rows/s",
            f"{self.rows / alone / 1e6:.2f} M rows/s", count * alone / whole, None)
        row("the same: first done / last done", f"{first:.1f} s", f"{whole:.1f} s", first / whole, None)
        row("peak resident memory, MiB", f"{stat(self.server.pid, 'VmHWM') / 1024:.0f} MiB", "", stat(self.server.pid, "VmHWM") / 1024, None)

    def start(self):
        """From the start of the process to its first answer, on a large file: after an orderly stop and after kill -9."""
        folder = self.scratch / "ten"
        rows = self.args.scale
        note(f"filling a file with {rows} trades")
        filled = subprocess.run([self.args.fill, str(folder), "1000", str(rows // 1000)], capture_output=True, text=True, check=True).stdout
        note(filled.strip())
        for name in ("after an orderly stop", "after kill -9 while writing"):
            if name.endswith("writing"):
                child = subprocess.Popen([self.args.fill, str(folder), "1001", str(rows // 1000), "--forever"], stdout=subprocess.DEVNULL)
                time.sleep(2)
                child.send_signal(signal.SIGKILL)
                child.wait()
            port = free_port()
            subprocess.run([self.args.binary, "keys", "list", "--data-dir", str(folder)], capture_output=True, check=False)
            times = []
            for turn in range(3 if name.startswith("after an") else 1):
                began = time.perf_counter()
                child = subprocess.Popen([self.args.binary, "serve", "--listen", f"127.0.0.1:{port}", "--data-dir", str(folder)],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                while True:
                    try:
                        get(port, "/healthz")
                        break
                    except OSError:
                        time.sleep(0.0005)
                times.append((time.perf_counter() - began) * 1e3)
                self.stop(child)
            row(f"start on {rows} trades {name}, ms", f"{statistics.median(times):.1f} ms", "", statistics.median(times), "<= 50")

    def size(self):
        mib = os.path.getsize(self.args.binary) / 1e6
        row("binary, MB", f"{mib:.1f} MB", "", mib, "<= 12")


SECTIONS = ("stream", "pages", "stalled", "idle", "together", "start", "size")


def table():
    head = ("what", "ours", "limit or peer", "ratio", "floor", "")
    lines = [head] + [(r["what"], r["ours"], r["peer"], f"{r['ratio']:.3g}", r["floor"] or "", {True: "kept", False: "MISSED", None: ""}[r["ok"]]) for r in ROWS]
    widths = [max(len(l[i]) for l in lines) for i in range(6)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("--fill", help="the program that fills a file (cargo bench --bench fill --no-run tells where)")
    parser.add_argument("--scale", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--only", default=",".join(SECTIONS))
    parser.add_argument("--json")
    args = parser.parse_args()
    wanted = args.only.split(",")
    bench = Bench(args)
    try:
        if set(wanted) - {"start", "size"}:
            bench.demo()
        if {"stream", "pages"} & set(wanted):
            bench.install_peers()
            bench.nginx()
            bench.postgres()
        for name in SECTIONS:
            if name in wanted:
                note(f"{name}")
                getattr(bench, name)()
    finally:
        bench.close()
    table()
    if args.json:
        Path(args.json).write_text(json.dumps(ROWS, indent=1))
    sys.exit(any(r["ok"] is False for r in ROWS))


main()
