"""The real binary next to its limits and its peers, in one run: prints a table of ratios.

usage: python3 compare.py BINARY --fill PROGRAM [--short] [--only stream,pages] [--json FILE] [--markdown FILE] [--svg FOLDER] [--keep FOLDER]

What is compared, and how, is said at each section. Everything runs on 127.0.0.1 and is stopped by
its process id; scratch files go. A section that fails ends alone; results of earlier runs in the
same JSON file stay, so that sections can be run one by one.
"""
import argparse
import datetime
import os
import platform
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import charts
import costs
import many
import report as reports
import shards
from kit import HERE, STARTED, Bench, note
from serving import Serving


def line_of(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, cwd=HERE)
    except OSError:
        return ""
    return (done.stdout + done.stderr).strip().splitlines()[0] if done.stdout + done.stderr else ""


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    postgres = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    tools = [line_of(["nginx", "-v"]).replace("nginx version: ", ""), line_of([str(postgres[-1]), "--version"]) if postgres else "",
             f"Node {line_of(['node', '--version'])}", line_of(["rustc", "--version"])]
    return {"processors": os.cpu_count(), "model": model, "memory": round(memory), "system": f"{platform.system()} {platform.release()}",
            "tools": ", ".join(tool for tool in tools if tool)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary", type=lambda text: Path(text).resolve())
    parser.add_argument("--fill", help="the program that fills a folder (cargo bench --bench fill --no-run prints the path)")
    parser.add_argument("--short", action="store_true", help="every section, small; floors are not enforced")
    parser.add_argument("--rows", type=int, help="rows of the large wallet")
    parser.add_argument("--scale", type=int, help="trades of the filled folder")
    parser.add_argument("--rounds", type=int, help="rounds of the stream")
    parser.add_argument("--only", help="sections to run, with commas between")
    parser.add_argument("--json", help="results, with those that are in the file already")
    parser.add_argument("--markdown", help="writes the table to this file")
    parser.add_argument("--svg", help="draws the charts into this folder")
    parser.add_argument("--keep", help="loaded and filled folders stay here and are used again")
    args = parser.parse_args()
    args.rows = args.rows or (20_000 if args.short else 1_000_000)
    args.scale = args.scale or (200_000 if args.short else 10_000_000)
    args.rounds = args.rounds or (2 if args.short else 9)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    bench = Bench(args)
    serving, filled = Serving(bench), many.Filled(bench)
    sections = {
        "stream": serving.stream,
        "pages": serving.pages,
        "packed": lambda report: costs.packed(serving, report),
        "filters": lambda report: costs.filters(serving, report),
        "exports": lambda report: costs.exports(serving, report),
        "stalled": serving.stalled,
        "idle": serving.idle,
        "loading": lambda report: many.loading(serving, report),
        "start": filled.start,
        "together": filled.together,
        "shards": lambda report: shards.shards(bench, report),
        "size": lambda report: many.size(bench, report),
    }
    wanted = args.only.split(",") if args.only else list(sections)
    if unknown := set(wanted) - set(sections):
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    results = reports.read(args.json, args.short) if args.json else {"short": args.short, "machine": {}, "sections": {}}
    results["machine"] = machine()
    commit = line_of(["git", "rev-parse", "--short", "HEAD"])
    stopped = []
    try:
        for name, section in sections.items():
            if name not in wanted:
                continue
            note(f"== {name}")
            told, began, load = reports.Report(), time.monotonic(), os.getloadavg()[0]
            error = None
            try:
                section(told)
            except Exception as caught:  # the other sections go on after any error
                error = f"{type(caught).__name__}: {caught}"
                stopped.append(name)
                note(f"{name} stopped: {traceback.format_exc()}")
            results["sections"][name] = {
                "at": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"), "commit": commit, "load": round(load, 1),
                "seconds": round(time.monotonic() - began), "rows": told.rows, "charts": told.charts, "error": error,
            }
            results["sections"] = {name: results["sections"][name] for name in sections if name in results["sections"]}
            if args.json:
                reports.write(args.json, results)
    finally:
        bench.close()
    print(reports.text(results))
    pictures = charts.draw(results, Path(args.svg)) if args.svg else {}
    if args.markdown:
        home = Path(args.markdown).resolve().parent
        pictures = {name: [(title, os.path.relpath(path.resolve(), home)) for title, path in drawn] for name, drawn in pictures.items()}
        reports.put_markdown(args.markdown, results, pictures)
    missed = [row["what"] for name in wanted for row in results["sections"][name]["rows"] if row["ok"] is False and (not args.short or row["floor"] == "must")]
    for what in missed:
        print(f"MISSED: {what}")
    for name in stopped:
        print(f"STOPPED: {name}: {results['sections'][name]['error']}")
    note(f"done in {time.monotonic() - STARTED:.0f} s")
    sys.exit(bool(missed or stopped))


main()
