"""Instructions of encode, page, insert and decode against a baseline: times are noisy where others build, these are not.

usage: python3 counts.py PROGRAM [--baseline FILE] [--write]

PROGRAM is the bench `counts`, of the profile that the baseline names. Each work runs under callgrind with few and with
more rounds; the difference, by the rounds between, is what one round takes. More than MARGIN above the baseline fails.
A baseline is raised only by a commit that says why; one that is undercut by more than the margin is to be lowered.
A work without recorded answers, and all of them where valgrind is missing, are skipped, and that is said.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MARGIN = 0.03
# Rounds of the two runs. Decoding hashes by seeds of the process, which more rounds even out: of 12 runs each, EVM's lay
# within 2.5 % of each other by 13 rounds (and 3 to 4 % above all of them in two runs more), within 0.8 % by 41.
WORKS = {"encode": (1, 4), "page": (2, 22), "insert": (1, 4), "decode sol": (1, 41), "decode evm": (1, 41)}
# The functions of glibc that are chosen by the processor are chosen alike on each.
TUNABLES = "glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX2,-ERMS,-FSRM,-RTM"


def counted(program, work, rounds):
    """Instructions of a run, and what it did."""
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, work, str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env={**os.environ, "GLIBC_TUNABLES": TUNABLES})
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode or not found:
        sys.exit(f"{work}: {done.stdout}{done.stderr[-2000:]}")
    return int(found[1]), int(re.search(r": (\d+) in", done.stdout)[1])


def of_round(program, work):
    few, more = WORKS[work]
    (small, _), (large, did) = counted(program, work, few), counted(program, work, more)
    return (large - small) / (more - few) if did else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=lambda text: str(Path(text).resolve()))
    parser.add_argument("--baseline", type=Path, default=Path(__file__).with_name("counts.txt"))
    parser.add_argument("--write", action="store_true", help="writes the baseline anew")
    args = parser.parse_args()
    if not shutil.which("valgrind"):
        print("SKIPPED: there is no valgrind, so no instructions are counted")
        return
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = dict(zip(WORKS, pool.map(lambda work: of_round(args.program, work), WORKS)))
    if args.write:
        args.baseline.write_text("".join(f"{work}\t{count:.0f}\n" for work, count in found.items() if count))
    baseline = dict(line.split("\t") for line in args.baseline.read_text().splitlines() if line)
    failed = False
    for work, count in found.items():
        if count is None:
            print(f"{work}: skipped, there are no recorded answers")
            continue
        ratio = count / int(baseline[work]) if work in baseline else float("inf")
        verdict = "MORE" if ratio > 1 + MARGIN else "less: lower the baseline" if ratio < 1 - MARGIN else "kept"
        failed |= ratio > 1 + MARGIN
        print(f"{work}: {count:,.0f} instructions a round, {ratio:.4f} of the baseline: {verdict}")
    sys.exit(failed)


main()
