"""Processes, sockets and load generators that the sections share. Everything is on 127.0.0.1."""
import json
import os
import random
import re
import resource
import selectors
import shutil
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
STARTED = time.monotonic()
# A call of a tool that takes longer has hung.
TOOL_WAIT_MAX = 900
READ_WAIT_MAX = 600


class Failed(Exception):
    """A section cannot go on."""


def note(text):
    print(f"{time.monotonic() - STARTED:6.0f} s  {text}", file=sys.stderr, flush=True)


def raise_file_limit():
    """Children inherit it: ten thousand connections are as many files on both sides."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def request(path, key=None, close=True):
    auth = f"Authorization: Bearer {key}\r\n" if key else ""
    end = "Connection: close\r\n" if close else ""
    return f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{auth}{end}\r\n".encode()


def get(port, path, key=None, sink=None, buffer=4 << 20, into=None):
    """One GET to the end of the connection, unparsed. Returns (bytes, seconds, seconds to the first)."""
    into = into or BUFFER
    with socket.socket() as s:
        s.settimeout(READ_WAIT_MAX)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        began = time.perf_counter()
        s.connect(("127.0.0.1", port))
        s.sendall(request(path, key))
        total, first = 0, None
        while n := s.recv_into(into):
            first = first or time.perf_counter() - began
            total += n
            if sink is not None:
                sink.append(bytes(into[:n]))
        return total, time.perf_counter() - began, first or 0.0


def split(raw):
    """Status, headers and body of a whole answer, plain or chunked."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1]) if head.startswith(b"HTTP/1.1 ") else 0
    head = head.lower()
    if b"transfer-encoding: chunked" not in head:
        return status, head, rest
    out, at = [], 0
    while True:
        end = rest.find(b"\r\n", at)
        size = int(rest[at:end], 16) if end > at else 0
        if size == 0:
            return status, head, b"".join(out)
        out.append(rest[end + 2:end + 2 + size])
        at = end + 4 + size


def ask(port, path, key=None):
    """A whole answer: status, headers, body."""
    parts = []
    get(port, path, key, parts)
    return split(b"".join(parts))


def body(port, path, key=None):
    status, _, text = ask(port, path, key)
    if status != 200:
        raise Failed(f"{path[:80]}: status {status} {text[:300]!r}")
    return text


def status_of(pid, field):
    """A field of /proc/PID/status in KiB."""
    with open(f"/proc/{pid}/status") as f:
        for line in f:
            if line.startswith(field + ":"):
                return int(line.split()[1])
    return 0


def reset_peak(pid):
    """VmHWM counts from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def cpu(pid):
    with open(f"/proc/{pid}/stat") as f:
        parts = f.read().rsplit(")", 1)[1].split()
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def median(values):
    return statistics.median(values)


# Addresses.

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
PRIME = 2**255 - 19
D = -121665 * pow(121666, PRIME - 2, PRIME) % PRIME


def base58(raw):
    number, text = int.from_bytes(raw, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = ALPHABET[digit] + text
    return "1" * (len(raw) - len(raw.lstrip(b"\0"))) + text


def is_on_curve(raw):
    """Whether the bytes are a point of ed25519 (RFC 8032, 5.1.3): a wallet is, most other accounts are not."""
    y = int.from_bytes(raw, "little") & (2**255 - 1)
    square = (y * y - 1) * pow(D * y * y + 1, PRIME - 2, PRIME) % PRIME
    return square == 0 or pow(square, (PRIME - 1) // 2, PRIME) == 1


def random_wallet(chance):
    while True:
        raw = chance.randbytes(32)
        if is_on_curve(raw):
            return base58(raw)


def history(wallet, query=""):
    return f"/v1/wallets/{wallet}/history{query}"


class Bench:
    """The scratch folder and the processes of one run; `close` ends and removes them."""

    def __init__(self, args):
        self.args = args
        self.fds = raise_file_limit()
        self.scratch = Path(tempfile.mkdtemp(prefix="compare-"))
        os.chmod(self.scratch, 0o755)
        self.keep = Path(args.keep).resolve() if args.keep else self.scratch
        self.keep.mkdir(parents=True, exist_ok=True)
        self.files = self.scratch / "files"
        self.files.mkdir()
        self.children = []

    # Processes.

    def spawn(self, command, ready=None, name="log", **more):
        """A process that runs until it is stopped; with `ready`, waits for that text on its stdout."""
        log = self.scratch / f"{name}-{len(self.children)}.log"
        command = [str(part) for part in command]
        with open(log, "wb") as errors:
            child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, **more)
        child.log = log
        self.children.append(child)
        if ready:
            for line in child.stdout:
                if ready in line:
                    threading.Thread(target=child.stdout.read, daemon=True).start()
                    child.line = line
                    return child
            raise Failed(f"{Path(command[0]).name} ended: {log.read_text()[-2000:]}")
        return child

    def stop(self, child, kill=False):
        if child.poll() is None:
            child.kill() if kill else child.terminate()
            try:
                child.wait(30)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
        if child in self.children:
            self.children.remove(child)

    def run(self, command, **more):
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=TOOL_WAIT_MAX, **more)
        if done.returncode:
            raise Failed(f"{Path(str(command[0])).name} failed: {done.stdout[-500:]} {done.stderr[-1500:]}")
        return done.stdout

    def close(self):
        for child in list(self.children):
            self.stop(child)
        shutil.rmtree(self.scratch, ignore_errors=True)

    # Servers.

    def key(self, folder):
        made = self.run([self.args.binary, "keys", "create", "--json", "--streams", "20000", "--data-dir", folder])
        return json.loads(made)["key"]

    def config(self, name, text=""):
        # Half of the connections may be streams.
        path = self.scratch / f"{name}.toml"
        path.write_text(f'[server]\nfreshness = "30d"\nstream_window = "1h"\nconnections = 22000\n{text}')
        return path

    def demo(self, folder, large, *more):
        """The demo chain with its server, with a key that may have many streams."""
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        key = self.key(folder)
        child = self.spawn([self.args.binary, "demo", "--listen", "127.0.0.1:0", "--data-dir", folder, "--large", large,
                            "--config", self.config("demo"), *more], ready="http://", name="demo")
        wallets = {}
        for line in child.log.read_text().splitlines():
            parts = line.split()
            if len(parts) > 2 and parts[0] in ("wallet", "large") and parts[2] == "(sol,":
                wallets[parts[0]] = parts[1]
        return Server(child, key, wallets)

    def node(self, large):
        """The address of the demo's Solana node, in a process that does nothing else."""
        server = self.demo(self.scratch / "node", large, "--node", "127.0.0.1:0")
        return re.search(r"node:\s+(\S+/sol)\s", server.child.log.read_text())[1]

    def serve(self, folder, node="http://127.0.0.1:9"):
        """The server on a folder that was filled; without `node` there is none that it could ask."""
        key = self.key(folder)
        # As the demo asks its own.
        config = self.config("serve", f'[chains.sol]\nrpc = [{{ url = "{node}", concurrency = 32, batch = 100 }}]\n')
        child = self.spawn([self.args.binary, "serve", "--listen", "127.0.0.1:0", "--data-dir", folder, "--config", config],
                           ready="http://", name="serve")
        return Server(child, key, {})

    def nginx(self, config, **words):
        port = free_port()
        text = (HERE / config).read_text().replace("FOLDER", str(self.scratch)).replace("PORT", str(port))
        for word, value in words.items():
            text = text.replace(word, str(value))
        if os.getuid() == 0:
            text = "user root;\n" + text
        path = self.scratch / config
        path.write_text(text)
        child = self.spawn(["nginx", "-c", path, "-e", self.scratch / "nginx-start.log"], name="nginx")
        for _ in range(200):
            try:
                get(port, "/")
                return port
            except OSError:
                time.sleep(0.05)
        raise Failed(f"nginx did not start: {child.log.read_text()[-1000:]}")

    # Load.

    def wrk(self, port, paths, connections, key="", seconds=None):
        """Requests a second, median and 99th percentile in milliseconds, of random paths of a list."""
        seconds = seconds or (1 if self.args.short else 3)
        names = self.scratch / "paths"
        names.write_text("\n".join(paths))
        out = self.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "20s", "-s", HERE / "pages.lua",
                        f"http://127.0.0.1:{port}"], env={**os.environ, "PATHS": str(names), "KEY": key})
        done = next(line for line in out.splitlines() if line.startswith("RESULT")).split()
        requests, micros, bad, p50, p99 = (int(x) for x in done[1:6])
        if bad or not requests:
            raise Failed(f"{bad} of {requests} answers failed: {out}")
        return requests / (micros / 1e6), p50 / 1e3, p99 / 1e3


class Server:
    def __init__(self, child, key, wallets):
        self.child, self.key, self.wallets = child, key, wallets
        self.pid = child.pid
        self.port = int(child.line.rsplit(":", 1)[1].strip().rstrip("/"))
        # Keys of the file are taken up within two seconds; one made before the start is there.

    def body(self, path):
        return body(self.port, path, self.key)


def load(server, wallet):
    """Reads a wallet's history until it is complete; returns its number of rows."""
    path = history(wallet)
    while True:
        tail = b""
        with socket.socket() as s:
            s.settimeout(READ_WAIT_MAX)
            s.connect(("127.0.0.1", server.port))
            s.sendall(request(path, server.key))
            while part := s.recv(1 << 20):
                tail = (tail + part)[-2000:]
        if b'"complete":true' in tail:
            return int(tail.rsplit(b'"tradeCount":', 1)[1].split(b",")[0])
        if b'"complete":false' not in tail:
            raise Failed(f"the history was cut: {tail[-300:]!r}")


class Paced:
    """So many requests a second independent of the answers, on kept connections. A latency counts from the
    moment at which the request was due, so that a wait for a free connection is part of it."""

    def __init__(self, port, key, paths, rate, seconds, connections=32):
        self.port, self.paths, self.rate, self.seconds = port, paths, rate, seconds
        self.key, self.connections = key, connections
        self.times, self.failed = [], 0

    def run(self):
        poll = selectors.DefaultSelector()
        free = []
        for _ in range(self.connections):
            s = socket.create_connection(("127.0.0.1", self.port))
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            free.append(s)
        everyone = list(free)
        open_at = {}
        chance = random.Random(3)
        count = int(self.rate * self.seconds)
        began, sent = time.perf_counter(), 0
        end = began + self.seconds + 60
        while (sent < count or open_at) and time.perf_counter() < end:
            now = time.perf_counter()
            while free and sent < count and began + sent / self.rate <= now:
                s = free.pop()
                s.sendall(request(chance.choice(self.paths), self.key, close=False))
                open_at[s] = [began + sent / self.rate, None, b""]
                poll.register(s, selectors.EVENT_READ)
                sent += 1
            due = began + sent / self.rate if sent < count and free else now + 0.05
            for ready, _ in poll.select(max(0.0, due - time.perf_counter())):
                s = ready.fileobj
                state = open_at[s]
                n = s.recv_into(BUFFER)
                if state[1] is None:
                    state[2] += bytes(BUFFER[:n])
                    head, found, rest = state[2].partition(b"\r\n\r\n")
                    if not found and n:
                        continue
                    lower = head.lower()
                    if not head.startswith(b"HTTP/1.1 200") or b"content-length: " not in lower:
                        raise Failed(f"a page answered {head[:200]!r}")
                    state[1] = int(lower.split(b"content-length: ")[1].split(b"\r\n")[0]) - len(rest)
                else:
                    state[1] -= n
                if state[1] <= 0:
                    self.times.append(time.perf_counter() - state[0])
                    del open_at[s]
                    poll.unregister(s)
                    free.append(s)
        self.failed = count - len(self.times)
        self.took = time.perf_counter() - began
        for s in everyone:
            s.close()
        return self


def read_together(port, key, paths):
    """All at once by one reader: of each, seconds to the end, seconds to the first byte, bytes, whether it was whole."""
    poll = selectors.DefaultSelector()
    began = time.perf_counter()
    for path in paths:
        s = socket.create_connection(("127.0.0.1", port))
        s.sendall(request(path, key))
        poll.register(s, selectors.EVENT_READ, [None, 0, b""])
    told = []
    while poll.get_map():
        events = poll.select(READ_WAIT_MAX)
        if not events:
            raise Failed(f"{len(poll.get_map())} streams stand still")
        for ready, _ in events:
            state = ready.data
            n = ready.fileobj.recv_into(BUFFER)
            now = time.perf_counter() - began
            if n:
                state[0] = state[0] or now
                state[1] += n
                state[2] = (state[2] + bytes(BUFFER[max(0, n - 400):n]))[-400:]
                continue
            told.append((now, state[0] or now, state[1], b'"complete":true' in state[2]))
            poll.unregister(ready.fileobj)
            ready.fileobj.close()
    return told
