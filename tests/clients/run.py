"""Tries the clients of examples/ against a server that is killed while they read.

    python3 tests/clients/run.py BINARY

Each client reads a wallet of some thousand trades. The server is killed and started anew, twice,
while it does; every trade must come once, in order, with every digit. Then errors that do not pass.
"""

import http.server
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / "examples/python"
TYPESCRIPT = ROOT / "examples/typescript"
#: Lines after which the server is killed.
KILLS = [500, 4000]
TRADES = 8000


class Server:
    """The demo on one data folder and, from its second start on, one port."""

    def __init__(self, binary, folder):
        self.binary, self.folder, self.address, self.key, self.wallets = binary, folder, "127.0.0.1:0", None, {}
        self.start()

    def start(self):
        self.child = subprocess.Popen(
            [self.binary, "demo", "--listen", self.address, "--data-dir", self.folder, "--large", str(TRADES)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for line in self.child.stdout:
            if found := re.match(r"listening on http://(\S+)", line):
                self.address = found[1]
                return
            if found := re.match(r"key +(\S+)", line):
                self.key = self.key or found[1]
            if found := re.match(r"(\w+) +(\S+) \((\w+),", line):
                self.wallets[found[3], found[1]] = found[2]
        raise SystemExit("the demo does not listen")

    @property
    def url(self):
        return f"http://{self.address}"

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()

    def rows(self, wallet, chain):
        lines, cursor = [], ""
        while True:
            path = f"{self.url}/v1/wallets/{wallet}/history?chain={chain}&limit=5000&numbers=string{cursor}"
            request = urllib.request.Request(path, headers={"Authorization": f"Bearer {self.key}"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                page = json.load(answer)
            for row in page["trades"]:
                names = ["blockTime", "side", "amount", "token", "tokenMint", "amountSol", "dex", "signature"]
                lines.append("\t".join(row[name] or "" for name in names))
            if "cursor" not in page:
                return lines
            cursor = "&cursor=" + page["cursor"]


def python(*arguments):
    return [sys.executable, "-m", "blotter_client", *arguments], PYTHON


def typescript(*arguments):
    return ["node", str(TYPESCRIPT / "dist/stream.js"), *arguments], TYPESCRIPT


def read_through_kills(server, client, chain):
    wallet = server.wallets[chain, "large"]
    command, folder = client(server.url, server.key, wallet, chain)
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    lines, kills = [], list(KILLS)
    for line in child.stdout:
        lines.append(line.rstrip("\n"))
        if kills and len(lines) >= kills[0]:
            kills.pop(0)
            server.kill()
            time.sleep(0.5)
            server.start()
    assert child.wait() == 0, f"{client.__name__} ended with {child.returncode}"
    assert not kills, f"only {len(lines)} lines: the server was not killed twice"
    wanted = server.rows(wallet, chain)
    assert len(wanted) >= TRADES, len(wanted)
    assert lines == wanted, f"{client.__name__}: {len(lines)} lines, {len(wanted)} rows"
    print(f"{client.__name__} {chain}: {len(lines)} rows through {len(KILLS)} kills, each once")


def refuses(server, client, arguments, code):
    command, folder = client(server.url, *arguments)
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 1 and code in ran.stderr and ran.stdout == "", (client.__name__, code, ran)


class Final(http.server.BaseHTTPRequestHandler):
    """Answers each stream with a final line, after which going on is of no use."""

    def do_GET(self):
        error = {"code": "VALIDATION_ERROR", "message": "no wallet", "type": "/errors/validation", "retryable": False}
        line = {"complete": False, "cursor": "c1", "tradeCount": "0", "wallet": "w", "error": error}
        body = (json.dumps({"trades": [], "cursor": "c1"}) + "\n" + json.dumps(line) + "\n").encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Busy(http.server.BaseHTTPRequestHandler):
    """Answers each request that no node answers, and come again at once."""

    def do_GET(self):
        error = {"code": "UPSTREAM_UNAVAILABLE", "message": "no node answers"}
        body = json.dumps({"error": error, "type": "/errors/upstream_unavailable"}).encode()
        self.send_response(503)
        self.send_header("retry-after", "0")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def clients_name_what_does_not_pass():
    with http.server.HTTPServer(("127.0.0.1", 0), Busy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        server.url = f"http://127.0.0.1:{server.server_port}"
        for client in (python, typescript):
            refuses(server, client, ["key", "w"], "503 UPSTREAM_UNAVAILABLE: no node answers")
        server.shutdown()
    print("clients name what did not pass in time")


def shell_ends_where_going_on_is_of_no_use():
    with http.server.HTTPServer(("127.0.0.1", 0), Final) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        ran = subprocess.run(["sh", ROOT / "examples/history.sh", url, "key", "w"], capture_output=True, text=True, timeout=20)
        server.shutdown()
    assert ran.returncode == 1 and "VALIDATION_ERROR" in ran.stderr, ran
    print("history.sh ends at an error that does not pass")


def main():
    shell_ends_where_going_on_is_of_no_use()
    binary = str(pathlib.Path(sys.argv[1]).resolve())
    if not (TYPESCRIPT / "node_modules").is_dir():
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], cwd=TYPESCRIPT, check=True)
    subprocess.run(["npx", "--no-install", "tsc"], cwd=TYPESCRIPT, check=True)
    clients_name_what_does_not_pass()
    # A wallet for each: what is stored comes at once, and would leave no time for kills.
    for client, chain in [(python, "sol"), (typescript, "eth")]:
        with tempfile.TemporaryDirectory(prefix="blotter-clients-") as folder:
            server = Server(binary, folder)
            try:
                read_through_kills(server, client, chain)
                wallet, key = server.wallets["sol", "wallet"], server.key
                refuses(server, client, ["blt_wrong", wallet], "401 INVALID_SESSION")
                refuses(server, client, [key, wallet, "sol", "frm=2025-01-01"], "400 VALIDATION_ERROR")
                refuses(server, client, [key, "hello"], "400 VALIDATION_ERROR")
                # The address of a program: known before the first byte, or in the final line.
                refuses(server, client, [key, "675kPX9MHTjS2zt1qfr1NYHuzeLXfQM9H24wFSUt1Mp8"], "400 VALIDATION_ERROR")
            finally:
                server.kill()
    print("all clients agree")


if __name__ == "__main__":
    main()
