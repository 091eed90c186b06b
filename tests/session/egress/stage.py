"""A workspace's namespaces without a launcher, and caisson-gate with the test in the place of launcher, door and dialer."""

import array
import contextlib
import ctypes
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import struct
import subprocess
import time

from harness import BUILD, PRELUDE, c_compiler

GATE = BUILD / "launcher" / "caisson-gate"
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
OUTER, INNER = 20001, 1000
MAKE, AGAIN, LIST, CLOSE, LINE, OPERATOR_LINE = 1, 2, 3, 4, 5, 6  # gate_protocol.h
TOLD = ["connection", "refused", "dropped", "start", "exit"]
OPEN, TO_CLOSE, TO_PEER, CONNECTOR = 1, 2, 3, 5  # egress_protocol.h
READY, RECORD, DROPPED, CLOSED, FIGURES = 1, 2, 3, 4, 5
libc = ctypes.CDLL(None, use_errno=True)


def call(result):
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Namespaces:
    """User and network namespace as a workspace has them, held by a process in them."""

    def __init__(self):
        ready, told = os.pipe()
        mapped, go = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            with contextlib.suppress(BaseException):
                call(libc.unshare(CLONE_NEWUSER))
                os.write(told, b".")
                os.read(mapped, 1)
                call(libc.unshare(CLONE_NEWNET))
                lo_up()
                os.write(told, b".")
                os.close(go)
                os.read(mapped, 1)  # until the test ends
            os._exit(0)
        os.read(ready, 1)
        for which in ("uid", "gid"):
            pathlib.Path(f"/proc/{self.pid}/{which}_map").write_text(f"{INNER} {OUTER} 1")
        os.write(go, b".")
        assert os.read(ready, 1) == b"."
        self.keep = go
        self.user, self.net = (os.open(f"/proc/{self.pid}/ns/{name}", os.O_RDONLY) for name in ("user", "net"))
        for fd in (ready, told, mapped):
            os.close(fd)

    def hold(self, kind, family, address, port):
        """A process that has this port there, with the rights of whoever owns the namespaces; to be given to let_go()."""
        ready, told = os.pipe()
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(BaseException):
                self.enter(as_session=False)
                holder = socket.socket(family, kind)
                holder.bind((address, port))
                os.write(told, b".")
                time.sleep(600)
            os._exit(0)
        os.close(told)
        assert os.read(ready, 1) == b"."
        os.close(ready)
        return pid

    def close(self):
        for fd in (self.user, self.net, self.keep):
            os.close(fd)
        os.waitpid(self.pid, 0)

    def take(self, net):
        """What runs here from now on is in this network namespace."""
        os.close(self.net)
        self.net = net

    def enter(self, as_session=True):
        """In a child, before its exec, which takes what capabilities it has there."""
        call(libc.setns(self.user, CLONE_NEWUSER))
        call(libc.setns(self.net, CLONE_NEWNET))
        if as_session:
            os.setresgid(INNER, INNER, INNER)
            os.setresuid(INNER, INNER, INNER)

    def run(self, code, *argv):
        """Runs Python there as a session's user, with no capability: the value of `out`."""
        done = subprocess.run(
            ["/usr/bin/python3", "-I", "-c", f"{PRELUDE}\n{code}\nprint(json.dumps(out))", *map(str, argv)],
            preexec_fn=self.enter,
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


def let_go(pid):
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def lo_up():
    SIOCSIFFLAGS, IFF_UP = 0x8914, 1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        request = struct.pack("16sh14x", b"lo", IFF_UP)
        call(libc.ioctl(s.fileno(), SIOCSIFFLAGS, request))


def send(to, data, fds=()):
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    to.sendmsg([data], rights)


def receive(of, size=65536):
    data, fds, _, _ = socket.recv_fds(of, size, 8)
    return data, fds


def memory_file(data):
    fd = os.memfd_create("list")
    os.write(fd, data)
    return fd


def compiled(folder):
    """The program that stands in for caisson-seal."""
    source, program = pathlib.Path(__file__).with_name("service_double.c"), folder / "service_double"
    subprocess.run([c_compiler(), "-O1", "-o", program, source], check=True, timeout=120)
    return program


class Service:
    """Door or dialer, played by the test."""

    def __init__(self, connection, name, uid, pid, socket_):
        self.connection, self.name, self.uid, self.pid, self.socket = connection, name, uid, pid, socket_
        self.socket.settimeout(60)

    def say(self, said, text=b"", workspace=0, size=None):
        text = text if isinstance(text, bytes) else json.dumps(text).encode()
        self.socket.send(struct.pack("IIQ", said, len(text) if size is None else size, workspace) + text)

    def order(self):
        """(order, generation, workspace), and the descriptors that came along."""
        data, fds = receive(self.socket)
        return struct.unpack("IIQ", data), fds

    def orders(self, count):
        return [self.order() for _ in range(count)]


class Gate:
    def __init__(self, folder, double):
        shutil.copy(GATE, folder / "caisson-gate")
        shutil.copy(double, folder / "caisson-seal")
        (folder / "caisson-egress").touch(0o755)
        self.stage = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.stage.bind(str(folder / "stage"))
        self.stage.listen(8)
        self.stage.settimeout(60)
        self.socket, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(60)

        def prepare():
            """As the launcher starts it: descriptor 3, and none above; as many as there may be."""
            os.dup2(child.fileno(), 3)
            resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)

        self.process = subprocess.Popen(
            [folder / "caisson-gate", "993", "994", "/run/caisson"],
            preexec_fn=prepare,
            pass_fds=[3],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={},
        )
        child.close()

    def order(self, op, workspace, generation=1, name="default", fds=()):
        send(self.socket, struct.pack("IIQ", op, generation, workspace) + name.encode(), fds)

    def open(self, place, workspace=1, list_=b"list", generation=1, name="default"):
        """Asks for a way out; the socket where the answer comes."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(60)
        file = memory_file(list_)
        self.order(MAKE, workspace, generation, name, [file, theirs.fileno(), place.user])
        theirs.close()
        os.close(file)
        return ours

    def services(self, count=2):
        """Those that start next, by name."""
        found = {}
        for _ in range(count):
            connection, _ = self.stage.accept()
            data, fds = receive(connection)
            name, uid, pid = data.decode().split()
            found[name] = Service(connection, name, int(uid), int(pid), socket.socket(fileno=fds[0]))
        return found

    def told(self):
        """What it tells next, for the launcher's log."""
        data, _ = receive(self.socket)
        (kind,) = struct.unpack("I", data[:4])
        return TOLD[kind], json.loads(data[4:])

    def told_until(self, kind, **members):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            found, record = self.told()
            if found == kind and all(record.get(key) == value for key, value in members.items()):
                return record
        raise AssertionError(kind)

    def close(self):
        self.socket.close()
        assert self.process.wait(60) == 1
        self.process.stderr.close()
        self.stage.close()


def line_to(gate_socket, workspace=1, order=None):
    """As the launcher hands one to the agent."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(90)
    send(gate_socket, struct.pack("IIQ", order or LINE, 1, workspace) + b"default", [theirs.fileno()])
    theirs.close()
    return ours


def ask(gate_socket, op, workspace=1, order=None, **members):
    """What the agent would ask of a way out: its result, or (error, what)."""
    with line_to(gate_socket, workspace, order) as line:
        line.send(json.dumps({"op": op, **members}).encode())
        answer = json.loads(line.recv(1 << 17))
    return answer["result"] if "result" in answer else (answer["error"], answer["what"])


def answer_of(waiting, place=None):
    """What it says of the way out: "made", and then what runs in `place` has it, or what went wrong."""
    data, fds = receive(waiting)
    assert len(fds) == (data == b"made")
    if place and fds:
        place.take(fds[0])
    return data.decode()


def opened(gate, place):
    """A way out that is made: (the door, its three sockets as the door has them, the dialer)."""
    waiting = gate.open(place)
    services = gate.services()
    for service in services.values():
        service.say(READY)
    assert answer_of(waiting, place) == "made"
    orders = services["door"].orders(2)
    fds = next(fds for (order, _, _), fds in orders if order == OPEN)
    return services["door"], fds[1:], services["dialer"]
