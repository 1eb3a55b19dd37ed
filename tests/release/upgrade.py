#!/usr/bin/env python3
"""An upgrade from an older program, and back: `python3 -B tests/release/upgrade.py OLD NEW [--fixture FOLDER]`.

OLD loads wallets of three families from its own demo chain and writes a backup. NEW opens OLD's folder, serves the same
rows without a node, takes OLD's keys and cursors, and completes the histories by OLD's node. OLD refuses the folder that NEW
has written, or serves the same rows from it, and serves its backup as before. `--fixture` keeps OLD's folder and what it
answered, for tests/it/upgrade.rs.
"""
import argparse, contextlib, json, os, pathlib, re, shutil, subprocess, sys, tempfile, time, urllib.error, urllib.request

CHAINS = ["sol", "eth", "tron"]
TRADES = 40
PATIENCE = 120
PAGES_MAX = 60


class Server:
    def __init__(self, program, folder, *args, config=""):
        self.folder = folder
        folder.mkdir(exist_ok=True)
        (folder / "blotter.toml").write_text(config)
        self.err = open(folder / "err", "w")
        self.child = subprocess.Popen([program, *args, "--listen", "127.0.0.1:0"], cwd=folder, stdout=subprocess.PIPE, stderr=self.err, text=True)
        found = re.search(r"http://\S+", self.child.stdout.readline())
        self.url = found and found[0]

    def said(self):
        return (self.folder / "err").read_text()

    def get(self, path, key):
        request = urllib.request.Request(self.url + path, headers={"x-api-key": key})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            # Every digit, as text.
            return json.load(answer, parse_float=str, parse_int=str)

    def pages(self, wallet, chain, key, limit, cursor=""):
        """Rows and cursors, page by page, to the last one or to where no proof is."""
        rows, cursors = [], []
        for _ in range(PAGES_MAX):
            query = f"&cursor={cursor}" if cursor else ""
            try:
                page = self.get(f"/v1/wallets/{wallet}/history?chain={chain}&limit={limit}{query}", key)
            except urllib.error.HTTPError as error:
                # Without a node a page may be refused; what is stored is asked for again.
                if json.load(error)["error"]["code"] == "HISTORY_UNPROVED":
                    return rows, cursors, False
                continue
            rows += page["trades"]
            if "cursor" not in page:
                return rows, cursors, page["complete"]
            cursor = page["cursor"]
            cursors.append(cursor)
        sys.exit(f"no end after {PAGES_MAX} pages: {len(rows)} rows")

    def stop(self):
        self.child.terminate()
        return self.child.wait()


@contextlib.contextmanager
def running(*args, **more):
    server = Server(*args, **more)
    try:
        yield server
    finally:
        server.child.kill()
        server.child.wait()


def load(old, folder):
    """What OLD answers for a wallet of each chain, and its folder after a stop, with a backup next to it."""
    with running(old, folder, "demo", "--data-dir", "data", "--large", str(TRADES)) as server:
        said = server.said()
        key = re.search(r"key\s+(\S+)", said)[1]
        answers = {"key": key, "wallets": {}}
        for chain in CHAINS:
            wallet = re.search(rf"^large\s+(\S+) \({chain},", said, re.M)[1]
            rows, cursors, complete = server.pages(wallet, chain, key, 20)
            assert complete is True and len(rows) >= TRADES, (chain, len(rows), complete)
            answers["wallets"][chain] = {"wallet": wallet, "rows": rows, "cursor": cursors[0]}
        answers["usage"] = server.get("/v1/usage", key)
        server.stop()
    subprocess.run([old, "backup", "backup", "--data-dir", "data"], cwd=folder, check=True, capture_output=True)
    return answers


def alone():
    """Settings under which nothing can be asked."""
    return '[server]\npage_wait = "2s"\nhead_wait = "200ms"\n' + "".join(f'[chains.{chain}]\nrpc = ["http://127.0.0.1:9/"]\n' for chain in CHAINS)


def holds(server, answers, what):
    for chain, seen in answers["wallets"].items():
        rows, _, _ = server.pages(seen["wallet"], chain, answers["key"], 20)
        assert rows == seen["rows"], f"{what}: {chain}: {len(rows)} rows of {len(seen['rows'])}"
        rows, _, _ = server.pages(seen["wallet"], chain, answers["key"], 20, seen["cursor"])
        assert rows == seen["rows"][20:], f"{what}: {chain}: the rows at the cursor"
    usage = server.get("/v1/usage", answers["key"])
    assert usage["tradesCounted"] == answers["usage"]["tradesCounted"], f"{what}: {usage}"
    print(f"{what}: the same rows, cursors, key and usage on {', '.join(answers['wallets'])}")


def completes(new, folder, answers, node):
    """NEW reads what OLD recorded no proof of again, by a node of OLD."""
    config = "".join(f'[chains.{chain}]\nrpc = ["{url}"]\n' for chain, url in node.items())
    with running(new, folder, "serve", "--data-dir", "data", config=config) as server:
        for chain, seen in answers["wallets"].items():
            if chain not in node:
                continue
            ends = time.monotonic() + PATIENCE
            while True:
                rows, _, complete = server.pages(seen["wallet"], chain, answers["key"], 1000)
                if complete is True or time.monotonic() > ends:
                    break
                time.sleep(1)
            assert complete is True and rows == seen["rows"], f"{chain}: {len(rows)} {complete}"
        server.stop()
    print(f"new program, a node: complete again on {', '.join(node)}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--fixture")
    given = parser.parse_args()
    old, new = os.path.abspath(given.old), os.path.abspath(given.new)
    with tempfile.TemporaryDirectory(prefix="blotter-upgrade-") as place:
        folder = pathlib.Path(place)
        answers = load(old, folder)
        if given.fixture:
            kept = pathlib.Path(given.fixture)
            kept.mkdir(parents=True, exist_ok=True)
            subprocess.run([old, "compact", "--data-dir", "data"], cwd=folder, check=True, capture_output=True)
            for name in ("trades.redb", "keys.toml"):
                shutil.copy(folder / "data" / name, kept / name)
            (kept / "answers.json").write_text(json.dumps(answers) + "\n")
        with running(new, folder, "serve", "--data-dir", "data", config=alone()) as server:
            holds(server, answers, "new program, no node")
            server.stop()
        with running(old, folder / "node", "demo", "--large", str(TRADES), "--node", "127.0.0.1:0") as demo:
            nodes = {chain: re.search(rf"node: (\S+/{chain})\s", demo.said()) for chain in CHAINS}
            completes(new, folder, answers, {chain: found[1] for chain, found in nodes.items() if found})
        with running(old, folder, "serve", "--data-dir", "data", config=alone()) as server:
            if server.url:
                holds(server, answers, "old program on the new folder")
            else:
                print(f"old program on the new folder: refused: {server.said().strip().splitlines()[-1][:200]}")
        shutil.rmtree(folder / "data")
        (folder / "backup").rename(folder / "data")
        with running(old, folder, "serve", "--data-dir", "data", config=alone()) as server:
            holds(server, answers, "old program on its backup")
    print("upgraded, and back")


if __name__ == "__main__":
    main()
