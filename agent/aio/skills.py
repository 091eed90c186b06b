"""aio skills add: a zip archive as it is; a folder or a SKILL.md is packed here first."""
from __future__ import annotations

import os
import stat
import tempfile
import zipfile

from . import local, transfer
from .failure import LOCAL, USAGE, Failure
from .output import say
from .text import visible

MOST_FILES, MOST_BYTES = 10_000, 512 * 1024 * 1024
MANIFEST = "SKILL.md"
THEN = (1980, 1, 1, 0, 0, 0)


def add(client, options, out) -> int:
    path = options.path
    if os.path.isdir(path) or os.path.basename(path) == MANIFEST:
        folder = path if os.path.isdir(path) else None
        with tempfile.TemporaryFile() as packed:
            if folder:
                pack_folder(packed, folder)
            else:
                pack_manifest(packed, path)
            size = packed.tell()
            packed.seek(0)
            answer = register(client, options, packed, size)
    else:
        file, size = local.reading(path)
        with file:
            if size is None or file.read(4) not in (b"PK\x03\x04", b"PK\x05\x06"):
                raise Failure(USAGE, f"{visible(path)}: it must be a zip archive, a folder with {MANIFEST}, or a {MANIFEST}")
            file.seek(0)
            answer = register(client, options, file, size)
    result = answer.get("data") or {}
    out.show(result, lambda made: "\n".join(f"{visible(one.get('name'))}  {visible(one.get('path'))}" for one in made.get("registered") or []))
    for one in result.get("registered") or []:
        for step in one.get("dependency_commands") or []:
            if not step.get("success"):
                say(visible(f"skill {one.get('name')}: {' '.join(step.get('command') or [])}: {(step.get('stderr') or 'it failed').strip()}")[:2000])
    return 0


def register(client, options, file, size: int) -> dict:
    return transfer.upload(client, "/v1/skills/register", {"name": options.name}, file, size, options.path, "skill.zip")


def name_of(path: str) -> str:
    return local.safe_name(os.path.abspath(path))


def pack_manifest(packed, path: str):
    """In a folder that has the name of the folder that it is in."""
    folder = name_of(os.path.dirname(os.path.abspath(path)))
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        put(archive, f"{folder}/{MANIFEST}", path)


def pack_folder(packed, folder: str):
    top, total, count, found = name_of(folder), 0, 0, False
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for here, folders, names in os.walk(folder, onerror=raise_error):
            folders[:] = sorted(name for name in folders if name not in (".git", "__pycache__"))
            for name in sorted(names) + [one for one in folders if os.path.islink(os.path.join(here, one))]:
                path = os.path.join(here, name)
                total, count, found = total + put(archive, f"{top}/{os.path.relpath(path, folder)}", path), count + 1, found or name == MANIFEST
                if total > MOST_BYTES or count > MOST_FILES:
                    raise Failure(LOCAL, f"{visible(folder)}: more than {MOST_FILES} files or {MOST_BYTES} bytes are no skill")
    if not found:
        raise Failure(LOCAL, f"{visible(folder)}: no {MANIFEST} in it")


def raise_error(why: OSError):
    raise local.refused(str(why.filename), why)


def put(archive, name: str, path: str) -> int:
    """Links and devices are refused: what they lead to was not meant to be given away."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as why:
        link = "it is a link: a skill holds the files themselves" if os.path.islink(path) else why.strerror
        raise Failure(LOCAL, f"{visible(path)}: {link}") from None
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise Failure(LOCAL, f"{visible(path)}: it is not a regular file")
        entry = zipfile.ZipInfo(name, THEN)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if status.st_mode & 0o100 else 0o100644) << 16
        with archive.open(entry, "w", force_zip64=status.st_size >= 1 << 31) as into:
            left = MOST_BYTES
            while left > 0:
                piece = file.read(min(left, 1 << 20))
                if not piece:
                    break
                into.write(piece)
                left -= len(piece)
    return status.st_size
