"""How commands end: the exit codes, and the failure that carries one."""
from __future__ import annotations

OK, FAILED, USAGE, UNREACHABLE, DENIED, ABSENT, LOCAL, SERVER, TIMEOUT = range(9)
INTERRUPTED, PIPE, OURS = 130, 141, 255

# What `aio --help` and the README say of them.
CODES = {
    OK: "done",
    FAILED: "the server refused or could not do it, or the code or tool that it ran failed",
    USAGE: "the command line is wrong, or the server does not accept an argument",
    UNREACHABLE: "no connection to the server",
    DENIED: "the server does not accept the credential, or it does not permit this",
    ABSENT: "there is no such file, session, tab, server or operation",
    LOCAL: "a file on this side cannot be read or written, or exists already",
    SERVER: "the server failed, or its answer is not understood",
    TIMEOUT: "the time was over",
    INTERRUPTED: "ended by Ctrl-C (128 and the signal's number: 143 is SIGTERM)",
    PIPE: "the reader of the output went away",
    OURS: "of `aio exec` alone: not the command but aio failed, or a limit or timeout ended the command; stderr says why",
}


class Failure(Exception):
    """One sentence for stderr (what, where, what to do) and the exit code. `unsent`: no server has seen the request."""
    unsent = False

    def __init__(self, code: int, text: str):
        super().__init__(text)
        self.code, self.text = code, text


class Stopped(Exception):
    """A signal that ends the program arrived."""

    def __init__(self, signal: int):
        super().__init__(signal)
        self.signal = signal
