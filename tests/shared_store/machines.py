"""A real cluster on this machine: three members of etcd, three Patronis and their PostgreSQL servers, each three of
them a machine that can be killed, stopped, woken and started again. Settings: docs/deploy/patroni.yaml."""

import glob
import json
import os
import signal
import socket
import string
import subprocess
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
TEMPLATE = os.path.join(HERE, "..", "..", "docs", "deploy", "patroni.yaml")
PASSWORD = "sesame"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def programs():
    return sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]


def as_owner(arguments):
    """The server refuses to run as root."""
    return ["runuser", "-u", "postgres", "--", *arguments] if os.getuid() == 0 else arguments


def children_of(parents):
    """All processes below some, by the system's table."""
    below, found = {}, set()
    for status in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(status) as text:
                pid, rest = text.read().split(" ", 1)
        except OSError:
            continue
        below.setdefault(int(rest.rsplit(") ", 1)[1].split()[1]), []).append(int(pid))
    left = list(parents)
    while left:
        pid = left.pop()
        if pid not in found:
            found.add(pid)
            left.extend(below.get(pid, []))
    return found


class Machine:
    def __init__(self, cluster, at, ports):
        self.cluster, self.name, self.folder = cluster, f"m{at}", os.path.join(cluster.folder, f"m{at}")
        self.port, self.rest, self.client, self.peer = ports
        self.started = []
        os.mkdir(self.folder)

    def prepare(self):
        with open(TEMPLATE) as text:
            template = string.Template(text.read())
        settings = template.substitute(
            NAME=self.name, HOST="127.0.0.1", PORT=self.port, REST_PORT=self.rest, NETWORK="127.0.0.1/32",
            ETCD=json.dumps([f"127.0.0.1:{m.client}" for m in self.cluster.machines]),
            DATA=os.path.join(self.folder, "data"), PROGRAMS=programs(), WATCHDOG="off",
            SUPERUSER_PASSWORD=PASSWORD, REPLICATION_PASSWORD=PASSWORD, REWIND_PASSWORD=PASSWORD,
        )
        with open(os.path.join(self.folder, "patroni.yaml"), "w") as text:
            text.write(settings)

    def spawn(self, name, arguments):
        log = open(os.path.join(self.folder, name + ".log"), "a")
        child = subprocess.Popen(
            as_owner(arguments), stdout=log, stderr=log, cwd=self.folder, start_new_session=True,
            env=dict(os.environ, PATH=programs() + ":" + os.environ["PATH"], PGPASSFILE=os.path.join(self.folder, "pass")),
        )
        self.started.append(child)

    def start(self, state="new"):
        members = ",".join(f"{m.name}=http://127.0.0.1:{m.peer}" for m in self.cluster.machines)
        client, peer = f"http://127.0.0.1:{self.client}", f"http://127.0.0.1:{self.peer}"
        self.spawn("etcd", [
            "etcd", "--name", self.name, "--data-dir", os.path.join(self.folder, "etcd"), "--initial-cluster", members,
            "--initial-cluster-state", state, "--listen-client-urls", client, "--advertise-client-urls", client,
            "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--log-level", "warn",
            "--unsafe-no-fsync", "--heartbeat-interval", "100", "--election-timeout", "1000",
        ])
        self.spawn("patroni", ["patroni", os.path.join(self.folder, "patroni.yaml")])

    def processes(self):
        """etcd, Patroni, the server and all its children."""
        roots = [child.pid for child in self.started if child.poll() is None]
        try:
            with open(os.path.join(self.folder, "data", "postmaster.pid")) as text:
                roots.append(int(text.readline()))
        except (OSError, ValueError):
            pass
        return [pid for pid in children_of(roots) if os.path.exists(f"/proc/{pid}")]

    def signal(self, number):
        for _ in range(3):
            for pid in self.processes():
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    pass
            if number != signal.SIGKILL:
                return
            time.sleep(0.05)

    def kill(self):
        self.signal(signal.SIGKILL)
        for child in self.started:
            child.wait()
        self.started = []

    def stop(self):
        self.signal(signal.SIGSTOP)

    def wake(self):
        self.signal(signal.SIGCONT)

    def role(self):
        """As Patroni reports it; `None` while it does not."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.rest}/patroni", timeout=1) as answer:
                report = json.load(answer)
        except urllib.error.HTTPError as error:
            report = json.load(error)
        except (OSError, ValueError):
            return None
        return report.get("role") if report.get("state") == "running" else None

    def is_synchronous(self):
        try:
            return urllib.request.urlopen(f"http://127.0.0.1:{self.rest}/synchronous", timeout=1).status == 200
        except OSError:
            return False

    def sql(self, text, database="postgres"):
        made = subprocess.run(
            ["psql", "-qAt", "-v", "ON_ERROR_STOP=1", f"postgres://postgres:{PASSWORD}@127.0.0.1:{self.port}/{database}", "-c", text],
            capture_output=True, text=True, timeout=20, env=dict(os.environ, PGCONNECT_TIMEOUT="3"),
        )
        if made.returncode != 0:
            raise RuntimeError(made.stderr)
        return made.stdout.strip()


class Cluster:
    def __init__(self, folder, count=3):
        self.folder = folder
        os.chmod(folder, 0o755)
        ports = free_ports(4 * count)
        self.machines = []
        for at in range(count):
            self.machines.append(Machine(self, at, ports[4 * at : 4 * at + 4]))
        for machine in self.machines:
            machine.prepare()
        if os.getuid() == 0:
            subprocess.run(["chown", "-R", "postgres", folder], check=True)

    def start(self, wait=60):
        for machine in self.machines:
            machine.start()
        self.wait(lambda: self.whole(), wait, "three running members, one of them synchronous")

    def wait(self, condition, seconds, what):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if condition():
                return
            time.sleep(0.2)
        raise SystemExit(f"FAILED: no {what} after {seconds} s; logs in {self.folder}")

    def whole(self):
        roles = [machine.role() for machine in self.machines]
        return roles.count("master") == 1 and None not in roles and any(m.is_synchronous() for m in self.machines)

    def primary(self, but=None):
        """The machine that Patroni calls the primary, waiting for one."""
        found = []

        def look():
            found[:] = [m for m in self.machines if m is not but and m.role() == "master"]
            return len(found) == 1

        self.wait(look, 40, "primary")
        return found[0]

    def url(self, database, ports=None):
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports or [m.port for m in self.machines])
        return f"postgres://postgres:{PASSWORD}@{hosts}/{database}"

    def stop(self):
        for machine in self.machines:
            machine.wake()
            machine.kill()
