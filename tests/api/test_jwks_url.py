"""Keys for tokens that are fetched from an address (CAISSON_JWKS_URL), and the program that fetches them."""
import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import time

import pytest
from conftest import BUILD, eventually
from courier_servers import Authority, Server, courier_of, send
from test_auth import FOLDER
from test_auth_tokens import Issuer, answers


@pytest.fixture(scope="module")
def issuers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("issuers")
    return [Issuer(folder, name) for name in ("one", "two")]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    made = Authority(tmp_path_factory.mktemp("ca"))
    yield made
    made.remove()


def key_set(*chosen):
    return send({"keys": [one.jwk() for one in chosen]})


@pytest.fixture
def server(issuers):
    made = Server(key_set(issuers[0]))
    yield made
    made.close()


@pytest.fixture
def serving(launch, server):
    """A launcher that asks `server`; it fetches again after a second."""
    launcher = launch(CAISSON_JWKS_URL=server.url, CAISSON_JWKS_SECONDS="1")
    yield launcher
    launcher.close()


def events(launcher, name):
    lines = (launcher.dir / "audit/launcher.ndjson").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["event"] == name]


def first_answer(launcher, token: str) -> int:
    """To a token that waits for the first set, for three seconds from the agent's question on. A machine that needs longer is no fault
    of the server's: then the next answer counts."""
    status = answers(launcher.url, token)
    if status != 200 and time.monotonic() - launcher.started > 3:
        return eventually(lambda: answers(launcher.url, token) == 200) and 200
    return status


def test_a_key_of_the_set_is_there_for_the_first_token(serving, server, issuers):
    assert first_answer(serving, issuers[0].token()) == 200
    assert answers(serving.url, issuers[1].token()) == 401
    first = server.asked[0]
    assert (first.method, first.path, first.body) == ("GET", "/keys", b"")
    assert set(first.headers) == {"Host", "User-Agent", "Accept"}, "no credential, no header of a client's"


def test_keys_rotate_as_the_set_says_over_one_connection(serving, server, issuers):
    old, new = issuers[:2]
    assert first_answer(serving, old.token()) == 200
    server.answer = key_set(old, new)
    assert eventually(lambda: answers(serving.url, new.token()) == 200)
    assert answers(serving.url, old.token()) == 200
    server.answer = key_set(new)
    assert eventually(lambda: answers(serving.url, old.token()) == 401)
    assert answers(serving.url, new.token()) == 200
    assert len({one.connection for one in server.asked}) == 1


def test_a_token_with_a_new_key_waits_for_the_set_that_has_it(launch, server, issuers):
    launcher = launch(CAISSON_JWKS_URL=server.url)
    assert first_answer(launcher, issuers[0].token()) == 200
    server.answer = key_set(*issuers[:2])
    time.sleep(10)  # since the last fetch, before which nobody may have it fetched
    launcher.started = time.monotonic()
    assert first_answer(launcher, issuers[1].token()) == 200, "at once, five minutes before the period is over"
    assert len(server.asked) == 2
    launcher.close()


def test_tokens_with_random_keys_cannot_make_it_fetch(launch, server, issuers):
    began = time.monotonic()  # before the first question
    launcher = launch(CAISSON_JWKS_URL=server.url)
    assert first_answer(launcher, issuers[0].token()) == 200
    for n in range(12):
        assert answers(launcher.url, issuers[1].token({"alg": "RS256", "kid": f"k{n}"})) == 401
        assert answers(launcher.url, issuers[0].token()) == 200
    assert len(server.asked) <= 1 + (time.monotonic() - began) // 10
    launcher.close()


@pytest.mark.parametrize("bad", [
    send(b"{\"keys\": [}"), send({"keys": []}), send({"keys": [{"kty": "oct", "k": "AAAA"}] * 101}), send(b" " * (256 * 1024 + 1)),
    send({"keys": []}, 500), send(b"{}", 302, location="http://127.0.0.1:1/"), send({"keys": []}, **{"content-encoding": "gzip"})])
def test_what_is_no_set_changes_nothing(serving, server, issuers, bad):
    assert first_answer(serving, issuers[0].token()) == 200
    before, server.answer = len(server.asked), bad
    eventually(lambda: answers(serving.url, issuers[0].token()) == 200 and len(server.asked) > before + 1)
    eventually(lambda: "CAISSON_JWKS_URL, of which nothing is taken" in serving.log.read_text())
    assert serving.log.read_text().count("CAISSON_JWKS_URL, of which nothing is taken") == 1, "a reason is told once"
    assert answers(serving.url, issuers[0].token()) == 200
    server.answer = key_set(issuers[1])
    assert eventually(lambda: answers(serving.url, issuers[1].token()) == 200)


def test_a_redirect_is_not_followed(launch, issuers):
    other = Server(key_set(issuers[0]))
    server = Server(send(b"", 307, location=other.url))
    launcher = launch(CAISSON_JWKS_URL=server.url)
    assert answers(launcher.url, issuers[0].token()) == 401
    server.wait_for(1)
    assert other.asked == []
    for one in (launcher, server, other):
        one.close()


def endless(handler):
    handler.send_response(200)
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    while True:
        handler.wfile.write(b"10000\r\n" + b"x" * 65536 + b"\r\n")


def slow(handler):
    handler.send_response(200)
    handler.send_header("content-length", "1000")
    handler.end_headers()
    for _ in range(300):
        handler.wfile.write(b" ")
        time.sleep(0.1)


@pytest.mark.parametrize(("answer", "why"), [(endless, "too large"), (slow, "no answer in time")])
def test_an_answer_without_an_end_ends(launch, server, issuers, answer, why):
    server.answer = answer
    launcher = launch(CAISSON_JWKS_URL=server.url)
    began = time.monotonic()
    assert answers(launcher.url, issuers[0].token()) == 401
    assert time.monotonic() - began < 20, "a token waits for three seconds"
    eventually(lambda: why in launcher.log.read_text())
    server.answer = key_set(issuers[0])
    assert eventually(lambda: answers(launcher.url, issuers[0].token()) == 200)
    assert int(pathlib.Path(f"/proc/{courier_of(launcher)}/status").read_text().split("VmHWM:")[1].split()[0]) < 64 * 1024
    launcher.close()


def test_https_is_verified(launch, authority, issuers):
    right, wrong = (Server(key_set(issuers[0]), authority.context(name)) for name in ("IP:127.0.0.1", "DNS:other.test"))
    stranger = launch(CAISSON_JWKS_URL=right.url)
    trusting = launch(CAISSON_JWKS_URL=right.url, SSL_CERT_FILE=str(authority.file))
    misnamed = launch(CAISSON_JWKS_URL=wrong.url, SSL_CERT_FILE=str(authority.file))
    assert [answers(stranger.url, issuers[0].token()), first_answer(trusting, issuers[0].token()), answers(misnamed.url, issuers[0].token())] == [
        401, 200, 401]
    assert wrong.asked == []
    eventually(lambda: "certificate verify failed" in misnamed.log.read_text() and "certificate verify failed" in stranger.log.read_text())
    for one in (stranger, trusting, misnamed, right, wrong):
        one.close()


def test_a_name_is_looked_up(launch, authority, issuers):
    server = Server(key_set(issuers[0]), authority.context("DNS:localhost"))
    launcher = launch(CAISSON_JWKS_URL=server.url.replace("127.0.0.1", "localhost"), SSL_CERT_FILE=str(authority.file))
    assert first_answer(launcher, issuers[0].token()) == 200
    launcher.close()
    server.close()


def test_a_killed_courier_is_replaced_and_on_record(serving, server, issuers):
    assert first_answer(serving, issuers[0].token()) == 200
    first = courier_of(serving)
    os.kill(first, signal.SIGKILL)
    second = eventually(lambda: courier_of(serving) not in (None, first) and courier_of(serving))
    server.answer = key_set(issuers[1])
    assert eventually(lambda: answers(serving.url, issuers[1].token()) == 200)
    assert [e["pid"] for e in events(serving, "courier_start")] == [first, second]
    assert [(e["pid"], e["signaled"], e["status"]) for e in events(serving, "courier_exit")] == [(first, True, 9)]


def test_each_further_courier_comes_later(serving, server):
    delays = []
    for _ in range(5):
        pid = eventually(lambda: courier_of(serving))
        os.kill(pid, signal.SIGKILL)
        began = time.monotonic()
        eventually(lambda pid=pid: courier_of(serving) not in (None, pid))
        delays.append(time.monotonic() - began)
    assert delays[4] > 2 * min(delays) and delays[4] > 0.7, delays  # the shortest: a stall of the machine makes any of them longer


def test_the_last_set_counts_for_a_stated_time_only(launch, server, issuers):
    launcher = launch(CAISSON_JWKS_URL=server.url, CAISSON_JWKS_SECONDS="1", CAISSON_JWKS_STALE_SECONDS="20")
    assert first_answer(launcher, issuers[0].token()) == 200
    server.answer = send(b"", 503)
    time.sleep(3)
    assert answers(launcher.url, issuers[0].token()) == 200, "a failure changes nothing for now"
    eventually(lambda: answers(launcher.url, issuers[0].token()) == 401)
    assert "too old" in launcher.log.read_text()
    launcher.close()


def test_a_restarted_agent_has_the_keys(serving, issuers):
    assert first_answer(serving, issuers[0].token()) == 200
    courier = courier_of(serving)
    serving.started = time.monotonic()
    os.kill(serving.agent_pid, signal.SIGKILL)
    serving.wait_ready()
    assert first_answer(serving, issuers[0].token()) == 200
    assert courier_of(serving) == courier, "it outlives the agent"


def test_without_its_settings_there_is_no_courier(native):
    assert courier_of(native) is None
    assert os.readlink(f"/proc/{native.agent_pid}/fd/0") == "/dev/null"


@pytest.mark.parametrize("url", ["ftp://a/", "https://user:x@a/", "https://a/#b", "https://a:0/"])
def test_a_wrong_address_stops_the_agent_with_one_sentence_without_the_address(url):
    agent = subprocess.run([BUILD / "agent/caisson-agent"], env={"CAISSON_JWKS_URL": url, "CAISSON_AUTH": "none"}, capture_output=True, text=True)
    assert agent.returncode == 2 and agent.stderr.count("\n") == 1
    assert "CAISSON_JWKS_URL: must be " in agent.stderr and url not in agent.stderr


def test_the_courier_has_no_privilege(serving):
    status = pathlib.Path(f"/proc/{courier_of(serving)}/status").read_text()
    fields = dict(line.split(":\t", 1) for line in status.splitlines())
    assert set(fields["Uid"].split()) == {"992"} and set(fields["Gid"].split()) == {"992"}
    assert fields["Groups"].strip() == "" and fields["NoNewPrivs"] == "1" and fields["Seccomp"] == "2"
    assert {int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert fields["Threads"] == "1"


TRY = """
import ctypes, errno, json, os, socket
libc = ctypes.CDLL(None, use_errno=True)
filter = os.pread(4, 65536, 0)
program = (ctypes.c_uint64 * 2)(len(filter) // 8, ctypes.addressof(ctypes.create_string_buffer(filter)))
text = ctypes.create_string_buffer(filter, len(filter))
program[1] = ctypes.addressof(text)
assert libc.syscall({"x86_64": 317, "aarch64": 277}[os.uname().machine], 1, 0, ctypes.byref(program)) == 0  # seccomp(2)
def what(attempt):
    try:
        attempt()
    except OSError as e:
        return errno.errorcode[e.errno]
    return "done"
def at(family, kind):
    return lambda: socket.socket(family, kind).close()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
os.write(1, json.dumps({
    "tcp": what(at(socket.AF_INET, socket.SOCK_STREAM)), "udp6": what(at(socket.AF_INET6, socket.SOCK_DGRAM)),
    "unix": what(at(socket.AF_UNIX, socket.SOCK_STREAM)), "netlink": what(at(socket.AF_NETLINK, socket.SOCK_RAW)),
    "packet": what(at(socket.AF_PACKET, socket.SOCK_RAW)), "vsock": what(at(socket.AF_VSOCK, socket.SOCK_STREAM)),
    "raw": what(at(socket.AF_INET, socket.SOCK_RAW)), "bind": what(lambda: udp.bind(("127.0.0.1", 0))), "fork": what(os.fork),
    "exec": what(lambda: os.execv("/usr/bin/true", ["true"])), "kill": what(lambda: os.kill(1, 0)),
    "passwd": what(lambda: open("/etc/passwd")), "auth": what(lambda: os.listdir("/etc/caisson/auth")),
    "policies": what(lambda: os.listdir("/etc")), "write": what(lambda: open("/tmp/courier-try", "w")),
    "hosts": what(lambda: open("/etc/hosts")), "store": what(lambda: os.listdir("/etc/ssl")), "root": what(lambda: os.setuid(0)),
}).encode())
os._exit(0)
"""


def test_what_is_sealed_as_the_courier_reaches_nothing_else():
    """A stand-in, started as the courier is."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    python = os.path.realpath("/usr/bin/python3")
    done = subprocess.run([BUILD / "launcher/caisson-seal", "courier", "992", python], input=TRY, capture_output=True, text=True, cwd="/", env={})
    assert done.stdout, done.stderr
    refused = json.loads(done.stdout)
    allowed = {name for name, how in refused.items() if how == "done"}
    assert allowed == {"tcp", "udp6", "hosts", "store"}, refused
    assert refused["passwd"] == refused["auth"] == refused["policies"] == refused["write"] == "EACCES"
    assert refused["exec"] == refused["fork"] == refused["bind"] == refused["kill"] == "EPERM"


def test_the_line_has_two_words(serving, server, issuers):
    """An owned agent says something else: the courier ends, and has gone nowhere for it."""
    assert first_answer(serving, issuers[0].token()) == 200
    pid, agent = courier_of(serving), serving.agent_pid
    before, began = len(server.asked), time.monotonic()
    line = socket.socket(fileno=taken(agent, 0))
    line.send((9).to_bytes(4, "little") + (0).to_bytes(4, "little") + b"http://127.0.0.1:1/")
    eventually(lambda: courier_of(serving) != pid)
    assert eventually(lambda: events(serving, "courier_exit"))[0]["status"] == 3
    assert all(one.path == "/keys" for one in server.asked) and len(server.asked) <= before + 2 + time.monotonic() - began  # one a second
    line.close()
    os.kill(agent, signal.SIGKILL)
    serving.wait_ready()
    assert eventually(lambda: answers(serving.url, issuers[0].token()) == 200)


def taken(pid: int, fd: int) -> int:
    """A copy of another process's descriptor."""
    process = os.pidfd_open(pid)
    try:
        got = ctypes.CDLL(None, use_errno=True).syscall(438, process, fd, 0)  # pidfd_getfd
        assert got >= 0, os.strerror(ctypes.get_errno())
        return got
    finally:
        os.close(process)
