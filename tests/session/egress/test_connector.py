"""Sessions without a network namespace (T0, T1) whose policy goes out: their TCP connections are made on their behalf. What their
programs see of it, and what not."""

import json
import os
import shutil

import places
import pytest
from connected import NAMED, prepared
from harness import eventually
from outgoing import RULES, reach, reaches_what_the_rules_permit, records
from world import OTHER, PUBLIC

def test_a_session_reaches_what_its_list_permits_and_nothing_else(t0, internet):
    session = reaches_what_the_rules_permit(t0, internet)
    eventually(lambda: records(t0, "egress_connection", host="api.test", session=session, domain="bash"), 10, "the connection is on record")
    eventually(lambda: records(t0, "egress_refused", refusal="canary", session=session), 10, "the refusal is on record")


def test_a_domain_that_is_used_later_goes_out_too(fresh, internet):
    """It is planned again when somebody asks for it first."""
    other = {"extends": "base", **RULES, "egress": NAMED}
    (prepared(fresh, internet).policies / "other.json").write_text(json.dumps(other))
    fresh.start(wrapper=[*internet.wrapper(), *places.wrapper("T0", fresh.home)], CAISSON_READY_SESSIONS="0")
    control = fresh.control()
    assert [reach(control, control.create(domain), "api.test") for domain in ("other", "bash")] == ["served"] * 2


def test_files_are_linked_and_renamed_between_directories(t0):
    """What npm, pnpm and git do in their stores: the connector's own walls are around the session's, and do not stand in the way."""
    control = t0.control()
    program = "cd && mkdir -p one two && echo kept > one/a && ln one/a two/b && mv one/a two/c && stat -c %h two/b"
    assert control.output(control.create(), "/bin/sh", "-c", program) == "2\n"


def test_curl_does_by_itself_and_by_the_variables(t0):
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    control = t0.control()
    name = control.create()
    for argv in ((), ("--noproxy", "*")):
        curl = lambda *more: control.run(name, "curl", "-sS", "--max-time", "60", *argv, *more)  # noqa: E731
        assert curl("http://api.test/")[1] == "served", argv
        ended, out, err = curl("http://unknown.test/")
        assert "not_listed" in out, (argv, ended, out, err)
        assert curl("https://unknown.test/")[0]["exit_code"] != 0


def test_what_no_rule_names_is_refused_with_an_errno_where_no_words_can_be_told(there):
    out = there(
        "out = [tried(tcp().connect, to) for to in (('93.184.216.99', PORT), ('127.0.0.1', 22), ('10.0.0.1', 22), ('198.18.9.9', 22))]\n"
        "out.append(tried(tcp(socket.AF_INET6).connect, ('::1', 22)))\n"
        "out.append(tried(tcp(socket.AF_INET6).connect, ('2a00:2::99', PORT)))"
    )
    assert out == ["EACCES", "ECONNREFUSED", "EACCES", "EACCES", "ECONNREFUSED", "EACCES"]


def test_what_is_permitted_and_not_there_says_so(there, internet):
    internet.names.zone["api.test"] = [OTHER]
    out = there(
        "out = [tried(tcp().connect, address())]\n"
        "s = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK); out.append(tried(s.connect, address()))\n"
        "s.setblocking(True); out.append(tried(s.recv, 1))"
    )
    assert out[0] == "ECONNREFUSED" and out[1] in ("EINPROGRESS", "ok") and out[2] == "ECONNRESET"


def test_a_blocking_connection(there):
    out = there(
        "s = tcp(); s.setsockopt(6, socket.TCP_NODELAY, 1); s.connect(address())\n"
        "out = [echoes(s), s.getsockopt(6, socket.TCP_NODELAY) != 0, s.getpeername()[0], tried(s.connect, address()), s.getsockopt(1, socket.SO_ERROR)]"
    )
    assert out == [True, True, "127.0.0.1", "EISCONN", 0]


def test_a_connection_that_does_not_wait(there):
    out = there(
        "s = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)\n"
        "first = tried(s.connect, address())\n"
        "ready = select.select([], [s], [], 60)[1] == [s]\n"
        "out = [first, ready, s.getsockopt(1, socket.SO_ERROR), os.get_blocking(s.fileno()), echoes(s)]"
    )
    assert out[0] in ("EINPROGRESS", "ok") and out[1:] == [True, 0, False, True]


def test_who_watches_the_socket_before_it_is_connected_hears_of_it(there):
    out = there(
        "s = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK); e = select.epoll()\n"
        "e.register(s, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET); e.poll(0)\n"
        "tried(s.connect, address())\n"
        "events = e.poll(60); s.send(b'on'); more = e.poll(60)\n"
        "while more and not more[0][1] & select.EPOLLIN: more = e.poll(60)\n"
        "out = [bool(events and events[0][1] & select.EPOLLOUT), s.recv(2).decode()]"
    )
    assert out == [True, "on"]


def test_copies_and_children_have_the_same_connection(there):
    out = there(
        "s = tcp(); copy = s.dup(); s.connect(address()); out = [echoes(copy)]\n"
        "s = tcp(); to = address(); pid = os.fork()\n"
        "if pid == 0: s.connect(to); os._exit(0)\n"
        "os.waitpid(pid, 0); out.append(echoes(s))\n"
        "s = tcp(); ends = socket.socketpair(); socket.send_fds(ends[0], [b'.'], [s.fileno()])\n"
        "other = socket.socket(fileno=socket.recv_fds(ends[1], 1, 1)[1][0]); other.connect(to); out.append(echoes(s))"
    )
    assert out == [True, True, True]


def test_many_threads_connect_at_once(there):
    out = there(
        "to, good = address(), []\n"
        "def one():\n    s = tcp(); s.connect(to); good.append(echoes(s))\n"
        "threads = [threading.Thread(target=one) for _ in range(40)]\n"
        "for t in threads: t.start()\n"
        "for t in threads: t.join()\n"
        "out = len(good), all(good)"
    )
    assert out == [40, True]


def test_addresses_of_both_families(there):
    out = there(
        "out = []\n"
        "s = tcp(socket.AF_INET6); s.connect((PUBLIC6, PORT)); out.append(echoes(s))\n"
        "s = tcp(socket.AF_INET6); s.setsockopt(41, 26, 1); s.connect(('::ffff:' + address()[0], PORT)); out.append(echoes(s))\n"
        "out.append(tried(tcp(socket.AF_INET6).connect, ('::1', 80, 0, 0)))\n"
        "raw = struct.pack('<H', 10) + bytes(26)\n"
        "out.append(call(42, tcp().fileno(), raw, 28)); out.append(call(42, tcp().fileno(), raw, 300)); out.append(call(42, tcp().fileno(), 1, 16))\n"
        "out.append(call(42, 99, struct.pack('<HH4s8x', 2, 1, bytes(4)), 16)); out.append(call(42, 0, struct.pack('<HH4s8x', 2, 1, bytes(4)), 16))"
    )
    assert out == [True, True, "ECONNREFUSED", "EAFNOSUPPORT", "EINVAL", "EFAULT", "EBADF", "ENOTSOCK"]


def test_a_connection_that_failed_can_be_tried_again(there, internet):
    internet.names.zone["api.test"] = [OTHER]
    out = there("s = tcp(); out = [tried(s.connect, ('10.0.0.1', 22)), tried(s.connect, (PUBLIC6, PORT)), call(42, s.fileno(), bytes(16), 16)]")
    assert out[:1] == ["EACCES"] and out[2] == 0
    internet.names.zone["api.test"] = [PUBLIC]
    assert there("s = tcp(); first = tried(s.connect, ('10.0.0.1', 22)); s.connect(address()); out = [first, echoes(s)]") == ["EACCES", True]


def test_servers_are_none_and_what_listens_is_reached_by_nobody(there, internet):
    out = there(
        "s = tcp(); first = tried(s.bind, ('0.0.0.0', 8080)), tried(tcp().bind, ('127.0.0.1', 0))\n"
        "s.listen(1); out = [*first, s.getsockname()[0], tried(tcp().connect, s.getsockname())]"
    )
    assert out == ["EACCES", "EACCES", "127.0.0.1", "ECONNREFUSED"]


def test_unix_sockets_are_the_kernels_own(there):
    out = there(
        "path = os.environ['HOME'] + '/s'; server = socket.socket(socket.AF_UNIX); tried(os.unlink, path); server.bind(path); server.listen(1)\n"
        "pid = os.fork()\n"
        "if pid == 0:\n    c = socket.socket(socket.AF_UNIX); c.connect(path); c.recv(1); os._exit(0)\n"
        "peer, _ = server.accept(); seen = struct.unpack('iII', peer.getsockopt(1, socket.SO_PEERCRED, 12))\n"
        "own = seen[0] == pid, seen[1] == os.getuid()\n"
        "peer.close(); os.waitpid(pid, 0)\n"
        "out = [*own, tried(socket.socket(socket.AF_UNIX).connect, '/none'), tried(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).connect, path)]"
    )
    assert out == [True, True, "ENOENT", "EPROTOTYPE"]


SENT = "struct.pack('<HH4s8x', 2, 0x5000, bytes((93, 184, 216, 34)))"
BYPASS = {  # what is tried, and what it says
    "datagrams": ("tried(socket.socket, socket.AF_INET, socket.SOCK_DGRAM)", "EACCES"),
    "datagrams over IPv6": ("tried(socket.socket, socket.AF_INET6, socket.SOCK_DGRAM)", "EACCES"),
    "MPTCP": ("tried(socket.socket, socket.AF_INET, socket.SOCK_STREAM, 262)", "EPERM"),
    "MPTCP over IPv6": ("tried(socket.socket, socket.AF_INET6, socket.SOCK_STREAM, 262)", "EPERM"),
    "SCTP": ("tried(socket.socket, socket.AF_INET, socket.SOCK_STREAM, 132)", "EPERM"),
    "SCTP, packets": ("tried(socket.socket, socket.AF_INET, socket.SOCK_SEQPACKET, 132)", "EPERM"),
    "raw": ("tried(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1)", "EPERM"),
    "raw over IPv6": ("tried(socket.socket, socket.AF_INET6, socket.SOCK_RAW, 58)", "EPERM"),
    "ping": ("tried(socket.socket, socket.AF_INET, socket.SOCK_DGRAM, 1)", "EACCES"),
    "packets": ("tried(socket.socket, 17, socket.SOCK_RAW, 0)", "EPERM"),
    "vsock": ("tried(socket.socket, 40, socket.SOCK_STREAM)", "EPERM"),
    "fast open, sendto": (f"call(44, tcp().fileno(), b'x', 1, 0x20000000, {SENT}, 16)", "EPERM"),
    "fast open, sendmsg": ("tried(tcp().sendmsg, [b'x'], [], 0x20000000, (PUBLIC, 80))", "EPERM"),
    "fast open, sendmmsg": ("call(307, tcp().fileno(), 0, 0, 0x20000000)", "EPERM"),
    "source route": ("tried(tcp().setsockopt, 0, 4, bytes((131, 7, 4, 1, 2, 3, 4, 0)))", "EPERM"),
    "routing header": ("tried(tcp(socket.AF_INET6).setsockopt, 41, 57, bytes(24))", "EPERM"),
    "hop-by-hop options": ("tried(tcp(socket.AF_INET6).setsockopt, 41, 54, bytes(8))", "EPERM"),
    "destination options": ("tried(tcp(socket.AF_INET6).setsockopt, 41, 59, bytes(8))", "EPERM"),
    "routing header of RFC 2292": ("tried(tcp(socket.AF_INET6).setsockopt, 41, 5, bytes(24))", "EPERM"),
    "another device": ("tried(tcp().setsockopt, 1, 25, b'v0')", "EPERM"),
    "io_uring": ("call(425, 8, bytes(120))", "EPERM"),
    "a name without a connection": (f"call(44, tcp().fileno(), b'x', 1, 0x4000, {SENT}, 16)", "EPIPE"),
}  # fmt: skip


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86-64")
def test_ways_past_it_fail_with_the_errno_that_is_named(there):
    found = there("out = [%s]" % ", ".join(f"str({code})" for code, _ in BYPASS.values()))
    for (name, (_, wanted)), said in zip(BYPASS.items(), found):
        assert said == wanted or (name == "io_uring" and said == "ENOSYS") or (name == "vsock" and said == "EAFNOSUPPORT"), (name, said)


def test_fast_open_as_an_option_goes_where_the_connector_connects(there, internet):
    out = there(
        "s = tcp(); s.setsockopt(6, 30, 1); to = address(); out = [tried(s.connect, to), echoes(s), s.getpeername()[0]]\n"
        "s = tcp(); s.setsockopt(6, 30, 1); out += [tried(s.connect, ('93.184.216.99', 22)), tried(s.send, b'x')]"
    )
    assert out == ["ok", True, "127.0.0.1", "EACCES", "EPIPE"]


def test_of_sockets_that_nobody_connects_the_oldest_are_forgotten(there):
    out = there(
        "many = [tcp() for _ in range(300)]; to = address()\n"
        "out = [tried(many[0].connect, to), tried(many[-1].connect, to), echoes(many[-1])]"
    )
    assert out == ["EISCONN", "ok", True]


def test_a_process_has_no_more_sockets_than_files(there):
    assert there("import resource; resource.setrlimit(7, (16, 16))\nkept = []\nout = None\nwhile out is None:\n    try: kept.append(tcp())\n    except OSError as e: out = name(e.errno)") == "EMFILE"
