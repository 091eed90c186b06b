"""What answers look like for a person. Every value is escaped: names, titles and texts are others'."""
from __future__ import annotations

from . import output, text
from .output import say


def hint(answer: dict):
    if answer.get("hint"):
        say("hint: " + text.cut(text.visible(answer["hint"]), 2000))


def anything(value, answer: dict) -> str:
    return output.anything(value) or text.visible(answer.get("message") or "done")


def context(value: dict, _answer: dict) -> str:
    return text.lines(value.get("data") or "")
