"""What a session makes of Landlock and seccomp for its own children, in each tier; tests/api/test_nested.py has it by domain."""

import json

import harness
import pytest

PROGRAM = harness.TESTS / "api/nested/confining.py"


@pytest.mark.parametrize("tier", ["T3", "T2", "T0"])
def test_a_session_confines_its_children_further_and_never_wider(weakened, tier):
    control = weakened(tier)
    end, out, err = control.run(control.create(), "/usr/bin/python3", "-", "files", stdin=PROGRAM.read_bytes())
    assert out, (end, err)
    got = json.loads(out)
    assert got["the session"]["may"] | {"a server of the session": ""} == {
        "write in the folder": "ok",
        "write in the home": "ok",
        "write in /tmp": "ok",
        "read /usr": "ok",
        "getpriority": "ok",
        "a server of the session": "",
    }
    refused = {name: got["confined"]["may"][name] for name in ("write in the home", "write in /tmp", "getpriority")}
    assert refused == {"write in the home": "EACCES", "write in /tmp": "EACCES", "getpriority": "ENOTEMPTY"}
    assert got["confined"]["may"]["write in the folder"] == "ok"
    for where in ("the session", "confined", "permitted everything"):
        assert "ok" not in got[where]["never"].values(), where
    assert got["permitted everything"] == got["the session"]
    assert got["layers"] == [15, "E2BIG"]
