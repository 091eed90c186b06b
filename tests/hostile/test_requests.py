"""Well-formed requests of a hostile agent that ask for what is not its due: each is answered with a typed error and is on
record, and the agent has gained nothing."""

import json
import os
import subprocess

import pytest
from harness import ROOT, Launcher, Refused
from seat import Seat, killed_for, opened, serves

CODES = {"invalid_argument", "permission_denied", "not_found", "limit", "unavailable", "already_exists"}
NONE = "s-0000000000000000"
HUGE = 1 << 62
LONG = "x" * 60000


@pytest.fixture(scope="module")
def house(tier, compiled, tmp_path_factory):
    """A launcher with a hostile agent that has a session, and an operator who has one."""
    one = Launcher(tmp_path_factory.mktemp("house"))
    program = compiled("seat")
    one.start("--agent", program)
    one.seat, one.asked = Seat(one, program), 0
    opened(one.seat)
    one.mine = one.seat.create()
    one.operator = one.control()
    one.other = one.operator.create()
    yield one
    one.seat.close()
    one.stop()
    found = [r for r in one.records() if r["event"] == "request_refused"]
    assert sum(r.get("dropped", 1) for r in found) >= one.asked > BURST


@pytest.fixture
def refused(house):
    """Asks for something that must be refused: its error."""
    seat = house.seat

    def ask(op, **members):
        before = len([r for r in house.records() if r["event"] == "request_refused"])
        house.asked += 1
        answer = seat.ask(op, **members)
        assert not answer["ok"] and answer["error"]["code"] in CODES and answer["error"]["what"], answer
        records = [r for r in house.records() if r["event"] == "request_refused"]
        # Of a client that is refused often not each is recorded, but all are counted (at the end of `house`).
        assert len(records) == before + 1 or house.asked > BURST
        assert len(records) == before or records[-1].get("op", op) == op
        return answer["error"]

    yield ask
    assert seat.alive() and len(seat.ask("session_list")["sessions"]) == 1
    house.operator.events.clear()
    assert house.operator.output(house.other, "echo", "on") == "on\n"


BURST = 64  # refused requests of one client that are recorded one by one (launcher/pid1/session/refusals.h)
TEXT = [7, -1, 1.5, True, [], {}, ["x"], HUGE]
OBJECT = [7, "x", True, [], ["x"]]
NUMBER = ["1", True, [], {}, 1.5, -1, 0, HUGE]
FLAG = [0, 1, "true", [], {}]
WRONG = {
    ("session_create", "domain"): [*TEXT, "", "nobody", "../bash", "bash\0", "BASH", LONG, None],
    ("session_create", "label"): [*TEXT, LONG],
    ("session_create", "workspace"): [*TEXT, "", "nowhere", "../default", "default\0", "DEFAULT", LONG],
    ("session_create", "isolation"): [*TEXT, "", "none", "PRIVATE", "private\0"],
    ("session_create", "narrow"): [*OBJECT, {"x": 1}, {"narrow": {}}],
    ("session_exec", "session"): [*TEXT, "", "../launcher", "s-", NONE, NONE + "\0", LONG, None],
    ("session_exec", "argv"): [None, "true", 7, {}, [], [1], [None], [[]], ["true", {}], ["a\0b"], ["x"] * 8000],
    ("session_exec", "cwd"): [*TEXT, "", "tmp", "../tmp", "/tmp\0/x", "/" + LONG],
    ("session_exec", "env"): [*OBJECT, {"A": 1}, {"A": []}, {"": "x"}, {"A=B": "x"}, {"A\0": "x"}, {"A": "\0"}, {"LD_PRELOAD": "/x"}],
    ("session_exec", "stdin"): FLAG,
    ("session_exec", "pty"): [*OBJECT, {"cols": 0}, {"rows": 0}, {"cols": 4097}, {"cols": -1}, {"cols": "80"}, {"cols": HUGE}],
    ("session_exec", "hard_timeout_ms"): NUMBER,
    ("exec_signal", "exec"): [*TEXT, "", "e-0", "e-99", "e-1", LONG, None],
    ("exec_signal", "signal"): [*TEXT, "", "KILL", "SIG", "SIG0", "9", "sigkill", "SIGRTMIN+9", LONG, None],
    ("session_stat", "session"): [*TEXT, "", NONE, None],
    ("session_report", "session"): [*TEXT, "", NONE, None],
    ("session_destroy", "session"): [*TEXT, "", NONE, None],
    ("session_destroy", "reason"): TEXT,
    ("workspace_create", "name"): [*TEXT, "", "A", ".", "..", "../x", "a/b", "-x", "x\0", "x" * 64, "default", LONG, None],
    ("workspace_create", "disk_bytes"): [*NUMBER, 1, 1 << 50],
    ("workspace_create", "idle_seconds"): [*NUMBER, 1 << 40],
    ("workspace_create", "persistent"): [*FLAG, True],  # no directory is given for such
    ("attest", "session"): [*TEXT, "", NONE, NONE + "\0", LONG, None],
    ("attest", "nonce"): [*TEXT, "a\0b", LONG],
    ("audit_list", "before"): TEXT,
    ("audit_list", "limit"): ["1", True, [], {}, 1.5],
    ("audit_open", "session"): [*TEXT, "", NONE, "launcher", "../launcher", NONE + "/../launcher", NONE + "\0", LONG, None],
    ("audit_open", "segment"): ["1", True, [], {}, 1.5, -1, 99, HUGE],
    ("policy", "domain"): [*TEXT, "", "nobody", "../bash", "bash\0", "BASH", LONG],
    ("workspace_destroy", "workspace"): [*TEXT, "", "nowhere", "default", "default\0", LONG, None],
}
GOOD = {
    "hello": {"protocol": 1},
    "session_create": {"domain": "bash"},
    "session_exec": {"argv": ["true"]},
    "exec_signal": {"exec": "e-1", "signal": "SIGTERM"},
    "workspace_create": {"name": "x"},
    "workspace_destroy": {"workspace": "default"},
}
NO_SESSION = [
    "session_create", "session_list", "workspace_create", "workspace_list", "workspace_destroy", "audit_list", "policy", "policy_reload",
]  # fmt: skip


@pytest.mark.parametrize(
    "op, member, value",
    [pytest.param(op, m, v, id=f"{op}-{m}-{json.dumps(v)[:24]}") for (op, m), values in WRONG.items() for v in values],
)
def test_a_wrong_value_is_refused(house, refused, op, member, value):
    session = {} if op in NO_SESSION else {"session": house.mine}
    refused(op, **{**GOOD.get(op, {}), **session, member: value})


OPS = ["session_exec", "exec_signal", "session_stat", "session_report", "session_destroy", "attest", "audit_open", *NO_SESSION]


@pytest.mark.parametrize("op", OPS)
def test_an_unknown_member_is_refused(house, refused, op):
    session = {} if op in NO_SESSION else {"session": house.mine}
    assert "unknown member" in refused(op, **{**GOOD.get(op, {}), **session, "force": True})["what"]


GRANTS = [
    "/", "//", "/.", "/..", "/usr/..", "/usr/../etc", "/usr/./lib", "//usr", "/usr/", "usr", "", ".", "..", "/proc", "/proc/1/root",
    "/proc/self/fd/3", "/sys", "/dev", "/dev/mem", "/etc", "/etc/shadow", "/root", "/home", "/home/gem", "/home/gem/x", "/tmp", "/var",
    "/run", "/usr\0", "/usr\0/../../etc", "/usr\n", "/usr\x1b[2J", "/usrx", "/USR", "/usr/" + "x" * 4092, "/" + "x/" * 2047 + "xx", "~", "/usr/*", 7, None, [],
]  # fmt: skip


@pytest.mark.parametrize("path", GRANTS, ids=lambda p: json.dumps(p)[:30])
def test_a_grant_outside_the_policy_is_refused(refused, path):
    refused("session_create", domain="bash", narrow={"grants": [{"path": path}]})


@pytest.mark.parametrize(
    "grant",
    [
        {"access": "read-write"},
        {"access": "write"},
        {"access": "READ"},
        {"access": 7},
        {"source": "/etc"},
        {"source": "/"},
        {"source": "/usr/../etc"},
        {"execute": "yes"},
        {"uid": 0},
        {"required": 7},
    ],
    ids=json.dumps,
)
def test_a_grant_of_more_is_refused(refused, grant):
    refused("session_create", domain="bash", narrow={"grants": [{"path": "/usr", **grant}]})


@pytest.mark.parametrize("number", [2, 20, 5000])
def test_a_grant_many_times_is_refused(refused, number):
    refused("session_create", domain="bash", narrow={"grants": [{"path": "/usr"}] * min(number, 3000)})


LIMITS = json.loads((ROOT / "policies" / "base.json").read_text())["limits"]


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("more", ["one more", "most", "over 64 bit", "less than none", "text", "fraction", "true", "list"])
def test_a_wider_limit_is_refused(refused, limit, more):
    value = {
        "one more": LIMITS[limit] + 1,
        "most": (1 << 63) - 1,
        "over 64 bit": 1 << 64,
        "less than none": -1,
        "text": str(LIMITS[limit]),
        "fraction": LIMITS[limit] - 0.5,
        "true": True,
        "list": [1],
    }[more]
    refused("session_create", domain="bash", narrow={"limits": {limit: value}})


@pytest.mark.parametrize(
    "narrow",
    [
        {"home": "workspace"},
        {"home": "shared"},
        {"tmp": "workspace"},
        {"network": "loopback"},
        {"network": "host"},
        {"hide": []},
        {"disable": ["seccomp"]},
        {"require": []},
        {"min_tier": "T0"},
        {"extends": "base"},
        {"weaken": []},
        {"files": {"/etc/passwd": ["root::0:0::/:/bin/sh"]}},
        {"links": {"/x": "/etc"}},
        {"devices": ["mem"]},
        {"env": {"set": {"LD_PRELOAD": "/x"}}},
        {"syscalls": {"allow": ["mount"]}},
        {"hostname": "x"},
        {"home_path": "/etc"},
        {"umask": "0"},
        {"digest": ""},
        {"published_ports": [80]},
    ],
    ids=json.dumps,
)
def test_anything_but_less_is_refused(refused, narrow):
    refused("session_create", domain="bash", narrow=narrow)


ON_A_SESSION = [
    ("session_exec", {"argv": ["true"]}),
    ("exec_signal", {"exec": "e-1", "signal": "SIGKILL"}),
    ("session_stat", {}),
    ("session_report", {}),
    ("attest", {}),
    ("session_destroy", {}),
]


@pytest.mark.parametrize("op, more", ON_A_SESSION, ids=[op for op, _ in ON_A_SESSION])
def test_another_clients_session_is_not_found(house, refused, op, more):
    assert refused(op, session=house.other, **more)["code"] == "not_found"
    assert house.operator.call("session_stat", session=house.other)[0]["state"] == "running"


@pytest.mark.parametrize("op, more", ON_A_SESSION, ids=[op for op, _ in ON_A_SESSION])
def test_a_session_of_the_agent_before_it_is_not_found(fresh, compiled, op, more):
    program = compiled("seat")
    fresh.start("--agent", program)
    first = Seat(fresh, program)
    opened(first)
    session = first.create()
    first.raw(b"broken")
    killed_for(fresh, first)
    second = Seat(fresh, program)
    opened(second)
    assert second.ask(op, session=session, **more)["error"]["code"] == "not_found"
    second.close()


def test_a_replayed_request_is_a_new_one_with_the_same_id(house):
    message = json.dumps({"id": 500, "op": "session_stat", "session": house.mine}).encode()
    for _ in range(3):
        house.seat.raw(message)
        assert house.seat.answer(500)["session"] == house.mine


def test_the_agent_cannot_reach_the_control_socket(house):
    """The file is root's, and whoever gets to it is asked for its uid."""
    code = f"import socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.connect({str(house.socket)!r})"
    done = subprocess.run(["setpriv", "--reuid=990", "--regid=990", "--clear-groups", "/usr/bin/python3", "-c", code], capture_output=True)
    assert done.returncode != 0 and b"PermissionError" in done.stderr
    assert os.stat(house.socket).st_mode & 0o777 == 0o600
    serves(house)


def test_an_operator_is_served_while_the_agent_asks_for_everything(house):
    with pytest.raises(Refused):
        house.operator.call("session_create", domain="bash", narrow={"grants": [{"path": "/etc"}]})
    serves(house)
