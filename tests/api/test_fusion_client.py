"""SandboxFusion's own client from the Python package index, unmodified: it sends no key."""
import base64

import pytest

fusion = pytest.importorskip("sandbox_fusion", reason="SandboxFusion's client is not installed (scripts/test does it)")


@pytest.fixture(scope="module")
def endpoint(launch):
    return launch(key=None, CAISSON_AUTH="none").url


@pytest.fixture(scope="module")
def run(endpoint):
    def ask(code: str, language="python", **fields):
        return fusion.run_code(fusion.RunCodeRequest(code=code, language=language, **fields), endpoint, max_attempts=1, client_timeout=120)
    return ask


NAMES = fusion.SummaryMapping(Success="right", Failed="failed", RunFailed="raised", RunTimeout="timeout")


@pytest.mark.parametrize("code, limit, name", [("print(1)", 20, "right"), ("1 / 0", 20, "raised"), ("while True: pass", 1, "timeout")])
def test_the_client_sums_a_run_up(run, code, limit, name):
    assert fusion.summary_run_code_result(run(code, run_timeout=limit), NAMES) == name


def test_files_and_input_go_there_and_come_back(run):
    got = run("open('out', 'w').write(open('in').read() + input())", files={"in": base64.b64encode(b"a").decode()}, stdin="b\n",
              fetch_files=["out", "none"])
    assert {name: base64.b64decode(content) for name, content in got.files.items()} == {"out": b"ab"}


def test_programs_side_by_side_have_their_own_answers(run):
    got = fusion.run_concurrent(run, args=[[f"print({i})"] for i in range(12)], concurrency=6)
    assert [one.run_result.stdout for one in got] == [f"{i}\n" for i in range(12)]


def test_what_cannot_be_judged_raises_and_is_no_verdict(run):
    with pytest.raises(Exception, match="Sandbox responded with error: .*lean"):
        run("x", "lean")
