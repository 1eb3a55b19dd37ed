#!/usr/bin/env python3
"""Breaks each promise on purpose and demands that somebody notices.

    python3 tests/planted/run.py [--sim | --both] [--jobs N] [--seeds LIST] [--json FILE] [--only] [NAME...]

All plants, or those whose name holds one of the words. Every plant of plants.toml is one change of
one file, made in a copy of the tree (under target/planted). One build there holds nearly all of
them, each behind a choice at run time; with none chosen all named tests must pass, with one chosen
the test that it names must FAIL. With --sim, the plants that say `sim = true` are held against the
simulation alone instead (that of the way that they name, else Solana's), up to the first seed that fails: the plant's own seed, then LIST (0..500).
--both does both.
Prints a line a plant and a table's end, writes it all to FILE where asked, and exits 1 when a
defect was not caught.
"""
import argparse, json, os, pathlib, queue, re, shutil, subprocess, sys, threading, time, tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
COPIES = ROOT / "target" / "planted"
LEFT_OUT = shutil.ignore_patterns("target", ".git", "blotter-data", "node_modules")
SIMULATION = "sim::under_any_failure_each_walk_is_the_truth_and_ends_complete"
LIBRARIES = {"blotter": "lib"}
# A defect may make a test wait for ever.
PATIENCE_S = 1800


def refresh(copy):
    """A fresh copy of the tree; its build folder stays."""
    copy.mkdir(parents=True, exist_ok=True)
    for entry in copy.iterdir():
        if entry.name != "target":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    shutil.copytree(ROOT, copy, ignore=LEFT_OUT, dirs_exist_ok=True)


def build(copy, targets):
    """The test binaries by target, or what the compiler said."""
    flags = [flag for target in targets if target not in LIBRARIES.values() for flag in ("--test", target)]
    if len(flags) < 2 * len(targets):
        flags.append("--lib")
    command = ["cargo", "test", "--quiet", "--no-run", "--message-format=json-render-diagnostics", *flags]
    env = {**os.environ, "CARGO_TARGET_DIR": str(copy / "target")}
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, env=env)
    if done.returncode:
        return None, done.stderr
    made = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    made = [one for one in made if one.get("executable") and one.get("profile", {}).get("test")]
    names = {LIBRARIES.get(one["target"]["name"], one["target"]["name"]): one["executable"] for one in made}
    return names, done.stderr


def run(copy, binary, tests, **settings):
    """Exit status of the named tests, and the end of what they printed."""
    # As many seeds as the gate takes.
    asked = {"BLOTTER_SIM_STOP": "1", "BLOTTER_SIM_LONG": "1", "RUST_BACKTRACE": "0"}
    env = {**os.environ, **asked, **settings}
    command = [binary, "--exact", *tests]
    try:
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, env=env, timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return 124, "no end"
    return done.returncode, done.stdout + done.stderr


def verdict(status, output):
    if status in (124, -9, -15):
        return "NO END", f"within {PATIENCE_S} s, or stopped from outside"
    if "0 passed; 0 failed" in output:
        return "no such test", ""
    if not status:
        return "NOT CAUGHT", ""
    seed = re.search(r"(\d+) failed; BLOTTER", output)
    said = re.search(r"panicked at [^\n]*\n([^\n]*)", output)
    why = f"seed {seed[1]}: " if seed else ""
    return "caught", why + (said[1].strip()[:110] if said else output.strip()[-110:])


def spot(row, text):
    """Where the plant's text stands, its marked part, and how often."""
    before, _, rest = row["find"].partition("«") if "«" in row["find"] else ("", "", row["find"] + "»")
    inside, _, after = rest.partition("»")
    whole = before + inside + after
    at = text.find(whole) + len(before)
    return at, at + len(inside), text.count(whole)


def put(copy, row, make):
    """Changes the file of a plant; what it was before, or nothing where its text is not there."""
    path = copy / row["file"]
    text = path.read_text()
    start, end, count = spot(row, text)
    if count == 1:
        path.write_text(text[:start] + make(text[start:end]) + text[end:])
    return text if count == 1 else None


def switch(number, row):
    """The marked part and its replacement, of which the environment chooses one at run time."""
    chosen = f"crate::planted({number})"
    if "switched" in row:
        return lambda _: row["switched"].replace("PLANTED", chosen)
    choice = f"if {chosen} {{ {row['replace']} }} else {{ %s }}"
    if row.get("form") == "statement":
        return lambda found: choice.replace("%s", found)
    return lambda found: "(" + choice.replace("%s", found) + ")"


# The programs that tests start have an environment of their own, which has to name the plant too.
BARE, PASSED = ".env_clear()", '.env_clear().envs(std::env::var("PLANTED_DEFECT").map(|one| ("PLANTED_DEFECT", one)))'
CHOOSER = """
#[doc(hidden)]
pub fn planted(number: u32) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<u32>> = std::sync::OnceLock::new();
    let chosen = || std::env::var("PLANTED_DEFECT").ok()?.parse().ok();
    *CHOSEN.get_or_init(chosen) == Some(number)
}
"""


def build_all(copy, plans, targets):
    """One build that holds all plants which can be chosen at run time, and their numbers."""
    numbers = {}
    for number, (row, _) in enumerate(plans):
        if row.get("form") != "alone" and put(copy, row, switch(number, row)) is not None:
            numbers[row["name"]] = number
    with (copy / "src/lib.rs").open("a") as library:
        library.write(CHOOSER)
    for path in (copy / "tests/it").rglob("*.rs"):
        path.write_text(path.read_text().replace(BARE, PASSED))
    binaries, said = build(copy, targets)
    if binaries is None:
        sys.exit(f"the build of all plants:\n{said[-3000:]}")
    kept = {}
    for name, path in binaries.items():
        kept[name] = str(shutil.copy2(path, copy / "target" / f"planted-{name}"))
    refresh(copy)
    return kept, numbers


def judge(copy, row, modes, seeds, binaries, **settings):
    found = {}
    if "test" in modes:
        found["test"] = verdict(*run(copy, binaries[row.get("target", "it")], [row["test"]], **settings))
    if "sim" in modes:
        first = [str(row["seed"])] if "seed" in row else []
        told = ",".join([*first, seeds])
        test = row.get("simulation", SIMULATION)
        found["sim"] = verdict(*run(copy, binaries["it"], [test], BLOTTER_SIM_SEEDS=told, **settings))
    return found


def try_alone(copy, row, modes, seeds):
    """What became of one plant in a build of its own, by mode."""
    before = put(copy, row, lambda _: row["replace"])
    if before is None:
        return {mode: ("stale", "`find` stands in its file not once") for mode in modes}
    try:
        binaries, said = build(copy, targets_of([(row, modes)]))
    finally:
        (copy / row["file"]).write_text(before)
    if binaries is None:
        return {mode: ("does not compile", said[-1500:]) for mode in modes}
    return judge(copy, row, modes, seeds, binaries)


def targets_of(plans):
    return sorted({"it" if mode == "sim" else row.get("target", "it") for row, modes in plans for mode in modes})


def check_sound(copy, plans, binaries):
    """With no plant chosen, what the plants name passes, tests and seeds."""
    rows = [row for row, modes in plans if "test" in modes]
    for target in sorted({row.get("target", "it") for row in rows}):
        tests = sorted({row["test"] for row in rows if row.get("target", "it") == target})
        status, output = run(copy, binaries[target], tests)
        if status:
            sys.exit(f"the tests fail without any plant:\n{output[-3000:]}")
    seeds = {}
    for row, modes in plans:
        if "sim" in modes and "seed" in row:
            seeds.setdefault(row.get("simulation", SIMULATION), set()).add(str(row["seed"]))
    for test, named in seeds.items():
        status, output = run(copy, binaries["it"], [test], BLOTTER_SIM_SEEDS=",".join(sorted(named)))
        if status:
            sys.exit(f"seeds of {test} fail without any plant:\n{output[-3000:]}")


def work(copy, todo, done, attempt):
    while True:
        try:
            row, modes = todo.get_nowait()
        except queue.Empty:
            return
        began = time.time()
        for mode, (state, why) in attempt(copy, row, modes).items():
            took = round(time.time() - began)
            done.append({"name": row["name"], "by": mode, "verdict": state, "why": why, "seconds": took})
            print(f"{state:12} {mode:4} {took:5} s  {row['name']}  ({why})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--sim", action="store_true", help="the simulation alone")
    kind.add_argument("--both", action="store_true", help="named tests and the simulation")
    parser.add_argument("--jobs", type=int, default=1, help="plants that are tried at once")
    parser.add_argument("--seeds", default="0..500", help="of the simulation, as BLOTTER_SIM_SEEDS")
    parser.add_argument("--json", type=pathlib.Path, help="where the table goes too")
    parser.add_argument("--only", action="append", default=[], help="a word of the names wanted")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    words = args.names + args.only
    wanted = ["test", "sim"] if args.both else ["sim"] if args.sim else ["test"]
    rows = tomllib.loads((ROOT / "tests/planted/plants.toml").read_text())["plant"]
    rows = [row for row in rows if not words or any(word in row["name"] for word in words)]
    plans = [(row, [mode for mode in wanted if row.get(mode)]) for row in rows]
    plans = [plan for plan in plans if plan[1]]
    copy = COPIES / "0"
    refresh(copy)
    binaries, numbers = build_all(copy, plans, targets_of(plans))
    check_sound(copy, plans, binaries)
    todo, done = queue.Queue(), []

    def attempt(copy, row, modes):
        if row["name"] not in numbers:
            with alone:
                return try_alone(copy, row, modes, args.seeds)
        return judge(copy, row, modes, args.seeds, binaries, PLANTED_DEFECT=str(numbers[row["name"]]))

    alone = threading.Lock()
    # Those with a build of their own come last: tests that start the program start what was built last.
    for plan in sorted(plans, key=lambda plan: plan[0]["name"] not in numbers):
        todo.put(plan)
    workers = [threading.Thread(target=work, args=(copy, todo, done, attempt)) for _ in range(args.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if args.json:
        args.json.write_text(json.dumps(done, indent=1) + "\n")
    missed = [one for one in done if one["verdict"] != "caught"]
    for mode in wanted:
        of = [one for one in done if one["by"] == mode]
        caught = sum(one["verdict"] == "caught" for one in of)
        print(f"by {'named tests' if mode == 'test' else 'the simulation'}: planted {len(of)}, caught {caught}")
    for one in missed:
        print(f"{one['verdict']}: {one['name']} ({one['by']})\n{one['why']}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
