"""stdout: for a person on a terminal, one JSON document for everything else."""
from __future__ import annotations

import json
import os
import sys

from . import text


class Output:
    def __init__(self, options):
        self.json = getattr(options, "json", False) or not (getattr(options, "human", False) or is_terminal(1))
        self.forced = getattr(options, "json", False)

    def document(self, value):
        sys.stdout.write(json.dumps(value, indent=2) + "\n")
        sys.stdout.flush()

    def person(self, shown: str):
        if shown:
            sys.stdout.write(shown if shown.endswith("\n") else shown + "\n")
            sys.stdout.flush()

    def show(self, value, person):
        """`value` as JSON, or what person() makes of it, which has escaped everything."""
        if self.json:
            self.document(value)
        else:
            self.person(person(value))


def is_terminal(fd: int) -> bool:
    try:
        return os.isatty(fd)
    except OSError:
        return False


def say(line: str):
    """A line on stderr. Nobody need read it."""
    try:
        sys.stderr.write(f"aio: {line}\n")
        sys.stderr.flush()
    except (OSError, ValueError):
        pass


def raw(stream, content: bytes):
    """All of it, at once: the next piece may be long in coming."""
    stream.buffer.write(content)
    stream.buffer.flush()


def anything(value) -> str:
    """Any JSON value for a person."""
    if value is None:
        return ""
    if isinstance(value, str):
        return text.lines(value)
    if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
        return rows(value)
    if isinstance(value, list) and value and all(isinstance(row, str) for row in value):
        return "\n".join(text.visible(row) for row in value)
    if isinstance(value, dict):
        return pairs(value)
    return text.visible(json.dumps(value, ensure_ascii=False, indent=2), keep="\n")


def brief(value) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def rows(found: list) -> str:
    names = list(dict.fromkeys(name for row in found for name in row))[:12]
    return text.columns([[text.cut(brief(row.get(name, "")), 80) for name in names] for row in found], tuple(names))


def pairs(value: dict) -> str:
    return text.columns([(name, brief(one)) for name, one in value.items()])
