#!/usr/bin/env python3
"""Runs `clnorm bench` and writes its results as one table, in Markdown and in SVG. A cell is the time of an operation over the
time of a copy of the same bytes; beside it is the same ratio of the best peer, from JSON lines as tools/peers writes them.

  tools/benchmark.py --clnorm build/tools/clnorm --out results            results.md, results.svg, results.json
  tools/benchmark.py --out results --peers peers.json -- --device gpu     passes the words after -- to clnorm bench
  tools/benchmark.py --out results --peers peers.json --ours results.json  reads our lines; does not run clnorm bench

Without shapes, clnorm bench takes the usual ones of the device: on GPUs 32768x256 to 4096x65536 and some small ones, on CPUs
16384x256 to 1024x8192. A peer's line has op, provider, rows, cols, dtype, us and limit_us, the time of a copy in the peer's
own process; the table compares ratios, not times. Old names of operations in peers' lines are read as ours: X_forward as X,
gelu_forward as gelu_tanh, gelu_erf_* as gelu. Blank lines and lines that begin with # are skipped. Our lines must be of one
device and driver. Each line of results.json has the date and the command of its run, and --ours reads them back.

BENCHMARKS.md says how its tables were made. tools/chart.py draws a smaller picture of such a table.
"""
import argparse
import datetime
import html
import json
import math
import shlex
import subprocess
import sys
import textwrap

KEYS = {"op": str, "provider": str, "dtype": str, "rows": int, "cols": int, "us": (int, float), "limit_us": (int, float)}
OPTIONAL = ("device", "platform", "driver", "date", "command")  # strings, for the heading of our lines
OURS, UNFUSED = "clnorm", "clnorm_unfused"
NAMES = {"gelu_forward": "gelu_tanh", "gelu_erf_forward": "gelu", "gelu_erf_backward": "gelu_backward"}


def fail(code, text):
    print(f"benchmark.py: {text}", file=sys.stderr)
    sys.exit(code)


def read_lines(name, text):
    """The measurements in JSON lines. An error names the line's number."""
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            fail(2, f"{name}:{number}: {error}")
        for key, kind in KEYS.items():
            value = row.get(key) if isinstance(row, dict) else None
            if not isinstance(value, kind) or isinstance(value, bool):
                fail(2, f"{name}:{number}: {key}: expected {'a string' if kind is str else 'a number'}")
        for key in OPTIONAL:
            if not isinstance(row.get(key, ""), str):
                fail(2, f"{name}:{number}: {key}: expected a string")
        row["op"] = NAMES.get(row["op"], row["op"].removesuffix("_forward"))
        if not (0 < row["us"] < math.inf and 0 < row["limit_us"] < math.inf):
            fail(2, f"{name}:{number}: us and limit_us: expected more than 0")
        rows.append(row)
    return rows


def read_file(path):
    try:
        with open(path, encoding="utf-8") as file:
            return read_lines(path, file.read())
    except (OSError, UnicodeDecodeError) as error:
        fail(2, f"{path}: {error}")


def run_bench(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    except OSError as error:
        fail(2, f"{command[0]}: {error.strerror}")
    if done.returncode:
        fail(done.returncode if done.returncode > 0 else 1, f"{shlex.join(command)}: exit code {done.returncode}")
    return read_lines(command[0], done.stdout)


def measure(tool, words):
    """Runs clnorm bench; adds the date and the command to each line."""
    run = {"date": datetime.date.today().isoformat(), "command": shlex.join(["clnorm", "bench"] + words)}
    return [{**row, **run} for row in run_bench([tool, "bench", "--json", "-"] + words)]


class Table:
    """Ratios by (operation, dtype, unfused) and shape."""

    def __init__(self, ours, peers):
        self.shapes = list(dict.fromkeys((row["rows"], row["cols"]) for row in ours))
        self.rows = list(dict.fromkeys((row["op"], row["dtype"], row["provider"] == UNFUSED) for row in ours))
        self.ours = {}
        for row in ours:
            key = (row["op"], row["dtype"], row["provider"] == UNFUSED, row["rows"], row["cols"])
            self.ours[key] = row["us"] / row["limit_us"]
        self.best = {}  # the fastest peer: ratio and provider
        for row in peers:
            key = (row["op"], row["dtype"], False, row["rows"], row["cols"])
            found = (row["us"] / row["limit_us"], row["provider"])
            if row["provider"] not in (OURS, UNFUSED):
                self.best[key] = min(self.best.get(key, found), found)

    @staticmethod
    def label(row):
        return f"{row[0]}, {row[1]}" + (", in separate calls" if row[2] else "")

    def cell(self, row, shape):
        """Our ratio, and the best peer's ratio and name; each is None where it was not measured."""
        return self.ours.get(row + shape), self.best.get(row + shape)

    def lead(self, row):
        """The geometric mean of the best peers' ratios over ours; None without peers."""
        pairs = [self.cell(row, shape) for shape in self.shapes]
        logs = [math.log(best[0] / ours) for ours, best in pairs if ours and best]
        return math.exp(sum(logs) / len(logs)) if logs else None


def heading(name, ours):
    """Device, driver, date and command of the lines, which may be of several runs on one device."""
    devices = {(row.get("device", "unknown device"),
                f"{row.get('platform', 'unknown platform')}, driver {row.get('driver', 'unknown')}"): None for row in ours}
    if len(devices) > 1:
        fail(2, f"{name}: expected lines of one device, not of "
             + "; ".join(f"{device} ({driver})" for device, driver in devices))
    (device, driver), = devices
    dates = sorted({row.get("date", "") for row in ours})
    commands = dict.fromkeys(row.get("command", f"from {name}") for row in ours)
    return device, driver, " and ".join(date or "an unknown date" for date in dates), "; ".join(commands)


def markdown(table, head):
    device, driver, date, command = head
    lines = [f"Time over that of a copy of the least traffic, on {device} ({driver}), {date}: `{command}`.",
             "In brackets the best peer over a copy in its own process; last, the best peers over ours, geometric mean.",
             "Bold: a peer is ahead by more than 1%.", "",
             "| operation, dtype | " + " | ".join(f"{rows}×{cols}" for rows, cols in table.shapes) + " | peers / ours |",
             "|---" * (len(table.shapes) + 2) + "|"]
    for row in table.rows:
        cells = []
        for shape in table.shapes:
            ours, best = table.cell(row, shape)
            text = f"{ours:.2f}" if ours else ""
            text = f"**{text}**" if ours and best and best[0] * 1.01 < ours else text
            peer = best[1].replace("|", "\\|") if best else ""
            cells.append(f"{text} ({peer} {best[0]:.2f})" if ours and best else text)
        lead = table.lead(row)
        lines.append(f"| {table.label(row)} | " + " | ".join(cells) + f" | {f'{lead:.2f}' if lead else ''} |")
    return "\n".join(lines) + "\n"


STYLE = """text { font: 12px sans-serif; fill: #24292f }
.title { font-size: 15px }
.past { font-weight: bold }
.ours { fill: #3b82f6 }
.peer { fill: #8c959f }
.limit { stroke: #e4572e; stroke-dasharray: 3 2 }
@media (prefers-color-scheme: dark) { text { fill: #d0d7de } }"""
# Lengths in SVG units. Bars end at the ratio MOST; an arrow marks a larger ratio.
LABEL, CELL, ROW, MOST, BAR, LEAST_WIDTH = 270, 118, 30, 3.0, 64, 640


def bar(kind, x, y, ratio, text):
    width = min(ratio, MOST) / MOST * BAR
    past = ratio > MOST
    arrow = f'<path class="{kind}" d="M{x + width:.1f} {y - 2} l8 7 l-8 7 z"/>' if past else ""
    return (f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="10"><title>{html.escape(text)}</title>'
            f'</rect>{arrow}<text class="{"past" if past else "value"}" x="{x + width + (10 if past else 3):.1f}"'
            f' y="{y + 9}">{ratio:.2f}</text>')


def lines_of(text, kind, size, y, width):
    """A text wrapped to the width, and the y of the line after it. size: the font's."""
    lines = textwrap.wrap(text, int((width - 20) / (size * 0.6)))
    return [f'<text class="{kind}" x="10" y="{y + i * (size + 5)}">{html.escape(line)}</text>' for i, line in enumerate(lines)], \
        y + len(lines) * (size + 5)


def svg(table, head):
    device, driver, date, command = head
    width = max(LABEL + CELL * len(table.shapes) + 10, LEAST_WIDTH)
    title, y = lines_of(f"libclnorm on {device} ({driver}), {date}", "title", 15, 22, width)
    subtitle, y = lines_of(command, "command", 12, y, width)
    top = y + 32
    height = top + ROW * len(table.rows) + 10
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
             f"<style>{STYLE}</style>", *title, *subtitle,
             f'<rect class="ours" x="10" y="{y - 9}" width="24" height="10"/><text x="40" y="{y}">libclnorm: time over that of a'
             ' copy of the least traffic</text>',
             f'<rect class="peer" x="390" y="{y - 9}" width="24" height="10"/><text x="420" y="{y}">the best peer</text>',
             f'<line class="limit" x1="510" y1="{y - 9}" x2="510" y2="{y + 1}"/><text x="518" y="{y}">the copy</text>']
    for i, (rows, cols) in enumerate(table.shapes):
        x = LABEL + CELL * i
        parts.append(f'<text x="{x}" y="{top - 8}">{rows}x{cols}</text>')
        limit = x + BAR / MOST
        parts.append(f'<line class="limit" x1="{limit:.1f}" y1="{top - 4}" x2="{limit:.1f}" y2="{height - 8}"/>')
    for k, row in enumerate(table.rows):
        y = top + ROW * k
        parts.append(f'<text x="10" y="{y + 14}">{html.escape(table.label(row))}</text>')
        for i, shape in enumerate(table.shapes):
            ours, best = table.cell(row, shape)
            if ours:
                parts.append(bar("ours", LABEL + CELL * i, y, ours, f"libclnorm {ours:.3f}"))
            if ours and best:
                parts.append(bar("peer", LABEL + CELL * i, y + 12, best[0], f"{best[1]} {best[0]:.3f}"))
    return "\n".join(parts) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clnorm", default="clnorm", help="path of the tool (default: clnorm)")
    parser.add_argument("--out", required=True, help="path of the results, without .md, .svg and .json")
    parser.add_argument("--peers", nargs="+", default=[], metavar="FILE", help="JSON lines of peers")
    parser.add_argument("--ours", metavar="FILE", help="JSON lines of clnorm bench, instead of a run")
    parser.add_argument("bench", nargs="*", help="operations and options for clnorm bench, after --")
    args = parser.parse_args()
    peers = [row for path in args.peers for row in read_file(path)]
    ours = read_file(args.ours) if args.ours else measure(args.clnorm, args.bench)
    ours = [row for row in ours if row["provider"] in (OURS, UNFUSED)]
    if not ours:
        fail(2, f"{args.ours or args.clnorm}: expected a line with the provider clnorm")
    table = Table(ours, peers)
    head = heading(args.ours or args.clnorm, ours)
    outputs = {".md": markdown(table, head), ".svg": svg(table, head)}
    if not args.ours:
        outputs[".json"] = "".join(json.dumps(row) + "\n" for row in ours)
    for end, text in outputs.items():
        try:
            with open(args.out + end, "w", encoding="utf-8") as file:
                file.write(text)
        except OSError as error:
            fail(2, f"{args.out}{end}: {error.strerror}")


if __name__ == "__main__":
    main()
