"""Which server, and with which credential."""
from __future__ import annotations

import os
import stat
import urllib.parse

from .failure import LOCAL, USAGE, Failure
from .text import visible

DEFAULT_URL = "http://127.0.0.1:8080"
URL_VARIABLE, WORKSPACE_VARIABLE = "AIO_API_URL", "AIO_WORKSPACE"
# The first that is set counts. A session's token goes before a key: it is the narrower credential.
CREDENTIALS = (("AIO_TOKEN", "Authorization"), ("AIO_API_KEY", "X-AIO-API-Key"), ("SANDBOX_API_KEY", "X-AIO-API-Key"))
MOST_KEY = 16 * 1024


class Settings:
    def __init__(self, options, environment=os.environ):
        url = getattr(options, "api_url", None) or environment.get(URL_VARIABLE) or DEFAULT_URL
        self.url = url.rstrip("/")
        self.secure, self.host, self.port, self.prefix = parse_url(url)
        self.headers = credential(getattr(options, "key_file", None), environment)
        workspace = getattr(options, "workspace", None) or environment.get(WORKSPACE_VARIABLE)
        if workspace:
            if not (workspace.isascii() and workspace.isprintable()):
                raise Failure(USAGE, f"workspace {visible(workspace)!r}: such a name cannot be sent in a header")
            self.headers["X-Caisson-Workspace"] = workspace


def parse_url(url: str) -> tuple:
    """(whether by TLS, host, port, path before /v1)."""
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError as why:
        raise Failure(USAGE, f"--api-url {visible(url)}: {why}") from None
    if parts.username is not None or parts.password is not None:
        raise Failure(USAGE, "--api-url holds a name or a password: give the key by AIO_API_KEY or --key-file")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or not url.isprintable() or " " in url:
        raise Failure(USAGE, f"--api-url {visible(url)}: it must be http://HOST[:PORT] or https://HOST[:PORT], with a path at most")
    secure = parts.scheme == "https"
    return secure, parts.hostname, port or (443 if secure else 80), parts.path.rstrip("/")


def credential(key_file, environment) -> dict:
    if key_file:
        return {"X-AIO-API-Key": checked(read_key(key_file), key_file)}
    for variable, header in CREDENTIALS:
        value = environment.get(variable, "").strip()
        if value:
            return {header: ("Bearer " if header == "Authorization" else "") + checked(value, variable)}
    return {}


def checked(key: str, where: str) -> str:
    """Never says what the key is."""
    if not key or not (key.isascii() and key.isprintable()) or " " in key:
        raise Failure(USAGE, f"{visible(where)}: this is no key: it must be one line of printable ASCII without spaces")
    return key


def read_key(path: str) -> str:
    """A key that others can read is theirs as well."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            status = os.fstat(fd)
            if not stat.S_ISREG(status.st_mode):
                raise Failure(LOCAL, f"--key-file {visible(path)}: it is not a regular file")
            if status.st_mode & 0o077 or status.st_uid not in (0, os.geteuid()):
                raise Failure(LOCAL, f"--key-file {visible(path)}: other users can read or change it: it must be yours, with `chmod 600`")
            content = file.read(MOST_KEY + 1)
    except OSError as why:
        raise Failure(LOCAL, f"--key-file {visible(path)}: {why.strerror}") from None
    if len(content) > MOST_KEY:
        raise Failure(LOCAL, f"--key-file {visible(path)}: more than {MOST_KEY} bytes")
    return content.decode("ascii", "replace").strip()
