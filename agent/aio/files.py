"""aio files: what takes more than one request."""
from __future__ import annotations

import os
import secrets
import shlex
import sys

from . import local, transfer
from .failure import ABSENT, FAILED, LOCAL, SERVER, USAGE, Failure
from .text import size, visible

MOST_ENTRIES = 100_000


def download(client, remote: str, target):
    """change_policy=abort: a file that changes during its download must not arrive half old and half new."""
    return transfer.download(client, "/v1/file/download", {"path": remote, "change_policy": "abort"}, target, remote)


def cat(client, options, _out) -> int:
    """Bytes as they are; on a terminal, text with everything else escaped."""
    from .output import is_terminal
    from .text import lines

    if is_terminal(1):
        shown = client.data("POST", "/v1/file/read", {"file": options.path})
        sys.stdout.write(lines(shown["content"]))
        return 0
    with local.Stdout() as target:
        download(client, options.path, target)
        target.commit()
    return 0


def get(client, options, out) -> int:
    remote, here = options.remote, options.local
    if options.recursive:
        return get_folder(client, options, out)
    if here is None or (here != "-" and (here.endswith("/") or os.path.isdir(here))):
        here = os.path.join(here or "", local.safe_name(remote))
    with local.incoming(here, options.force) as target:
        download(client, remote, target)
        target.commit()
    if here != "-":
        count = os.path.getsize(here)
        out.show({"remote": remote, "path": here, "bytes": count}, lambda _: f"{visible(here)}  {size(count)}")
    return 0


def below(root: str, path: str) -> list:
    """The segments of a path that the server lists below `root`. It may say anything: only names of what is below are used."""
    parts = path[len(root):].strip("/").split("/") if path.startswith(root.rstrip("/") + "/") else [""]
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise Failure(SERVER, f"the server lists {visible(path)!r}, which is not below {visible(root)!r}: nothing more is taken from it")
    return parts


def get_folder(client, options, out) -> int:
    """Into a new folder: nothing that is there, no link either, is written through."""
    here = options.local or local.safe_name(options.remote)
    if here == "-":
        raise Failure(USAGE, "--recursive needs a folder, not -")
    listed = client.data("POST", "/v1/file/list", {"path": options.remote, "recursive": True})
    root, entries = listed["path"], listed.get("files") or []
    if len(entries) > MOST_ENTRIES:
        raise Failure(FAILED, f"{visible(options.remote)}: more than {MOST_ENTRIES} entries: pack them with tar and get that")
    plan = [(below(root, entry["path"]), entry) for entry in entries]
    try:
        os.mkdir(here)
        for parts, entry in sorted(plan, key=lambda one: one[0]):
            place = os.path.join(here, *parts)
            os.makedirs(place if entry["is_directory"] else os.path.dirname(place), exist_ok=True)
    except FileExistsError:
        raise Failure(LOCAL, f"{visible(here)}: it exists already, and --recursive makes a new folder: name another") from None
    except OSError as why:
        raise local.refused(here, why) from None
    got = 0
    for parts, entry in plan:
        if not entry["is_directory"]:
            with local.incoming(os.path.join(here, *parts), False) as target:
                download(client, entry["path"], target)
                target.commit()
            got += 1
    out.show({"remote": root, "path": here, "files": got}, lambda _: f"{visible(here)}  {got} files")
    return 0


def stat(client, path: str) -> str:
    """directory, other, or nothing."""
    try:
        client.data("POST", "/v1/file/list", {"path": path, "max_depth": 1})
        return "directory"
    except Failure as why:
        if why.code == ABSENT:
            return "nothing"
        if why.code == FAILED and "Not a directory" in why.text:
            return "other"
        raise


def shell(client, line: str, *arguments: str):
    """A short command of bash, which succeeds. Relative paths are below the home, as in the rest of the API's files."""
    command = 'cd -- "$HOME" && ' + line + "".join(" " + shlex.quote(argument) for argument in arguments)
    done = client.data("POST", "/v1/bash/exec", {"command": command, "hard_timeout": 60})
    if done.get("exit_code") != 0:
        raise Failure(FAILED, visible((done.get("stderr") or f"{line}: {done.get('status')}").strip()))


def put(client, options, out) -> int:
    """Uploaded under another name beside the target, which it then takes: what reads the target finds the old or the new file."""
    remote = options.remote
    kind = stat(client, remote)
    if kind == "directory" or remote.endswith("/"):
        if options.local == "-":
            raise Failure(USAGE, f"{visible(remote)} is a directory: name the file that stdin becomes")
        remote = remote.rstrip("/") + "/" + local.safe_name(os.path.abspath(options.local))
        kind = stat(client, remote)
    if kind == "directory":
        raise Failure(FAILED, f"{visible(remote)}: it is a directory")
    if kind == "other" and not options.force:
        raise Failure(FAILED, f"{visible(remote)}: it exists already; --force replaces it")
    file, count = local.reading(options.local)
    temporary = f"{remote}.{secrets.token_hex(6)}.part"
    try:
        with file:
            sent = transfer.upload(client, "/v1/file/upload", {"path": temporary}, file, count, options.local)["data"]
        name_it(client, sent["file_path"], sent["file_path"][:len(remote) - len(temporary)], options.force, runs(options.local))
    except BaseException:
        client.close()
        remove_quietly(client, temporary)
        raise
    out.show({"local": options.local, "path": sent["file_path"][:len(remote) - len(temporary)], "bytes": sent["file_size"]},
             lambda made: f"{visible(made['path'])}  {size(made['bytes'])}")
    return 0


def runs(path: str) -> bool:
    return path != "-" and os.access(path, os.X_OK) and os.path.isfile(path)


def name_it(client, temporary: str, path: str, force: bool, program: bool):
    """A file that is replaced leaves its mode to the new one. A link, unlike a rename, replaces nothing."""
    mode = 'chmod +x -- "$1" && ' if program else ""
    step = ('{ [ ! -f "$2" ] || chmod --reference="$2" -- "$1"; } && ' + mode + 'mv -fT -- "$1" "$2"' if force else
            mode + 'ln -T -- "$1" "$2" && rm -- "$1"')
    shell(client, "bash -c " + shlex.quote(step) + " bash", temporary, path)


def remove_quietly(client, path: str):
    try:
        shell(client, "rm -f --", path)
    except Failure:
        pass  # the upload left nothing, or the first failure says why


def remove(client, options, out) -> int:
    for path in options.paths:
        shell(client, "rm -r --" if options.recursive else "rm --", path)
    out.show({"removed": options.paths}, lambda _: "")
    return 0
