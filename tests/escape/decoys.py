"""What stands outside a session to be attacked, and looks at it from there: files, servers, processes, IPC objects."""

import contextlib
import ctypes
import errno
import fcntl
import os
import pathlib
import shutil
import signal
import socket
import struct
import threading
import time

from harness import SESSION_UID, eventually, free_port, marked, processes

libc = ctypes.CDLL(None, use_errno=True)
CANARY = "canary-5f1c0a77"
LOOKS = 30
BEYOND_OWN = 4096  # a session has some hundred attacks, each a process or a few
ENTRIES = ("file", "victim", "moved", "leaving", "exchanged", "whiteout")
IOPRIO_GET, KEYCTL_REVOKE = 252, 3
ADD_KEY, KEYCTL = 248, 250


def tree(directory, owner):
    """A directory that anybody may write, so that only the grants stand between."""
    directory.mkdir()
    for name in ENTRIES:
        (directory / name).write_text(f"{CANARY} {name}\n")
    for name in ("secret", "hidden"):  # the latter is what the policy hides of a grant
        (directory / name).write_text(CANARY)
    (directory / "empty").mkdir()
    (directory / "link").symlink_to("file")
    os.setxattr(directory / "file", "user.decoy", b"x")
    for path in (directory, *directory.iterdir()):
        if not path.is_symlink():
            os.chown(path, owner, owner)
            path.chmod(0o777 if path.is_dir() else 0o666)
    return directory


def contents(directory):
    """What is in it, by name."""
    return sorted((p.name, p.read_bytes() if p.is_file() and not p.is_symlink() else b"") for p in directory.iterdir())


def metadata(directory):
    def facts(path):
        st = path.lstat()
        return path.name, st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns, os.listxattr(path, follow_symlinks=False)

    return sorted(facts(path) for path in directory.iterdir())


class Servers:
    """TCP, UDP and local servers of the host that answer whoever reaches them."""

    def __init__(self, directory, name):
        self.sockets = []
        self.tcp = next(port for port in iter(free_port, None) if self.tcp_server(port))  # the next one, if it was taken meanwhile
        self.udp, self.path = free_port(), directory / "socket"
        for family, host in ((socket.AF_INET, ""), (socket.AF_INET6, "::")):
            server = self.keep(socket.socket(family, socket.SOCK_DGRAM))
            if family == socket.AF_INET6:
                server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            server.bind((host, self.udp))
            threading.Thread(target=self.echo, args=[server], daemon=True).start()
        for kind, address in (
            (socket.SOCK_STREAM, str(self.path)),
            (socket.SOCK_STREAM, f"\0{name}"),
            (socket.SOCK_DGRAM, f"\0{name}-datagram"),
        ):
            server = self.keep(socket.socket(socket.AF_UNIX, kind))
            server.bind(address)
            if kind == socket.SOCK_STREAM:
                server.listen(64)
        self.path.chmod(0o777)

    def tcp_server(self, port):
        """False: somebody else has the port."""
        try:
            self.keep(socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=256))
        except OSError as e:
            if e.errno != errno.EADDRINUSE:
                raise
            return False
        return True

    def keep(self, one):
        self.sockets.append(one)
        return one

    @staticmethod
    def echo(server):
        with contextlib.suppress(OSError):
            while sender := server.recvfrom(64)[1]:
                server.sendto(b"reached", sender)

    def close(self):
        for one in self.sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


class Ipc:
    """System V and POSIX objects of the host, open to everybody."""

    def __init__(self, name, creator=0):
        self.key = (os.getpid() << 8) & 0x7FFFFFFF
        self.queue = f"/{name}"
        create = 0o1000 | 0o666
        self.segment = libc.shmget(self.key, 4096, create)
        libc.shmat.restype = ctypes.c_void_p
        self.room = libc.shmat(self.segment, None, 0)
        ctypes.memmove(self.room, CANARY.encode() + b"\0", len(CANARY) + 1)
        self.semaphore = libc.semget(self.key, 1, create)
        self.messages = libc.msgget(self.key, create)
        for _ in range(4):
            libc.msgsnd(self.messages, struct.pack("l8s", 1, b"decoy"), 8, 0)
        umask = os.umask(0)
        # In a user namespace without root of this machine root cannot have a file, nor a queue.
        libc.setfsgid(creator), libc.setfsuid(creator)
        # Small: a user may have few bytes in queues.
        self.mq = libc.mq_open(self.queue.encode(), os.O_CREAT | os.O_RDWR, 0o666, struct.pack("8l", 0, 8, 64, 0, 0, 0, 0, 0))
        failed = ctypes.get_errno()
        os.umask(umask)
        libc.setfsuid(0), libc.setfsgid(0)
        assert self.mq >= 0, f"no message queue: errno {failed}"
        libc.mq_send(self.mq, b"decoy", 5, 0)
        self.ring_key = libc.syscall(ADD_KEY, b"user", name.encode(), b"x", 1, -4)

    def state(self):
        """What an attack would change."""
        sent = libc.semctl(self.semaphore, 0, 12)
        return ctypes.string_at(self.room), sent, libc.shmget(self.key, 0, 0) == self.segment

    def close(self):
        libc.shmctl(self.segment, 0, None)
        libc.semctl(self.semaphore, 0, 0)
        libc.msgctl(self.messages, 0, None)
        libc.shmdt(ctypes.c_void_p(self.room))
        os.close(self.mq)
        libc.mq_unlink(self.queue.encode())
        libc.syscall(KEYCTL, KEYCTL_REVOKE, self.ring_key)


class Decoys:
    """All of them, in a directory of their own outside /tmp (which the tiers without a mount namespace share). `enter` is called when
    the files are there: it may start a container and enter its namespaces, where the rest is then made, and says where its root is. `root` is the uid of its root."""

    def __init__(self, base, program, owner=SESSION_UID, enter=lambda: "/", root=0):
        self.base, self.owner, self.root = base, owner, root
        self.name = f"esc-{os.getpid() % 100000}-{base.name[-4:]}"
        self.ro, self.rw, self.outside = (tree(base / n, owner) for n in ("ro", "rw", "outside"))
        shutil.copy(program, self.ro / "program")
        top = enter()
        self.servers, self.ipc = Servers(self.outside, self.name), Ipc(self.name, root)
        self.free_port = free_port()
        self.loose = [pathlib.Path(top, d, self.name) for d in ("tmp", "dev/shm")]
        for path in self.loose:
            path.write_text(CANARY)
            path.chmod(0o666)

    def programs(self, home, program):
        """Programs of root's that would give rights to whoever runs them, where the session can run them."""
        for name, mode in (("suid", 0o4755), ("sgid", 0o2755), ("capable", 0o755)):
            shutil.copy(program, home / name)
            os.chown(home / name, self.root, self.root)
            (home / name).chmod(mode)
        os.setxattr(home / "capable", "security.capability", struct.pack("<5I", 0x02000001, 1 << 7, 0, 0, 0))
        (home / "file").write_text("x")  # root's, to take a lease on

    def places(self, home, launcher, pid, **more):
        """The arguments of the program."""
        here = {f"ns_{kind}": os.readlink(f"/proc/{pid}/ns/{kind}") for kind in
                ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup")}  # fmt: skip
        return {
            "canary": CANARY, "secret": self.outside / "secret", "outside": self.outside, "ro": self.ro, "rw": self.rw,
            "audit": launcher.audit, "policies": launcher.policies, "run": launcher.run, "control": launcher.socket,
            "usock": self.servers.path, "suid": f"{home}/suid", "sgid": f"{home}/sgid", "capable": f"{home}/capable",
            "lease": home, "launcher": inner(pid), "tcp": self.servers.tcp, "udp": self.servers.udp,
            "api": launcher.port, "host_ip": host_address(), "abstract": self.name, "abstract_datagram": f"{self.name}-datagram",
            "free_port": self.free_port, "shm_key": self.ipc.key, "shm_id": self.ipc.segment, "sem_key": self.ipc.key,
            "msg_key": self.ipc.key, "mq": self.ipc.queue, "leak_key": self.ipc.key + 1, "leak_queue": f"{self.ipc.queue}-left",
            "dev_shm": f"/dev/shm/{self.name}", "tmp": f"/tmp/{self.name}", "hostname": os.uname().nodename, "key": self.name,
            "daemon": self.name[:15], **here, **more,
        }  # fmt: skip

    def left(self):
        """Processes with the daemon's name. One that forks all the time is gone between the list of processes and the look at it, so one
        look without any proves nothing."""
        for _ in range(LOOKS):
            if found := [pid for pid, (_, comm, _) in processes().items() if comm == self.name[:15]]:
                return found
        return []

    def end_left(self):
        """Ends them, however fast they fork; by themselves they end after four seconds."""
        until = time.monotonic() + 10
        while (left := self.left()) and time.monotonic() < until:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def leaked(self):
        """IPC objects that an attack left on the host; removes them."""
        found = []
        segment = libc.shmget(self.ipc.key + 1, 0, 0)
        if segment >= 0:
            libc.shmctl(segment, 0, None)
            found.append("segment")
        if libc.mq_unlink(f"{self.ipc.queue}-left".encode()) == 0:
            found.append("queue")
        return found

    def locked(self, offset):
        """Whether somebody keeps us from locking the granted file."""
        with open(self.ro / "file", "r+b") as file:
            try:
                if offset:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                else:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False

    def served(self):
        """Whether somebody answers at the free port."""
        for host in ("127.0.0.1", "::1"):
            with contextlib.suppress(OSError), socket.create_connection((host, self.free_port), timeout=0.5):
                return True
        return False

    def close(self):
        for path in self.loose:
            path.unlink(missing_ok=True)
        self.leaked()
        self.servers.close()
        self.ipc.close()


def inner(pid):
    """The number of a process in its own PID namespace."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("NSpid:")).split()[-1])


def host_address():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))
            return s.getsockname()[0]
        except OSError:
            return ""


def victim_state(pid):
    """Everything of a process that an attack of the catalogue would change; None when it is gone."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        if stat[stat.rindex(")") + 2] in "ZX":
            return None
        return {
            "state": "stopped" if stat[stat.rindex(")") + 2] in "Tt" else "running",
            "nice": stat[stat.rindex(")") + 2 :].split()[16],
            "scheduler": os.sched_getscheduler(pid),
            "affinity": sorted(os.sched_getaffinity(pid)),
            "ioprio": libc.syscall(IOPRIO_GET, 1, pid),
            **{name: pathlib.Path(f"/proc/{pid}/{name}").read_text() for name in
               ("limits", "oom_score_adj", "coredump_filter", "timerslack_ns")},
        }  # fmt: skip
    except (OSError, ValueError):
        return None


def beyond_own_numbers():
    """The next process of this PID namespace gets a number that no session's own namespace reaches. An attack on another's process goes
    by the number that it has here: a process of the attacker's own session with that number would be taken for it."""
    while (pid := os.fork()) < BEYOND_OWN:
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    os.waitpid(pid, 0)


def sleeper(control, session):
    """A process of the session, which sleeps for days; its pid outside."""
    mark = f"{1_000_000 + os.getpid()}.{time.monotonic_ns()}"  # seconds: this process may have a small number
    beyond_own_numbers()
    control.start(session, "sleep", mark)
    return eventually(lambda: marked(mark, "sleep"), what="the victim runs")[0]
