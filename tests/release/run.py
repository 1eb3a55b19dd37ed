#!/usr/bin/env python3
"""Tries what docs/deploy/release has built: `python3 -B tests/release/run.py FOLDER`, as root.

Each program, also by the Debian package and by the image, runs in an empty root: `demo` serves a stream to its end,
names of nodes are resolved, the version names commit and target. Programs of another processor run under qemu-user
where that is installed; the package is installed under systemd by unit.py, and the image runs in podman with runc. What
cannot be tried here is printed as SKIPPED.
"""
import contextlib, hashlib, io, json, os, pathlib, platform, re, shutil, socket, struct, subprocess, sys, tarfile, tempfile, threading, time, urllib.request

HOST = "node.test"
PATIENCE = 60
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def skip(what):
    print(f"SKIPPED: {what}", flush=True)


def emulator(target):
    """What runs a program of another processor, put into its root; None for ours, False where there is none."""
    processor = target.split("-")[0]
    if processor == platform.machine():
        return None
    return shutil.which(f"qemu-{processor}-static") or False


class Root:
    """An empty root with a program in it, and processes there."""

    def __init__(self, folder, program, emulated=None, user=None):
        self.folder, self.user = pathlib.Path(folder), user
        self.folder.mkdir(parents=True, exist_ok=True)
        if program:
            shutil.copy(program, self.folder / "blotter")
        self.command = ["/blotter"]
        if emulated:
            shutil.copy(emulated, self.folder / "qemu")
            self.command = ["/qemu", "/blotter"]

    def enter(self):
        os.chroot(self.folder)
        os.chdir("/")
        if self.user:
            os.setgroups([])
            os.setgid(self.user)
            os.setuid(self.user)

    def run(self, *args, env=None, good=True):
        ran = subprocess.run([*self.command, *args], capture_output=True, text=True, preexec_fn=self.enter, env=env or {}, timeout=PATIENCE)
        if good and ran.returncode:
            sys.exit(f"{args}: {ran.returncode} {ran.stderr}")
        return ran

    @contextlib.contextmanager
    def serving(self, *args):
        child = subprocess.Popen([*self.command, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                 preexec_fn=self.enter, env={})
        try:
            url = re.search(r"http://\S+", child.stdout.readline())
            if not url:
                sys.exit(f"{args}: {child.stderr.read()}")
            yield child, url[0]
        finally:
            child.terminate()
            child.wait()


def said_by_demo(child):
    text = ""
    for line in child.stderr:
        text += line
        if "curl" in line:
            break
    return re.search(r"key\s+(\S+)", text)[1], re.search(r"wallet\s+(\S+)", text)[1], re.search(r"node: (\S+)", text)[1]


def get(url, key=None):
    headers = {"x-api-key": key} if key else {}
    with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=PATIENCE) as answer:
        return answer.read().decode()


def answer_names(server):
    """A server of names that knows one, as 127.0.0.1; no address of the other kind."""
    while True:
        query, client = server.recvfrom(512)
        name, at = [], 12
        while query[at]:
            name.append(query[at + 1 : at + 1 + query[at]].decode())
            at += query[at] + 1
        question, kind = query[12 : at + 5], struct.unpack(">H", query[at + 1 : at + 3])[0]
        known = ".".join(name) == HOST and kind == 1
        head = query[:2] + struct.pack(">HHHHH", 0x8180, 1, int(known), 0, 0)
        record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 1, 4) + bytes([127, 0, 0, 1]) if known else b""
        server.sendto(head + question + record, client)


def name_server():
    """At the address that is asked where no resolv.conf stands."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind(("127.0.0.1", 53))
    threading.Thread(target=answer_names, args=(server,), daemon=True).start()


def try_root(root, what, version, commit, target):
    shown = root.run("--version").stdout.strip()
    assert shown == f"blotter {version} ({commit}, {target})", shown
    with root.serving("demo", "--listen", "127.0.0.1:0", "--node", "127.0.0.1:0", "--large", "100", "--data-dir", "data") as (child, url):
        key, wallet, node = said_by_demo(child)
        stream = get(f"{url}/v1/wallets/{wallet}/history", key).splitlines()
        last = json.loads(stream[-1])
        assert last["complete"] and last["tradeCount"] > 2500, last
        # The node by a name, which has to be resolved.
        named = node.replace("127.0.0.1", HOST)
        ran = root.run("history", wallet, "--data-dir", "other", "--format", "ndjson", "--quiet", env={"BLOTTER_CHAINS_SOL_RPC": named})
        assert ran.stdout.count('"signature"') == last["tradeCount"], ran.stderr
    print(f"{what}: {shown}; the demo's stream of {last['tradeCount']} rows, and the same by a node's name", flush=True)


def try_image(archive, folder, version, commit):
    """Each image's layer unpacked, its command run as its user, its health check asked."""
    with tarfile.open(archive) as tar:
        read = lambda digest: tar.extractfile("blobs/sha256/" + digest.removeprefix("sha256:")).read()
        index = json.loads(tar.extractfile("index.json").read())
        for member in tar.getmembers():
            if member.name.startswith("blobs/sha256/"):
                assert hashlib.sha256(tar.extractfile(member).read()).hexdigest() == member.name.split("/")[-1], member.name
        for one in json.loads(read(index["manifests"][0]["digest"]))["manifests"]:
            manifest = json.loads(read(one["digest"]))
            config, processor = json.loads(read(manifest["config"]["digest"])), one["platform"]["architecture"]
            place = pathlib.Path(folder) / f"image-{processor}"
            with tarfile.open(fileobj=io.BytesIO(read(manifest["layers"][0]["digest"]))) as layer:
                layer.extractall(place, numeric_owner=True)
            emulated = emulator(next(name for name, debian in ARCHITECTURES.items() if debian == processor) + "-")
            if emulated is False:
                skip(f"image of {processor}: no qemu-user")
                continue
            settings = config["config"]
            root = Root(place, None, emulated, int(settings["User"].split(":")[0]))
            command = [*settings["Cmd"][:-1], "127.0.0.1:0"]
            with root.serving(*command) as (child, url):
                assert get(f"{url}/readyz")
                health = settings["Healthcheck"]["Test"][2:]
                for _ in range(50):
                    ran = root.run(*health, good=False)
                    if ran.returncode == 0:
                        break
                    time.sleep(0.1)
                assert ran.returncode == 0, ran.stderr
            assert root.run(*health, good=False).returncode == 1, "the health check of a stopped server"
            print(f"image {processor}: serves as user {root.user}, health check good while it does", flush=True)


class Podman:
    """Images and containers of its own folder."""

    def __init__(self, folder):
        place = pathlib.Path(folder)
        self.command = ["podman", "--runtime", "runc", "--root", place / "podman", "--runroot", place / "podman-run",
                        "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]
        # The limits that podman sets otherwise are more than a container may have.
        self.limits = ["--ulimit", "nofile=1024:4096", "--ulimit", "nproc=1000:1000"]
        self.env = {**os.environ, "XDG_RUNTIME_DIR": folder}

    def __call__(self, *args, good=True):
        ran = subprocess.run([*self.command, *args], capture_output=True, text=True, env=self.env, timeout=PATIENCE)
        if good and ran.returncode:
            sys.exit(f"podman {args}: {ran.returncode} {ran.stderr}")
        return ran


def until(done, what):
    for _ in range(100):
        if done():
            return
        time.sleep(0.1)
    sys.exit(f"not within ten seconds: {what}")


def try_container(archive, folder, version, commit):
    """The image as podman runs it: nothing but its volume can be written, no capability, no network."""
    if not (shutil.which("podman") and shutil.which("runc")):
        return skip("the image in podman: podman or runc is not installed")
    podman = Podman(folder)
    # By its own name as an OCI layout; a health check is known of images in Docker's form alone.
    loaded = podman("load", "-q", "-i", archive).stdout
    assert f"blotter:{version}" in loaded, loaded
    podman("rmi", "-af")
    podman("pull", "-q", f"docker-archive:{archive}")
    image, confined = f"localhost/blotter:{version}", ["--network", "none", "--read-only", "--cap-drop", "all", *podman.limits]
    assert commit in podman("run", "--rm", *confined, image, "--version").stdout
    podman("run", "-d", "--name", "one", "-v", "data:/data", *confined, image)
    healthy = lambda: podman("healthcheck", "run", "one", good=False).returncode == 0
    until(healthy, "the health check")
    key = re.search(r"blt_\S+", podman("logs", "one").stderr)
    assert key, "the first key is in the log"
    podman("stop", "one")
    assert podman("inspect", "one", "--format", "{{.State.ExitCode}}").stdout.strip() == "0"
    assert not healthy(), "the health check of a stopped container"
    # A second one goes on with the volume: no other key is made.
    podman("run", "-d", "--name", "two", "-v", "data:/data", *confined, image)
    until(lambda: podman("healthcheck", "run", "two", good=False).returncode == 0, "the second one's health check")
    assert "blt_" not in podman("logs", "two").stderr
    podman("stop", "two")
    print("podman: the image runs read-only without capabilities, is healthy while it serves, stops, and keeps its volume", flush=True)


def try_debian(package, folder, version, commit, target):
    place = pathlib.Path(folder) / f"debian-{target}"
    subprocess.run(["dpkg-deb", "-x", package, place], check=True)
    fields = subprocess.run(["dpkg-deb", "-f", package], check=True, capture_output=True, text=True).stdout
    assert f"Version: {version.replace('-', '~')}" in fields, fields
    unit = (place / "usr/lib/systemd/system/blotter.service").read_text()
    assert "ExecStart=/usr/bin/blotter serve --config /etc/blotter/blotter.toml" in unit and "/usr/local" not in unit, unit
    if shutil.which("systemd-analyze"):
        ran = subprocess.run(["systemd-analyze", "verify", "--recursive-errors=no", f"--root={place}", "blotter.service"], capture_output=True, text=True)
        # The root holds the package alone.
        complaints = [line for line in ran.stderr.splitlines() if "/bin/kill is not executable" not in line]
        assert not complaints, complaints
    emulated = emulator(target)
    if emulated is False:
        return skip(f"{package.name}: no qemu-user")
    root = Root(place, place / "usr/bin/blotter", emulated)
    for env in ({}, {"BLOTTER_CONFIG": "/etc/blotter/blotter.toml"}):
        root.run("config", env=env)
    print(f"{package.name}: unpacked, its settings read")


def in_a_network_of_its_own():
    """Runs this script anew where port 53 is free and nothing leads outside."""
    if os.environ.get("ALONE") != "1":
        os.environ["ALONE"] = "1"
        os.execvp("unshare", ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, "-B", *sys.argv])


def main():
    in_a_network_of_its_own()
    files = pathlib.Path(sys.argv[1]).resolve()
    for line in (files / "SHA256SUMS").read_text().splitlines():
        wanted, name = line.split(maxsplit=1)
        assert hashlib.sha256((files / name).read_bytes()).hexdigest() == wanted, name
    bom = json.loads(next(files.glob("*.cdx.json")).read_text())
    version = bom["metadata"]["component"]["version"]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout[:12]
    commit = os.environ.get("RELEASE_COMMIT", commit)
    name_server()
    with tempfile.TemporaryDirectory(prefix="blotter-release-") as folder:
        for archive in sorted(files.glob("*.tar.gz")):
            with tarfile.open(archive) as tar:
                tar.extractall(folder)
            place = pathlib.Path(folder) / archive.name.removesuffix(".tar.gz")
            processor = re.search(r"-(x86_64|aarch64)-linux", archive.name)[1]
            target = f"{processor}-unknown-linux-musl"
            emulated = emulator(target)
            if emulated is False:
                skip(f"{archive.name}: no qemu-user")
            else:
                try_root(Root(place / "root", place / "blotter", emulated), archive.name, version, commit, target)
            for package in files.glob("*_" + ARCHITECTURES[processor] + ".deb"):
                try_debian(package, folder, version, commit, target)
        image = next(files.glob("*-image.tar"))
        try_image(image, folder, version, commit)
        try_container(image, folder, version, commit)
    for package in files.glob(f"*_{ARCHITECTURES.get(platform.machine())}.deb"):
        subprocess.run([sys.executable, "-B", pathlib.Path(__file__).parent / "unit.py", package], check=True)
    print(f"all of {version} was tried")


if __name__ == "__main__":
    main()
