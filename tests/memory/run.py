#!/usr/bin/env python3
"""Measures the memory of a server under many idle streams, and under one large wallet.

    python3 tests/memory/run.py PROGRAM [--streams N] [--large N] [--cache SIZE]

PROGRAM is a release build. Each part has a server of its own before the built-in demo chain, whose
node is in another process. Idle streams: each has got a wallet's whole history and follows what is
new. Large wallet: one of N trades, loaded and streamed to its end, then streamed again from the store.
Prints resident kilobytes from /proc; fails where a stream was refused or a history not complete.
"""
import argparse, asyncio, contextlib, json, os, pathlib, re, resource, subprocess, sys, tempfile, time, urllib.error, urllib.request

ADDRESSES = 50
"""Clients' addresses, as many as keep each below the server's limit of connections from one."""
SETTLE_SECONDS = 20
SMALL = "7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU"
"""An address that the demo's chain gives a history of its own."""


def memory(pid, name):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+) kB", text)[1])


@contextlib.contextmanager
def running(program, args, config=""):
    """A process of its own in a folder of its own, as (process, its port, the folder)."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "blotter.toml").write_text(config)
        with open(folder / "out", "w") as out, open(folder / "err", "w") as err:
            child = subprocess.Popen([program, *args, "--listen", "127.0.0.1:0"], cwd=folder, stdout=out, stderr=err,
                                     env={"BLOTTER_LOG": "warn"})
        try:
            while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", (folder / "out").read_text())):
                if child.poll() is not None:
                    sys.exit((folder / "err").read_text())
                time.sleep(0.1)
            yield child, int(found[1]), folder
        finally:
            child.kill()
            child.wait()


@contextlib.contextmanager
def served(program, config, demo_args=()):
    """A server before a demo chain, as (process, its port, the folder, a key, what the demo said)."""
    with running(program, ["demo", "--node", "127.0.0.1:0", *demo_args]) as (_, _, demo):
        said = (demo / "err").read_text()
        node = re.search(r"node:\s+(\S+/sol)\s", said)[1]
        config = f'[server]\nstream_window = "2h"\n{config}[chains.sol]\nrpc = ["{node}"]\n'
        with running(program, ["serve"], config) as (child, port, folder):
            made = subprocess.run([program, "keys", "create", "--json", "--streams", "1000000", "--data-dir", "blotter-data"],
                                  cwd=folder, capture_output=True, text=True, check=True)
            key = json.loads(made.stdout)["key"]
            for _ in range(100):
                if get(port, "/v1/usage", key, 401)[0] == 200:
                    break
                time.sleep(0.1)
            yield child, port, folder, key, said


def get(port, path, key, *expected):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"x-api-key": key})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        if error.code in expected:
            return error.code, b""
        raise


async def follow(port, path, key, address, loaded):
    """A stream that is read to the end of the stored history, and left open."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20, local_addr=(address, 0))
    writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\n\r\n".encode())
    if b" 200 " not in await reader.readline():
        return None
    rows = 0
    while rows < loaded:
        line = await reader.readline()
        if not line:
            return None
        rows += line.count(b'"signature"')
    return reader, writer


async def idle(program, count):
    config = f"connections = {2 * count + 100}\n"
    with served(program, config) as (child, port, _, key, _):
        path = f"/v1/wallets/{SMALL}/history"
        rows = get(port, path, key)[1].count(b'"signature"')
        before, held = memory(child.pid, "VmRSS"), []
        for at in range(0, count, 100):
            some = (follow(port, f"{path}?follow=1", key, f"127.0.0.{2 + one % ADDRESSES}", rows)
                    for one in range(at, min(at + 100, count)))
            held += [one for one in await asyncio.gather(*some) if one]
        await asyncio.sleep(SETTLE_SECONDS)
        now, began = memory(child.pid, "VmRSS"), time.perf_counter()
        get(port, f"{path}?limit=1", key)
        page = (time.perf_counter() - began) * 1e3
        cut = sum(reader.at_eof() for reader, _ in held)
        print(f"{len(held) - cut} of {count} streams open, each behind {rows} rows: {before} kB before, {now} kB with them, "
              f"peak {memory(child.pid, 'VmHWM')} kB, {(now - before) / max(len(held), 1):.1f} kB a stream; "
              f"a page of one beside them in {page:.0f} ms")
        for _, writer in held:
            writer.transport.abort()
        return len(held) - cut == count


def large(program, trades, cache):
    config = f'[storage]\ncache = "{cache}"\n' if cache else ""
    with served(program, config, ("--large", str(trades))) as (child, port, folder, key, said):
        wallet = re.search(r"^large\s+(\S+)", said, re.M)[1]
        good = True
        for what in ("loaded and streamed", "streamed again from the store"):
            pathlib.Path(f"/proc/{child.pid}/clear_refs").write_text("5")
            before, began, rows, last = memory(child.pid, "VmRSS"), time.time(), 0, ""
            curl = subprocess.Popen(["curl", "-sN", "-H", f"x-api-key: {key}", f"http://127.0.0.1:{port}/v1/wallets/{wallet}/history"],
                                    stdout=subprocess.PIPE, text=True)
            for line in curl.stdout:
                if line.strip():
                    rows, last = rows + line.count('"signature"'), line
            store = (folder / "blotter-data" / "trades.redb").stat().st_size
            print(f"{trades} trades, {rows} rows {what} in {time.time() - began:.0f} s: {before} kB before, "
                  f"peak {memory(child.pid, 'VmHWM')} kB, store {store >> 20} MiB; last line {last.strip()[:200]}", flush=True)
            good &= '"complete":true' in last
        return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--large", type=int, default=1_000_000)
    parser.add_argument("--cache", help="storage.cache of the server before the large wallet, such as 1MiB")
    given = parser.parse_args()
    program = os.path.abspath(given.program)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    good = asyncio.run(idle(program, given.streams)) if given.streams else True
    if given.large:
        good &= large(program, given.large, given.cache)
    sys.exit(not good)


if __name__ == "__main__":
    main()
