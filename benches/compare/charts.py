"""Bar charts from the results, as SVG that reads on light and dark grounds."""
import html
import json
import re
import sys
from pathlib import Path

WIDTH, LEFT, RIGHT, BAR, GAP, TOP = 720, 190, 110, 22, 10, 44
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 14px }
.ours { fill: #1f6feb } .other { fill: #8c959f }
@media (prefers-color-scheme: dark) { text { fill: #e6edf3 } .ours { fill: #58a6ff } .other { fill: #6e7681 } }
"""


def number(value):
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def chart(title, unit, bars):
    most = max(value for _, value in bars) or 1
    height = TOP + len(bars) * (BAR + GAP) + 8
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
           f"<title>{html.escape(title)}, {html.escape(unit)}</title>", f"<style>{STYLE}</style>",
           f'<text class="title" x="8" y="24">{html.escape(title)}, {html.escape(unit)}</text>']
    for at, (label, value) in enumerate(bars):
        y = TOP + at * (BAR + GAP)
        length = max(1, round((WIDTH - LEFT - RIGHT) * value / most))
        kind = "ours" if label.startswith("blotter") and "constant" not in label else "other"
        out += [f'<text x="{LEFT - 8}" y="{y + 16}" text-anchor="end">{html.escape(label)}</text>',
                f'<rect class="{kind}" x="{LEFT}" y="{y}" width="{length}" height="{BAR}" rx="2"/>',
                f'<text x="{LEFT + length + 6}" y="{y + 16}">{number(value)}</text>']
    return "\n".join([*out, "</svg>", ""])


def draw(results, folder):
    """One file a chart, named by its title. Returns title and file by section."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {}
    for section, told in results["sections"].items():
        for one in told.get("charts", []):
            name = re.sub(r"[^a-z0-9]+", "-", one["title"].lower()).strip("-") + ".svg"
            (folder / name).write_text(chart(one["title"], one["unit"], one["bars"]))
            names.setdefault(section, []).append((one["title"], folder / name))
    return names


if __name__ == "__main__":
    draw(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
