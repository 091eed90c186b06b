"""What operators see of browsers and screens: the audit log has each viewer, /metrics counts, and a setting reaches Chromium."""
import json
import pathlib

import pytest
from conftest import eventually
from prometheus_client.parser import text_string_to_metric_families
from screen import needs_desktop, take_over
from test_cdp import Cdp, commands

pytest.importorskip("websockets")
from rfb import Viewer  # noqa: E402

pytestmark = needs_desktop


def viewer(api, query=""):
    return Viewer(api.url.replace("http", "ws", 1) + "/websockify" + query, {"X-AIO-API-Key": api.key}).greet()


def relays_on_record(native):
    """exec_request and exec_exit of viewers, in the order of the logs."""
    notes, ended = {}, set()
    for log in (native.dir / "audit").glob("s-*.ndjson"):
        for line in log.read_text().splitlines():
            record = json.loads(line)
            if record["event"] == "exec_request" and "--note" in record["argv"]:
                notes[(log.name, record["exec"])] = record["argv"][-1]
            elif record["event"] == "exec_exit" and (log.name, record["exec"]) in notes:
                ended.add((log.name, record["exec"]))
    return notes, ended


def test_each_viewer_is_on_record_with_what_it_may_and_whose_it_is(native, api):
    with viewer(api):
        pass
    take_over(api, mode="exclusive", seconds=60)
    try:
        with viewer(api, "?view_only=1"):
            pass
    finally:
        api.http.delete("/v1/browser/takeover")
    notes, _ = relays_on_record(native)
    kinds = {note.rsplit(", by ", 1)[0] for note in notes.values()}
    assert {"control, takeover none", "view-only, takeover exclusive"} <= kinds, kinds
    assert all(note.rsplit(", by ", 1)[1] for note in notes.values())
    eventually(lambda: len(relays_on_record(native)[1]) == len(relays_on_record(native)[0]))


def counted(api, name, **labels):
    for family in text_string_to_metric_families(api.http.get("/metrics").text):
        for sample in family.samples:
            if sample.name == name and labels.items() <= sample.labels.items():
                return sample.value
    return 0


def test_what_happens_is_counted(native, api):
    def figures():
        return [counted(api, "caisson_page_operations_total", operation="evaluate", outcome="done"),
                counted(api, "caisson_page_operations_total", operation="evaluate", outcome="failed"),
                counted(api, "caisson_takeovers_total", mode="shared")]
    before = figures()
    assert api.post("/v1/browser/page/evaluate", {"expression": "1"}).json()["success"]
    assert not api.post("/v1/browser/page/evaluate", {"expression": "throw new Error('of the page')"}).json()["success"]
    take_over(api, mode="shared", seconds=60)
    api.http.delete("/v1/browser/takeover")
    assert figures() == [one + 1 for one in before]
    clients = counted(api, "caisson_screen_clients", protocol="rfb"), counted(api, "caisson_screen_clients", protocol="cdp")
    with viewer(api), Cdp(api, "/cdp"):
        assert (counted(api, "caisson_screen_clients", protocol="rfb"), counted(api, "caisson_screen_clients", protocol="cdp")) == (clients[0] + 1, clients[1] + 1)
    starts = counted(api, "caisson_service_starts_total", program="X server")
    assert starts >= 1 and counted(api, "caisson_service_starts_total", program="page driver") >= 1
    ends = counted(api, "caisson_browser_ends_total")
    assert api.post("/v1/browser/restart", {"mode": "hard"}).json()["success"]
    assert counted(api, "caisson_browser_ends_total") == ends, "one that was asked for is none"


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_setting_says_whether_pages_may_open_dialogs_for_files(launch, value):
    launcher = launch(BROWSER_ALLOW_FILE_SELECTION_DIALOGS=value)
    import httpx
    with httpx.Client(base_url=launcher.url, headers={"X-AIO-API-Key": launcher.key}, timeout=120) as http:
        assert http.get("/json/version").json()["Browser"]
    browser = next(pid for pid, line in commands(launcher) if "--remote-debugging-pipe" in line and "--type=" not in line)
    written = [json.loads(file.read_text()) for file in pathlib.Path(f"/proc/{browser}/root/dev/shm/policies").rglob("*.json")]
    assert [policy["AllowFileSelectionDialogs"] for policy in written if "AllowFileSelectionDialogs" in policy] == [value == "true"]
