"""Gate, door and dialer as the launcher starts them, sealed, in the place of a container: what programs of a session reach, and what not."""

import os
import shutil
import socket
import subprocess
import time

import pytest
import stage
import world
from world import METADATA, OTHER, PRIVATE, PUBLIC, echo, list_of, rule

pytestmark = pytest.mark.skipif(world.UNSEALED, reason="a build with sanitizers runs without seal")


class Whole:
    """The gate in the network namespace that stands for the container's, a workspace's namespaces beside it."""

    def __init__(self, internet, *rules, **limits):
        self.internet, self.place = internet, stage.Namespaces()
        self.socket, child = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(60)
        self.process = subprocess.Popen(
            [world.BUILD / "launcher" / "caisson-gate", "993", "994"],
            preexec_fn=lambda: (internet.as_container(), os.dup2(child.fileno(), 3)),
            pass_fds=[3],
            stdin=subprocess.DEVNULL,
            env={},
        )
        child.close()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(60)
        file = stage.memory_file(list_of(*rules, **limits))
        order = stage.struct.pack("IIQ", stage.MAKE, 1, 1) + b"default"
        stage.send(self.socket, order, [self.place.user, file, theirs.fileno()])
        os.close(file)
        theirs.close()
        assert stage.answer_of(ours, self.place) == "made"

    def told_until(self, kind, **members):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            data, _ = stage.receive(self.socket)
            record = stage.json.loads(data[4:])
            found = stage.TOLD[stage.struct.unpack("I", data[:4])[0]]
            if found == kind and all(record.get(key) == value for key, value in members.items()):
                return record
        raise AssertionError(kind)

    def curl(self, *argv):
        """(exit status, output) of curl as a session's user, whose names are answered at 127.0.0.53."""
        resolv = self.internet.folder / "session-resolv.conf"
        resolv.write_text("nameserver 127.0.0.53\noptions ndots:1\n")

        def enter():
            world.bind({"/etc/resolv.conf": resolv})
            self.place.enter()

        done = subprocess.run(["curl", "-sS", "--max-time", "90", *argv], preexec_fn=enter, capture_output=True, text=True, timeout=150, check=False)
        return done.returncode, done.stdout + done.stderr

    def close(self):
        self.socket.close()
        self.process.wait(60)
        self.place.close()


@pytest.fixture
def whole(internet):
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    internet.names.zone.update({"api.test": [PUBLIC], "denied.test": [OTHER], "inside.test": [PRIVATE]})

    def handle(connection):
        head = connection.recv(4096)
        body = b"redirected" if b"/go" not in head else b""
        moved = b"HTTP/1.1 302 Found\r\nLocation: http://denied.test/\r\n" if b"/go" in head else b"HTTP/1.1 200 OK\r\n"
        connection.sendall(moved + b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)

    internet.serve(PUBLIC, 80, handle)
    internet.elsewhere = internet.serve(OTHER, 80, echo)
    internet.serve(PUBLIC, 2222, echo)
    one = Whole(internet, rule("api.test", ports=[80, 2222]), rule("denied.test", deny=True), rule("inside.test"))
    yield one
    one.close()


def test_a_program_reaches_what_the_list_permits(whole):
    assert whole.curl("http://api.test/") == (0, "redirected")
    assert whole.told_until("connection")["host"] == "api.test"


def test_and_nothing_else(whole):
    assert whole.curl("http://denied.test/")[0] == 6  # no such name
    assert "not_listed" in whole.curl("http://unknown.test/")[1]
    assert "rebinding" in whole.curl("http://inside.test/")[1]
    assert "canary" in whole.curl(f"http://{METADATA}/")[1]
    assert "address" in whole.curl(f"http://{PRIVATE}/")[1]
    assert whole.told_until("refused", refusal="canary")["address"] == METADATA


def test_a_redirect_to_a_denied_host_ends_there(whole):
    status, _ = whole.curl("-L", "http://api.test/go")
    assert status == 6 and whole.internet.elsewhere == []
    status, text = whole.curl("-L", "--connect-to", "denied.test:80:api.test:80", "http://api.test/go")
    assert "host_differs" in text and whole.internet.elsewhere == []


def test_the_doors_own_port_is_a_proxy(whole):
    for scheme in ("http", "socks5h"):
        status, text = whole.curl("-x", f"{scheme}://127.0.0.1:312", "http://api.test/")
        assert (status, text) == (0, "redirected"), scheme
    assert whole.curl("-x", "http://127.0.0.1:312", "-p", "telnet://api.test:22")[0] != 0


def test_it_goes_on_after_door_and_dialer_were_killed(whole):
    for name in ("door", "dialer"):
        pids = [int(p) for p in os.listdir("/proc") if p.isdigit() and command_of(p) == f"caisson-egress {name}" and parent_of(p) == whole.process.pid]
        assert len(pids) == 1, name
        os.kill(pids[0], 9)
        whole.told_until("start", process=name)
        end = time.monotonic() + 60
        while (got := whole.curl("http://api.test/")) != (0, "redirected"):
            assert time.monotonic() < end, got


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            words = file.read().split("\0")
    except OSError:
        return ""
    return " ".join([os.path.basename(words[0]), *words[1:]]).strip()


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])
