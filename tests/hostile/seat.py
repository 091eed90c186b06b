"""A hostile agent: speaks raw messages to the launcher over the agent's own end of the socket pair."""

import array
import ctypes
import json
import os
import pathlib
import re
import signal
import socket
import time

from harness import Refused, descendants, eventually, names_below, state_of

MAX_MESSAGE = 64 * 1024
PIDFD_GETFD = 438
LIBC = ctypes.CDLL(None, use_errno=True)


def end_of(pid):
    """A duplicate of the agent's descriptor 3."""
    pidfd = os.pidfd_open(pid)
    try:
        fd = LIBC.syscall(PIDFD_GETFD, pidfd, 3, 0)
        if fd < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
        return socket.socket(fileno=fd)
    finally:
        os.close(pidfd)


def seated(launcher, program):
    """The pid of the agent's stand-in, once it has been executed and hears signals."""
    for pid in descendants(launcher.pid):
        try:
            if os.path.samefile(f"/proc/{pid}/exe", program) and pathlib.Path(f"/proc/{pid}/comm").read_text() == "seated\n":
                return pid
        except OSError:
            pass
    return None


class Seat:
    def __init__(self, launcher, program):
        self.launcher = launcher
        self.pid = eventually(lambda: seated(launcher, program), what="the stand-in sits")
        self.socket = end_of(self.pid)
        self.socket.settimeout(120)
        self.next_id, self.unread, self.sessions = 1, [], []

    def close(self):
        self.socket.close()

    def signal(self, number):
        os.kill(self.pid, number)

    def alive(self):
        return state_of(self.pid) not in (None, "Z")

    def raw(self, data, fds=()):
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        try:
            self.socket.sendmsg([data], ancillary)
            return True
        except (BrokenPipeError, ConnectionResetError):
            return False

    def say(self, op, **members):
        number = self.next_id
        self.next_id += 1
        self.raw(json.dumps({"id": number, "op": op, **members}).encode())
        return number

    def hear(self):
        """The next message; its descriptors are closed. None: the launcher has closed its end."""
        try:
            data, fds, _, _ = socket.recv_fds(self.socket, MAX_MESSAGE + 1, 8)
        except ConnectionResetError:
            return None
        for fd in fds:
            os.close(fd)
        return json.loads(data) if data else None

    def answer(self, number):
        while (message := self.hear()) is not None:
            if message.get("id") == number:
                return message
            self.unread.append(message)
        raise EOFError("the launcher ended the agent")

    def ask(self, op, **members):
        return self.answer(self.say(op, **members))

    def create(self, **members):
        answer = self.ask("session_create", domain="bash", **members)
        if not answer["ok"]:
            raise Refused(answer["error"])
        self.sessions.append(answer["session"])
        return answer["session"]


# The states of the protocol: each brings the agent there, and where a request is under way, its answer is not awaited.
def greeting(seat):
    pass


def opened(seat):
    assert seat.ask("hello", protocol=1)["ok"]


def building(seat):
    opened(seat)
    seat.say("session_create", domain="bash", narrow={"tmp": "private"})


def idle(seat):
    opened(seat)
    seat.create()


def starting(seat):
    idle(seat)
    seat.say("session_exec", session=seat.sessions[0], argv=["sleep", "1000"])


def running(seat):
    idle(seat)
    assert seat.ask("session_exec", session=seat.sessions[0], argv=["sleep", "1000"])["ok"]


def ending(seat):
    running(seat)
    seat.say("session_destroy", session=seat.sessions[0])


def unheard(seat):
    """With hundreds of answers that it does not read."""
    idle(seat)
    for _ in range(400):
        seat.say("session_list")


STATES = [greeting, opened, building, idle, starting, running, ending, unheard]
BUILDERS = 2  # the one outside of all user namespaces, and that of the default workspace


def counts(launcher):
    proc = pathlib.Path(f"/proc/{launcher.pid}")
    names = names_below(launcher.pid)
    return {
        "names": names,
        "processes": len(names),
        "descriptors": len(os.listdir(proc / "fd")),
        "mounts": len(launcher.mounts()),
        "threads": len(os.listdir(proc / "task")),
    }


def settled(launcher, sessions=0, seconds=60):
    """The counts when they no longer change, and no process of a moment is there: the sweep of logs at the launcher's start, the
    sessions that it tries then, beside so many of the test's own, and a child of the launcher's or the builder's that has not executed
    its program yet. Looks at a launcher that waits for a processor do not count: it has something to do."""
    end, before, alike = time.monotonic() + seconds, None, 0

    def passing(names):
        passed = ("caisson-logs", "caisson-launche")
        return any(n in names for n in passed) or names.count("caisson-builder") > BUILDERS or names.count("caisson-init") > sessions

    while alike < 5 and time.monotonic() < end:
        idle = state_of(launcher.pid) == "S"
        now = counts(launcher)
        alike = alike + 1 if idle and now == before and not passing(now["names"]) else 0
        before = now
        time.sleep(0.01)
    return before


def resident_kib(pid):
    return int(re.search(r"VmRSS:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text())[1])


def serves(launcher):
    """A well-behaved client at the control socket is served, whatever the agent does."""
    control = launcher.control()
    session = control.create()
    assert control.output(session, "echo", "on") == "on\n"
    control.destroy(session)
    control.close()
    launcher.controls.remove(control)


def killed_for(launcher, seat):
    """Waits for the end of that agent: what its audit records say."""
    seat.close()
    eventually(lambda: not seat.alive(), what="the agent is killed")

    def over():
        mine = [r for r in launcher.records() if r.get("pid") == seat.pid]
        return mine if any(r["event"] == "agent_exit" for r in mine) else None

    records = eventually(over, what="the agent's end is on record")
    ended = next(r for r in records if r["event"] == "agent_exit")
    assert (ended["signaled"], ended["status"]) == (True, signal.SIGKILL)
    return [r["what"] for r in records if r["event"] == "agent_violation"]
