#!/usr/bin/env python3
"""Measures the memory of a server under many idle streams, and under one large wallet.

    python3 tests/memory/run.py PROGRAM [--streams N] [--wallet ADDRESS]

PROGRAM is a release build. Idle streams: a node that accepts and never answers keeps every stream
open with nothing to send. Large wallet: the built-in demo chain, its node in a process of its own,
streamed to the end. Prints resident kilobytes from /proc; fails where a stream was refused.
"""
import argparse, asyncio, json, os, pathlib, re, resource, subprocess, sys, tempfile, time

PER_KEY = 60


def status(pid, name):
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(rf"{name}:\s+(\d+) kB", text)[1])


def start(program, folder, config, args=("serve",)):
    (folder / "blotter.toml").write_text(config)
    out, err = open(folder / "out", "w+"), open(folder / "err", "w+")
    child = subprocess.Popen([program, *args, "--listen", "127.0.0.1:0", "--config", "blotter.toml"],
                             cwd=folder, stdout=out, stderr=err, env={"RUST_LOG": "warn"})
    for _ in range(600):
        found = re.search(r"http://127\.0\.0\.1:(\d+)", (folder / "out").read_text())
        if found:
            return child, int(found[1])
        if child.poll() is not None:
            break
        time.sleep(0.1)
    sys.exit((folder / "err").read_text())


def make_key(program, folder):
    done = subprocess.run([program, "keys", "create", "--json", "--data-dir", "blotter-data"],
                          cwd=folder, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["key"]


async def idle(program, count):
    async def silent(reader, writer):
        try:
            await reader.read()
        except asyncio.CancelledError:
            pass

    node = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = node.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        keys = [make_key(program, folder) for _ in range(-(-count // PER_KEY))]
        config = (f'[server]\nconnections = {2 * count + 100}\nstream_window = "10m"\n'
                  f'[chains.sol]\nrpc = ["http://127.0.0.1:{port}"]\n')
        child, port = start(program, folder, config)
        try:
            before, opened, held = status(child.pid, "VmRSS"), 0, []
            for at in range(count):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
                writer.write((f"GET /v1/wallets/7xKXtg2CW87d97TXJSDpbD5jBkheTqA83TZRuJosgAsU/history HTTP/1.1\r\n"
                              f"host: x\r\nx-api-key: {keys[at // PER_KEY]}\r\n\r\n").encode())
                held.append((reader, writer))
                if at % 100 == 99:
                    for reader, _ in held[-100:]:
                        opened += b" 200 " in await reader.readline()
            await asyncio.sleep(15)
            now, peak = status(child.pid, "VmRSS"), status(child.pid, "VmHWM")
            print(f"{opened} of {count} streams open: {before} kB before, {now} kB with them, peak {peak} kB, "
                  f"{(now - before) / max(opened, 1):.1f} kB a stream")
            return opened == count // 100 * 100
        finally:
            child.kill()
            child.wait()


def large(program, wallet):
    """The demo's node and a server of its own before it."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        demo_place, folder = pathlib.Path(one), pathlib.Path(two)
        demo, _ = start(program, demo_place, "", ("demo", "--node", "127.0.0.1:0"))
        child = None
        try:
            node = re.search(r"node:\s+(\S+/sol)", (demo_place / "err").read_text())[1]
            child, port = start(program, folder, f'[server]\nstream_window = "2h"\n[chains.sol]\nrpc = ["{node}"]\n')
            key = re.search(r"blt_\S+", (folder / "err").read_text())[0]
            before, began = status(child.pid, "VmRSS"), time.time()
            curl = subprocess.Popen(["curl", "-sN", "-H", f"x-api-key: {key}",
                                     f"http://127.0.0.1:{port}/v1/wallets/{wallet}/history"],
                                    stdout=subprocess.PIPE, text=True)
            rows, last = 0, ""
            for line in curl.stdout:
                if line.strip():
                    rows, last = rows + line.count('"signature"'), line
            took = time.time() - began
            store = (folder / "blotter-data" / "trades.redb").stat().st_size
            print(f"{rows} rows in {took:.0f} s: {before} kB before, peak {status(child.pid, 'VmHWM')} kB, "
                  f"store {store >> 20} MiB; last line {last.strip()[:200]}")
            return '"complete":true' in last
        finally:
            for process in (child, demo):
                if process:
                    process.kill()
                    process.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--wallet", help="an address of the demo chain, streamed to its end")
    given = parser.parse_args()
    program = os.path.abspath(given.program)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    good = asyncio.run(idle(program, given.streams)) if given.streams else True
    if given.wallet:
        good &= large(program, given.wallet)
    sys.exit(not good)


if __name__ == "__main__":
    main()
