"""Runs inside a session: tries things there, then again in children that it confines by Landlock and seccomp as agents confine their commands.
Prints JSON: by child, what each attempt gave ("ok", or the errno's name).

One argument, "files" or "tcp": what its rulesets handle."""
import ctypes
import errno
import json
import os
import pathlib
import shutil
import socket
import struct
import sys
import tempfile

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
CREATE, ADD, RESTRICT = 444, 445, 446  # landlock_*, the same everywhere
SECCOMP, CLONE, UNSHARE, MOUNT, PTRACE, GETPRIORITY = (317, 56, 272, 165, 101, 140) if X86 else (277, 220, 97, 40, 117, 141)
NEW_USER, SIGCHLD, NEW_LISTENER, PR_SET_SECCOMP = 0x10000000, 17, 8, 22
READS, ALL = 0xD, (1 << 13) - 1  # rights of the first version: execute, read files and directories; and all of them
CONNECT_TCP = 2
HOME = pathlib.Path.home()


def call(number, *arguments):
    result = LIBC.syscall(number, *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def landlock(net, *rules):
    """Confines this process for good: each rule is (directory, rights); the rest of what is handled is refused."""
    attributes = struct.pack("=QQ", ALL, CONNECT_TCP) if net else struct.pack("=Q", ALL)
    ruleset = call(CREATE, attributes, len(attributes), 0)
    for path, rights in rules:
        parent = os.open(path, os.O_PATH)
        call(ADD, ruleset, 1, struct.pack("=Qi", rights, parent), 0)
        os.close(parent)
    call(RESTRICT, ruleset, 0)
    os.close(ruleset)


def seccomp(refused=-1, flags=0):
    """A filter that answers ENOTEMPTY for one call, and permits everything else: an errno that nothing else gives here. Without flags by prctl."""
    steps = [(0x20, 0, 0, 0), (0x15, 0, 1, refused & 0xFFFFFFFF), (0x06, 0, 0, 0x50000 | errno.ENOTEMPTY), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = struct.pack("@HP", len(steps), ctypes.addressof(code))
    if flags is not None:
        call(SECCOMP, 1, flags, program)
    elif LIBC.prctl(PR_SET_SECCOMP, 2, program) != 0:
        raise OSError(ctypes.get_errno(), "")


def ended(pid):
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


def connected(address):
    with socket.socket() as one:
        one.settimeout(5)
        one.connect(address)


def attempts(inside, server):
    """What a nested confinement may take away, by name, and what the session's own walls refuse whatever is nested in them."""
    may = {
        "write in the folder": lambda: (inside / "x").write_text("x"),
        "write in the home": lambda: (HOME / ".nested").write_text("x"),
        "write in /tmp": lambda: pathlib.Path("/tmp/nested").write_text("x"),
        "read /usr": lambda: pathlib.Path("/usr/bin/env").read_bytes(),
        "getpriority": lambda: call(GETPRIORITY, 0, 0),
        "a server of the session": lambda: connected(server),
    }
    never = {
        "read /etc/shadow": lambda: open("/etc/shadow"),
        "read the launcher": lambda: open("/usr/lib/caisson"),
        "list /root": lambda: os.listdir("/root"),
        "write /usr": lambda: open("/usr/nested", "w"),
        "write /etc": lambda: open("/etc/nested", "w"),
        "reach outside": lambda: connected(("192.0.2.1", 80)),
        "ptrace": lambda: call(PTRACE, 0, 0, 0, 0),
        "mount": lambda: call(MOUNT, b"none", b"/tmp", b"tmpfs", 0, 0),
        "unshare": lambda: call(UNSHARE, NEW_USER),
        "clone": lambda: ended(call(CLONE, NEW_USER | SIGCHLD, 0, 0, 0, 0)),
        "listener": lambda: seccomp(flags=NEW_LISTENER),
    }

    def tried(attempt):
        try:
            attempt()
            return "ok"
        except OSError as why:
            return errno.errorcode.get(why.errno, str(why))
    return {"may": {n: tried(a) for n, a in may.items()}, "never": {n: tried(a) for n, a in never.items()}}


def child(confine, *of):
    """What the attempts give in a child that confines itself first."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            confine()
            os.write(writing, json.dumps(attempts(*of)).encode())
        except BaseException as why:
            os.write(writing, json.dumps({"failed": repr(why)}).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as results:
        got = json.loads(results.read())
    os.waitpid(pid, 0)
    return got


def layers():
    """How many rulesets a process can nest here: the kernel's 16, less those of the session."""
    def nest(count=0):
        try:
            while True:
                landlock(False, ("/", ALL))
                count += 1
        except OSError as why:
            return count, errno.errorcode[why.errno]
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        os.write(writing, json.dumps(nest()).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    return json.loads(os.read(reading, 100))


def main(net):
    inside = pathlib.Path(tempfile.mkdtemp(dir=HOME))
    try:
        listening = socket.create_server(("127.0.0.1", 0))
        of = inside, listening.getsockname()
    except OSError:  # in a tier whose sessions have no network of their own
        of = inside, ("127.0.0.1", 1)
    print(json.dumps({
        "abi": call(CREATE, 0, 0, 1),
        "the session": attempts(*of),
        "confined": child(lambda: (landlock(net, ("/", READS), (inside, ALL)), seccomp(GETPRIORITY)), *of),
        "permitted everything": child(lambda: (landlock(False, ("/", ALL)), seccomp(flags=None)), *of),
        "layers": layers(),
    }))
    shutil.rmtree(inside)
    (HOME / ".nested").unlink()
    pathlib.Path("/tmp/nested").unlink()


main(sys.argv[1] == "tcp")
