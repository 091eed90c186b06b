"""aio exec: a command of /v1/bash, its output as it comes, its exit code as ours.

The command runs by itself in the server; this program polls its output by offsets and gives it stdin. Output is text: the server shows
bytes that are not UTF-8 as U+FFFD. It goes to stdout as it is, terminal sequences too, because whoever runs a command wants what it says."""
from __future__ import annotations

import os
import shlex
import signal
import sys
import time

from . import stdin
from .failure import ABSENT, LOCAL, OURS, PIPE, USAGE, Failure, Stopped
from .output import is_terminal, raw, say
from .text import cut, visible

POLL_SECONDS = 25.0
ANSWER_SECONDS = 90.0  # above a poll's
GRACE_SECONDS = 2.0    # of a command that was interrupted
MOST_KEPT = 16 * 1024 * 1024  # characters of each stream in one JSON document


class Interrupt:
    """While a command is being started, an interrupt waits: whose number is not known yet cannot be ended. A second one does not wait."""

    def __init__(self):
        self.held, self.came = True, None
        self.before = {number: signal.signal(number, self.on) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def on(self, number, _frame):
        again, self.came = self.came is not None, number
        if not self.held or again:
            raise Stopped(number)

    def release(self):
        self.held = False
        if self.came is not None:
            raise Stopped(self.came)

    def restore(self):
        for number, handler in self.before.items():
            signal.signal(number, handler)


def command_of(options, argv: list) -> str:
    """One word is a line for bash; several, or what follows --, are a command and its arguments."""
    words = list(options.words)
    explicit = bool(words) and words[0] == "--"
    words = words[1:] if explicit else words
    if not words or not any(words):
        raise Failure(USAGE, "exec: no command: aio exec 'ls | wc -l', or aio exec -- ls -l")
    explicit = explicit or argv[len(argv) - len(words) - 1] == "--"
    line = words[0] if len(words) == 1 and not explicit else " ".join(shlex.quote(word) for word in words)
    return " " + line if line.startswith("-") else line  # bash -c would take it for an option


def environment_of(given: list) -> dict:
    """NAME=VALUE, or NAME with the value that it has here."""
    found = {}
    for one in given or []:
        name, equals, value = one.partition("=")
        if not name or (not equals and name not in os.environ):
            raise Failure(USAGE, f"--env {visible(one)}: it must be NAME=VALUE, or the name of a variable that is set here")
        found[name] = value if equals else os.environ[name]
    return found


class Run:
    """A command on its way: `place` names it in requests."""

    def __init__(self, client, out):
        self.client, self.out = client, out
        self.place, self.offsets = {}, {"offset": 0, "stderr_offset": 0}
        self.kept = {"stdout": [], "stderr": []}
        self.room = {"stdout": MOST_KEPT, "stderr": MOST_KEPT}
        self.hints = set()

    def start(self, body: dict):
        made = self.client.data("POST", "/v1/bash/exec", body, seconds=ANSWER_SECONDS)
        self.place = {"session_id": made["session_id"], "command_id": made["command_id"]}

    def take(self, name: str, text: str):
        if self.out.forced:
            self.kept[name].append(text[:self.room[name]])
            self.room[name] -= len(self.kept[name][-1])
        elif text:
            raw(sys.stdout if name == "stdout" else sys.stderr, text.encode("utf-8", "replace"))

    def poll(self, wait: bool) -> dict:
        """Hands on what is new; the state of the command, which goes on while the server is replaced."""
        body = {**self.place, **self.offsets, "wait": wait, "wait_timeout": POLL_SECONDS}
        answer = self.client.outlast("POST", "/v1/bash/output", body, seconds=ANSWER_SECONDS)
        data = answer["data"]
        self.offsets = {name: data.get(name, was) for name, was in self.offsets.items()}
        for name in ("stdout", "stderr"):
            self.take(name, data.get(name) or "")
        hint = answer.get("hint")
        if hint and hint not in self.hints and len(self.hints) < 100:
            self.hints.add(hint)
            say(cut(visible(hint), 500))
        data["news"] = bool(data.get("stdout") or data.get("stderr"))
        return data

    def follow(self) -> dict:
        while True:
            data = self.poll(True)
            if (data.get("command") or {}).get("status") not in ("pending", "running"):
                break
        while data["news"]:  # a server may send what is left in pieces
            data = self.poll(False)
        return data["command"] or {}

    def end(self, number: int):
        """The signal first, a moment for its last words, then the session's end, which ends all that the command started."""
        self.client.close()
        name = "SIGINT" if number == signal.SIGINT else "SIGTERM"
        session = self.place["session_id"]
        try:
            self.client.data("POST", "/v1/bash/kill", {"session_id": session, "signal": name}, seconds=10)
            end = time.monotonic() + GRACE_SECONDS
            while time.monotonic() < end and self.poll(False)["command"]["status"] == "running":
                time.sleep(0.05)
        except (Failure, BrokenPipeError, Stopped):  # a second interrupt: no last words, then
            self.client.close()
        self.close_session()

    def close_session(self):
        try:
            self.client.data("POST", f"/v1/bash/sessions/{self.place['session_id']}/close", {}, seconds=10)
        except Failure as why:
            if why.code != ABSENT:  # it has ended already
                say(f"the command may still run: {why.text}")


def run(client, options, out) -> int:
    body = {"command": command_of(options, options.argv), "async_mode": True}
    if options.cwd:
        body["exec_dir"] = options.cwd
    if options.env:
        body["env"] = environment_of(options.env)
    if options.timeout:
        body["hard_timeout"] = options.timeout
    interrupt = Interrupt()
    running = Run(client, out)
    feeding = None
    try:
        running.start(body)
        feeding = stdin.Feeding(client.copy(), running.place)
        interrupt.release()
        if not options.no_stdin and (options.stdin or not is_terminal(0)):
            feeding.start()
        else:
            stdin.close(client, running.place)
        return ended(running, followed(running, feeding), out, options)
    except Stopped as stopped:
        interrupt.held = True
        if running.place:
            running.end(stopped.signal)
        else:
            say("the server had not answered: the command may run")
        return 128 + stopped.signal
    except BrokenPipeError:
        if running.place:
            client.close()
            running.close_session()
        return PIPE
    except Exception:
        if running.place:
            client.close()
            running.close_session()
        raise
    finally:
        if feeding is not None:
            feeding.over.set()
        interrupt.restore()


def followed(running: Run, feeding: stdin.Feeding) -> dict:
    """The state at its end, unless its input ended it."""
    try:
        state = running.follow()
    except Failure:
        if not feeding.failed:
            raise
        state = {}
    if feeding.failed:
        raise Failure(LOCAL, feeding.failed)
    return state


def ended(running: Run, state: dict, out, options) -> int:
    code, why = verdict(state, options)
    if out.forced:
        cut_short = {name: room <= 0 for name, room in running.room.items()}
        out.document({"stdout": "".join(running.kept["stdout"]), "stderr": "".join(running.kept["stderr"]), "truncated": cut_short,
                      "status": state.get("status"), "exit_code": state.get("exit_code"), "end": state.get("end")})
    if why:
        say(why)
    return code


def verdict(state: dict, options) -> tuple:
    """(our exit code, what to say of it): a command that was ended by something else than itself or a signal has no code of its own."""
    status, code, end = state.get("status"), state.get("exit_code"), state.get("end") or {}
    reason = end.get("reason")
    if status == "timed_out" or reason == "time":
        return OURS, f"the command was ended after {options.timeout or end.get('allowed')} s"
    if status == "completed" and isinstance(code, int) and reason in (None, "exit", "signal"):
        return code & 255, ""
    if reason == "signal" and end.get("signal") in signal.Signals.__members__:
        return 128 + signal.Signals[end["signal"]], ""
    limit = f": {end.get('limit')} of {end.get('allowed')}" if end.get("limit") else ""
    return OURS, visible(f"the command was ended by the server ({reason or status}{limit})")
