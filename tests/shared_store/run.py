#!/usr/bin/env python3
"""Several processes on one database: `run.py BLOTTER SERVER`, where SERVER is the address of a PostgreSQL
server on which databases may be created (tests/shared_store/postgres starts one).

Three demos with one seed show the same chains. One loads a wallet and is killed while it does; the others
go on, without a row lost, twice or wrong; usage of one key over all of them is what was delivered, and
stops at the quota."""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

LARGE = 30_000
PAUSE_MAX = 15.0


class Process:
    def __init__(self, blotter, url, folder, name, data=None):
        self.log = open(os.path.join(folder, name + ".log"), "w+")
        environment = dict(os.environ)
        if url:
            environment["BLOTTER_STORAGE_URL"] = url
        arguments = [blotter, "demo", "--seed", "7", "--large", str(LARGE), "--listen", "127.0.0.1:0"]
        arguments += ["--data-dir", data] if data else []
        self.child = subprocess.Popen(
            arguments, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        line = self.child.stdout.readline()
        self.url = line.split()[-1]
        assert self.url.startswith("http://"), (line, self.said())

    def said(self):
        self.log.flush()
        with open(self.log.name) as text:
            return text.read()

    def key(self):
        return re.search(r"key +(blt_\S+)", self.said()).group(1)

    def wallets(self):
        found = re.findall(r"^(\w+) +(\S+) \((\w+), (\d+) swaps\)", self.said(), re.M)
        return [(name, address, chain, int(count)) for name, address, chain, count in found]

    def get(self, path, key=None, timeout=90):
        request = urllib.request.Request(self.url + path)
        if key:
            request.add_header("Authorization", "Bearer " + key)
        return urllib.request.urlopen(request, timeout=timeout)

    def json(self, path, key=None):
        with self.get(path, key) as answer:
            return json.load(answer)

    def metric(self, name):
        with self.get("/metrics") as answer:
            text = answer.read().decode()
        found = re.findall(rf"^{name}(?:_total)?(?:{{.*}})? (\d+)$", text, re.M)
        return sum(map(int, found)) if found else None

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()

    def stop(self):
        if self.child.poll() is None:
            self.child.terminate()
            self.child.wait(30)


def identity(row):
    return json.dumps(row, sort_keys=True)


def stream(process, key, address, chain, rows, until=None):
    """Reads to the end, over cursors; returns the last line. `until` stops earlier."""
    cursor, end = None, None
    for _ in range(20):
        path = f"/v1/wallets/{address}/history?chain={chain}" + (f"&cursor={cursor}" if cursor else "")
        with process.get(path, key) as answer:
            for line in answer:
                if not line.strip():
                    continue
                batch = json.loads(line)
                if "trades" in batch and "complete" not in batch:
                    rows.extend(batch["trades"])
                    cursor = batch["cursor"]
                    if until and len(rows) >= until:
                        return batch
                else:
                    end = batch
        if end and end.get("complete"):
            return end
        cursor = (end or {}).get("cursor") or cursor
    return end


def check(condition, *what):
    if not condition:
        raise SystemExit(f"FAILED: {what}")


def truth(blotter, folder):
    """The rows as a process with a file of its own serves them."""
    process = Process(blotter, None, folder, "embedded")
    _, address, chain, _ = next(w for w in process.wallets() if w[0] == "large")
    rows = []
    try:
        stream(process, process.key(), address, chain, rows)
    finally:
        process.stop()
    return [identity(row) for row in rows]


def killed_loader(processes, key, wanted):
    name, address, chain, _ = next(w for w in processes[0].wallets() if w[0] == "large")
    count = len(wanted)
    rows = []
    stream(processes[0], key, address, chain, rows, until=2_000)
    killed = time.monotonic()
    processes[0].kill()
    print(f"killed the loader of {name} after {len(rows)} rows")
    seen, first = [], []

    def watch():
        before = processes[1].metric("blotter_chunks_stored") or 0
        while not first:
            if (processes[1].metric("blotter_chunks_stored") or 0) > before:
                first.append(time.monotonic() - killed)
            time.sleep(0.1)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    end = stream(processes[1], key, address, chain, seen)
    check(end.get("complete") is True, "not complete", end)
    check(end["tradeCount"] == count == len(seen), "rows", end["tradeCount"], count, len(seen))
    check([identity(row) for row in seen] == wanted, "the rows are not those of an embedded store")
    check([identity(r) for r in rows] == [identity(r) for r in seen[: len(rows)]], "rows differ over processes")
    watcher.join(5)
    check(first and first[0] <= PAUSE_MAX, "pause", first)
    print(f"{count} rows whole at the second process, loading went on after {first[0]:.1f} s")
    # The third one serves what it never loaded.
    again, before = [], processes[2].metric("blotter_transactions_decoded") or 0
    end = stream(processes[2], key, address, chain, again)
    check(end.get("complete") is True and [identity(r) for r in again] == [identity(r) for r in seen], "the third")
    check((processes[2].metric("blotter_transactions_decoded") or 0) == before, "heights were read again")
    print("served by the third process without a call for a stored height")
    return address, chain, count


def exact_usage(processes, blotter, url, folder, wallet):
    address, chain, count = wallet
    environment = dict(os.environ, BLOTTER_STORAGE_URL=url)

    def create(*more):
        made = subprocess.run(
            [blotter, "keys", "create", "--json", *more], cwd=folder, env=environment, capture_output=True, check=True
        )
        return json.loads(made.stdout)["key"]

    free, bounded = create(), create("--quota", "5000")
    time.sleep(3)
    handed = [[], []]

    def read(process, out):
        stream(process, free, address, chain, out)

    threads = [threading.Thread(target=read, args=pair) for pair in zip(processes[1:], handed)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    usage = [process.json("/v1/usage", free)["tradesCounted"] for process in processes[1:]]
    check(usage == [count, count] and [len(h) for h in handed] == [count, count], "usage", usage)
    cut = [[], []]

    def read_bounded(process, out):
        try:
            end = stream(process, bounded, address, chain, out)
            check("quota" in json.dumps(end), end)
        except urllib.error.HTTPError as error:
            check("quota" in error.read().decode(), error)

    threads = [threading.Thread(target=read_bounded, args=pair) for pair in zip(processes[1:], cut)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    distinct = {identity(row) for out in cut for row in out}
    used = processes[1].json("/v1/usage", bounded)["tradesCounted"]
    check(used == 5000 == len(distinct), "quota", used, len(distinct))
    print(f"usage over two processes: {count} counted = delivered; quota of 5000 exact")


def copied(blotter, url, folder, count):
    """To a folder and back into a second database, then again: nothing is written twice."""
    there = os.path.join(folder, "copied")
    made = subprocess.run([blotter, "storage", "copy", "--from", url, "--to", there], cwd=folder, capture_output=True, text=True)
    # A folder that is not there yet is made.
    check(made.returncode == 0, made.stdout, made.stderr)
    again = subprocess.run([blotter, "storage", "copy", "--from", url, "--to", there], cwd=folder, capture_output=True, text=True)
    check(again.returncode == 0 and again.stdout.startswith("0 wallets written"), again.stdout, again.stderr)
    print("copied:", made.stdout.strip())
    return there


def kept(blotter, url, folder, process, wallet):
    """What admin and the offline commands say and do on a database."""
    environment = dict(os.environ, BLOTTER_STORAGE_URL=url)

    def run(*arguments):
        return subprocess.run([blotter, *arguments, "--data-dir", folder], cwd=folder, env=environment, capture_output=True, text=True)

    for command, tool in [(["backup", os.path.join(folder, "backup")], "pg_dump"), (["compact"], "VACUUM")]:
        for way in [command, ["admin", *command]]:
            made = run(*way)
            check(made.returncode == 1 and tool in made.stderr, way, made)
    address, chain, count = wallet
    for way, rows in [(["admin", "forget"], count), (["forget"], None)]:
        made = run(*way, address, "--chain", chain)
        wanted = f"with {rows} rows" if rows else "nothing is stored"
        check(made.returncode == 0 and wanted in made.stdout + made.stderr, way, made)
    check(process.metric("blotter_store_processes") is not None, "the process serves on")
    print("admin: backup and compact name the database's tools, forget forgets")


def folder_of_its_own(blotter, url, folder):
    """A process whose data folder is not there yet has its socket and its audit log in it."""
    data = os.path.join(folder, "not", "yet")
    environment = dict(os.environ, BLOTTER_STORAGE_URL=url)

    def run(*arguments, where=data):
        command = [blotter, *arguments, "--data-dir", where]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)

    process = Process(blotter, url, folder, "own", data)
    try:
        made = run("admin", "status")
        check(made.returncode == 0 and data in made.stdout, "no admin socket", made)
        check(os.path.exists(os.path.join(data, "audit.ndjson")), "no audit log of the demo's key")
        elsewhere = os.path.join(folder, "of", "keys")
        made = run("keys", "create", where=elsewhere)
        check(made.returncode == 0, made)
        check(os.path.exists(os.path.join(elsewhere, "audit.ndjson")), "no audit log of keys create")
        # A second process that is given the same folder leaves the socket to the first.
        other = Process(blotter, url, folder, "other", data)
        try:
            check("a data folder of its own" in other.said(), "the second process is silent about the folder")
        finally:
            other.stop()
        made = run("admin", "--json", "status")
        check(made.returncode == 0 and json.loads(made.stdout)["process"] == process.child.pid, "the socket was taken", made)
    finally:
        process.stop()
    print("a data folder that is not there is made; one folder is one process's")


def outdated(blotter, url, folder, process):
    """A newer program migrates, and the tables are no longer what this one understands: it stops, and is not started."""
    sql = (
        "BEGIN; SELECT 1 FROM blotter.schema_version FOR UPDATE; ALTER TABLE blotter.demand ADD COLUMN newer text;"
        "UPDATE blotter.schema_version SET version = version + 1, compatible = version + 1; DELETE FROM blotter.node; COMMIT"
    )
    subprocess.run(["psql", "-q", url, "-c", sql], check=True, stdout=subprocess.DEVNULL)
    until = time.monotonic() + 10

    def is_ready():
        try:
            return process.json("/readyz")["status"] == "ready"
        except urllib.error.HTTPError:
            return False

    while is_ready():
        check(time.monotonic() < until, "the process goes on with tables that it does not understand")
        time.sleep(0.1)
    made = subprocess.run(
        [blotter, "keys", "list", "--data-dir", folder], cwd=folder, capture_output=True, text=True, env=dict(os.environ, BLOTTER_STORAGE_URL=url)
    )
    check(made.returncode != 0 and "use a newer one" in made.stderr, "a newer schema", made)
    print("a newer program's schema that is not compatible: the running process is not ready, and none is started")


def main():
    blotter, server = os.path.abspath(sys.argv[1]), sys.argv[2]
    host = server.rsplit("/", 1)[0]
    database = f"service_{os.getpid()}"
    subprocess.run(["psql", "-q", server, "-c", f"CREATE DATABASE {database}"], check=True)
    subprocess.run(["psql", "-q", server, "-c", f"CREATE DATABASE {database}_copy"], check=True)
    url = f"{host}/{database}"
    with tempfile.TemporaryDirectory() as folder:
        processes = []
        try:
            for name in ["one", "two", "three"]:
                data = os.path.join(folder, "data")
                os.makedirs(data, mode=0o700, exist_ok=True)
                processes.append(Process(blotter, url, folder, name, data if name == "three" else None))
            key = processes[0].key()
            time.sleep(3)
            for process in processes:
                check(process.json("/readyz")["status"] == "ready", process.url)
            wallet = killed_loader(processes, key, truth(blotter, folder))
            exact_usage(processes, blotter, url, folder, wallet)
            print("failed calls:", [process.metric("blotter_store_failed_calls") for process in processes[1:]])
            for process in processes[1:]:
                process.stop()
            there = copied(blotter, url, folder, wallet[2])
            back = f"{host}/{database}_copy"
            made = subprocess.run([blotter, "storage", "copy", "--from", there, "--to", back], cwd=folder, capture_output=True, text=True)
            check(made.returncode == 0, made.stdout, made.stderr)
            print("and back:", made.stdout.strip())
            last = Process(blotter, back, folder, "last", os.path.join(folder, "data"))
            processes.append(last)
            kept(blotter, back, os.path.join(folder, "data"), last, wallet)
            folder_of_its_own(blotter, back, folder)
            outdated(blotter, back, os.path.join(folder, "data"), last)
        except BaseException:
            for process in processes:
                print(process.said()[-3000:], file=sys.stderr)
            raise
        finally:
            for process in processes:
                process.stop()
    print("the shared store held")


if __name__ == "__main__":
    main()
