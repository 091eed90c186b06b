"""aio code: a program from a file, the command line or stdin, in the workspace."""
from __future__ import annotations

import sys

from . import local
from .failure import FAILED, TIMEOUT, USAGE, Failure
from .output import raw, say
from .text import lines, visible

MOST_CODE = 8 * 1024 * 1024


def code_of(options) -> str:
    if options.code is not None and options.file is not None:
        raise Failure(USAGE, "code: either a file or -c TEXT")
    return options.code if options.code is not None else local.text_of(options.file or "-", MOST_CODE)


def run(client, options, out) -> int:
    body = {"language": options.command.name, "code": code_of(options)}
    for name in ("timeout", "cwd"):
        if getattr(options, name) is not None:
            body[name] = getattr(options, name)
    if options.session:
        body.update(stateful=True, session_id=options.session)
    done = client.data("POST", "/v1/code/execute", body, seconds=(options.timeout or 300) + 60)
    if out.json:
        out.document(done)
    else:
        person(done)
    status = done.get("status")
    if status == "timeout":
        say("code: the time was over")
        return TIMEOUT
    return 0 if status == "ok" else FAILED


def person(done: dict):
    """The program's output is its own affair, as that of `aio exec`; the value of a last expression and the error follow."""
    raw(sys.stdout, (done.get("stdout") or "").encode("utf-8", "replace"))
    for one in done.get("outputs") or []:
        if one.get("output_type") in ("execute_result", "display_data"):
            data = one.get("data") or {}
            shown = data.get("text/plain") or one.get("text") or ", ".join(data)
            raw(sys.stdout, (lines(shown) + "\n").encode("utf-8", "replace"))
    raw(sys.stderr, (done.get("stderr") or "").encode("utf-8", "replace"))
    trace = done.get("traceback")
    if trace:
        sys.stderr.write(lines("\n".join(trace)) + "\n")
    elif done.get("status") not in ("ok", "timeout"):
        sys.stderr.write(visible(done.get("status")) + "\n")
