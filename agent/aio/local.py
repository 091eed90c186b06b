"""Files of this side: what is written appears whole under its name, or not at all."""
from __future__ import annotations

import os
import secrets
import stat
import sys

from .failure import LOCAL, USAGE, Failure
from .output import is_terminal
from .text import visible


def refused(path: str, why: OSError) -> Failure:
    return Failure(LOCAL, f"{visible(path)}: {why.strerror or why}")


class Incoming:
    """A new file beside its target, which takes the target's name with commit(). `force`: whatever file is there gives way; otherwise
    it is an error, also if it comes into being meanwhile."""

    def __init__(self, path: str, force: bool):
        self.path, self.force, self.file = path, force, None
        self.temporary = f"{path}.{secrets.token_hex(6)}.part"
        if os.path.isdir(path):
            raise Failure(LOCAL, f"{visible(path)}: it is a directory")
        if os.path.lexists(path) and not force:
            raise self.exists()
        if force and os.path.exists(path) and not os.path.isfile(path):
            raise Failure(LOCAL, f"{visible(path)}: it is not a regular file, and is not replaced")

    def exists(self) -> Failure:
        return Failure(LOCAL, f"{visible(self.path)}: it exists already; --force replaces it")

    def __enter__(self):
        try:
            fd = os.open(self.temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        except OSError as why:
            raise refused(self.path, why) from None
        self.file = os.fdopen(fd, "wb")
        return self

    def write(self, content: bytes):
        try:
            self.file.write(content)
        except OSError as why:
            raise refused(self.path, why) from None

    def commit(self):
        try:
            self.file.close()
            if self.force:
                os.replace(self.temporary, self.path)
                return
            try:
                os.link(self.temporary, self.path)  # unlike a rename it replaces nothing
                os.unlink(self.temporary)
            except FileExistsError:
                raise self.exists() from None
            except OSError:  # a file system without links
                if os.path.lexists(self.path):
                    raise self.exists() from None
                os.rename(self.temporary, self.path)
        except OSError as why:
            raise refused(self.path, why) from None

    def __exit__(self, *_):
        try:
            self.file.close()
        except OSError:
            pass  # full: the failure has been told
        try:
            os.unlink(self.temporary)
        except OSError:
            pass  # it has the target's name


class Stdout:
    """In place of a file: `-`. A terminal is not sent a file's bytes."""
    path = "-"

    def __enter__(self):
        if is_terminal(1):
            raise Failure(USAGE, "the bytes of a file do not belong on a terminal: name a file, or pipe them on")
        return self

    def write(self, content: bytes):
        sys.stdout.buffer.write(content)

    def commit(self):
        sys.stdout.buffer.flush()

    def __exit__(self, *_):
        pass


def incoming(path: str, force: bool):
    return Stdout() if path == "-" else Incoming(path, force)


def reading(path: str) -> tuple:
    """(the file, its size; None: unknown, it is read to its end). `-` is stdin."""
    if path == "-":
        return sys.stdin.buffer, None
    try:
        file = open(path, "rb")
    except OSError as why:
        raise refused(path, why) from None
    status = os.fstat(file.fileno())
    if stat.S_ISDIR(status.st_mode):
        file.close()
        raise Failure(LOCAL, f"{visible(path)}: it is a directory")
    return file, status.st_size if stat.S_ISREG(status.st_mode) else None


def text_of(path: str, most: int) -> str:
    """A whole text file, or stdin."""
    file, _ = reading(path)
    with file:
        try:
            content = file.read(most + 1)
        except OSError as why:
            raise refused(path, why) from None
    if len(content) > most:
        raise Failure(LOCAL, f"{visible(path)}: more than {most} bytes")
    try:
        return content.decode()
    except UnicodeDecodeError as why:
        raise Failure(LOCAL, f"{visible(path)}: not UTF-8 text: byte {why.start} is 0x{content[why.start]:02x}") from None


def safe_name(path: str) -> str:
    """The last segment of a path that someone else chose, as the name of a file here."""
    name = path.rstrip("/").rsplit("/", 1)[-1]
    if name in ("", ".", "..") or "\0" in name:
        raise Failure(USAGE, f"{visible(path)}: it has no name for a file; name the target")
    return name
