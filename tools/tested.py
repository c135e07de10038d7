#!/usr/bin/env python3
"""Keeps docs/tested.json, which lists the tests run on each device and driver, and makes README's table of devices from it.

    clnorm check --json | tools/tested.py add [NOTE]    replaces the result of that device and driver; NOTE: other tests that
                                                        were run there
    tools/tested.py table                               replaces README's table
    tools/tested.py compare                             fails where README's table differs
"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FILE = ROOT / "docs" / "tested.json"
README = ROOT / "README.md"
BEGIN, END = "<!-- tools/tested.py table -->\n", "<!-- end -->\n"
COUNTS = ("right", "wrong", "absent")
KEYS = ("device", "platform", "driver", "version", "date")


def fail(sentence):
    sys.exit(f"tested.py: {sentence}")


def read():
    rows = json.loads(FILE.read_text())
    for row in rows:
        for key in KEYS:
            if not isinstance(row.get(key), str):
                fail(f"{FILE.name}: a row has no {key}: {row}")
        if any(key in row for key in COUNTS) != all(isinstance(row.get(key), int) for key in COUNTS):
            fail(f"{FILE.name}: {row['device']}: expected all of {', '.join(COUNTS)} as numbers, or none")
        if "right" not in row and not row.get("note"):
            fail(f"{FILE.name}: {row['device']}: expected a result of check, or a note")
    return rows


def outcome(row):
    """The result of check, and the note."""
    parts = []
    if "right" in row:
        parts.append(f"check: {row['right']} right, {row['wrong']} wrong, {row['absent']} absent")
    return "; ".join(parts + [row["note"]] if row.get("note") else parts)


def table(rows):
    lines = ["| device | OpenCL | what was run | version, date |", "|---|---|---|---|"]
    for row in rows:
        lines.append(f"| {row['device']} | {row['platform']} {row['driver']} | {outcome(row)} | {row['version']}, {row['date']} |")
    return "\n".join(lines) + "\n"


def split_readme():
    text = README.read_text()
    if text.count(BEGIN) != 1 or END not in text.split(BEGIN)[1]:
        fail(f"README.md: expected one line {BEGIN.strip()} and a line {END.strip()} after it")
    before, rest = text.split(BEGIN)
    shown, after = rest.split(END, 1)
    return before + BEGIN, shown, END + after


def add(note):
    result = json.load(sys.stdin)
    row = {key: result[key] for key in KEYS + COUNTS}
    rows = read()
    for i, old in enumerate(rows):
        if all(old[key] == row[key] for key in ("device", "platform", "driver")):
            rows[i] = row | ({"note": note or old.get("note")} if note or old.get("note") else {})
            break
    else:
        rows.append(row | ({"note": note} if note else {}))
    FILE.write_text(json.dumps(rows, indent=2, ensure_ascii=False) + "\n")


def main(words):
    if words[:1] == ["add"] and len(words) <= 2:
        add(words[1] if len(words) == 2 else None)
    elif words == ["table"]:
        before, _, after = split_readme()
        README.write_text(before + table(read()) + after)
    elif words == ["compare"]:
        if split_readme()[1] != table(read()):
            fail("README's table of devices differs from docs/tested.json: run tools/tested.py table")
    else:
        sys.exit(__doc__.strip())


if __name__ == "__main__":
    main(sys.argv[1:])
