#!/usr/bin/env python3
"""Breaks each promise on purpose and demands that its test notices.

    python3 tests/planted/run.py [NAME...]      all plants, or those whose name holds one of the words

Every plant of plants.toml is one change of one file. It is made in a copy of the tree (under
target/planted), the named test is run there and must FAIL; the untouched copy must pass all of
them first. Prints a line a plant, and exits 1 when a defect was not caught.
"""
import pathlib, shutil, subprocess, sys, time, tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPY = ROOT / "target" / "planted"
LEFT_OUT = shutil.ignore_patterns("target", ".git", "blotter-data")


def run(tests, target="it"):
    """Exit status of the named tests in the copy, and the end of what they printed."""
    binary = ["--lib"] if target == "lib" else ["--test", target]
    command = ["cargo", "test", "--quiet", *binary, "--", "--exact", *tests]
    done = subprocess.run(command, cwd=COPY, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def refresh():
    """A fresh copy of the tree; its build folder stays."""
    COPY.mkdir(parents=True, exist_ok=True)
    for entry in COPY.iterdir():
        if entry.name != "target":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    shutil.copytree(ROOT, COPY, ignore=LEFT_OUT, dirs_exist_ok=True)


def plant(row):
    path = COPY / row["file"]
    text = path.read_text()
    if text.count(row["find"]) != 1:
        return "stale", f"`find` stands {text.count(row['find'])} times in {row['file']}"
    path.write_text(text.replace(row["find"], row["replace"]))
    try:
        status, output = run([row["test"]], row.get("target", "it"))
    finally:
        path.write_text(text)
    if "error: could not compile" in output or "error[E" in output:
        return "does not compile", output[-1500:]
    if "0 passed; 0 failed" in output:
        return "no such test", row["test"]
    return ("caught", "") if status else ("NOT CAUGHT", output[-1500:])


def main():
    words = sys.argv[1:]
    rows = tomllib.loads((ROOT / "tests/planted/plants.toml").read_text())["plant"]
    rows = [row for row in rows if not words or any(word in row["name"] for word in words)]
    refresh()
    for target in sorted({row.get("target", "it") for row in rows}):
        status, output = run(sorted({r["test"] for r in rows if r.get("target", "it") == target}), target)
        if status:
            sys.exit(f"the tests fail without any plant:\n{output[-3000:]}")
    caught = 0
    for row in rows:
        began = time.time()
        verdict, why = plant(row)
        caught += verdict == "caught"
        print(f"{verdict:16} {time.time() - began:5.0f} s  {row['name']}  ({row['test']})", flush=True)
        if why:
            print(why)
    print(f"planted {len(rows)}, caught {caught}")
    sys.exit(caught != len(rows))


if __name__ == "__main__":
    main()
