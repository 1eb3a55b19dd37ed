#!/usr/bin/env python3
"""A wallet of 1,000,000 rows under everything that is tried on small ones, by the release build and real sockets.

    python3 tests/million/run.py PROGRAM [--large 800000] [--outages 12] [--drips 20]

One process is the demo's node, one the server. The wallet is loaded while clients read and write a byte a
second, a second node answers a byte a second, and the server is killed once. Then the node comes and goes while
a client follows, a backup is written and the file is compacted. Cursors from before are used on the server, on
the backup and on files compacted while in use and while not. In the end each row of every client is
held against the rows that the demo itself serves: each once, in order. Fails where one differs.
"""
import argparse, contextlib, hashlib, json, os, pathlib, re, signal, subprocess, sys, tempfile, threading, time
from urllib.parse import urlparse

from net import Relay, ask, drip_reading, drip_writing, lines

KEPT_CURSORS = 10
OUTAGES = ["silent", "refuse", "drip"]
PAGE_ROWS = 1000
PAGE_EVERY = 0.2
UNKNOWN = bytes(8)
READER_SECONDS = 60
"""Of a client that drips: a reader that takes less than 4 KiB in 30 s is hung up on."""
PATIENCE = 1800


def digest(row):
    """What identifies a row and never changes, then its value: unknown while no price was found, and given once."""
    value = row.pop("amountSol")
    halves = json.dumps(row, sort_keys=True), "" if value is None else str(value)
    one, other = (hashlib.blake2b(half.encode(), digest_size=8).digest() for half in halves)
    return one + (UNKNOWN if value is None else other)


def unknown(rows):
    return sum(row[8:] == UNKNOWN for row in rows)


def same(rows, others):
    """The same rows in the same order; a value may be unknown on one side, never another one."""
    return len(rows) == len(others) and all(
        a == b or (a[:8] == b[:8] and UNKNOWN in (a[8:], b[8:])) for a, b in zip(rows, others))


def configuration(window, *urls):
    nodes = ", ".join(f'{{ url = "{url}", concurrency = 32, batch = 100 }}' for url in urls)
    return f'[server]\nstream_window = "{window}"\n[chains.sol]\nrpc = [{nodes}]\n'


class Process:
    """The program in a folder of its own, which a restart keeps."""

    def __init__(self, program, folder, *args, config=""):
        self.program, self.folder, self.args = program, pathlib.Path(folder), args
        self.folder.mkdir(exist_ok=True)
        (self.folder / "blotter.toml").write_text(config)
        self.start()

    def start(self):
        self.began = time.monotonic()
        with open(self.folder / "out", "w") as out, open(self.folder / "err", "a") as err:
            self.child = subprocess.Popen([self.program, *self.args, "--listen", "127.0.0.1:0"], cwd=self.folder,
                                          stdout=out, stderr=err, env={"BLOTTER_LOG": "warn"})
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", (self.folder / "out").read_text())):
            if self.child.poll() is not None:
                sys.exit(self.error())
            time.sleep(0.02)
        self.port, self.opened = int(found[1]), time.monotonic() - self.began

    def error(self):
        return (self.folder / "err").read_text()

    def run(self, *args):
        began = time.monotonic()
        ran = subprocess.run([self.program, *args], cwd=self.folder, capture_output=True, text=True)
        if ran.returncode:
            sys.exit(f"{args}: {ran.stderr}")
        return ran.stdout, time.monotonic() - began

    def end(self, how):
        self.child.send_signal(how)
        return self.child.wait()

    def memory(self, name):
        text = pathlib.Path(f"/proc/{self.child.pid}/status").read_text()
        return int(re.search(rf"{name}:\s+(\d+) kB", text)[1])

    def metric(self, name):
        found = re.search(rf"^blotter_{name} (\d+)", ask(self.port, "/metrics", "")[1].decode(), re.M)
        return int(found[1])


class Client:
    """Reads a wallet by streams, resuming at its last cursor, and keeps each row's digest."""

    def __init__(self, server, path, key, cursor=None, follow=False):
        self.server, self.path, self.key, self.cursor, self.follow = server, path, key, cursor, follow
        self.rows, self.live, self.cursors, self.streams, self.failed, self.last = [], [], [], 0, 0, {}

    def window(self, on_rows=lambda client: None):
        """One stream, to its final line or to where it was cut."""
        query = "&follow=1" if self.follow else ""
        query += f"&cursor={self.cursor}" if self.cursor else ""
        self.streams += 1
        for line in lines(self.server.port, self.path + query, self.key):
            if line.get("complete") is not None:
                self.last = line
                self.failed += "error" in line
            (self.live if line.get("live") else self.rows).extend(map(digest, line.get("trades", ())))
            if "cursor" in line:
                self.cursor = line["cursor"]
                self.cursors.append((len(self.rows), self.cursor))
            on_rows(self)

    def finish(self, on_rows=lambda client: None):
        ends = time.monotonic() + PATIENCE
        while not self.last.get("complete"):
            self.window(on_rows)
            if time.monotonic() > ends:
                sys.exit(f"not complete after {PATIENCE} s: {self.last}")
        return self


class Watch:
    """Asks for a page from the middle of what is stored, again and again; keeps the slowest."""

    def __init__(self, server, path, key):
        self.server, self.path, self.key = server, path, key
        self.cursor, self.waits, self.on = None, [], True
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    def watch(self):
        while self.on:
            if self.cursor:
                began = time.monotonic()
                with contextlib.suppress(OSError):
                    status, _ = ask(self.server.port, f"{self.path}&limit={PAGE_ROWS}&cursor={self.cursor}", self.key)
                    if status == 200:
                        self.waits.append(time.monotonic() - began)
            time.sleep(PAGE_EVERY)

    def so_far(self):
        waits, self.waits = sorted(self.waits), []
        if not waits:
            return "no page answered"
        return f"{len(waits)} pages of {PAGE_ROWS} rows meanwhile, median {waits[len(waits) // 2] * 1e3:.0f} ms, slowest {waits[-1] * 1e3:.0f} ms"


def say(what, seen):
    print(f"| {what} | {seen} |", flush=True)


class Trial:
    def __init__(self, given, folder):
        self.given, self.folder = given, folder
        self.wrong = []
        self.demo = Process(given.program, folder / "demo", "demo", "--quiet", "--data-dir", "data", "--large", str(given.large),
                            "--trade-every", "2", "--node", "127.0.0.1:0")
        said = self.demo.error()
        self.node = re.search(r"node:\s+(\S+/sol)\s", said)[1]
        self.demo_key = re.search(r"^\s*key\s+(\S+)", said, re.M)[1]
        self.path = f"/v1/wallets/{re.search(r'^large +([^ ]+)', said, re.M)[1]}/history?chain=sol"
        at = urlparse(self.node)
        self.relay, self.dripping = Relay((at.hostname, at.port)), Relay((at.hostname, at.port), "drip")
        self.server = self.served("serve", "2h", self.node, self.through(self.dripping))
        made, _ = self.server.run("keys", "create", "--json", "--streams", "1000", "--data-dir", "data")
        self.key = json.loads(made)["key"]
        while ask(self.server.port, "/v1/usage", self.key)[0] != 200:
            time.sleep(0.1)
        self.watch = Watch(self.server, self.path, self.key)

    def through(self, relay):
        return f"http://127.0.0.1:{relay.port}{urlparse(self.node).path}"

    def served(self, name, window, *urls):
        return Process(self.given.program, self.folder / name, "serve", "--data-dir", "data", config=configuration(window, *urls))

    def check(self, good, what):
        if not good:
            self.wrong.append(what)
            print(f"WRONG: {what}", flush=True)

    # --- the load

    def drip(self):
        """So many clients of each kind; ends when all have been hung up on."""
        port, key, count = self.server.port, self.key, self.given.drips
        head = f"GET {self.path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\nx-long: ".encode()
        estimate = b"POST /v1/billing/estimate HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 5000\r\n\r\n"
        before, took, threads = self.server.metric("http_slow_readers_total"), {"head": [], "body": []}, []
        for _ in range(count):
            threads += [
                threading.Thread(target=drip_reading, args=(port, self.path, key, READER_SECONDS)),
                threading.Thread(target=lambda: took["head"].append(drip_writing(port, head, 20, 90))),
                threading.Thread(target=lambda: took["body"].append(drip_writing(port, estimate, len(estimate), 90))),
            ]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        slow = self.server.metric("http_slow_readers_total") - before
        say(f"{count} readers, {count} heads and {count} bodies of a byte a second during the load",
            f"{slow} readers hung up on; heads ended after at most {max(took['head']):.0f} s, bodies after {max(took['body']):.0f} s")
        self.check(slow == count, f"{slow} of {count} dripping readers were hung up on")
        self.check(max(took["head"] + took["body"]) < 60, f"a dripping client kept its place: {took}")

    def load(self):
        killed, wanted = [], self.given.large // 10

        def on_rows(client):
            self.watch.cursor = self.watch.cursor or client.cursor
            if len(client.rows) > wanted and not killed:
                killed.append(len(client.rows))
                self.server.end(signal.SIGKILL)
                self.server.start()

                dripping.start()

        began = time.monotonic()
        client, dripping = Client(self.server, self.path, self.key), threading.Thread(target=self.drip)
        client.finish(on_rows)
        took = time.monotonic() - began
        dripping.join()
        say(f"{len(client.rows):,} rows loaded and streamed, next to a node that answers a byte a second, with `kill -9` after {killed[0]:,}",
            f"{took:.0f} s; {client.streams} streams; started again in {self.server.opened:.2f} s; {self.watch.so_far()}; "
            f"peak {self.server.memory('VmHWM') >> 10} MB; the slow node had {self.dripping.accepted} connections")
        self.first = client

    # --- a node that comes and goes, while the store is looked after

    def come_and_go(self):
        for outage in range(self.given.outages):
            time.sleep(4 + outage * 3 % 7)
            self.relay.mode = OUTAGES[outage % len(OUTAGES)]
            time.sleep(3 + outage * 5 % 9)
            self.relay.mode = "pass"

    def follow(self):
        (self.server.folder / "blotter.toml").write_text(configuration("20s", self.through(self.relay)))
        self.server.run("admin", "reload", "--data-dir", "data")
        client = Client(self.server, self.path, self.key, self.first.cursors[0][1], follow=True)
        stop = threading.Event()

        def windows():
            while not stop.is_set():
                client.window()

        following = threading.Thread(target=windows)
        following.start()
        going = threading.Thread(target=self.come_and_go)
        began = time.monotonic()
        going.start()
        self.watch.so_far()
        _, took = self.server.run("admin", "backup", str(self.folder / "copy"), "--data-dir", "data")
        say("`admin backup` meanwhile", f"{took:.1f} s; {self.watch.so_far()}")
        _, took = self.server.run("admin", "compact", "--data-dir", "data")
        say("`admin compact` meanwhile", f"{took:.1f} s; {self.watch.so_far()}")
        going.join()
        # The node is back: three windows more.
        streams = client.streams
        while client.streams < streams + 3:
            time.sleep(1)
        stop.set()
        following.join()
        say(f"followed for {time.monotonic() - began:.0f} s while the node was away {self.given.outages} times (silent, refusing, a byte a second)",
            f"{client.streams} streams, {client.failed} ended with an error, {len(client.live)} new rows, none twice; {self.watch.so_far()}")
        self.followed = client

    # --- old cursors

    def kept(self):
        cursors = self.first.cursors
        return [cursors[len(cursors) * at // KEPT_CURSORS] for at in range(KEPT_CURSORS)]

    def old_cursors(self, server, what):
        """Pages at each kept cursor, and everything from the second one on."""
        for at, cursor in self.kept():
            status, body = ask(server.port, f"{self.path}&limit={PAGE_ROWS}&cursor={cursor}", self.key)
            rows = [digest(row) for row in json.loads(body)["trades"]] if status == 200 else []
            self.check(same(rows, self.first.rows[at : at + PAGE_ROWS]), f"{what}: the page at row {at} differs ({status})")
        at, cursor = self.kept()[1]
        began = time.monotonic()
        client = Client(server, self.path, self.key, cursor).finish()
        self.check(same(client.rows, self.first.rows[at:]), f"{what}: the rows below {at} differ")
        say(f"cursors of the load {what}", f"{KEPT_CURSORS} pages and {len(client.rows):,} rows in {time.monotonic() - began:.0f} s, the same")

    def restore(self):
        (self.folder / "restored").mkdir()
        os.rename(self.folder / "copy", self.folder / "restored" / "data")
        restored = self.served("restored", "2h", self.node)
        self.old_cursors(restored, "on the restored backup")
        client = Client(restored, self.path, self.key).finish()
        self.holds(client.rows, "the restored backup")
        restored.end(signal.SIGTERM)
        size = (restored.folder / "data" / "trades.redb").stat().st_size
        _, took = restored.run("compact", "--data-dir", "data")
        now = (restored.folder / "data" / "trades.redb").stat().st_size
        say("`compact` of the restored backup", f"{took:.1f} s, {size >> 20} to {now >> 20} MiB")
        restored.start()
        self.old_cursors(restored, "on the compacted backup")
        restored.end(signal.SIGTERM)

    # --- the truth

    def learn(self):
        """The rows as the demo serves them: no relay, no kill, no other client."""
        began = time.monotonic()
        self.truth = []
        client = Client(self.demo, self.path, self.demo_key).finish()
        self.truth = client.rows
        say("the same wallet as the demo itself serves it", f"{len(self.truth):,} rows in {time.monotonic() - began:.0f} s")

    def holds(self, rows, what):
        """Rows of a walk against the truth, which ends at the same first trade and may have begun later or earlier."""
        length = min(len(rows), len(self.truth))
        newer = len(rows) - length
        self.check(len({row[:8] for row in rows}) == len(rows), f"{what}: a row twice")
        self.check(same(rows[newer:], self.truth[len(self.truth) - length :]), f"{what}: rows differ from the demo's")

    def compare(self):
        final = Client(self.server, self.path, self.key).finish()
        self.learn()
        self.holds(final.rows, "the last walk")
        self.holds(self.first.rows, "the walk of the load")
        # Live rows stand above those that the follower began with, oldest first.
        live, known = self.followed.live[::-1], final.rows
        at = next((at for at, row in enumerate(known) if live and row[:8] == live[0][:8]), 0)
        self.check(live and same(known[at : at + len(live)], live), "the rows that were followed differ")
        usage = json.loads(ask(self.server.port, "/v1/usage", self.key)[1])
        say("rows without a value: during the load, at the end, at the demo's",
            f"{unknown(self.first.rows):,}, {unknown(final.rows):,}, {unknown(self.truth):,}")
        say("usage of the key", json.dumps(usage)[:200])
        say("each row of the load, of the follower, of the backup and of a last walk", f"{len(final.rows):,} rows, each once and in order")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--large", type=int, default=800_000)
    parser.add_argument("--outages", type=int, default=12)
    parser.add_argument("--drips", type=int, default=20)
    given = parser.parse_args()
    given.program = os.path.abspath(given.program)
    with tempfile.TemporaryDirectory(prefix="blotter-million-") as folder:
        trial = Trial(given, pathlib.Path(folder))
        try:
            trial.load()
            trial.old_cursors(trial.server, "on the running server")
            trial.follow()
            trial.old_cursors(trial.server, "after `admin compact`")
            trial.compare()
            trial.restore()
        finally:
            trial.watch.on = False
            for one in (trial.server, trial.demo):
                one.child.kill()
    sys.exit("\n".join(trial.wrong) or 0)


if __name__ == "__main__":
    main()
