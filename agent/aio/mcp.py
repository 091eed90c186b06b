"""aio mcp: the tools of the MCP servers over REST."""
from __future__ import annotations

import base64
import binascii
import json

from . import local, text
from .call import quoted
from .failure import FAILED, SERVER, USAGE, Failure

SECONDS = 600.0


def tools(client, options, out) -> int:
    names = [options.server] if options.server else client.data("GET", "/v1/mcp/servers") or []
    found = [{"server": name, **tool} for name in names
             for tool in (client.data("GET", f"/v1/mcp/{quoted(name)}/tools") or {}).get("tools") or []]
    out.show(found, listing)
    return 0


def listing(found: list) -> str:
    return "\n".join(f"{text.visible(tool['server'])} {text.visible(tool.get('name'))}{arguments_of(tool.get('inputSchema'))}\n"
                     f"    {text.cut(text.visible(tool.get('description') or '', keep=''), 200)}" for tool in found)


def arguments_of(schema) -> str:
    """The names of a tool's arguments, those in brackets that may be left out."""
    if not isinstance(schema, dict):
        return ""
    needed = schema.get("required") or []
    return "".join(" " + text.visible(name if name in needed else f"[{name}]") for name in schema.get("properties") or {})


def arguments(given: list) -> dict:
    """A JSON object, or key=value: a value that is JSON is that, any other is a text."""
    if len(given) == 1 and given[0].lstrip().startswith("{"):
        try:
            found = json.loads(given[0])
        except (ValueError, RecursionError) as why:
            raise Failure(USAGE, f"mcp call: the arguments are no JSON: {why}") from None
        return found
    found = {}
    for one in given:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise Failure(USAGE, f"mcp call: {text.visible(one)}: it must be key=value, or all arguments as one JSON object")
        try:
            found[name] = json.loads(value)
        except (ValueError, RecursionError):
            found[name] = value
    return found


def call(client, options, out) -> int:
    path = f"/v1/mcp/{quoted(options.server)}/tools/{quoted(options.tool)}"
    result = client.data("POST", path, arguments(options.arguments), seconds=SECONDS) or {}
    if options.output:
        save(result, options)
    out.show(result, person)
    return FAILED if result.get("isError") else 0


def save(result: dict, options):
    for part in result.get("content") or []:
        if part.get("type") in ("image", "audio"):
            try:
                content = base64.b64decode(part.get("data") or "", validate=True)
            except (binascii.Error, ValueError):
                raise Failure(SERVER, "mcp call: the picture or sound is no base64") from None
            with local.Incoming(options.output, True) as target:
                target.write(content)
                target.commit()
            return
    raise Failure(FAILED, "mcp call: the answer has no picture or sound for --output")


def person(result: dict) -> str:
    shown = []
    for part in result.get("content") or []:
        if part.get("type") == "text":
            shown.append(text.lines(part.get("text") or ""))
        else:
            extent = f", {text.size(len(part['data']) * 3 // 4)}" if isinstance(part.get("data"), str) else ""
            what = part.get("mimeType") or part.get("uri") or (part.get("resource") or {}).get("uri") or ""
            shown.append(f"[{text.visible(part.get('type'))} {text.visible(what)}{extent}]")
    return "\n".join(shown)
