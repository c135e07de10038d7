#!/usr/bin/env python3
"""Draws a table of benchmark.py as bars: the time of libclnorm and of the best peer, over the time of a copy.

  tools/chart.py BENCHMARKS.md docs/benchmark.svg            the first table of the file, bf16
  tools/chart.py results.md results.svg --dtype f32 --shapes 32768×1024,16384×4096

A bar is the geometric mean over the shapes that have a peer; the best peer of each shape counts. Without --shapes, those of
4096 rows and more are taken, where the time of a launch does not matter.
"""
import argparse
import html
import math
import re
import sys

CELL = re.compile(r"\*{0,2}([0-9.]+)\*{0,2} \((.+) ([0-9.]+)\)")  # "1.14 (apex 1.59)": our ratio; the peer's name, ratio
NAMES = (("layer_norm", "layer norm"), ("rms_norm", "RMS norm"), ("fp8_", "FP8 "), ("add_", "residual + "), ("_gated", " × gate"),
         ("gelu_tanh", "GELU (tanh)"), ("gelu", "GELU"), ("_backward", ", backward"))
USUAL_ROWS = 4096

WIDTH, LABEL, RIGHT, TOP, ROW, BAR = 860, 240, 130, 84, 34, 12  # pixels
STYLE = """text { font: 13px sans-serif; fill: #24292f }
.title { font-size: 16px; font-weight: bold }
.small { font-size: 11px }
.lead { font-weight: bold }
.ours { fill: #2563eb }
.peer { fill: #9ca3af }
.limit { stroke: #e4572e; stroke-width: 1.5; stroke-dasharray: 4 3 }
.grid { stroke: #8c959f; stroke-opacity: 0.25 }
@media (prefers-color-scheme: dark) { text { fill: #d0d7de } }"""


def fail(text):
    print(f"chart.py: {text}", file=sys.stderr)
    sys.exit(2)


def read_table(path):
    """Reads a file's first table of operations: the section that it is in, its shapes and its rows of cells."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        fail(f"{path}: {error}")
    section, table = "", []
    for line in lines:
        if line.startswith("## ") and not table:
            section = line[3:]
        if line.startswith("| operation, dtype |") or (table and line.startswith("|")):
            table.append([cell.strip() for cell in line.strip("| \n").split(" | ")])
        elif table:
            break
    if len(table) < 3:
        fail(f"{path}: expected a table that begins with \"| operation, dtype |\"")
    return section, table[0][1:-1], table[2:]


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def bars(table, shapes, wanted, dtype):
    """(operation, our ratio, the best peers') for each operation that has peers."""
    found = []
    for label, *cells in table:
        pairs = [CELL.fullmatch(cell) for shape, cell in zip(shapes, cells) if shape in wanted]
        pairs = [(float(pair[1]), float(pair[3])) for pair in pairs if pair]
        if label.endswith(f", {dtype}") and pairs:
            found.append((label[: -len(dtype) - 2], mean([ours for ours, _ in pairs]), mean([peer for _, peer in pairs])))
    return found


def readable(operation):
    for word, name in NAMES:
        operation = operation.replace(word, name)
    return operation.strip()


def bar(kind, y, ratio, scale):
    return (f'<rect class="{kind}" x="{LABEL}" y="{y}" width="{ratio * scale:.1f}" height="{BAR}"/>'
            f'<text class="small" x="{LABEL + ratio * scale + 4:.1f}" y="{y + BAR - 2}">{ratio:.2f}</text>')


def draw(title, note, rows):
    most = math.ceil(max(max(ours, peer) for _, ours, peer in rows))
    scale = (WIDTH - LABEL - RIGHT) / most
    bottom = TOP + ROW * len(rows)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 30}" width="{WIDTH}" height="{bottom + 30}">',
             f"<style>{STYLE}</style>", f'<text class="title" x="10" y="22">{html.escape(title)}</text>',
             f'<text class="small" x="10" y="40">{html.escape(note)}</text>',
             f'<rect class="ours" x="{LABEL}" y="54" width="24" height="{BAR}"/><text x="{LABEL + 30}" y="65">libclnorm</text>',
             f'<rect class="peer" x="{LABEL + 120}" y="54" width="24" height="{BAR}"/>'
             f'<text x="{LABEL + 150}" y="65">the best peer of each shape</text>',
             f'<text class="lead" x="{WIDTH - 10}" y="65" text-anchor="end">peers / ours</text>']
    for tick in range(most + 1):
        x = LABEL + tick * scale
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP - 8}" x2="{x:.1f}" y2="{bottom}"/><text class="small" x="{x:.1f}"'
                     f' y="{bottom + 16}" text-anchor="middle">{"1: a copy" if tick == 1 else tick}</text>')
    for i, (operation, ours, peer) in enumerate(rows):
        y = TOP + ROW * i
        parts += [f'<text x="{LABEL - 10}" y="{y + 17}" text-anchor="end">{html.escape(readable(operation))}</text>',
                  bar("ours", y, ours, scale), bar("peer", y + BAR + 1, peer, scale),
                  f'<text class="lead" x="{WIDTH - 10}" y="{y + 17}" text-anchor="end">{peer / ours:.2f}</text>']
    parts.append(f'<line class="limit" x1="{LABEL + scale:.1f}" y1="{TOP - 8}" x2="{LABEL + scale:.1f}" y2="{bottom}"/>')
    return "\n".join(parts) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", help="a Markdown file")
    parser.add_argument("picture", help="the SVG to write")
    parser.add_argument("--dtype", default="bf16")
    parser.add_argument("--shapes", metavar="ROWS×COLS,…")
    args = parser.parse_args()
    section, shapes, table = read_table(args.table)
    wanted = args.shapes.replace("x", "×").split(",") if args.shapes else [
        shape for shape in shapes if int(shape.split("×")[0]) >= USUAL_ROWS]
    for shape in wanted:
        if shape not in shapes:
            fail(f"--shapes: '{shape}': expected one of {', '.join(shapes)}")
    rows = bars(table, shapes, wanted, args.dtype)
    if not rows:
        fail(f"{args.table}: expected cells of {args.dtype} with a peer, such as \"1.14 (fla 1.59)\"")
    picture = draw(f"Time over that of a copy, {args.dtype}, {section}" if section else f"Time over that of a copy, {args.dtype}",
                   f"Geometric mean over {', '.join(wanted)}; shorter is faster", rows)
    try:
        with open(args.picture, "w", encoding="utf-8") as file:
            file.write(picture)
    except OSError as error:
        fail(f"{args.picture}: {error.strerror}")


if __name__ == "__main__":
    main()
