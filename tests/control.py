"""A client of the launcher's control socket: strict JSON over SOCK_SEQPACKET, descriptors by SCM_RIGHTS. Used by the session
tests, which must see what the launcher itself does, without the agent between."""

import array
import json
import os
import select
import socket


# What a home begins with, as it is listed.
SKEL = sorted(e.name for e in os.scandir("/etc/skel") if e.is_file(follow_symlinks=False)) if os.path.isdir("/etc/skel") else []

PATIENCE = 240  # seconds: npm, go or a flood of calls say nothing for a minute where something else has the processors


class Refused(RuntimeError):
    """The launcher's error reply; .error is its object: code, what, and step and errno where they apply."""

    def __init__(self, error):
        super().__init__(json.dumps(error))
        self.error = error


class Control:
    def __init__(self, path, hello=True):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(str(path))
        self.next_id = 1
        self.events = []
        self.hello = self.call("hello", protocol=1)[0] if hello else None

    def close(self):
        self.socket.close()

    def send(self, op, **arguments):
        number = self.next_id
        self.next_id += 1
        self.socket.send(json.dumps({"id": number, "op": op, **arguments}).encode())
        return number

    def receive(self):
        data, ancillary, flags, _ = self.socket.recvmsg(65537, socket.CMSG_SPACE(4 * 4), socket.MSG_CMSG_CLOEXEC)
        if not data:
            raise EOFError("the launcher closed the connection")
        fds = array.array("i")
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
        return json.loads(data), list(fds)

    def wait(self, number):
        while True:
            message, fds = self.receive()
            if message.get("id") == number:
                return message, fds
            self.events.append(message)

    def until(self, *numbers):
        """Every answer up to the last of these, by its number; their descriptors are closed. Events that come meanwhile are kept."""
        answers = {}
        while not set(numbers) <= set(answers):
            message, fds = self.receive()
            for fd in fds:
                os.close(fd)
            if "id" in message:
                answers[message["id"]] = message
            else:
                self.events.append(message)
        return answers

    def call(self, op, **arguments):
        message, fds = self.wait(self.send(op, **arguments))
        if not message["ok"]:
            raise Refused(message["error"])
        return message, fds

    def event(self, kind, **fields):
        """Waits for an event that has these fields."""
        while True:
            for i, event in enumerate(self.events):
                if event.get("event") == kind and all(event.get(k) == v for k, v in fields.items()):
                    return self.events.pop(i)
            self.events.append(self.receive()[0])

    def create(self, domain="bash", **arguments):
        return self.call("session_create", domain=domain, **arguments)[0]["session"]

    def start(self, session, *argv, **arguments):
        """Starts a command: (its name, descriptors)."""
        reply, fds = self.call("session_exec", session=session, argv=list(argv), **arguments)
        return reply["exec"], fds

    def exit(self, session, name):
        return self.event("exec_exit", session=session, exec=name)

    def run(self, session, *argv, stdin=None, **arguments):
        """Runs a command to its end: (exit event, stdout, stderr)."""
        name, fds = self.start(session, *argv, stdin=stdin is not None, **arguments)
        if stdin is not None:
            os.write(fds[0], stdin)
            os.close(fds[0])
        out = {fds[-2]: b"", fds[-1]: b""}
        live = set(out)
        while live:
            for fd in select.select(list(live), [], [], PATIENCE)[0] or _late(argv):
                chunk = os.read(fd, 65536)
                out[fd] += chunk
                if not chunk:
                    live.discard(fd)
                    os.close(fd)
        exit_event = self.exit(session, name)
        return exit_event, out[fds[-2]].decode(errors="replace"), out[fds[-1]].decode(errors="replace")

    def output(self, session, *argv, **arguments):
        """stdout of a command that must succeed."""
        ended, out, err = self.run(session, *argv, **arguments)
        assert ended.get("exit_code") == 0, f"{argv}: {ended}\n{out}\n{err}"
        return out

    def destroy(self, session):
        self.call("session_destroy", session=session)

    def end(self, session):
        """Destroys it, unless it has ended already: a list may still name one that has."""
        try:
            self.destroy(session)
        except Refused as gone:
            if gone.error["code"] != "not_found":
                raise


def _late(argv):
    raise TimeoutError(f"no output and no end of {argv} within {PATIENCE} s")
