#!/usr/bin/env python3
"""Draws the time of libclnorm and of the fastest peer against the columns, each over the time of a copy in its own process.

  build/tools/clnorm bench OP... --sweep 512,1024,… --dtypes bf16 --json ours.json
  python3 tools/peers OP... --widths 512,1024,… --dtypes bf16 --json peers.json
  tools/sweep_chart.py docs/sweep.svg ours.json peers.json…

Each operation has a panel. A name at a point is that of the peer from there on. Needs matplotlib.
"""
import json
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "clnorm", "font.size": 8})
from matplotlib import pyplot  # noqa: E402 (after the choice of the backend)

OURS, PEER, COPY = "#2563eb", "#9a6b00", "#6e7781"
TICKS = (1, 1.25, 1.5, 2, 3, 4, 6)


def read(paths):
    """{operation: {provider: {columns: time over the copy's}}}, and the device."""
    times, dtypes, device = {}, set(), ""
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                ours = row["provider"] == "clnorm"
                device = row["device"] if ours else device
                dtypes.add(row["dtype"])
                if row["us"] > 0:
                    times.setdefault(row["op"], {}).setdefault(row["provider"], {})[row["cols"]] = row["us"] / row["limit_us"]
    if len(dtypes) > 1:
        sys.exit(f"expected lines of one dtype, not of {', '.join(sorted(dtypes))}")
    return times, device


def fastest_peers(providers):
    """(columns, ratio, name) of the fastest peer at each width."""
    points = {}
    for name, ratios in providers.items():
        for cols, ratio in ratios.items() if name != "clnorm" else ():
            points[cols] = min(points.get(cols, (ratio, name)), (ratio, name))
    return [(cols, *points[cols]) for cols in sorted(points)]


def draw(axes, operation, providers):
    axes.set_title(operation, loc="left", fontweight="bold")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axes.minorticks_off()
    axes.grid(alpha=0.25)
    axes.axhline(1, color=COPY, linestyle="--", linewidth=1, label="copy of as many bytes")
    peers = fastest_peers(providers)
    axes.plot([point[0] for point in peers], [point[1] for point in peers], "o-", color=PEER, markersize=3, label="fastest peer")
    before = ""
    for cols, ratio, name in peers:
        if name != before:
            axes.annotate(name, (cols, ratio), (0, 5), textcoords="offset points", ha="center", fontsize=6, color=PEER)
        before = name
    ours = sorted(providers.get("clnorm", {}).items())
    axes.plot(*zip(*ours), "o-", color=OURS, markersize=3, label="libclnorm")
    ticks = [1 << power for power in range(6, 17) if ours[0][0] <= 1 << power <= ours[-1][0]]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    ratios = [ratio for _, ratio in ours] + [ratio for _, ratio, _ in peers]
    axes.set_ylim(min(0.9, min(ratios) / 1.05), max(ratios) * 1.15)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    times, device = read(sys.argv[2:])
    operations = [operation for operation in times if "clnorm" in times[operation]]
    rows = (len(operations) + 1) // 2
    figure, panels = pyplot.subplots(rows, 2, figsize=(10, 2.9 * rows), squeeze=False, layout="constrained")
    for axes, operation in zip(panels.flat, operations):
        draw(axes, operation, times[operation])
    for axes in panels.flat[len(operations):]:
        axes.set_axis_off()
    panels[0][0].legend(loc="upper right", frameon=False)
    figure.suptitle(f"{device}: time over a copy's, against the columns", x=0.02, ha="left")
    figure.savefig(sys.argv[1], metadata={"Date": None})


if __name__ == "__main__":
    main()
