"""/v1/sandbox/observe: what the sessions use, in the launcher's figures; observations and their reports."""
import gzip
import json
import threading

import httpx
import pytest
from conftest import Api, eventually

LIVE = "/v1/sandbox/observe/live"
MEMORY = 256 << 20


@pytest.fixture(scope="module")
def api(launch, contract):
    """A launcher of this module's own, for an observation is one at a time; its sessions have little memory, to be over it soon."""
    launcher = launch()
    policy = launcher.dir / "policies" / "bash.json"
    policy.write_text(json.dumps(json.loads(policy.read_text()) | {"limits": {"memory_bytes": MEMORY}}))
    launcher.restart()
    return Api(launcher.url, launcher.key, contract)


@pytest.fixture(autouse=True)
def no_observation(api):
    yield
    api.post("/v1/sandbox/observe/stop", {})


def get(api, path):
    return api.data(path, method="GET")


@pytest.fixture
def busy(api):
    """A bash session in which python holds 64 MiB and spins."""
    session = api.data("/v1/bash/sessions/create")["session_id"]
    api.bash("exec python3 -c \"b = bytearray(64 << 20)\nfor i in range(0, len(b), 4096): b[i] = 1\nwhile True: pass\"",
             session_id=session, async_mode=True)
    yield session
    api.post(f"/v1/bash/sessions/{session}/close")


def test_status_is_off_before_anything_runs(api):
    status = get(api, "/v1/sandbox/observe/status")
    assert (status["mode"], status["running"], status["report_count"]) == ("off", False, 0)


def test_live_shows_the_memory_and_time_of_a_busy_session(api, busy):
    def seen():
        now = get(api, LIVE)
        return now if now["cgroup"]["mem_current_bytes"] > 60 << 20 and (now["cgroup"]["cpu_usage_pct"] or 0) > 1 else None
    first = eventually(seen)
    later = eventually(lambda: (now := get(api, LIVE))["cgroup"]["cpu_usage_usec"] > first["cgroup"]["cpu_usage_usec"] and now)
    assert later["mode"] == "off"


def test_live_names_the_largest_process_as_its_session_knows_it(api, busy):
    top = eventually(lambda: (rows := get(api, LIVE)["top_processes"]) and rows[0]["rss_bytes"] > 60 << 20 and rows[0])
    inside = api.bash("cat /proc/%d/comm" % top["pid"], session_id=busy)["stdout"]
    assert (top["comm"], top["comm"] + "\n", top["user"], top["threads"]) == ("python3", inside, "gem", 1)
    assert top["rss_mib"] == pytest.approx(top["rss_bytes"] / 2**20) and top["uptime_sec"] >= 0


def test_live_shows_no_process_that_is_not_a_session_s(api):
    names = {row["comm"] for row in get(api, LIVE + "?top_rows=50")["top_processes"]}
    assert not names & {"caisson-launche", "caisson-agent", "caisson-auditor"}


@pytest.mark.parametrize("rows", [0, 1])
def test_top_rows_bounds_the_rows(api, busy, rows):
    # A process has a row when it was seen to work between two looks.
    eventually(lambda: len(get(api, f"{LIVE}?top_rows={rows}")["top_processes"]) == rows)


def test_top_rows_must_be_a_number(api):
    answer = api.http.get(f"{LIVE}?top_rows=many")
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"] == ["query", "top_rows"]


def test_live_shows_the_disk_of_the_home_as_df_does(api):
    disk = get(api, LIVE)["disk"][0]
    total, path = api.bash("df -B1 --output=size ~ | tail -1; echo $HOME")["stdout"].split()
    assert (disk["path"], disk["total_bytes"]) == (path, int(total)) and 0 <= disk["usage_pct"] <= 100


def test_the_time_of_a_session_that_has_ended_stays_in_the_sum(api, busy):
    before = eventually(lambda: (now := get(api, LIVE))["cgroup"]["cpu_usage_usec"] > 0 and now)
    api.post(f"/v1/bash/sessions/{busy}/close")
    eventually(lambda: get(api, LIVE)["cgroup"]["mem_current_bytes"] < 32 << 20)
    assert get(api, LIVE)["cgroup"]["cpu_usage_usec"] >= before["cgroup"]["cpu_usage_usec"]


def test_trap_13_live_is_json_unless_a_stream_is_asked_for_by_name(api):
    for accept in ("*/*", "application/json", "text/*, */*"):
        answer = api.http.get(LIVE, headers={"Accept": accept})
        assert answer.headers["content-type"].startswith("application/json") and answer.json()["data"]["captured_at"]


def test_trap_13_an_explicit_accept_streams_snapshots(api, contract):
    validate = contract.validator("ObservationLiveSnapshot")
    numbers = []
    with api.http.stream("GET", LIVE, headers={"Accept": "text/event-stream"}) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        for line in map(str.rstrip, stream.iter_lines()):
            if line.startswith("id: "):
                numbers.append(int(line[4:]))
            if line.startswith("data: "):
                validate.validate(json.loads(line[6:]))
            if line == "" and len(numbers) == 2:
                break
    assert numbers == [1, 2]


def test_a_capture_from_start_to_report(api, busy):
    begun = api.data("/v1/sandbox/observe/start", {"interval_seconds": 0.25, "duration_seconds": 600})
    assert begun["mode"] == "capture" and begun["ends_at"] > begun["started_at"]
    status = eventually(lambda: (s := get(api, "/v1/sandbox/observe/status"))["last_sample_at"] and s)
    assert (status["running"], status["session_id"], status["interval_seconds"]) == (True, begun["session_id"], 0.25)
    assert get(api, LIVE)["mode"] == "capture"
    # A session's processes and files are looked at once a second, so the first samples may be without them.
    eventually(lambda: (now := get(api, LIVE))["top_processes"] and now["disk"])
    for _ in range(8):
        last = get(api, "/v1/sandbox/observe/status")["last_sample_at"]
        eventually(lambda: get(api, "/v1/sandbox/observe/status")["last_sample_at"] > last)
    stopped = api.data("/v1/sandbox/observe/stop", {"session_id": begun["session_id"]})
    assert stopped == {"session_id": begun["session_id"], "stopped": True, "report_ready": True}
    made = api.data("/v1/sandbox/observe/export", {"reason": "a test"})
    assert (made["session_id"], made["reason"]) == (begun["session_id"], "a test")
    packed = api.http.get(f"/v1/sandbox/observe/reports/{made['report_id']}")
    assert packed.headers["content-type"] == "application/gzip" and len(packed.content) == made["size_bytes"]
    report = json.loads(gzip.decompress(packed.content))
    assert (report["report_id"], report["session_id"], report["mode"]) == (made["report_id"], begun["session_id"], "capture")
    assert len(report["samples"]) >= 2 and report["ended_at"] >= report["started_at"]
    times = [s["captured_at"] for s in report["samples"]]
    assert times == sorted(times) and any(s["top_processes"] and s["sessions"] and s["disk"] for s in report["samples"])


def test_the_samples_of_a_report_are_the_contract_s_snapshots(api, contract):
    made = api.data("/v1/sandbox/observe/export")
    report = json.loads(gzip.decompress(api.http.get(made["path"]).content))
    for sample in report["samples"]:
        contract.validator("ObservationLiveSnapshot").validate(sample)
    for event in report["events"]:
        contract.validator("ObservationEvent").validate(event)


def test_an_observation_ends_by_itself(api):
    begun = api.data("/v1/sandbox/observe/start", {"interval_seconds": 0.25, "duration_seconds": 1})
    eventually(lambda: get(api, "/v1/sandbox/observe/status")["running"] is False)
    assert api.data("/v1/sandbox/observe/stop")["stopped"] is False
    assert api.data("/v1/sandbox/observe/stop", {"session_id": begun["session_id"]})["report_ready"] is True


def test_one_runs_at_a_time_and_the_same_key_is_the_same_one(api):
    first = api.data("/v1/sandbox/observe/start", {"idempotency_key": "k1"})
    assert api.data("/v1/sandbox/observe/start", {"idempotency_key": "k1"}) == first
    refused = api.fails("/v1/sandbox/observe/start", {"idempotency_key": "k2"})
    assert first["session_id"] in refused["message"]
    api.data("/v1/sandbox/observe/stop")
    assert api.data("/v1/sandbox/observe/start", {"idempotency_key": "k1"}) == first
    assert api.data("/v1/sandbox/observe/start", {"idempotency_key": "k2"})["session_id"] != first["session_id"]


def test_an_export_with_the_same_key_is_the_same_report(api):
    first = api.data("/v1/sandbox/observe/export", {"idempotency_key": "e1"})
    assert api.data("/v1/sandbox/observe/export", {"idempotency_key": "e1"}) == first


@pytest.mark.parametrize("path, body", [("stop", {"session_id": "obs-unknown"}), ("export", {"session_id": "obs-unknown"})])
def test_an_unknown_observation_is_404(api, path, body):
    answer = api.post(f"/v1/sandbox/observe/{path}", body)
    assert (answer.status_code, answer.json()["success"]) == (404, False)


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_an_unknown_report_is_404(api, method):
    assert api.http.request(method, "/v1/sandbox/observe/reports/report-unknown").status_code == 404


def test_reports_are_listed_bounded_and_deleted(api):
    made = [api.data("/v1/sandbox/observe/export")["report_id"] for _ in range(10)]
    listed = [r["report_id"] for r in get(api, "/v1/sandbox/observe/reports")]
    assert listed == made[-8:]
    gone = api.data(f"/v1/sandbox/observe/reports/{listed[0]}", method="DELETE")
    assert gone["report_id"] == listed[0]
    assert api.http.get(f"/v1/sandbox/observe/reports/{listed[0]}").status_code == 404
    assert get(api, "/v1/sandbox/observe/status")["report_count"] == 7


@pytest.mark.parametrize("body", [{"mode": "off"}, {"mode": "everything"}, {"duration_seconds": -1}, {"interval_seconds": "soon"},
                                  {"idempotency_key": "k" * 129}])
def test_a_wrong_start_is_422(api, body):
    assert api.post("/v1/sandbox/observe/start", body).status_code == 422


GROWS = """
import os, time
held = []
def more(count):
    for _ in range(count):
        held.append(bytearray(8 << 20))
        held[-1][::4096] = b"x" * 2048
more(29)
while not os.path.exists("/tmp/observed"): time.sleep(0.05)
while True: more(1)
"""


def test_guardrail_notes_who_comes_near_a_limit_and_keeps_a_report_of_who_passed_it(api):
    begun = api.data("/v1/sandbox/observe/start", {"mode": "guardrail", "interval_seconds": 0.25})
    session = api.data("/v1/bash/sessions/create")["session_id"]
    api.bash('exec python3 -c "$S"', env={"S": GROWS}, session_id=session, async_mode=True)

    def events(kind):
        return [e for e in get(api, LIVE)["recent_events"] if e["type"] == kind and e["data"].get("session_id", "s-").startswith("s-")]
    # A disk that is nearly full is noted, too.
    near = eventually(lambda: [e for e in events("near_limit") if e["data"]["limit"] == MEMORY], 60)[-1]
    assert near["data"]["used"] >= MEMORY * 0.9
    api.bash("touch /tmp/observed")
    ended = eventually(lambda: [e for e in events("session_end") if e["data"]["session_id"] == near["data"]["session_id"]], 60)[-1]
    assert ended["data"]["reason"] in ("memory", "oom")
    report = eventually(lambda: [r for r in get(api, "/v1/sandbox/observe/reports") if r["reason"] == ended["data"]["reason"]])
    assert report[-1]["session_id"] == begun["session_id"]


def test_another_workspace_s_sessions_are_not_seen(api, launch, contract):
    launcher = launch()
    other = Api(launcher.url, launcher.key, contract)
    made = other.post("/v1/workspaces", {"name": "other"})
    if made.status_code != 200:
        pytest.skip(f"no workspaces here: {made.json()['message']}")
    there = {"X-Caisson-Workspace": "other"}
    other.http.post("/v1/bash/exec", json={"command": "exec -a hidden-there sleep 60", "async_mode": True}, headers=there)

    def rows(headers):
        return {r["comm"] for r in other.http.get(LIVE + "?top_rows=50", headers=headers).json()["data"]["top_processes"]}
    eventually(lambda: "sleep" in rows(there))
    assert "sleep" not in rows({})
    begun = other.http.post("/v1/sandbox/observe/start", json={}, headers=there).json()["data"]
    assert get(other, "/v1/sandbox/observe/status")["running"] is False
    assert other.post("/v1/sandbox/observe/stop", {"session_id": begun["session_id"]}).status_code == 404
    other.http.delete("/v1/workspaces/other")
    other.post("/v1/workspaces", {"name": "other"})
    status = other.http.get("/v1/sandbox/observe/status", headers=there).json()["data"]
    assert (status["running"], status["session_id"], status["report_count"]) == (False, None, 0)


def test_many_streams_end_when_their_clients_leave(api):
    def watch():
        with httpx.Client(base_url=api.url, headers={"X-AIO-API-Key": api.key}, timeout=120, trust_env=False) as client:
            with client.stream("GET", LIVE, headers={"Accept": "text/event-stream"}) as stream:
                next(stream.iter_lines())
    for _ in range(3):  # more in turn than there may be at once
        threads = [threading.Thread(target=watch) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)

    def served():
        with api.http.stream("GET", LIVE, headers={"Accept": "text/event-stream"}) as stream:
            return stream.headers["content-type"].startswith("text/event-stream")

    eventually(served)  # that a client has left is seen a moment later
