"""Gate, door and dialer as the launcher starts them, sealed, in the place of a container: what programs of a session reach, and what not."""

import os
import shutil
import time

import pytest
import world
from whole import Whole
from world import METADATA, OTHER, PRIVATE, PUBLIC, echo, list_of, rule

pytestmark = pytest.mark.skipif(world.UNSEALED, reason="a build with sanitizers runs without seal")


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
    one = Whole(internet, list_of(rule("api.test", ports=[80, 2222]), rule("denied.test", deny=True), rule("inside.test")))
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
