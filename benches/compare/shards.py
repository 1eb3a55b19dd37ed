"""Two whole blotters behind nginx that hashes the wallet: who has which wallet, what passes, what a
death touches, and what the balancer costs."""
import json
import random
import re
import shutil
import socket
import time

from kit import Failed, ask, body, get, history, load, median, note, random_wallet, request

WALLETS = 40


class Shards:
    def __init__(self, bench):
        self.bench = bench
        large = 16_000 if bench.args.short else 80_000
        folders = [bench.scratch / "shard-1", bench.scratch / "shard-2"]
        self.large, self.folders = large, folders
        first = bench.demo(folders[0], large)
        # The same key works on both: they have the same keys file.
        folders[1].mkdir(mode=0o700)
        shutil.copy(folders[0] / "keys.toml", folders[1] / "keys.toml")
        second = bench.demo(folders[1], large)
        self.servers, self.key = [first, second], first.key
        self.port = bench.nginx("shards.conf", FIRST=first.port, SECOND=second.port)

    def ask(self, path):
        """Status, which shard answered, and the body."""
        status, head, text = ask(self.port, path, self.key)
        found = re.search(rb"\r\nshard: 127\.0\.0\.1:(\d+)", head)
        ports = [server.port for server in self.servers]
        return status, ports.index(int(found[1])) if found else None, text

    def stored(self, shard):
        text = body(self.servers[shard].port, "/metrics")
        return int(float(re.search(rb"^blotter_store_wallets (\S+)", text, re.M)[1]))


def shards(bench, report):
    trial = Shards(bench)
    homes = one_each(trial, report)
    unbuffered(trial, report)
    large_home = same_bytes(trial, report)
    cost(trial, report, large_home)
    death(trial, report, homes)


def one_each(trial, report):
    """Each wallet goes to one shard for every kind of request; the other never gets one."""
    note(f"{WALLETS} wallets through the balancer")
    chance = random.Random(2)
    homes, strays = {}, 0
    for wallet in [random_wallet(chance) for _ in range(WALLETS)]:
        path = history(wallet)
        answers = [trial.ask(path), trial.ask(path + "?limit=10"), trial.ask("/api" + path + "?limit=5"), trial.ask(path)]
        shards = {shard for _, shard, _ in answers}
        good = all(status == 200 for status, *_ in answers) and len(shards) == 1 and None not in shards
        strays += not good
        homes[wallet] = answers[0][1]
    counts = [list(homes.values()).count(shard) for shard in (0, 1)]
    stored = [trial.stored(shard) for shard in (0, 1)]
    report.check(f"{WALLETS} wallets, four requests each: on one shard alone", f"{counts[0]} and {counts[1]}, stored {stored[0]} and {stored[1]}",
                 strays == 0 and counts == stored and min(counts) > 0)
    return homes


def unbuffered(trial, report):
    """The first line of a wallet that is still being loaded comes through at once."""
    wallet = trial.servers[0].wallets["large"]
    first, whole, lines = watch(trial.port, history(wallet), trial.key)
    report.check("a loading wallet through the balancer: first line, last line", f"{first * 1e3:.0f} ms, {whole:.1f} s, {lines:,} pieces between", first < whole / 2 and lines > 2)
    for _ in range(60):
        tail = trial.ask(history(wallet))[2][-400:]
        if b'"complete":true' in tail:
            return
    raise Failed("the large wallet does not complete")


def watch(port, path, key):
    """Seconds to the first line with rows and to the end, and in how many pieces it came."""
    with socket.create_connection(("127.0.0.1", port), 600) as s:
        began = time.perf_counter()
        s.sendall(request(path, key))
        first, pieces, text = None, 0, b""
        while part := s.recv(1 << 20):
            pieces += 1
            if first is None:
                text += part
                first = time.perf_counter() - began if b'{"trades":[' in text else None
        return first or float("inf"), time.perf_counter() - began, pieces


def same_bytes(trial, report):
    """Streams and cursors pass unchanged."""
    wallet = trial.servers[0].wallets["large"]
    path = history(wallet)
    _, shard, through = trial.ask(path)
    direct = trial.servers[shard].body(path)
    rows, cursor = 0, None
    while True:
        status, home, text = trial.ask(path + "?limit=1000" + (f"&cursor={cursor}" if cursor else ""))
        if status != 200 or home != shard:
            raise Failed(f"a page answered {status} from shard {home}")
        page = json.loads(text)
        rows += len(page["trades"])
        cursor = page.get("cursor")
        if not cursor:
            break
    count = json.loads(through[through[:-1].rindex(b"\n") + 1:])["tradeCount"]
    report.check("stream through the balancer is the shard's own; pages by cursor give all of it", f"{len(through):,} bytes, {rows:,} rows", through == direct and rows == count)
    return shard


def cost(trial, report, home):
    """The same asked of the shard itself and through the balancer, in turns."""
    server = trial.servers[home]
    path = history(server.wallets["large"])
    direct, through = [], []
    for turn in range(trial.bench.args.rounds + 1):
        one = get(server.port, path, trial.key)
        other = get(trial.port, path, trial.key)
        if turn:
            direct.append(one[0] / one[1])
            through.append(other[0] / other[1])
    ratio = median([t / d for t, d in zip(through, direct)])
    report.row("stream through the balancer, against the shard itself", f"{median(through) / 1e6:.0f} MB/s", f"{median(direct) / 1e6:.0f} MB/s", ratio, None)
    for limit, connections in ((1000, 64), (1, 64)):
        paths = [f"{path}?limit={limit}"]
        for port in (trial.port, server.port):
            trial.bench.wrk(port, paths, connections, trial.key, seconds=1)
        ours = trial.bench.wrk(trial.port, paths, connections, trial.key)
        own = trial.bench.wrk(server.port, paths, connections, trial.key)
        report.row(f"pages of {limit} through the balancer, {connections} connections, against the shard itself", f"{ours[0]:,.0f}/s, p99 {ours[2]:.2f} ms", f"{own[0]:,.0f}/s, p99 {own[2]:.2f} ms", ours[0] / own[0], None)


def death(trial, report, homes):
    """One shard is killed: its wallets fail, the other's do not notice; it comes back with all it had."""
    pages = {wallet: trial.ask(history(wallet) + "?limit=10")[2] for wallet in homes}
    victim, old = 1, trial.servers[1]
    trial.bench.stop(old.child, kill=True)
    began = time.perf_counter()
    answers = {wallet: trial.ask(history(wallet) + "?limit=10") for wallet in homes}
    took = (time.perf_counter() - began) / len(homes) * 1e3
    kept = sum(answers[wallet][0] == 200 and answers[wallet][2] == pages[wallet] for wallet, home in homes.items() if home != victim)
    failed = sum(answers[wallet][0] == 502 for wallet, home in homes.items() if home == victim)
    others = sum(home != victim for home in homes.values())
    report.check("one shard killed: the other's wallets are served, only its own fail", f"{kept} of {others} served, {failed} of {len(homes) - others} fail (502), {took:.1f} ms each",
                 kept == others and failed == len(homes) - others)
    revive(trial, old, victim)
    again = sum(trial.ask(history(wallet) + "?limit=10")[2] == pages[wallet] for wallet in homes)
    report.check("started again on its folder: the same pages", f"{again} of {len(homes)}", again == len(homes))


def revive(trial, old, victim):
    """The shard again at its old port, over its old folder."""
    bench = trial.bench
    command = [bench.args.binary, "demo", "--listen", f"127.0.0.1:{old.port}", "--data-dir", trial.folders[victim],
               "--large", trial.large, "--config", bench.scratch / "demo.toml"]
    bench.spawn(command, ready="http://", name="demo")
