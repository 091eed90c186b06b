"""All commands."""
from __future__ import annotations

import argparse

from .table import Arg, Command, number

TIMEOUT = Arg("--timeout", "seconds", number(0.001, 86400))

EXEC = (
    Command("", "exec", "run a command: its output as it comes, its exit code", run="execute.run", args=(
        Arg("words", "one word: a line for bash; several, or after --: a command and its arguments", nargs=argparse.REMAINDER, metavar="COMMAND"),
        Arg("--cwd", "directory in which it runs", metavar="DIR"),
        Arg("-e --env", "variable of the command; NAME alone: as it is here", nargs="append", metavar="NAME[=VALUE]"),
        Arg("--timeout", "seconds after which it is killed", number(0.001, 86400)),
        Arg("-n --no-stdin", "the command finds no input, whatever stdin is here", bool),
        Arg("-i --stdin", "pass stdin on, even from a terminal", bool),
    )),
)
SANDBOX = (
    Command("sandbox", "info", "system, home, interpreters and programs", "GET /v1/sandbox", show="context"),
)
COMMANDS = EXEC + SANDBOX
