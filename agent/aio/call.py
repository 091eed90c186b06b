"""One request for one command, from its row of the table."""
from __future__ import annotations

import re
import urllib.parse

from .table import Command


def request_of(command: Command, options) -> tuple:
    """(method, path, body, query)"""
    method, path = command.operation.split(" ", 1)
    values = {arg.sent_as: getattr(options, arg.key) for arg in command.args if arg.sent_as}
    fields = {name: value for name, value in values.items() if value is not None and value is not False}
    placed = re.findall(r"\{(\w+)\}", path)
    for name in placed:
        path = path.replace("{" + name + "}", quoted(fields.pop(name)))
    fields = {**command.fixed, **fields}
    if method == "GET":
        return method, path, None, {name: "true" if value is True else value for name, value in fields.items()}
    return method, path, fields, None


def quoted(segment: object) -> str:
    """A segment of a path. Dots alone would be taken for a way up."""
    text = urllib.parse.quote(str(segment), safe="")
    return text.replace(".", "%2E") if text in (".", "..") else text


def run(client, options, out) -> int:
    from . import show

    command = options.command
    method, path, body, query = request_of(command, options)
    seconds = command.seconds + (getattr(options, "timeout", None) or 0)
    answer = client.envelope(method, path, body, query, seconds)
    # GET /v1/sandbox has its members beside `data`.
    value = {k: v for k, v in answer.items() if k not in ("success", "message", "hint")} if "detail" in answer else answer.get("data")
    out.show(value, lambda found: getattr(show, command.show)(found, answer))
    show.hint(answer)
    return 0
