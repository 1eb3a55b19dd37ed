"""What was measured: lines of a table, and bars to draw. Kept as JSON, shown as text, Markdown and SVG."""
import json
from pathlib import Path

from kit import note


class Report:
    """The lines of one section."""

    def __init__(self):
        self.rows, self.charts = [], []

    def row(self, what, ours, peer, ratio, floor, unit=""):
        """One line; `floor` is text such as '>= 0.25', `unit` that of the ratio where it is none."""
        ok = None
        if floor:
            sign, bound = floor.split()
            ok = ratio >= float(bound) if sign == ">=" else ratio <= float(bound)
        self.rows.append({"what": what, "ours": ours, "peer": peer, "ratio": ratio, "unit": unit, "floor": floor, "ok": ok})
        note(f"  {what}: {ours} | {peer} | {shown(self.rows[-1])} | {floor or ''}{' MISSED' if ok is False else ''}")

    def value(self, what, ours):
        """A figure that stands alone."""
        self.rows.append({"what": what, "ours": ours, "peer": "", "ratio": None, "unit": "", "floor": None, "ok": None})
        note(f"  {what}: {ours}")

    def check(self, what, ours, ok):
        """Something that holds or does not."""
        self.rows.append({"what": what, "ours": ours, "peer": "", "ratio": None, "unit": "", "floor": "must", "ok": bool(ok)})
        note(f"  {what}: {ours}{'' if ok else ' WRONG'}")

    def bars(self, title, unit, values):
        self.charts.append({"title": title, "unit": unit, "bars": values})


def shown(row):
    if row["ratio"] is None:
        return ""
    ratio = row["ratio"]
    text = f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.1f}" if ratio >= 10 else f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"
    return f"{text} {row['unit']}".strip()


HEAD = ("what", "ours", "limit or peer", "ratio", "floor", "")
SHORT_NOTE = "Short form: every section runs, floors are not enforced, figures mean nothing."


def cells(row):
    floor = row["floor"] or ""
    if row["unit"] and row["floor"] and row["floor"] != "must":
        floor += f" {row['unit']}"
    return (row["what"], row["ours"], row["peer"], shown(row), floor, {True: "kept", False: "MISSED", None: ""}[row["ok"]])


def text(results):
    lines = [HEAD] + [cells(row) for section in results["sections"].values() for row in section["rows"]]
    widths = [max(len(line[at]) for line in lines) for at in range(len(HEAD))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


def markdown(results, pictures):
    """Tables, with the pictures' paths below their sections."""
    machine = results["machine"]
    out = [f"{machine['processors']} × {machine['model']}, {machine['memory']} GiB, {machine['system']}; {machine['tools']}."]
    if results["short"]:
        out.append(SHORT_NOTE)
    for name, section in results["sections"].items():
        out += ["", f"**{name}** ({section['at']}, commit `{section['commit']}`, load of the machine before it {section['load']}, {section['seconds']} s)", ""]
        out += ["| " + " | ".join(HEAD[:5]) + " | |", "| --- | --- | --- | --- | --- | --- |"]
        out += ["| " + " | ".join(cells(row)) + " |" for row in section["rows"]]
        if section.get("error"):
            out += ["", f"Stopped: {section['error'].splitlines()[0]}"]
        out += [""] + [f"![{title}]({path})" for title, path in pictures.get(name, [])]
    return "\n".join(out).rstrip() + "\n"


BEGIN, END = "<!-- results of benches/compare.sh -->", "<!-- end of results -->"


def put_markdown(path, results, pictures):
    """Into the place that the file keeps for it, else as the whole file."""
    path, told = Path(path), markdown(results, pictures)
    old = path.read_text() if path.exists() else ""
    before, begun, rest = old.partition(BEGIN)
    _, ended, after = rest.partition(END)
    path.write_text(f"{before}{BEGIN}\n\n{told}\n{END}{after}" if begun and ended else told)


def read(path, short):
    path = Path(path)
    if path.exists():
        told = json.loads(path.read_text())
        if told.get("short") == short:
            return told
    return {"short": short, "machine": {}, "sections": {}}


def write(path, results):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(results, indent=1) + "\n")
    new.replace(path)
