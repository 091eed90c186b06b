"""What the agent learns in one workspace is that workspace's: it decides nothing in another, and nothing in the one that comes after."""
import json
import secrets

import pytest
from conftest import Api, eventually, with_workspaces

HEADER = "X-Caisson-Workspace"
NAMES = ("node", "python3", "gcc", "julia", "rustc", "Rscript", "lua", "git", "npm")
# Says a version, and lines as the agent's own script writes them.
FAKE = r"""#!/bin/sh
printf '99.0.0\nnode\t98.0.0\t%s\npython\t3.98.0\t%s\ntool\tjulia\t%s\ntool\tgcc\t%s\n' "$0" "$0" "$0" "$0"
"""


@pytest.fixture
def fresh(launch):
    """A launcher whose agent has been asked for nothing yet, with room for one named workspace and the next."""
    launcher = with_workspaces(launch())
    yield launcher
    launcher.close()


@pytest.fixture
def workspace(fresh, contract):
    """workspace(): a client of a new workspace."""
    def create(name="") -> Api:
        one = Api(fresh.url, fresh.key, contract)
        name = name or "w" + secrets.token_hex(4)
        one.data("/v1/workspaces", {"name": name})
        one.http.headers[HEADER] = one.workspace = name
        return one
    return create


def plant(client: Api):
    for name in NAMES:
        client.data("/v1/file/write", {"file": f"/home/gem/.local/bin/{name}", "content": FAKE})
    assert client.bash("chmod +x ~/.local/bin/*; command -v node")["stdout"] == "/home/gem/.local/bin/node\n"


def known(client: Api) -> str:
    """All that a workspace is told of the programs that run its code."""
    node = client.data("/v1/nodejs/info", method="GET")
    node.pop("global_packages", None)
    languages = client.post("/run_code", {"code": "", "language": "cobol"}).json()["message"]
    return json.dumps([client.data("/v1/code/info", method="GET"), node, languages])


def runs(client: Api) -> dict:
    """What its programs say of who runs them."""
    said = {}
    for language, code in (("python", "import sys; print(sys.executable)"), ("javascript", "console.log(process.execPath)")):
        said[language] = client.data("/v1/code/execute", {"language": language, "code": code})["stdout"]
    for language, code in (("python", "print(6 * 7)"), ("nodejs", "console.log(6 * 7)"), ("bash", "echo $((6 * 7))"),
                           ("c", '#include <stdio.h>\nint main(void) { printf("%d\\n", 6 * 7); }')):
        ran = client.post("/run_code", {"code": code, "language": language, "compile_timeout": 60, "run_timeout": 60}).json()
        said[language + " judged"] = (ran["run_result"] or {}).get("stdout")
    return said


def test_flaw_01_programs_in_one_home_are_toolchains_in_no_workspace(fresh, contract, workspace):
    default, one, other = Api(fresh.url, fresh.key, contract), workspace(), workspace()
    plant(one)
    assert "98.0" not in known(one) and "99.0" not in known(one)  # it asks first
    assert runs(one) == runs(other) == runs(default)
    assert known(one) == known(other) == known(default)
    judged = runs(other)
    assert {judged[f"{name} judged"] for name in ("python", "bash")} == {"42\n"}
    for client in (one, other, default):
        answer = client.post("/run_code", {"code": "print(1)", "language": "julia"}).json()
        assert "/home/gem" not in json.dumps(answer) and "98.0" not in json.dumps(answer)


def test_flaw_01_programs_in_the_default_home_are_in_nobodys_description(fresh, contract, workspace):
    default = Api(fresh.url, fresh.key, contract)
    before = default.http.get("/v1/sandbox").json()["detail"]
    plant(default)
    fresh.restart()
    one = workspace()
    for client in (default, one):
        assert client.http.get("/v1/sandbox").json()["detail"] == before
    assert known(default) == known(one) and "98.0" not in known(one)


def questions(launcher, workspace: str) -> set[str]:
    """Labels of the sessions in which the agent has asked something in that workspace."""
    first = [json.loads(log.read_text().split("\n", 1)[0] or "{}") for log in (launcher.dir / "audit").glob("s-*.ndjson")]
    return {line.get("label") for line in first if line.get("workspace") == workspace}


def test_flaw_01_a_slot_that_changes_hands_asks_anew(fresh, workspace):
    one = workspace("before")
    for client, name in ((one, "before"), (None, "after")):
        if client is None:
            assert one.http.delete("/v1/workspaces/before").status_code == 200
            client = workspace(name)
        client.data("/v1/jupyter/info", method="GET")
        client.data("/v1/code/info", method="GET")
        eventually(lambda name=name: {"kernels", "toolchains"} <= questions(fresh, name))
