"""What operators watch: /metrics, the probes, and the manual for language models."""
import os
import re
import signal
import time

import httpx
import pytest
from conftest import eventually

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\.)*",?)*)\})? (\S+)')
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def samples(text: str) -> dict[tuple[str, frozenset], float]:
    """Every line that is no comment must be a sample; none may come twice."""
    out = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        found = SAMPLE.fullmatch(line)
        assert found, line
        labels = frozenset(re.findall(r'([a-z]+)="((?:[^"\\]|\\.)*)"', found[2] or ""))
        assert (found[1], labels) not in out, line
        out[found[1], labels] = float(found[3])
    return out


def figure(api, name: str, **labels) -> float:
    """The sum of all samples with these labels."""
    answer = api.http.get("/metrics")
    assert answer.status_code == 200
    return sum(value for (of, has), value in samples(answer.text).items() if of == name and set(labels.items()) <= has)


def test_it_is_prometheus_text(api):
    answer = api.http.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    families = re.findall(r"^# TYPE (\w+) (counter|gauge|histogram|summary)$", answer.text, re.MULTILINE)
    assert len(families) == len(dict(families)) > 25
    ends = {"histogram": ["_bucket", "_sum", "_count"], "summary": ["_sum", "_count"]}
    known = {name + end for name, kind in families for end in ends.get(kind, [""])}
    assert {name for name, _ in samples(answer.text)} <= known


def test_a_parser_of_prometheus_reads_both_formats(api):
    parser = pytest.importorskip("prometheus_client.parser", reason="prometheus-client is not installed")
    from prometheus_client.openmetrics import parser as openmetrics
    assert len(list(parser.text_string_to_metric_families(api.http.get("/metrics").text))) > 25
    assert len(list(openmetrics.text_string_to_metric_families(api.http.get("/metrics", headers={"Accept": OPENMETRICS}).text))) > 25


def test_openmetrics_is_sent_to_a_client_that_asks_for_it(api):
    answer = api.http.get("/metrics", headers={"Accept": f"{OPENMETRICS};q=0.5,text/plain;q=0.1"})
    assert answer.headers["content-type"] == OPENMETRICS
    assert answer.text.endswith("\n# EOF\n") and "# TYPE caisson_http_requests counter\n" in answer.text


def test_it_needs_the_key(api):
    assert api.http.get("/metrics", headers={"X-AIO-API-Key": "wrong"}).status_code == 401
    assert api.http.get("/llms.txt", headers={"X-AIO-API-Key": "wrong"}).status_code == 401


def test_a_request_is_counted_by_its_route_and_class(api):
    where = {"route": "/v1/sandbox", "method": "GET", "status": "2xx"}
    before, timed = figure(api, "caisson_http_requests_total", **where), figure(api, "caisson_http_request_duration_seconds_count", route="/v1/sandbox")
    api.http.get("/v1/sandbox")
    assert figure(api, "caisson_http_requests_total", **where) == before + 1
    assert figure(api, "caisson_http_request_duration_seconds_count", route="/v1/sandbox") == timed + 1


def test_what_a_client_sends_is_no_label(api):
    api.http.get("/v1/secret-path-of-a-client?x=secret-query", headers={"X-Caisson-Workspace": "secret-workspace"})
    api.http.request("SECRETMETHOD", "/v1/sandbox")
    api.bash("echo secret-command")
    api.post("/v1/bash/exec", {"command": "true", "session_id": "secret-session"})
    text = api.http.get("/metrics").text.lower()
    assert "secret" not in text and 'route="none"' in text and 'method="other"' in text


def test_a_body_that_is_refused_before_its_handler_is_aborted(api):
    where = {"route": "/v1/bash/exec", "status": "aborted"}
    before = figure(api, "caisson_http_requests_total", **where)
    assert api.http.post("/v1/bash/exec", content=b"x" * (9 * 1024 * 1024)).status_code == 413
    eventually(lambda: figure(api, "caisson_http_requests_total", **where) == before + 1)  # once the connection has ended


def test_a_session_and_its_end_are_counted(api):
    made = figure(api, "caisson_session_create_duration_seconds_count", domain="bash")
    ends, started = figure(api, "caisson_session_ends_total", reason="agent"), figure(api, "caisson_exec_start_duration_seconds_count")
    session = api.data("/v1/bash/sessions/create", {})["session_id"]
    api.bash("true", session_id=session)
    assert figure(api, "caisson_session_create_duration_seconds_count", domain="bash") > made
    assert figure(api, "caisson_exec_start_duration_seconds_count") > started
    assert figure(api, "caisson_sessions", domain="bash") >= 1 and figure(api, "caisson_service_sessions", service="bash") >= 1
    api.http.post(f"/v1/bash/sessions/{session}/close")
    eventually(lambda: figure(api, "caisson_session_ends_total", reason="agent") > ends)


REFUSED = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for _ in range(3):
    libc.unshare(0x10000000)
libc.syscall(250, 0, 0, 0)
libc.mount(b"x", b"/", b"tmpfs", 0, None)
"""


def test_denials_that_end_nothing_are_counted_by_kind(api, native):
    kinds = {"namespace": 3, "keyring": 1, "mount": 1}
    before = {kind: figure(api, "caisson_denials_total", kind=kind) for kind in kinds}
    ended = figure(api, "caisson_fatal_denials_total")
    session = api.data("/v1/bash/sessions/create", {})["session_id"]
    made = api.post("/v1/bash/exec", {"command": f"/usr/bin/python3 - <<'END'\n{REFUSED}\nEND", "session_id": session}).json()["data"]
    assert made["exit_code"] == 0, made
    for kind, count in kinds.items():  # once the auditor has told the launcher
        eventually(lambda: figure(api, "caisson_denials_total", kind=kind) == before[kind] + count)
    assert figure(api, "caisson_fatal_denials_total") == ended
    api.http.post(f"/v1/bash/sessions/{session}/close")
    assert figure(api, "caisson_denials_total", kind="namespace") == before["namespace"] + 3, "they outlive their session"


def test_every_kind_of_denial_is_a_series_from_the_start(api):
    kinds = {dict(labels)["kind"] for name, labels in samples(api.http.get("/metrics").text) if name == "caisson_denials_total"}
    assert kinds == {"path", "network", "namespace", "mount", "process", "privilege", "keyring", "kernel", "device", "other"}


def test_the_steps_of_a_session_s_confinement_are_timed(api):
    steps = ("pid_ns", "seccomp", "landlock")

    def counts() -> dict[str, float]:  # of one moment: prepared sessions may come between two questions
        now = samples(api.http.get("/metrics").text)
        made = sum(value for (of, _), value in now.items() if of == "caisson_session_create_duration_seconds_count")
        name = "caisson_session_step_duration_seconds_count"
        return {"made": made} | {step: sum(v for (of, has), v in now.items() if of == name and ("step", step) in has) for step in steps}

    before = counts()
    api.data("/v1/bash/sessions/create", {})
    after = counts()
    assert after["made"] > before["made"]
    assert {after[step] - before[step] for step in steps} == {after["made"] - before["made"]}
    took = figure(api, "caisson_session_step_duration_seconds_sum")
    assert 0 < took < 60
    assert figure(api, "caisson_session_step_duration_seconds_count", step="other") == 0


def test_memory_and_processes_of_sessions_are_summed_by_domain(api):
    session = api.data("/v1/bash/sessions/create", {})["session_id"]
    api.post("/v1/bash/exec", {"command": "sleep 100 & sleep 100 &", "session_id": session})
    eventually(lambda: figure(api, "caisson_sessions_processes", domain="bash") >= 3)
    assert 1e5 < figure(api, "caisson_sessions_memory_bytes", domain="bash") < 1e11
    api.http.post(f"/v1/bash/sessions/{session}/close")


def test_metrics_do_not_wait_for_a_launcher_that_is_silent(launch):
    launcher = launch()
    with httpx.Client(base_url=launcher.url, headers={"X-AIO-API-Key": launcher.key}, timeout=60) as http:
        http.post("/v1/bash/sessions/create", json={})
        assert "caisson_sessions_memory_bytes{" in http.get("/metrics").text
        os.kill(launcher.pid, signal.SIGSTOP)
        try:
            began = time.monotonic()
            text = http.get("/metrics").text
            assert 1 < time.monotonic() - began < 30
            assert re.search(r"^caisson_launcher_requests_pending [1-9]", text, re.MULTILINE) and "caisson_sessions_memory_bytes{" not in text
        finally:
            os.kill(launcher.pid, signal.SIGCONT)


def test_commands_are_counted_by_the_reason_of_their_end(api):
    before = figure(api, "caisson_command_ends_total", reason="time"), figure(api, "caisson_limits_reached_total", limit="hard_timeout_ms")
    api.post("/v1/bash/exec", {"command": "sleep 60", "hard_timeout": 1})
    eventually(lambda: figure(api, "caisson_command_ends_total", reason="time") == before[0] + 1)
    assert figure(api, "caisson_limits_reached_total", limit="hard_timeout_ms") == before[1] + 1


def test_runs_are_counted_by_language(api):
    before = figure(api, "caisson_runs_total", language="python", kind="alone")
    api.post("/v1/code/execute", {"language": "python", "code": "1"})
    assert figure(api, "caisson_runs_total", language="python", kind="alone") == before + 1


def test_watches_are_a_number(api):
    before = figure(api, "caisson_file_watches")
    made = api.data("/v1/file/watch", {"path": api.bash("pwd")["stdout"].strip()})
    assert figure(api, "caisson_file_watches") == before + 1
    api.http.delete(f"/v1/file/watch/{made['watcher_id']}")
    assert figure(api, "caisson_file_watches") == before


def test_figures_of_the_process_and_of_its_budgets_are_plausible(api):
    eventually(lambda: figure(api, "caisson_http_requests_active") == 1)  # streams of tests before may still end
    all_of_it = samples(api.http.get("/metrics").text)
    of = {name: value for (name, labels), value in all_of_it.items() if not labels}
    assert 0 < of["process_cpu_seconds_total"] < 3600 and 1e5 < of["process_heap_bytes"] < 1e9
    assert 5 < of["process_open_fds"] < of["process_max_fds"] and 1e6 < of["process_resident_memory_max_bytes"] < 1e10
    assert of["caisson_ready"] == 1 and of["caisson_http_connections"] >= 1 and of["caisson_http_requests_active"] == 1
    assert of["caisson_metrics_dropped_total"] == 0
    limits = {dict(labels)["budget"]: value for (name, labels), value in all_of_it.items() if name == "caisson_budget_limit_bytes"}
    assert set(limits) == {"traffic", "kept"} and all(limits.values())
    (info,) = [dict(labels) for name, labels in all_of_it if name == "caisson_build_info"]
    assert info["version"] and info["tier"]


def test_readiness_has_a_reason_for_each_check(api):
    answer = api.http.get("/readyz", headers={"X-AIO-API-Key": ""})
    assert answer.status_code == 200
    assert answer.json()["data"] == {"status": "ready", "checks": [{"name": name, "passed": True, "why": None} for name in ("serving", "launcher", "sessions")]}
    assert api.http.get("/healthz").json()["data"] == {"status": "alive", "checks": [{"name": "launcher", "passed": True, "why": None}]}


def test_the_manual_names_every_described_operation(api):
    manual = api.http.get("/llms.txt")
    assert manual.headers["content-type"] == "text/markdown; charset=utf-8"
    document = api.http.get("/v1/openapi.json").json()
    described = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert set(re.findall(r"^### (.+)$", manual.text, re.MULTILINE)) == described
