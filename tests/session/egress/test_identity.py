"""Sessions of one workspace are told apart by their cgroups: each reaches what its own domain's list permits, and records name it."""

import contextlib
import os
import pathlib
import socket
import subprocess
import time

import pytest
import stage
import without
import world
from harness import eventually
from whole import Whole
from world import OTHER, PUBLIC, list_of, rule

pytestmark = pytest.mark.skipif(world.UNSEALED, reason="a build with sanitizers runs without seal")
ONE, TWO, QUIET = "s-one.bash", "w-node/s-two.shell", "s-quiet"
LISTS = list_of(rule("api.test", ports=[80], why="what one needs")) + list_of(rule("other.test", ports=[80], why="what two needs"), domain="shell")


class Cgroups:
    """The tree as PID 1 makes it: its own leaf, and those of sessions, with the domain where they go out."""

    def __init__(self):
        mounts = (line.split() for line in pathlib.Path("/proc/self/mounts").read_text().splitlines())
        self.mount = next((pathlib.Path(words[1]) for words in mounts if words[2] == "cgroup2"), None)
        if self.mount is None or not os.access(self.mount, os.W_OK):
            pytest.skip("there is no cgroup v2 to write to")
        self.top = self.mount / f"caisson-test-{os.getpid()}-{time.monotonic_ns()}"
        try:
            for name in ("caisson-launcher", *(f"caisson-sessions/{leaf}" for leaf in (ONE, TWO, QUIET)), "elsewhere"):
                (self.top / name).mkdir(parents=True)
        except OSError as error:
            pytest.skip(f"no cgroup can be made: {error}")

    def join(self, name):
        (self.top / name / "cgroup.procs").write_text("0")

    def as_launcher(self):
        self.join("caisson-launcher")
        if self.mount != pathlib.Path("/sys/fs/cgroup"):
            world.bind({"/sys/fs/cgroup": self.mount})

    def close(self):
        for path, _, _ in os.walk(self.top, topdown=False):
            eventually(lambda: removed(path), 60, f"nothing is left in {path}")


def removed(path):
    with contextlib.suppress(OSError):
        os.rmdir(path)
    return not os.path.exists(path)


def page(text):
    def handle(connection):
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(text) + text)

    return handle


@pytest.fixture
def cgroups():
    made = Cgroups()
    yield made
    made.close()


@pytest.fixture
def served(internet):
    internet.names.zone.update({"api.test": [PUBLIC], "other.test": [OTHER]})
    internet.seen = {"api.test": internet.serve(PUBLIC, 80, page(b"api")), "other.test": internet.serve(OTHER, 80, page(b"other"))}
    return internet


@pytest.fixture(params=["every port meets the door", "without nf_tables"])
def shared(served, cgroups, request):
    """A workspace whose sessions have different lists."""

    def prepare():
        cgroups.as_launcher()
        if request.param == "without nf_tables":
            without.take_away()

    one = Whole(served, LISTS, prepare)
    one.cgroups = cgroups
    yield one
    one.close()


def get(whole, session, host, *argv):
    return whole.curl(*argv, f"http://{host}/", first=lambda: whole.cgroups.join(f"caisson-sessions/{session}"))


def test_each_session_reaches_what_its_own_list_permits(shared):
    assert get(shared, ONE, "api.test") == (0, "api")
    assert get(shared, TWO, "other.test") == (0, "other")
    assert "not_listed" in get(shared, ONE, "other.test")[1]
    assert "not_listed" in get(shared, TWO, "api.test")[1]
    assert [len(seen) for seen in shared.internet.seen.values()] == [1, 1]


def test_and_so_it_is_through_the_proxy(shared):
    for proxy in ("http", "socks5h"):
        argv = ("-x", f"{proxy}://127.0.0.1:312")
        assert get(shared, ONE, "api.test", *argv) == (0, "api")
        assert get(shared, TWO, "api.test", *argv) != (0, "api")
    assert len(shared.internet.seen["api.test"]) <= 2


def test_records_name_session_and_domain_rule_and_reason(shared):
    get(shared, ONE, "api.test")
    record = shared.told_until("connection", session="s-one")
    assert (record["domain"], record["host"], record["rule"], record["why"]) == ("bash", "api.test", 0, "what one needs")
    assert record["down"] > 0 and record["up"] > 0 and record["ms"] >= 0 and record["generation"] == 1
    get(shared, TWO, "api.test")
    assert shared.told_until("refused", session="s-two")["domain"] == "shell"


def test_a_session_without_a_way_out_is_refused_even_where_others_have_one(shared):
    assert get(shared, QUIET, "api.test")[0] != 0
    record = shared.told_until("refused", session="s-quiet")
    assert (record["refusal"], record["detail"]) == ("not_listed", "the session has no way out")
    assert "domain" not in record and shared.internet.seen["api.test"] == []


def test_what_is_no_sessions_is_refused_on_record(shared):
    for elsewhere in ("elsewhere", "caisson-launcher"):
        status, _ = shared.curl("http://api.test/", first=lambda where=elsewhere: shared.cgroups.join(where))
        assert status != 0
        assert "session" not in shared.told_until("refused", refusal="unregistered")
    assert shared.internet.seen["api.test"] == []


def test_a_session_that_starts_later_is_known(shared):
    leaf = shared.cgroups.top / "caisson-sessions/s-late.shell"
    leaf.mkdir()
    assert get(shared, leaf.name, "other.test") == (0, "other")
    assert shared.told_until("connection", session="s-late")["domain"] == "shell"


def test_a_list_that_is_gone_permits_nothing_more(shared):
    assert get(shared, TWO, "other.test") == (0, "other")
    shared.set_lists(list_of(rule("api.test", ports=[80])), 2)
    assert get(shared, ONE, "api.test") == (0, "api")
    assert get(shared, TWO, "other.test")[0] != 0
    assert shared.told_until("refused", session="s-two")["detail"] == "the session has no way out"


@pytest.mark.parametrize("family", ["AF_INET", "AF_INET6"])
def test_it_is_told_whose_a_connection_is_whatever_family_its_socket_has(shared, family):
    """Java connects to addresses of IPv4 by sockets of IPv6."""
    code = f"s = socket.socket(socket.{family}); s.settimeout(60); s.connect(({'::ffff:' if family == 'AF_INET6' else ''!r} + '{PUBLIC}', 80))"
    code += "; s.sendall(b'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'); print(s.recv(12).decode())"
    done = subprocess.run(
        ["/usr/bin/python3", "-I", "-c", "import socket; " + code],
        preexec_fn=lambda: (shared.cgroups.join(f"caisson-sessions/{ONE}"), shared.place.enter()),
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.stdout == "HTTP/1.1 403\n", done.stderr
    assert shared.told_until("refused")["session"] == "s-one"


def test_a_socket_that_was_handed_over_stays_its_makers(shared):
    """The residual that SECURITY.md names: sessions that talk to each other can pass connections on."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        with contextlib.suppress(BaseException):
            shared.cgroups.join(f"caisson-sessions/{ONE}")
            shared.place.enter()
            made = socket.create_connection(("127.0.0.1", 312), 10)
            stage.send(theirs, b"here", [made.fileno()])
            theirs.recv(1)
        os._exit(0)
    theirs.close()
    _, fds = stage.receive(ours)
    with socket.socket(fileno=fds[0]) as made:
        made.settimeout(60)
        made.sendall(b"GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nConnection: close\r\n\r\n")
        assert world.read_all(made).endswith(b"api")
    ours.close()
    os.waitpid(pid, 0)
    assert shared.told_until("connection")["session"] == "s-one"


@pytest.mark.parametrize("prepare", [lambda: None, without.take_away], ids=["every port meets the door", "without nf_tables"])
def test_without_cgroups_different_lists_permit_nothing(served, prepare):
    """The gate finds no tree: whoever connects could be anybody."""
    whole = Whole(served, LISTS, prepare)
    try:
        assert "different lists" in whole.told_until("exit")["why"]
        assert whole.curl("http://api.test/")[0] != 0 and whole.curl("http://other.test/")[0] != 0
        assert "cannot be told apart" in whole.told_until("refused", refusal="unidentified")["detail"]
        whole.set_lists(list_of(rule("api.test", ports=[80])) + list_of(rule("api.test", ports=[80]), domain="shell"), 2)
        assert whole.curl("http://api.test/") == (0, "api")
        assert "session" not in whole.told_until("connection")
    finally:
        whole.close()
    assert served.seen["other.test"] == []
