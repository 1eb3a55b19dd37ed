#!/usr/bin/env python3
"""The examples for Caddy and nginx in docs/deploy, run in front of the demo: `python3 -B tests/release/proxies.py PROGRAM`.

Of each example only addresses and the certificate are changed. Held: a stream comes line by line and to its end, a page
is the same as without the proxy, /metrics stays inside, the clients' addresses arrive and cannot be made up, another host's name is
refused. SKIPPED where a proxy is not installed.
"""
import contextlib, json, os, pathlib, re, shutil, socket, ssl, subprocess, sys, tempfile, time

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "docs/deploy"
HOST = "trades.example"
SETTINGS = f'[server]\ntrusted_proxies = "127.0.0.1"\nallowed_hosts = "{HOST}"\n[log]\naccess = "access.ndjson"\n'
PATIENCE = 30


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


@contextlib.contextmanager
def process(*args, **more):
    child = subprocess.Popen(args, **more)
    try:
        yield child
    finally:
        child.terminate()
        child.wait()


class Door:
    """A TLS door of a proxy, at a port of this machine, asked by the host's name."""

    def __init__(self, port):
        self.port, self.context = port, ssl.create_default_context()
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE

    def wait(self, child):
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends and child.poll() is None:
            with contextlib.suppress(OSError):
                return self.ask("/healthz")
            time.sleep(0.1)
        sys.exit(f"port {self.port} is not answered")

    def ask(self, path, key="", host=HOST, **more):
        """Status, body, and when its first and last bytes came."""
        headers = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in {"x_api_key": key, **more}.items())
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as plain:
            with self.context.wrap_socket(plain, server_hostname=HOST) as door:
                began, times, answer = time.monotonic(), [], b""
                door.sendall(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\r\n".encode())
                with contextlib.suppress(ssl.SSLEOFError):
                    while piece := door.recv(1 << 16):
                        times.append(time.monotonic() - began)
                        answer += piece
        head, _, body = answer.partition(b"\r\n\r\n")
        if b"chunked" in head.lower():
            body = unchunked(body)
        return int(head.split()[1]), body.decode(), times


def unchunked(body):
    whole = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        whole, body = whole + body[: int(size, 16)], body[int(size, 16) + 2 :]
    return whole


def certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={HOST}", "-keyout", folder / "key.pem",
                    "-out", folder / "cert.pem", "-addext", f"subjectAltName=DNS:{HOST}"], check=True, capture_output=True)


def caddy(folder, port, upstream):
    text = (DEPLOY / "Caddyfile").read_text()
    text = text.replace(f"{HOST} {{", f"{HOST}:{port} {{\n\ttls {folder}/cert.pem {folder}/key.pem", 1).replace("127.0.0.1:8080", upstream)
    (folder / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https off\n}\n" + text)
    subprocess.run(["caddy", "validate", "--adapter", "caddyfile", "--config", folder / "Caddyfile"], check=True, capture_output=True)
    return ["caddy", "run", "--adapter", "caddyfile", "--config", str(folder / "Caddyfile")]


def nginx(folder, port, upstream):
    text = (DEPLOY / "nginx.conf").read_text()
    text = text.replace("listen 443", f"listen 127.0.0.1:{port}").replace("127.0.0.1:8080", upstream)
    text = re.sub(r"/etc/ssl/\S+\.pem", f"{folder}/cert.pem", text)
    text = re.sub(r"/etc/ssl/private/\S+\.key", f"{folder}/key.pem", text)
    temporary = "".join(f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
                                       f"http {{ access_log off; {temporary}\n{text}\n}}\n")
    return ["nginx", "-p", str(folder), "-e", str(folder / "error.log"), "-c", str(folder / "nginx.conf")]


def hold(name, door, direct, folder, key, wallet):
    path = f"/v1/wallets/{wallet}/history?chain=sol"
    status, body, times = door.ask(path, key)
    lines = [json.loads(line) for line in body.splitlines() if line.strip()]
    assert status == 200 and lines[-1]["complete"] and len(times) > 3, (status, lines[-1:], times)
    assert door.ask(f"{path}&limit=500", key)[1] == direct.ask(f"{path}&limit=500", key)[1]
    assert door.ask("/metrics/")[0] == 404
    assert door.ask("/metrics")[0] == 404 and direct.ask("/metrics")[0] == 200
    assert door.ask(path, "blt_wrong")[0] == 401
    follows = door.ask(f"{path}&follow=1", key)
    assert follows[2][0] < 2 and follows[2][-1] > 4, "a stream is passed on as it comes"
    assert door.ask("/healthz", x_forwarded_for="9.9.9.9")[0] == 200
    assert direct.ask("/healthz", host="evil.example")[0] == 421
    log = [json.loads(line) for line in (folder / "access.ndjson").read_text().splitlines()]
    assert not any("9.9.9.9" in json.dumps(line) for line in log), "an address that a client made up"
    print(f"{name}: a stream of {lines[-1]['tradeCount']} rows in {len(times)} pieces, pages as without it, /metrics inside, made-up addresses dropped")


class Plain(Door):
    """The server itself."""

    def __init__(self, port):
        self.port, self.context = port, self

    def wrap_socket(self, plain, server_hostname):
        return contextlib.nullcontext(plain)


def main():
    program = os.path.abspath(sys.argv[1])
    for name, example in (("caddy", caddy), ("nginx", nginx)):
        if not (shutil.which(name) and shutil.which("openssl")):
            print(f"SKIPPED: {name} is not installed")
            continue
        with tempfile.TemporaryDirectory(prefix="blotter-proxy-") as place:
            folder = pathlib.Path(place)
            certificate(folder)
            (folder / "blotter.toml").write_text(SETTINGS + "")
            env = {**os.environ, "BLOTTER_SERVER_STREAM_WINDOW": "5s", "HOME": str(folder)}
            with open(folder / "err", "w") as err, process(program, "demo", "--listen", "127.0.0.1:0", "--large", "30", cwd=folder, env=env,
                                                            stdout=subprocess.PIPE, stderr=err, text=True) as server:
                upstream = re.search(r"http://(\S+)", server.stdout.readline())[1]
                said = (folder / "err").read_text()
                key, wallet = re.search(r"key\s+(\S+)", said)[1], re.search(r"^wallet\s+(\S+) \(sol", said, re.M)[1]
                port = free_port()
                with process(*example(folder, port, upstream), env=env, stdout=subprocess.DEVNULL, stderr=open(folder / "proxy", "w")) as proxy:
                    door = Door(port)
                    door.wait(proxy)
                    hold(name, door, Plain(int(upstream.split(":")[1])), folder, key, wallet)


if __name__ == "__main__":
    main()
