"""caisson-init alone, spoken to as the launcher does (launcher/common/wire/init_protocol.h): a command waits for its word."""
import errno
import os
import select
import signal
import socket
import struct
import subprocess

import pytest

from harness import INIT, blocked, descendants, eventually

REQUEST, REPLY = struct.Struct("=11I"), struct.Struct("=2I5i1I3q")
EXEC, SIGNAL, READY, STARTED, FAILED, EXITED, GO = 1, 2, 3, 4, 5, 6, 10
STEPS = ("none", "request", "pty", "fork", "setsid", "stdio", "chdir", "exec", "go")


class Init:
    """In a PID namespace of its own, as everywhere: without one its end would kill all that it may."""

    def __init__(self):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(60)

        def at_three():
            os.dup2(theirs.fileno(), 3)
            os.set_inheritable(3, True)  # also where it was 3 already

        self.process = subprocess.Popen(["unshare", "--pid", "--fork", "--kill-child", INIT], preexec_fn=at_three, close_fds=False,
                                        stdin=subprocess.DEVNULL)
        theirs.close()
        assert self.reply()[0] == READY

    def reply(self):
        kind, number, _, step, error, signaled, status, *_ = REPLY.unpack(self.socket.recv(4096))
        return kind, number, STEPS[step], error, signaled, status

    def quiet(self, seconds):
        assert select.select([self.socket], [], [], seconds)[0] == []

    def exec(self, number, *argv, cwd="/"):
        tail = b"".join(text.encode() + b"\0" for text in (cwd, *argv))
        with open(os.devnull, "w", encoding="utf-8") as null:
            socket.send_fds(self.socket, [REQUEST.pack(EXEC, number, 0, 0, 0, 0, len(argv), 0, 0o22, 0, 0) + tail], [null.fileno()] * 2)

    def say(self, kind, number):
        self.socket.send(REQUEST.pack(kind, number, 0, 0, 0, 0, 0, 0, 0, signal.SIGTERM, 0))


@pytest.fixture
def init():
    made = Init()
    yield made
    made.socket.close()
    made.process.kill()
    made.process.wait(60)


def test_no_program_runs_before_its_word(init, tmp_path):
    init.exec(1, "/usr/bin/touch", str(tmp_path / "ran"))
    init.quiet(0.3)
    assert not (tmp_path / "ran").exists()
    init.say(GO, 1)
    assert init.reply()[:2] == (STARTED, 1)
    assert init.reply()[:2] == (EXITED, 1)
    assert (tmp_path / "ran").exists()


@pytest.mark.parametrize("kind, number", [(GO, 2), (SIGNAL, 1)], ids=["of another command", "another message"])
def test_another_word_is_none(init, tmp_path, kind, number):
    init.exec(1, "/usr/bin/touch", str(tmp_path / "ran"))
    init.say(kind, number)
    assert init.reply()[:3] == (FAILED, 1, "go")
    init.exec(2, "/usr/bin/true")  # and the next one is not confused by it
    init.say(GO, 2)
    assert init.reply()[:2] == (STARTED, 2)
    assert init.reply()[:2] == (EXITED, 2)
    assert not (tmp_path / "ran").exists()


def test_a_word_for_what_failed_before_is_passed_over(init):
    init.exec(1, "/usr/bin/true", cwd="/nowhere")
    init.say(GO, 1)
    assert init.reply()[:3] == (FAILED, 1, "chdir")
    init.exec(2, "/usr/bin/true")
    init.say(GO, 2)
    assert init.reply()[:2] == (STARTED, 2)


def test_who_is_killed_while_it_waits_has_not_started(init):
    init.exec(1, "/usr/bin/true")
    waiting = eventually(lambda: next((p for p in descendants(init.process.pid) if blocked(p, "read", 3)), None), what="its process waits")
    os.kill(waiting, signal.SIGKILL)
    assert init.reply()[:4] == (FAILED, 1, "go", errno.ESRCH)
    init.say(GO, 1)
    init.exec(2, "/usr/bin/true")
    init.say(GO, 2)
    assert init.reply()[:2] == (STARTED, 2)


def test_who_waits_ends_with_the_launcher(init, tmp_path):
    init.exec(1, "/usr/bin/touch", str(tmp_path / "ran"))
    init.quiet(0.1)
    init.socket.close()
    eventually(lambda: init.process.poll() is not None, what="init has ended")
    assert not (tmp_path / "ran").exists()
