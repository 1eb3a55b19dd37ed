#!/usr/bin/env python3
"""Builds of the program next to each other: `python3 benches/compare-builds.py PROGRAM…`, the first is the measure.

Each serves the demo's large wallet from a folder of its own: it is loaded once, then streamed and read by pages from the store. Seconds
of CPU are those of the server's process, so that other work on the machine changes them little; the least of several turns counts.
"""
import os, pathlib, re, subprocess, sys, tempfile, time, urllib.request

TRADES = 160_000
STREAMS, PAGES, PAGE_ROWS = 8, 300, 1000
SETTLE_SECONDS = 3


def cpu(child):
    fields = pathlib.Path(f"/proc/{child.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def read(url, key):
    """Bytes of an answer, and its end."""
    with urllib.request.urlopen(urllib.request.Request(url, headers={"x-api-key": key})) as answer:
        size, end = 0, b""
        while piece := answer.read(1 << 20):
            size, end = size + len(piece), (end + piece)[-400:]
    return size, end


def load(url, key):
    cursor = ""
    while True:
        size, end = read(url + cursor, key)
        if b'"complete":true' in end:
            return size
        cursor = "?cursor=" + re.search(rb'"cursor":"([^"]+)"', end)[1].decode()


def measured(program):
    with tempfile.TemporaryDirectory(prefix="blotter-builds-") as folder, open(f"{folder}/err", "w+") as err:
        child = subprocess.Popen([program, "demo", "--large", str(TRADES), "--listen", "127.0.0.1:0", "--data-dir", f"{folder}/data"],
                                 cwd=folder, stdout=subprocess.PIPE, stderr=err, text=True)
        try:
            url = re.search(r"http://\S+", child.stdout.readline())[0]
            err.seek(0)
            said = err.read()
            key, wallet = re.search(r"key\s+(\S+)", said)[1], re.search(r"^large\s+(\S+)", said, re.M)[1]
            url = f"{url}/v1/wallets/{wallet}/history"
            load(url, key)
            figures = {"size": os.path.getsize(program), "load": cpu(child)}
            time.sleep(SETTLE_SECONDS)
            streams = []
            for _ in range(STREAMS):
                before = cpu(child)
                began, (size, _) = time.perf_counter(), read(url, key)
                streams.append((cpu(child) - before, size / (time.perf_counter() - began)))
            before = cpu(child)
            for _ in range(PAGES):
                read(f"{url}?limit={PAGE_ROWS}", key)
            figures |= {"stream": sum(one for one, _ in streams) / STREAMS, "rate": max(rate for _, rate in streams), "page": (cpu(child) - before) / PAGES,
                        "peak": int(re.search(r"VmHWM:\s+(\d+)", pathlib.Path(f"/proc/{child.pid}/status").read_text())[1])}
            return figures
        finally:
            child.kill()
            child.wait()


def main():
    print(f"| build | size | load of {TRADES:,} trades, CPU | stream of them, CPU | stream, fastest | page of {PAGE_ROWS} rows, CPU | peak of memory |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for program in sys.argv[1:]:
        one = measured(os.path.abspath(program))
        print(f"| {os.path.basename(program)} | {one['size'] / 1e6:.1f} MB | {one['load']:.1f} s | {one['stream'] * 1e3:.0f} ms | {one['rate'] / 1e6:.0f} MB/s "
              f"| {one['page'] * 1e3:.2f} ms | {one['peak'] >> 10} MB |", flush=True)


if __name__ == "__main__":
    main()
