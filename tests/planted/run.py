#!/usr/bin/env python3
"""Breaks each promise on purpose and demands that its test notices.

    python3 tests/planted/run.py [--sim] [NAME...]

All plants, or those whose name holds one of the words. Every plant of plants.toml is one change of
one file. It is made in a copy of the tree (under target/planted), the named test is run there and
must FAIL; the untouched copy must pass all of them first. With --sim, the plants that say
`sim = true` are held against the simulation alone, up to the first of its seeds that fails. Prints a
line a plant, and exits 1 when a defect was not caught.
"""
import os, pathlib, re, shutil, subprocess, sys, time, tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "target" / "planted"
LEFT_OUT = shutil.ignore_patterns("target", ".git", "blotter-data")
SIMULATION = "sim::whatever_fails_each_walk_is_the_truth_and_ends_complete"


def run(tests, target="it"):
    """Exit status of the named tests in the copy, and the end of what they printed."""
    binary = ["--lib"] if target == "lib" else ["--test", target]
    command = ["cargo", "test", "--quiet", *binary, "--", "--exact", *tests]
    env = {**os.environ, "BLOTTER_SIM_STOP": "1", "RUST_BACKTRACE": "0"}
    done = subprocess.run(command, cwd=COPY, capture_output=True, text=True, env=env)
    return done.returncode, done.stdout + done.stderr


def refresh():
    """A fresh copy of the tree; its build folder stays."""
    COPY.mkdir(parents=True, exist_ok=True)
    for entry in COPY.iterdir():
        if entry.name != "target":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    shutil.copytree(ROOT, COPY, ignore=LEFT_OUT, dirs_exist_ok=True)


def plant(row, test):
    path = COPY / row["file"]
    text = path.read_text()
    if text.count(row["find"]) != 1:
        return "stale", f"`find` stands {text.count(row['find'])} times in {row['file']}"
    path.write_text(text.replace(row["find"], row["replace"]))
    try:
        status, output = run([test], "it" if test == SIMULATION else row.get("target", "it"))
    finally:
        path.write_text(text)
    if "error: could not compile" in output or "error[E" in output:
        return "does not compile", output[-1500:]
    if "0 passed; 0 failed" in output:
        return "no such test", test
    seed = re.search(r"seed \d+ failed", output)
    return ("caught", seed and seed[0]) if status else ("NOT CAUGHT", output[-1500:])


def main():
    words = [word for word in sys.argv[1:] if word != "--sim"]
    by_simulation = "--sim" in sys.argv[1:]
    rows = tomllib.loads((ROOT / "tests/planted/plants.toml").read_text())["plant"]
    rows = [row for row in rows if not words or any(word in row["name"] for word in words)]
    rows = [row for row in rows if row.get("sim" if by_simulation else "test")]
    refresh()
    for target in sorted({row.get("target", "it") for row in rows} if not by_simulation else []):
        status, output = run(sorted({r["test"] for r in rows if r.get("target", "it") == target}), target)
        if status:
            sys.exit(f"the tests fail without any plant:\n{output[-3000:]}")
    caught = 0
    for row in rows:
        began = time.time()
        test = SIMULATION if by_simulation else row["test"]
        verdict, why = plant(row, test)
        caught += verdict == "caught"
        print(f"{verdict:16} {time.time() - began:5.0f} s  {row['name']}  ({test})", flush=True)
        if why:
            print(why, flush=True)
    print(f"planted {len(rows)}, caught {caught}")
    sys.exit(caught != len(rows))


if __name__ == "__main__":
    main()
