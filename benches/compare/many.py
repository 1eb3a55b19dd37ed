"""Many wallets at once, and the start of the program, over a folder of ten million trades."""
import os
import random
import re
import subprocess
import threading
import time
import multiprocessing

from kit import Failed, Paced, ask, base58, free_port, get, history, load, median, note, percentile, random_wallet, read_together, reset_peak, status_of

# What `fill` makes: so many wallets of the same size.
WALLETS = 1_000
TOGETHER = 200
LOADING = 50
PAGES_A_SECOND = 500
PAGE = 100


class Filled:
    """A folder with many wallets, filled by the program `fill` and served by the real binary."""

    def __init__(self, bench):
        self.bench = bench
        self.wallets = WALLETS
        self.each = max(1, bench.args.scale // WALLETS)
        self.rows = self.wallets * self.each
        self._folder = None

    @property
    def folder(self):
        if self._folder is None:
            folder = self.bench.keep / f"filled-{self.rows}"
            note(f"filling a folder with {self.rows:,} trades")
            note(self.bench.run([self.bench.args.fill, folder, self.wallets, self.each]).strip())
            self._folder = folder
        return self._folder

    def together(self, report):
        """Streams of different stored wallets, all at once, against the same streams one after the other."""
        server = self.bench.serve(self.folder)
        count = TOGETHER // 10 if self.bench.args.short else TOGETHER
        paths = []
        for number in range(self.wallets):
            path = history(base58(number.to_bytes(8, "big") + bytes([3]) * 24))
            if ask(server.port, path + "?limit=1", server.key)[0] == 200:
                paths.append(path)
            if len(paths) == count:
                break
        if len(paths) < count:
            raise Failed(f"only {len(paths)} of {count} wallets are served")
        note(f"{count} streams of {self.each:,} rows")
        whole, apart, ends, firsts = [], [], [], []
        for turn in range(4):
            began = time.perf_counter()
            for path in paths:
                get(server.port, path, server.key)
            one_by_one = time.perf_counter() - began
            reset_peak(server.pid)
            base = status_of(server.pid, "VmRSS")
            told = read_together(server.port, server.key, paths)
            if not all(good for *_, good in told):
                raise Failed(f"{sum(not good for *_, good in told)} of {count} streams were not complete")
            if turn == 0:
                continue
            whole.append(max(end for end, *_ in told))
            apart.append(one_by_one)
            ends += [end for end, *_ in told]
            firsts += [first for _, first, *_ in told]
        rows = count * self.each
        report.row(f"{count} streams of {self.each:,} rows together, against one after the other", f"{rows / median(whole) / 1e6:.2f} M rows/s",
                   f"{rows / median(apart) / 1e6:.2f} M rows/s", median(apart) / median(whole), None)
        report.value("the same: first byte p50, p99", f"{percentile(firsts, 0.5) * 1e3:.1f}, {percentile(firsts, 0.99) * 1e3:.1f} ms")
        report.value("the same: end p50, p99", f"{percentile(ends, 0.5) * 1e3:.0f}, {percentile(ends, 0.99) * 1e3:.0f} ms")
        peak = status_of(server.pid, "VmHWM")
        report.value("the same: memory before, at most", f"{base / 1024:.0f}, {peak / 1024:.0f} MiB")
        self.bench.stop(server.child)

    def start(self, report):
        """From the start of the process to its first answer, after an orderly stop and after kill -9 in the middle of writing."""
        folder = self.folder
        turns = 1 if self.bench.args.short else 3
        calm = [self.first_answer(folder) for _ in range(turns + 2)]
        report.row(f"start on {self.rows:,} trades after an orderly stop", f"{median(calm):.1f} ms", "", median(calm), "<= 50", "ms")
        times, lost, acknowledged = [], 0, 0
        chance = random.Random(11)
        for _ in range(turns):
            before = self.count(folder)
            acked = self.kill_while_writing(folder, chance)
            times.append(self.first_answer(folder))
            stored = self.count(folder) - before
            acknowledged += acked
            lost += max(0, acked - stored)
        report.row("the same after kill -9 while it was written to", f"{median(times):.1f} ms", "", max(times), "<= 50", "ms")
        report.check("acknowledged trades that were lost by it", f"{lost} of {acknowledged:,}", lost == 0 and acknowledged > 0)

    def count(self, folder):
        told = self.bench.run([self.bench.args.fill, folder, 0, 1])
        return int(told.split()[0])

    def kill_while_writing(self, folder, chance):
        """Rows that were acknowledged to the program before it was killed."""
        child = subprocess.Popen([self.bench.args.fill, folder, str(self.wallets), str(self.each), "--forever"], stdout=subprocess.PIPE, text=True)
        self.bench.children.append(child)
        acked, begun = [0], threading.Event()

        def read():
            for line in child.stdout:
                if found := re.match(r"kept (\d+)\n", line):
                    acked[0] = int(found[1])
                    begun.set()

        reader = threading.Thread(target=read)
        reader.start()
        good = begun.wait(120)
        time.sleep(chance.uniform(0.2, 1.0))
        self.bench.stop(child, kill=True)
        reader.join()
        if not good:
            raise Failed("nothing was written before the kill")
        return acked[0]

    def first_answer(self, folder):
        bench, port = self.bench, free_port()
        config = bench.config("start", '[chains.sol]\nrpc = ["http://127.0.0.1:9"]\n')
        began = time.perf_counter()
        child = subprocess.Popen([str(bench.args.binary), "serve", "--listen", f"127.0.0.1:{port}", "--data-dir", str(folder), "--config", str(config)],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        bench.children.append(child)
        while child.poll() is None and time.perf_counter() - began < 120:
            try:
                get(port, "/healthz")
                break
            except OSError:
                time.sleep(0.0005)
        took = (time.perf_counter() - began) * 1e3
        if child.poll() is not None:
            raise Failed("the server ended")
        bench.stop(child)
        return took


def size(bench, report):
    """The binary that is measured."""
    binary = bench.args.binary
    mb = os.path.getsize(binary) / 1e6
    report.row(f"binary, {binary.parent.name} build", f"{mb:.1f} MB", "", mb, "<= 15", "MB")


def loading(serving, report):
    """Wallets that are being loaded next to a steady rate of pages of a stored one."""
    bench = serving.bench
    serving.stored
    server = serving.apart()
    seconds = 4 if bench.args.short else 15
    chance = random.Random(5)
    paths = [f"{serving.path}?limit={PAGE}&cursor={cursor}" for cursor in chance.sample(serving.cursors, min(400, len(serving.cursors)))]
    rate, loads = (PAGES_A_SECOND // 10, LOADING // 10) if bench.args.short else (PAGES_A_SECOND, LOADING)
    note(f"{rate} pages a second, alone")
    alone = Paced(server.port, server.key, paths, rate, seconds).run()
    note("the same next to wallets that are loaded")
    reset_peak(server.pid)
    loaders = Loaders(server, loads, random.Random(time.time_ns()))
    loaders.wait_begun()
    busy = Paced(server.port, server.key, paths, rate, seconds).run()
    rows, wallets, took = loaders.stop()
    # 500 a second were asked for: a slower rate means that a client waited.
    reached = len(busy.times) / busy.took
    p99 = [percentile(run.times, 0.99) * 1e3 for run in (busy, alone)]
    p50 = [percentile(run.times, 0.5) * 1e3 for run in (busy, alone)]
    report.row(f"{rate} pages of {PAGE} a second next to {loads} loading wallets: p99, against the same alone", f"{reached:.0f}/s, p50 {p50[0]:.2f}, p99 {p99[0]:.2f} ms",
               f"p50 {p50[1]:.2f}, p99 {p99[1]:.2f} ms", p99[0] / p99[1], None)
    report.check("the same: pages that came, wallets that were loaded meanwhile", f"{len(alone.times) + len(busy.times):,} of {2 * rate * seconds:,}, {wallets} wallets",
                 not alone.failed and not busy.failed and wallets > 0)
    report.value("the same: loaded meanwhile", f"{rows / took:,.0f} rows/s")
    report.value("the same: memory at most", f"{status_of(server.pid, 'VmHWM') / 1024:.0f} MiB")
    bench.stop(server.child)


class Loaders:
    """A process that keeps so many wallets loading, each a new one of the demo chain."""

    def __init__(self, server, count, chance):
        self.rows, self.wallets = multiprocessing.Value("q", 0), multiprocessing.Value("q", 0)
        self.ending = multiprocessing.Event()
        self.began = time.monotonic()
        seeds = [chance.getrandbits(64) for _ in range(count)]
        self.process = multiprocessing.Process(target=self.work, args=(server, seeds), daemon=True)
        self.process.start()

    def work(self, server, seeds):
        def one(seed):
            chance = random.Random(seed)
            while not self.ending.is_set():
                rows = load(server, random_wallet(chance))
                with self.rows.get_lock():
                    self.rows.value += rows
                    self.wallets.value += 1

        threads = [threading.Thread(target=one, args=(seed,)) for seed in seeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def wait_begun(self):
        end = time.monotonic() + 60
        while self.wallets.value == 0 and time.monotonic() < end:
            time.sleep(0.05)

    def stop(self):
        told = self.rows.value, self.wallets.value, time.monotonic() - self.began
        self.ending.set()
        self.process.join(60)
        if self.process.is_alive():
            self.process.terminate()
        return told
