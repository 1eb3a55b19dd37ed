#!/usr/bin/env python3
"""The systemd unit under systemd: `python3 -B tests/release/unit.py PROGRAM`, or with a Debian package in its place, as root.

Boots this system in a container (systemd-nspawn) with nothing kept and no network, and does there what trial.sh says: a
program with the unit of docs/deploy laid over /usr, or the package, installed by dpkg, installed again while it runs, removed.
SKIPPED where systemd-nspawn is not installed.
"""
import contextlib, os, pathlib, shutil, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
UNIT = HERE.parents[1] / "docs/deploy/blotter.service"
TARGET = """[Unit]
Requires=basic.target trial.service
After=basic.target
AllowIsolate=yes
"""
TRIAL = """[Unit]
Wants=blotter.service
After=blotter.service
[Service]
Type=oneshot
Environment=PROGRAM={program} PACKAGE={package}
ExecStart=/bin/bash /notes/trial.sh
TimeoutStartSec=120
"""
SETTINGS = '[chains.sol]\nrpc = ["http://127.0.0.1:8899/sol"]\n'
PATIENCE = 150


def run(*args):
    subprocess.run(args, check=True)


def put(notes, program, package):
    """What every container gets: the trial and its target."""
    shutil.copy(HERE / "trial.sh", notes)
    (notes / "settings.toml").write_text(SETTINGS)
    (notes / "trial.service").write_text(TRIAL.format(program=program, package=package))
    (notes / "trial.target").write_text(TARGET)


def readable(folder):
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o755 if place.is_dir() or place.parent.name == "bin" else 0o644)


def with_program(folder, notes, program, _stack):
    """The program and the unit laid over /usr, with nothing else of this system but /usr."""
    over, settings = folder / "usr", folder / "settings"
    units = over / "lib/systemd/system"
    for place in (over / "local/bin", units, settings):
        place.mkdir(parents=True)
    shutil.copy(program, over / "local/bin/blotter")
    put(notes, "/usr/local/bin/blotter", "")
    shutil.copy(UNIT, units / "blotter.service")
    shutil.copy(notes / "settings.toml", settings / "blotter.toml")
    for name in ("trial.service", "trial.target"):
        shutil.copy(notes / name, units / name)
    readable(folder)
    return ["--directory=/", "--volatile=yes", f"--overlay-ro=/usr:{over}:/usr", f"--bind={settings}:/etc/blotter"]


def with_package(folder, notes, package, stack):
    """This system, written to in memory alone, with the package next to it."""
    shutil.copy(package, notes / "blotter.deb")
    put(notes, "/usr/bin/blotter", "/notes/blotter.deb")
    readable(folder)
    layers = [folder / name for name in ("memory", "root")]
    for one in layers:
        one.mkdir()
    memory, root = layers
    run("mount", "-t", "tmpfs", "tmpfs", memory)
    stack.callback(run, "umount", memory)
    for name in ("upper", "work"):
        (memory / name).mkdir(mode=0o755)
    run("mount", "-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={memory}/upper,workdir={memory}/work", root)
    stack.callback(run, "umount", root)
    for name in ("trial.service", "trial.target"):
        shutil.copy(notes / name, root / "etc/systemd/system")
    return [f"--directory={root}"]


def main():
    if not shutil.which("systemd-nspawn"):
        return print("SKIPPED: the unit under systemd: systemd-nspawn is not installed")
    given = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="blotter-unit-") as place, contextlib.ExitStack() as stack:
        folder = pathlib.Path(place)
        notes = folder / "notes"
        notes.mkdir()
        lay_out = with_package if given.endswith(".deb") else with_program
        ran = subprocess.run(
            ["systemd-nspawn", "--register=no", "--keep-unit", "--link-journal=no", "--private-network",
             *lay_out(folder, notes, given, stack), f"--bind={notes}:/notes", "--boot", "systemd.unit=trial.target", "systemd.firstboot=off",
             "systemd.mask=systemd-networkd-wait-online.service"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
        status = notes / "status"
        if not status.exists():
            sys.exit(f"the container did not come so far:\n{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}")
        if status.read_text().strip() != "status 0":
            sys.exit((notes / "log").read_text())
        for name in ("security", "process", "files", "package"):
            if (notes / name).exists():
                print((notes / name).read_text().strip())
        print("the unit serves, reloads, is started again after a kill with what was stored, and stops")


if __name__ == "__main__":
    main()
