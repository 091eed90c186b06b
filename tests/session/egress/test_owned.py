"""Door and dialer once their code were somebody else's: what they can still do is what the lists permit, and nothing else."""

import base64
import errno
import itertools
import os
import pathlib
import platform
import shutil
import socket
import struct
import subprocess

import pytest
import stage
import world
from harness import c_compiler, eventually
from opening import Opening
from proxies import HttpProxy
from world import OTHER, PRIVATE, PUBLIC, echo, list_of, rule, upstream

pytestmark = [
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the injector is written for x86-64"),
    pytest.mark.skipif(world.UNSEALED, reason="a build with sanitizers has no seal"),
]
PORT, UPSTREAM = 9000, 7  # egress_protocol.h
NUMBERS = {"socket": 41, "connect": 42, "bind": 49, "listen": 50, "accept": 43, "accept4": 288, "fork": 57, "clone": 56, "kill": 62, "ptrace": 101,
           "mount": 165, "setns": 308, "unshare": 272, "bpf": 321, "keyctl": 250, "process_vm_readv": 310, "pidfd_open": 434, "pidfd_getfd": 438,
           "io_uring_setup": 425, "memfd_create": 319, "userfaultfd": 323, "setuid": 105, "prctl": 157, "mprotect": 10, "perf_event_open": 298}  # fmt: skip
AF_INET, AF_INET6, AF_UNIX, AF_NETLINK, AF_PACKET, AF_VSOCK = 2, 10, 1, 16, 17, 40
STREAM, DATAGRAM, RAW = 1, 2, 3
NEVER = {  # of either: a call, its first arguments, what it says
    "fork": ("fork", (), "EPERM"), "clone": ("clone", (17, 0, 0), "EPERM"), "ptrace": ("ptrace", (16, 1, 0), "EPERM"),
    "kill": ("kill", (1, 0, 0), "EPERM"), "mount": ("mount", (), "EPERM"), "setns": ("setns", (3, 0, 0), "EPERM"),
    "unshare": ("unshare", (0x10000000, 0, 0), "EPERM"), "bpf": ("bpf", (), "EPERM"), "keyctl": ("keyctl", (), "EPERM"),
    "read of another's memory": ("process_vm_readv", (1, 0, 0), "ENOSYS"), "pidfd_open": ("pidfd_open", (1, 0, 0), "ENOSYS"),
    "pidfd_getfd": ("pidfd_getfd", (3, 0, 0), "ENOSYS"), "io_uring": ("io_uring_setup", (8, 0, 0), "ENOSYS"), "memfd": ("memfd_create", (), "ENOSYS"),
    "userfaultfd": ("userfaultfd", (), "ENOSYS"), "setuid": ("setuid", (0, 0, 0), "ENOSYS"), "perf": ("perf_event_open", (), "ENOSYS"),
    "listen": ("listen", (5, 1, 0), "EPERM"), "bind": ("bind", (5, 0, 0), "EPERM"),
    "a socket of packets": ("socket", (AF_PACKET, RAW, 0), "refused"), "a raw socket": ("socket", (AF_INET, RAW, 1), "refused"),
    "a raw socket of IPv6": ("socket", (AF_INET6, RAW, 58), "refused"), "netlink": ("socket", (AF_NETLINK, RAW, 0), "refused"),
    "a UNIX socket": ("socket", (AF_UNIX, STREAM, 0), "refused"), "vsock": ("socket", (AF_VSOCK, STREAM, 0), "refused"),
}  # fmt: skip
DOOR = {
    "TCP": ("socket", (AF_INET, STREAM, 0), "EPERM"), "TCP over IPv6": ("socket", (AF_INET6, STREAM, 0), "EPERM"),
    "UDP": ("socket", (AF_INET, DATAGRAM, 0), "EPERM"), "connect": ("connect", (5, 0, 0), "EPERM"),
}  # fmt: skip
DIALER = {
    "TCP": ("socket", (AF_INET, STREAM, 0), "works"), "UDP": ("socket", (AF_INET6, DATAGRAM, 0), "works"), "accept": ("accept", (5, 0, 0), "EPERM"),
    "accept4": ("accept4", (5, 0, 0), "EPERM"), "SCTP": ("socket", (AF_INET, 5, 132), "refused"),
}  # fmt: skip
FILES = {"open:/etc/passwd": "refused", "open:/proc/1/environ": "refused", "open:/proc/self/maps": "refused", "list:/": "refused", "create:/tmp/new": "refused",
         "remove:/etc/hosts": "refused", "exec:/usr/bin/true": "EPERM"}  # fmt: skip
ASKED = itertools.count(1)
REFUSED = ("EPERM", "EACCES", "ENOSYS")


@pytest.fixture(scope="module")
def injector(tmp_path_factory):
    program = tmp_path_factory.mktemp("injector") / "injector"
    source = pathlib.Path(__file__).parents[2] / "hostile" / "injector.c"
    subprocess.run([c_compiler(), "-O1", "-o", program, source], check=True, timeout=120)

    def run(pid, calls):
        """What each of them says in this process, which goes on."""
        eventually(lambda: pathlib.Path(f"/proc/{pid}/syscall").read_text().split()[0] in ("232", "281"), what="it waits in epoll_wait or epoll_pwait")
        done = subprocess.run([program, str(pid), *calls], capture_output=True, text=True, check=False, timeout=90)
        assert done.returncode == 0, done.stderr
        results = [int(line) for line in done.stdout.split()]
        assert len(results) == len(calls)
        return [errno.errorcode[-result] if result < 0 else "works" for result in results]

    return run


@pytest.fixture
def served(internet):
    internet.names.zone.update({"api.test": [PUBLIC], "other.test": [OTHER]})
    internet.serve(PUBLIC, PORT, echo)
    internet.elsewhere = internet.serve(OTHER, PORT, echo)
    internet.open(rule("api.test", ports=[PORT]), port=PORT)
    return internet


def works(internet):
    with internet.connect("api.test", PORT) as client:
        client.sendall(b"on")
        return client.recv(2) == b"on"


def can_no_more(injector, pid, own):
    wanted = {**NEVER, **own}
    calls = [f"call:{NUMBERS[call]},{','.join(map(str, arguments))}" for call, arguments, _ in wanted.values()]
    said = injector(pid, [*calls, *FILES])
    for name, expected, found in zip([*wanted, *FILES], [*(e for _, _, e in wanted.values()), *FILES.values()], said):
        assert found == expected or (expected == "refused" and found in REFUSED), (name, found)


@pytest.mark.parametrize("which, own", [("door", DOOR), ("dialer", DIALER)])
def test_what_is_taken_over_can_do_no_more_than_it_must(served, injector, which, own):
    can_no_more(injector, getattr(served, which).pid, own)
    assert works(served)


@pytest.mark.skipif(not (shutil.which("curl") and shutil.which("openssl")), reason="needs curl and openssl")
def test_neither_can_an_opener_which_has_secrets(internet, injector, tmp_path):
    opening = Opening(internet, tmp_path)
    opening.bind()
    can_no_more(injector, opening.opener.pid, {**DOOR, "accept": DIALER["accept"], "accept4": DIALER["accept4"]})
    assert opening.curl("https://api.test/", "-H", "X-Other: 1")[0] == 0
    opening.close()


def test_memory_that_is_code_cannot_be_made(served, injector):
    for service in (served.door, served.dialer):
        with open(f"/proc/{service.pid}/maps") as maps:
            writable = next(int(line.split("-")[0], 16) for line in maps if line.split()[1] == "rw-p")
        assert injector(service.pid, [f"call:{NUMBERS['mprotect']},{writable},4096,7"])[0] in REFUSED
    assert works(served)


def asked(line, name, port=PORT, workspace=1, domain="bash"):
    """What the dialer says to a door that asks for this: (errno, refusal, how many sockets)."""
    number = next(ASKED)
    line.send(struct.pack("QIHH", workspace, number, port, len(name)) + (name + domain).encode())
    data, fds = stage.receive(line)
    for fd in fds:
        os.close(fd)
    identity, error, _, refusal = struct.unpack("IiiI", data[:16])
    assert identity == number
    return error, refusal, len(fds)


def test_a_door_that_asks_for_what_no_list_permits_gets_nothing(served):
    """As if the door were owned: the test speaks to the dialer in its place."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(60)
    stage.send(served.dialer.socket, struct.pack("IIQ", stage.TO_PEER, 0, 0), [theirs.fileno()])
    theirs.close()
    assert asked(ours, "api.test") == (0, 0, 1)
    for name, port, workspace in [("other.test", PORT, 1), ("api.test", 22, 1), (OTHER, PORT, 1), ("127.0.0.1", PORT, 1), ("169.254.169.254", 80, 1),
                                  ("11.0.0.1", 22, 1), ("::1", PORT, 1), ("api.test", PORT, 2)]:  # fmt: skip
        error, refusal, sockets = asked(ours, name, port, workspace)
        assert (error or refusal) and sockets == 0, name
    assert served.elsewhere == []


def descriptors(pid):
    """What a process has beyond what it was started with for input and output."""
    return [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd") if int(fd) > 2]


def test_a_dialer_has_nothing_of_sessions(served):
    """Its descriptors: no listener of a workspace, no connection of a client; neither has the door a file."""
    with served.connect("api.test", PORT) as client:
        client.sendall(b"a secret of the session")
        assert client.recv(100) == b"a secret of the session"
        inode = os.fstat(client.fileno()).st_ino
        held = {name: descriptors(getattr(served, name).pid) for name in ("door", "dialer")}
        inside = {f"socket:[{os.fstat(one.fileno()).st_ino}]" for one in served.sockets}
        assert inside <= set(held["door"]) and not inside & set(held["dialer"]) and f"socket:[{inode}]" not in held["dialer"]
        assert not [path for name in held for path in held[name] if path.startswith("/")], held
        with open(f"/proc/{served.dialer.pid}/maps") as maps, open(f"/proc/{served.dialer.pid}/mem", "rb", 0) as memory:
            for line in maps:
                low, high = (int(part, 16) for part in line.split()[0].split("-"))
                if "rw" in line and "[v" not in line:
                    memory.seek(low)
                    assert b"a secret of the session" not in memory.read(high - low)


def test_a_workspace_is_not_the_other(served):
    """What an owned door says for another workspace, or domain, is judged by that one's list alone."""
    file = stage.memory_file(list_of(rule("other.test", ports=[PORT])))
    stage.send(served.dialer.socket, struct.pack("IIQ", stage.OPEN, 1, 2), [file])
    os.close(file)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(60)
    stage.send(served.dialer.socket, struct.pack("IIQ", stage.TO_PEER, 0, 0), [theirs.fileno()])
    theirs.close()
    assert asked(ours, "other.test", workspace=2) == (0, 0, 1)
    assert asked(ours, "other.test", workspace=2, domain="shell")[2] == 0
    assert asked(ours, "other.test", workspace=1)[2] == 0 and asked(ours, "api.test", workspace=2)[2] == 0


def held(pid, wanted):
    """Whether a process has these bytes in memory that it can write to."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            low, high = (int(part, 16) for part in line.split()[0].split("-"))
            if line.split()[1].startswith("rw") and "[v" not in line:
                memory.seek(low)
                if wanted in memory.read(high - low):
                    return True
    return False


def test_a_proxys_credential_is_in_the_dialer_and_not_in_the_door(served):
    """So whoever owns the dialer has it: launcher/egress/README.md says so. What is bound to hosts is the opener's alone (test_opener.py)."""
    secret = "pass-word-of-the-proxy"
    named = upstream("http://proxy.test:3128", user="agent").replace(b"password \n", f"password {secret}\n".encode())
    served.names.zone["proxy.test"] = [PRIVATE]
    proxy = HttpProxy(served, PRIVATE, 3128, {("api.test", PORT): (PUBLIC, PORT)}, f"agent:{secret}")
    stage.send(served.dialer.socket, struct.pack("IIQ", UPSTREAM, 2, 1) + b"bash\n" + named)
    served.set_list(rule("api.test", ports=[PORT]), rule("proxy.test", ports=[3128], private=True), generation=2)
    assert works(served) and proxy.asked == [("api.test", PORT, f"agent:{secret}")]
    encoded = base64.b64encode(f"agent:{secret}".encode())
    assert held(served.dialer.pid, secret.encode())
    assert not held(served.door.pid, secret.encode()) and not held(served.door.pid, encoded)


def test_an_owned_dialer_is_not_held_to_the_lists_by_the_kernel(served, injector):
    """What it is trusted with, and the documents say: the control of what an owned door is refused."""
    assert injector(served.dialer.pid, [f"call:{NUMBERS['socket']},{AF_INET},{STREAM},0"]) == ["works"]
    with open(f"/proc/{served.dialer.pid}/maps") as maps:
        at = next(int(line.split("-")[0], 16) for line in maps if "[stack]" in line)  # unused: the lowest page
    sockets = {int(fd) for fd in os.listdir(f"/proc/{served.dialer.pid}/fd") if os.readlink(f"/proc/{served.dialer.pid}/fd/{fd}").startswith("socket:")}
    with open(f"/proc/{served.dialer.pid}/mem", "r+b", 0) as memory:
        memory.seek(at)
        memory.write(struct.pack("<H", AF_INET) + struct.pack(">H", PORT) + socket.inet_aton(OTHER) + bytes(8))
    assert injector(served.dialer.pid, [f"call:{NUMBERS['connect']},{max(sockets)},{at},16"])[0] in ("works", "EINPROGRESS")
    eventually(lambda: served.elsewhere, 60, "it arrives where no list leads")
