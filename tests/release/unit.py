#!/usr/bin/env python3
"""The systemd unit under systemd: `python3 -B tests/release/unit.py PROGRAM`, as root.

Boots this system's /usr in a container (systemd-nspawn) with nothing kept and no network, with the program and the unit of
docs/deploy in it, and does there what trial.sh says. SKIPPED where systemd-nspawn is not installed.
"""
import os, pathlib, shutil, subprocess, sys, tempfile

HERE = pathlib.Path(__file__).resolve().parent
UNIT = HERE.parents[1] / "docs/deploy/blotter.service"
TARGET = """[Unit]
Requires=basic.target blotter.service trial.service
After=basic.target
AllowIsolate=yes
"""
TRIAL = """[Unit]
After=blotter.service
[Service]
Type=oneshot
Environment=PROGRAM=/usr/local/bin/blotter
ExecStart=/bin/bash /usr/local/bin/trial.sh
TimeoutStartSec=120
"""
SETTINGS = '[chains.sol]\nrpc = ["http://127.0.0.1:8899/sol"]\n'
PATIENCE = 150


def lay_out(folder, program):
    """What is laid over /usr, and the folders of settings and notes."""
    over, settings, notes = folder / "usr", folder / "settings", folder / "notes"
    units = over / "lib/systemd/system"
    for place in (over / "local/bin", units, settings, notes):
        place.mkdir(parents=True)
    shutil.copy(program, over / "local/bin/blotter")
    shutil.copy(HERE / "trial.sh", over / "local/bin/trial.sh")
    shutil.copy(UNIT, units / "blotter.service")
    (units / "trial.service").write_text(TRIAL)
    (units / "trial.target").write_text(TARGET)
    (settings / "blotter.toml").write_text(SETTINGS)
    for place in (folder, *folder.rglob("*")):
        place.chmod(0o755 if place.is_dir() or place.parent.name == "bin" else 0o644)
    return over, settings, notes


def main():
    if not shutil.which("systemd-nspawn"):
        return print("SKIPPED: the unit under systemd: systemd-nspawn is not installed")
    with tempfile.TemporaryDirectory(prefix="blotter-unit-") as folder:
        over, settings, notes = lay_out(pathlib.Path(folder), os.path.abspath(sys.argv[1]))
        ran = subprocess.run(
            ["systemd-nspawn", "--directory=/", "--volatile=yes", "--register=no", "--keep-unit", "--link-journal=no", "--private-network",
             f"--overlay-ro=/usr:{over}:/usr", f"--bind={settings}:/etc/blotter", f"--bind={notes}:/notes", "--boot",
             "systemd.unit=trial.target", "systemd.firstboot=off"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
        status = notes / "status"
        if not status.exists():
            sys.exit(f"the container did not come so far:\n{ran.stdout[-3000:]}\n{ran.stderr[-3000:]}")
        if status.read_text().strip() != "status 0":
            sys.exit((notes / "log").read_text())
        for name in ("security", "process", "files"):
            print((notes / name).read_text().strip())
        print("the unit serves, reloads, is started again after a kill with what was stored, and stops")


if __name__ == "__main__":
    main()
