"""Text for a terminal. What a server, a page or a file says may hold escape sequences; none of them reaches the terminal."""
from __future__ import annotations

import unicodedata

NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}


def _escaped(c: str) -> str:
    if c in NAMED:
        return NAMED[c]
    return f"\\x{ord(c):02x}" if ord(c) < 0x100 else f"\\u{ord(c):04x}" if ord(c) < 0x10000 else f"\\U{ord(c):08x}"


def visible(text: object, keep: str = "") -> str:
    """Control and format characters (also those that reverse the direction of text) as escapes, but for those in `keep`."""
    text = str(text)
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep or c == " " or (c.isprintable() and unicodedata.category(c) != "Cf") else _escaped(c)
                   for c in text)


def lines(text: object) -> str:
    """The same for text of several lines."""
    return visible(str(text).replace("\r\n", "\n"), keep="\n\t")


def cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most - 1] + "…"


def width(text: str) -> int:
    """Columns: letters of East Asia take two."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def columns(rows: list, head: tuple = ()) -> str:
    """Rows of values in aligned columns."""
    shown = [[visible("" if value is None else value) for value in row] for row in ([head] if head else []) + list(rows)]
    if not shown:
        return ""
    widths = [max(width(row[n]) for row in shown) for n in range(len(shown[0]))]
    return "\n".join("  ".join(value + " " * (widths[n] - width(value)) for n, value in enumerate(row)).rstrip() for row in shown)


def size(count: object) -> str:
    if not isinstance(count, (int, float)):
        return ""
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
