"""aio gui: positions that are given in part, and keys that are pressed together."""
from __future__ import annotations

from . import show
from .failure import USAGE, Failure

ACTIONS = "/v1/browser/actions"


def position(options) -> dict:
    """Both coordinates or none: where the pointer is."""
    if (options.x is None) != (options.y is None):
        raise Failure(USAGE, f"gui {options.command.name}: both X and Y, or neither")
    return {} if options.x is None else {"x": options.x, "y": options.y}


def act(client, out, body: dict) -> int:
    answer = client.envelope("POST", ACTIONS, body)
    out.show(answer.get("data"), lambda _: show.anything(None, answer))
    show.hint(answer)
    return 0


def click(client, options, out) -> int:
    body = {"action_type": "CLICK", **position(options), "button": options.button or "left", "num_clicks": options.count or 1}
    return act(client, out, body)


def at(client, options, out) -> int:
    return act(client, out, {**options.command.fixed, **position(options)})


def press(client, options, out) -> int:
    """One key, or several with + between them."""
    keys = [key for key in options.key.split("+") if key]
    if len(keys) < 2:
        return act(client, out, {"action_type": "PRESS", "key": options.key})
    return act(client, out, {"action_type": "HOTKEY", "keys": keys})


def resize(client, options, out) -> int:
    answer = client.envelope("POST", "/v1/browser/config", {"resolution": {"width": options.width, "height": options.height}})
    out.show(answer.get("data"), lambda _: show.anything(None, answer))
    return 0
