"""kill -9 of each program of a workspace's browser and desktop: what a client asks for next works, soon, and the log says what ended."""
import contextlib
import json
import os
import signal
import time

import pytest
from conftest import eventually
from screen import needs_desktop, processes
from test_browser_watched import counted

pytestmark = needs_desktop
FULL = bool(os.environ.get("CAISSON_TEST_FULL"))
KILLS, RESTARTS = (20, 50) if FULL else (1, 4)
PAGE = "data:text/html,<title>there</title><p>text</p>"


def chromium(kind):
    return lambda line: "/chromium" in line.split(" ", 1)[0] and (f"--type={kind}" in line if kind else "--type=" not in line)


def named(name):
    return lambda line: line.split(" ", 1)[0].rsplit("/", 1)[-1] == name


PROGRAMS = {"Chromium": chromium(""), "zygote": chromium("zygote"), "renderer": chromium("renderer"), "GPU process": chromium("gpu-process"),
            "network process": lambda line: "network.mojom.NetworkService" in line, "Xvnc": named("Xvnc"), "openbox": named("openbox"),
            "caisson-cdp": named("caisson-cdp"), "caisson-display": named("caisson-display"), "page driver": lambda line: "page_driver" in line}


def kill(pid):
    with contextlib.suppress(ProcessLookupError):  # it ended with the one before
        os.kill(pid, signal.SIGKILL)


def works(api):
    """The browser opens a page and the screen is seen. False while an answer says that something has ended."""
    opened = api.post("/v1/browser/page/navigate", {"url": PAGE, "timeout": 30}).json()["success"]
    return opened and api.http.get("/v1/browser/screenshot").content[:4] == b"\x89PNG" and \
        api.post("/v1/browser/page/evaluate", {"expression": "document.title"}).json()["data"] == "there"


def killed_on_record(native, name):
    """How many execs of this program the audit logs have that ended by SIGKILL."""
    started, ended = set(), 0
    for log in (native.dir / "audit").glob("s-*.ndjson"):
        for record in map(json.loads, log.read_text().splitlines()):
            if record["event"] == "exec_request" and record["argv"][0].rsplit("/", 1)[-1] == name:
                started.add((log.name, record["exec"]))
            elif record["event"] == "exec_exit" and (log.name, record["exec"]) in started:
                ended += "KILL" in json.dumps(record)
    return ended


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_is_killed_is_back(native, api, program):
    took = []
    eventually(lambda: works(api))
    on_record, said = killed_on_record(native, program), native.log.read_text().count("the browser has ended")
    for _ in range(KILLS):
        # Five ends within a minute are given up, as a person reads in the answer: `restart` begins anew.
        assert api.post("/v1/browser/restart", {"mode": "hard"}).json()["success"]
        eventually(lambda: works(api))
        found = eventually(lambda: [pid for pid, line in processes(native).items() if PROGRAMS[program](line)])
        began = time.monotonic()
        for pid in found:
            kill(pid)
        eventually(lambda: works(api))
        took.append(time.monotonic() - began)
    print(f"{program}: back after {min(took):.2f} to {max(took):.2f} s")
    if program in ("Xvnc", "openbox", "caisson-cdp", "caisson-display"):
        assert killed_on_record(native, program) >= on_record + KILLS
    elif program in ("Chromium", "zygote"):
        assert native.log.read_text().count("the browser has ended") >= said + KILLS


def kept(native):
    """Descriptors of launcher and agent, processes below them, and the namespaces of these."""
    own = [pid for pid, line in processes(native).items() if named("caisson-launcher")(line) or named("caisson-agent")(line)]
    links = set()
    for pid in processes(native):
        for kind in ("user", "mnt", "pid", "net", "ipc", "uts"):
            try:
                links.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
            except OSError:
                continue
    return {"descriptors": sum(len(os.listdir(f"/proc/{pid}/fd")) for pid in own), "processes": len(processes(native)), "namespaces": len(links)}


def test_restarts_keep_nothing(native, api):
    for _ in range(3):
        assert api.post("/v1/browser/restart", {"mode": "hard"}).json()["success"]
        eventually(lambda: works(api))
    before, ends = kept(native), counted(api, "caisson_browser_ends_total")
    for _ in range(RESTARTS):
        assert api.post("/v1/browser/restart", {"mode": "hard"}).json()["success"]
        eventually(lambda: works(api))
    assert counted(api, "caisson_browser_ends_total") == ends, "it ended after a restart, by itself"
    # Chromium's own processes come and go by a few.
    eventually(lambda: all(kept(native)[name] <= before[name] + (0 if name == "descriptors" else 4) for name in before), 60)
