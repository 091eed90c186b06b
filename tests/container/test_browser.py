"""Chromium in the image: its own sandbox is on in every tier that has a browser, seen from outside the container; the other tiers refuse it
and say what would change that."""
import json
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import pytest
from conftest import ROOT, sh, with_flags
from test_cells import OUR_PROFILE

PAGE = "/v1/browser/page"


def post(served, path, **body):
    return served.http.post(f"{PAGE}/{path}", json=body)


def opened(served, url):
    answer = post(served, "navigate", url=url)
    assert answer.status_code == 200 and answer.json()["success"], answer.text
    return post(served, "evaluate", expression="document.title").json()["data"]


def below(served):
    """The container's processes as this machine has them: pid -> command line."""
    first = int(sh(served.engine, "inspect", "-f", "{{.State.Pid}}", served.name).stdout)
    children, lines = {}, {}
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text()
            lines[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it ended meanwhile
            continue
        children.setdefault(int(stat[stat.rindex(")") + 2 :].split()[1]), []).append(int(entry.name))
    left, found = [first], {}
    while left:
        pid = left.pop()
        found[pid] = lines.get(pid, "")
        left += children.get(pid, [])
    return found


def namespaces(pid):
    return {kind: os.readlink(f"/proc/{pid}/ns/{kind}") for kind in ("user", "pid", "net")}


def holds_nothing(root):
    """Chromium's sandbox has the folder of a process that has ended for its root: that is not found, or empty."""
    try:
        return os.listdir(root) == []
    except ProcessLookupError:
        return os.path.exists(os.path.dirname(root))  # the process of this root is alive


def check_sandbox(served):
    assert opened(served, "data:text/html,<title>there</title>") == "there"
    seen = below(served)
    [session] = [pid for pid, line in seen.items() if "caisson-cdp --socket" in line]
    renderers = [pid for pid, line in seen.items() if "--type=renderer" in line]
    assert renderers and not [line for line in seen.values() if "no-sandbox" in line]
    own = namespaces(session)
    for pid in renderers:
        status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line)
        assert int(status["Seccomp_filters"]) >= 2 and status["NoNewPrivs"] == "1", status
        assert {status[f"Cap{kind}"].strip("0") for kind in ("Eff", "Prm", "Inh", "Amb")} == {""}
        assert all(link != own[kind] for kind, link in namespaces(pid).items())
        assert holds_nothing(f"/proc/{pid}/root")
    [network] = [pid for pid, line in seen.items() if "network.mojom.NetworkService" in line]
    assert "Seccomp:\t2" in pathlib.Path(f"/proc/{network}/status").read_text()


def test_every_renderer_is_in_chromiums_own_sandbox(tier):
    if tier.started["tier"] in ("T0", "T1"):
        answer = post(tier, "navigate", url="about:blank")
        assert not answer.json()["success"] and "needs tier T2" in answer.json()["message"], answer.text
        assert tier.http.get("/readyz").status_code == 200
        return
    check_sandbox(tier)


def test_with_three_capabilities_and_the_shipped_profile(engine, image):
    with with_flags(engine, image, "caisson-browser-few", OUR_PROFILE) as served:
        served.eventually(served.ready)
        check_sandbox(served)
        assert opened(served, "chrome://sandbox") == "Sandbox Status"
        assert "You are adequately sandboxed" in post(served, "evaluate", expression="document.body.innerText").json()["data"]


def test_clients_of_the_devtools_protocol_drive_it(tier, tmp_path):
    """Playwright, puppeteer and chrome-remote-interface, alone and six at once: the tests of tests/api, with the container as their server."""
    if tier.started["tier"] in ("T0", "T1"):
        pytest.skip("no browser in this tier")
    results = tmp_path / "results.xml"
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml", results, "-k", "a_client_works or for_python or six_at_once",
                           ROOT / "tests/api/test_cdp_clients.py"], capture_output=True, text=True, timeout=1200, check=False,
                          env={**os.environ, "CAISSON_URL": tier.started["url"], "CAISSON_KEY": tier.started["api_key"]})  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    cases = {case.get("name"): [child.get("message") for child in case] for case in xml.etree.ElementTree.parse(results).iter("testcase")}
    assert len(cases) == 5, cases
    if why := sum(cases.values(), []):
        pytest.skip("; ".join(why))


def test_pages_are_shown_and_downloads_land_in_the_home(tier):
    if tier.started["tier"] in ("T0", "T1"):
        pytest.skip("no browser in this tier")
    tier.bash("echo '<title>of the shell</title><a id=a download=got.txt href=data:text/plain,got>a</a>' >~/page.html")
    assert opened(tier, "file:///home/gem/page.html") == "of the shell"
    assert post(tier, "click", selector="#a").json()["success"]
    tier.eventually(lambda: tier.bash("cat ~/Downloads/got.txt")["stdout"] == "got")
    assert tier.http.get("/v1/browser/screenshot").content[:4] == b"\x89PNG"


def test_without_chroot_in_the_profile_the_browser_says_so(engine, image, tmp_path):
    profile = json.loads((ROOT / "image/seccomp.json").read_text())
    for rule in profile["syscalls"]:
        rule["names"] = [name for name in rule["names"] if name != "chroot"]
    (tmp_path / "seccomp.json").write_text(json.dumps(profile))
    flags = ["--cap-drop=ALL", "--cap-add=SETUID", "--cap-add=SETGID", "--cap-add=KILL", "--security-opt", f"seccomp={tmp_path}/seccomp.json"]
    with with_flags(engine, image, "caisson-browser-no-chroot", flags) as served:
        served.eventually(served.ready)
        answer = post(served, "navigate", url="about:blank")
        assert not answer.json()["success"] and "chroot in a user namespace is refused" in answer.json()["message"], answer.text
        assert served.bash("echo on")["stdout"] == "on\n"
