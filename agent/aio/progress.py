"""How far a transfer is, on stderr while that is a terminal."""
from __future__ import annotations

import sys
import time

from .output import is_terminal
from .text import cut, size, visible

EVERY_SECONDS = 0.1


class Progress:
    def __init__(self, name: str, total):
        self.shown = is_terminal(2)
        self.name, self.total = cut(visible(name), 40), total
        self.done, self.began, self.told = 0, time.monotonic(), 0.0

    def add(self, count: int):
        self.done += count
        now = time.monotonic()
        if self.shown and now - self.told >= EVERY_SECONDS:
            self.told = now
            self.tell(now)

    def tell(self, now: float):
        share = f"{100 * self.done // self.total:3d}%  " if self.total else ""
        speed = size(self.done / max(now - self.began, 0.001))
        try:
            sys.stderr.write(f"\r{self.name}  {share}{size(self.done)}  {speed}/s\x1b[K")
            sys.stderr.flush()
        except OSError:
            self.shown = False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.shown and self.told:
            self.tell(time.monotonic())
            sys.stderr.write("\n")
            sys.stderr.flush()
