"""Programs of others that drive the workspace's browser by /cdp and /json, unmodified: alone, and six of them at once."""
import contextlib
import json
import os
import subprocess
import urllib.parse

import npm
import own_venv
import pytest
from conftest import eventually
from screen import needs_desktop, serving

pytestmark = needs_desktop
PAGE = """<title>fresh</title><button id=press onclick="document.title = textContent = 'pressed'">p</button>
<button id=ask onclick="answer.textContent = prompt('sure?')">a</button><p id=answer></p>
<input type=file id=file onchange="files[0].text().then((text) => answer.textContent = text)">
<a id=save download="saved.txt" href="data:text/plain,saved">s</a>"""
PLAYWRIGHT = {"title": "pressed", "asked": "yes to sure?", "uploaded": "uploaded", "name": "saved.txt", "failure": None, "picture": "PNG", "traced": True}
WANTED = {"playwright.mjs": PLAYWRIGHT,
          "puppeteer.mjs": {"title": "pressed", "asked": "yes to sure?", "answered": "of puppeteer", "picture": "PNG"},
          "remote_interface.mjs": {"title": "pressed", "listed": True, "domains": True}}


@pytest.fixture(scope="module")
def clients():
    return npm.installed("cdp_clients")


@pytest.fixture
def page(api):
    """The page's address in the browser."""
    home = api.http.get("/v1/sandbox").json()["home_dir"]
    assert api.post("/v1/file/write", {"file": f"{home}/clients.html", "content": PAGE}).json()["success"]
    yield f"file://{home}/clients.html"
    api.post("/v1/bash/exec", {"command": "rm -f ~/clients.html ~/Downloads/saved*"})


def start(clients, api, page, program, **more):
    host = urllib.parse.urlsplit(api.url)
    place = {"ADDRESS": f"{api.url}/cdp", "SOCKET": f"ws://{host.netloc}/cdp", "HOST": host.hostname, "PORT": str(host.port)}
    return subprocess.Popen([npm.node(), program], cwd=clients, env={**os.environ, **place, "KEY": api.key, "PAGE": page, **more},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def seen(process, timeout=180):
    try:
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    assert process.returncode == 0, err[-2000:]
    return json.loads(out)


def tabs(api):
    return {tab["id"] for tab in api.http.get("/json/list").json() if tab["type"] == "page"}


@pytest.mark.parametrize("program", WANTED)
def test_a_client_works_unmodified(clients, api, page, program):
    before = tabs(api)
    assert seen(start(clients, api, page, program)) == WANTED[program]
    eventually(lambda: tabs(api) == before)


def test_a_download_of_a_clients_context_lands_in_the_home(clients, api, page):
    seen(start(clients, api, page, "playwright.mjs"))
    assert api.post("/v1/file/read", {"file": "Downloads/saved.txt"}).json()["data"]["content"] == "saved"


def test_playwright_for_python_works_unmodified(api, page):
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    before = tabs(api)
    with playwright.sync_playwright() as p, contextlib.closing(p.chromium.connect_over_cdp(f"{api.url}/cdp", headers={"X-AIO-API-Key": api.key})) as browser:
        context = browser.new_context()
        tab = context.new_page()
        tab.goto(page)
        tab.click("#press")
        tab.once("dialog", lambda dialog: dialog.accept(f"yes to {dialog.message}"))
        tab.click("#ask")
        with tab.expect_download() as download:
            tab.click("#save")
        got = tab.title(), tab.text_content("#answer"), download.value.suggested_filename, download.value.failure(), tab.screenshot()[1:4]
        context.close()
    assert got == ("pressed", "yes to sure?", "saved.txt", None, b"PNG")
    eventually(lambda: tabs(api) == before)


@pytest.fixture(scope="module")
def browser_use():
    """An interpreter with browser-use, which wants other versions than our own tests."""
    if not os.environ.get("CAISSON_TEST_FULL"):
        pytest.skip("scripts/test full installs browser-use (360 MB)")
    return own_venv.installed("browser-use", "browser-use==0.13.14")


@pytest.fixture
def served(api, page):
    """The page from a server of the workspace: browser-use opens no file."""
    with serving(api, 8124) as address:
        yield f"{address}/clients.html"


def test_the_agent_of_browser_use_works_unmodified(browser_use, clients, api, served):
    before = tabs(api)
    process = subprocess.Popen([browser_use, clients / "browser_use_agent.py"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "ADDRESS": f"{api.url}/cdp", "KEY": api.key, "PAGE": served})
    assert seen(process) == {"result": "clicked", "errors": [], "shown": True}
    for left in tabs(api) - before:  # it leaves its tab to the next of its agents
        api.http.get(f"/json/close/{left}")


def test_six_at_once_have_a_tab_each_and_leave_nothing(clients, api, page):
    before = tabs(api)
    # Without dialogs: playwright dismisses those of every tab that it knows, and it knows all tabs of a browser.
    started = [(program, start(clients, api, page, program, SHARED="1")) for program in [*WANTED] * 2]
    for program, process in started:
        assert seen(process) == {**WANTED[program], **({"asked": ""} if "asked" in WANTED[program] else {})}, program
    eventually(lambda: tabs(api) == before)


class Mcp:
    """A server of tools over stdin and stdout, one JSON message a line."""

    def __init__(self, *argv, cwd):
        self.process = subprocess.Popen(argv, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.last = 0
        self.ask("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "0"})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def send(self, message):
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def ask(self, method, **params):
        self.last += 1
        self.send({"jsonrpc": "2.0", "id": self.last, "method": method, "params": params})
        for line in self.process.stdout:
            if json.loads(line).get("id") == self.last:
                return json.loads(line)["result"]
        raise AssertionError("the server of tools has ended")

    def tool(self, name, **arguments):
        done = self.ask("tools/call", name=name, arguments=arguments)
        text = "\n".join(part.get("text", "") for part in done["content"])
        assert not done.get("isError"), text
        return text


def test_chrome_devtools_mcp_works_unmodified(clients, api, page):
    before = tabs(api)
    socket = api.url.replace("http", "ws", 1) + "/cdp"
    program = clients / "node_modules/chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js"
    with Mcp(npm.node(), str(program), "--wsEndpoint", socket, "--wsHeaders", json.dumps({"X-AIO-API-Key": api.key}), "--no-usage-statistics",
             cwd=clients) as mcp:
        listed = mcp.tool("new_page", url=page)
        number = int(next(line.split(":")[0] for line in listed.splitlines() if page in line))
        snapshot = mcp.tool("take_snapshot", pageId=number)
        button = next(line.split("uid=")[1].split()[0] for line in snapshot.splitlines() if 'button "p"' in line)
        mcp.tool("click", pageId=number, uid=button)
        assert "pressed" in mcp.tool("evaluate_script", pageId=number, function="() => document.title")
        mcp.tool("close_page", pageId=number)
    eventually(lambda: tabs(api) == before)
