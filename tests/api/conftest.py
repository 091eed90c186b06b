"""The server under test. Without CAISSON_URL a native launcher is started (root); with CAISSON_URL and CAISSON_KEY a running
one is used, for example a container, and the tests that look at the server's own processes skip."""
import contextlib
import json
import os
import pathlib
import secrets
import shutil
import socket
import sys
import time

import httpx
import pytest

sys.path[:0] = [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parents[1])]

import npm  # noqa: E402
import sdk  # noqa: E402
from contract import Contract  # noqa: E402
from control import SKEL  # noqa: E402, F401
from launcher_process import BUILD, PROGRAMS, Launcher, free_port  # noqa: E402
from raw_http import Raw  # noqa: E402



def connect(*arguments, real=socket.create_connection, **options):
    """Older HTTP clients send a request's head and its body by themselves: without this the body waits, for 40 ms, until the kernel of
    the other end has acknowledged the head."""
    made = real(*arguments, **options)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


socket.create_connection = connect
# What a client of httpx waits for when its test says nothing: five seconds would be about the machine, not about the server.
httpx._config.DEFAULT_TIMEOUT_CONFIG.__init__(120)
HEADER = "X-Caisson-Workspace"
AGENTS = "/opt/agents"
NOT_FOUND = {"success": False, "message": "Session not found", "data": None}


def eventually(fact, seconds=60.0):
    """Waits until fact() is true and returns what it was."""
    end = time.monotonic() + seconds
    while True:
        value = fact()
        if value:
            return value
        assert time.monotonic() < end, f"not within {seconds} s; last: {value!r}"
        time.sleep(0.02)


def uid_of(here, name: str) -> int:
    """As the launcher's log has it: clients are not told."""
    made = [json.loads(line) for line in (here.dir / "audit/launcher.ndjson").read_text().splitlines()]
    return [r["workspace"]["uid"] for r in made if r["event"] == "workspace_create" and r["workspace"]["name"] == name][-1]


def finish(api, session: str, **fields) -> dict:
    """What a bash session's newest command wrote from the given offsets on, once it is over."""
    asked = {"session_id": session, "wait": True, "wait_timeout": 20, **fields}
    while True:
        got = api.data("/v1/bash/output", asked)
        if got["command"]["status"] not in ("pending", "running"):
            return api.data("/v1/bash/output", {"session_id": session, **fields})
        asked |= {"offset": got["offset"], "stderr_offset": got["stderr_offset"]}


class Api:
    """A client with the key. Every answer that the contract describes is validated against it."""

    def __init__(self, url: str, key: str, contract: Contract | None = None):
        self.url, self.key, self.contract = url, key, contract
        self.http = httpx.Client(base_url=url, headers={"X-AIO-API-Key": key} if key else {}, timeout=180, trust_env=False,
                                 event_hooks={"response": [self.check]})

    def check(self, response: httpx.Response):
        assert response.status_code < 500, f"{response.request.method} {response.request.url}: {response.status_code}"
        if self.contract and response.headers.get("content-type", "").startswith("application/json"):
            response.read()
            if response.content:
                self.contract.check(response.request.method, response.request.url.path, response.status_code, response.json())

    def post(self, path: str, body=None, **options) -> httpx.Response:
        return self.http.post(path, json={} if body is None else body, **options)

    def data(self, path: str, body=None, method="POST"):
        """`data` of a request that must succeed."""
        answer = self.http.request(method, path, json={} if body is None and method == "POST" else body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["success"] is True, answer.text
        return answer.json()["data"]

    def sessions(self) -> list[dict]:
        """All living sessions, page after page."""
        found, after = [], ""
        while after is not None:
            page = self.data(f"/v1/sessions?after={after}", method="GET")
            found += page["sessions"]
            after = page.get("next")
        return found

    def fails(self, path: str, body: dict) -> dict:
        """The envelope of a tool that must fail: HTTP 200, success false, a message."""
        answer = self.post(path, body)
        assert answer.status_code == 200, answer.text
        assert answer.json()["success"] is False and answer.json()["message"], answer.text
        return answer.json()

    def bash(self, command: str, **fields) -> dict:
        return self.data("/v1/bash/exec", {"command": command, **fields})

    def shell(self, command: str, **fields) -> dict:
        return self.data("/v1/shell/exec", {"command": command, **fields})

    def request(self, line: str, body="", *headers: str) -> bytes:
        """A request as bytes, with Host and key, for a raw connection."""
        content = body if isinstance(body, bytes) else body.encode()
        length = [f"Content-Length: {len(content)}"] if content else []
        head = [f"{line} HTTP/1.1", "Host: test", f"X-AIO-API-Key: {self.key}", *length, *headers, "", ""]
        return "\r\n".join(head).encode() + content

    def raw(self, timeout=60.0) -> Raw:
        return Raw(self.url, timeout)


@pytest.fixture(scope="session")
def contract():
    return Contract.load()


@contextlib.contextmanager
def launching():
    """start(**options): a native launcher; all of them end at the end."""
    if os.geteuid() != 0:
        pytest.skip("a native launcher needs root")
    missing = [p for p in PROGRAMS if not p.is_file()]
    if missing:
        pytest.fail(f"not built: {missing}")
    running = []

    def start(**options) -> Launcher:
        running.append(Launcher(**options))
        return running[-1]

    try:
        yield start
    finally:
        for launcher in running:
            launcher.close()


@pytest.fixture(scope="module")
def launch():
    """launch(**options): another native launcher, ended with the file's tests: a hundred that lived on would take half a processor."""
    with launching() as start:
        yield start


@pytest.fixture
def servers_file():
    """(path, write(text)): a file of MCP servers for CAISSON_MCP_SERVERS."""
    folder = pathlib.Path("/etc/caisson/mcp")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    file = folder / f"servers-{os.getpid()}.json"

    def write(text):
        new = file.with_suffix(".new")
        new.write_text(text)
        new.chmod(0o644)
        new.rename(file)
    yield file, write
    file.unlink(missing_ok=True)


@pytest.fixture(scope="session")
def native() -> Launcher:
    """The native launcher under test; its processes and files may be looked at."""
    if "CAISSON_URL" in os.environ:
        pytest.skip("the server under test is not a process of this host (CAISSON_URL)")
    with launching() as start:
        yield start()


@pytest.fixture(scope="session")
def api(request, contract) -> Api:
    if url := os.environ.get("CAISSON_URL"):
        given = Api(url.rstrip("/"), os.environ.get("CAISSON_KEY", ""), contract)
        try:
            status = given.http.get("/v1/sandbox").status_code
        except httpx.TransportError as why:
            status = why
        if status != 200:
            pytest.exit(f"nothing to test at CAISSON_URL={url} with CAISSON_KEY: {status}", 1)
        return given
    launcher = request.getfixturevalue("native")
    return Api(launcher.url, launcher.key, contract)


@pytest.fixture
def session(api):
    """A bash session of the test's own."""
    made = api.data("/v1/bash/sessions/create")["session_id"]
    yield made
    api.post(f"/v1/bash/sessions/{made}/close")


@pytest.fixture
def shell(api):
    """A shell session of the test's own."""
    made = api.data("/v1/shell/sessions/create")["session_id"]
    yield made
    api.http.delete(f"/v1/shell/sessions/{made}")


def pytest_terminal_summary(terminalreporter, config):
    """Which operations of the contract were checked how often, and which fields go beyond it."""
    contract = getattr(config, "caisson_contract", None)
    if contract is None or not contract.checked:
        return
    terminalreporter.section("responses checked against the contract")
    for name, count in sorted(contract.checked.items()):
        extra = ", ".join(sorted(contract.extra[name])) or "no extra fields"
        terminalreporter.write_line(f"{count:5} {name}: {extra}")
    if sdk.CALLED:
        terminalreporter.section("methods of the SDK, what they called, and answers that were valid")
        for line in sdk.table():
            terminalreporter.write_line(line)


@pytest.fixture(scope="session", autouse=True)
def remember_contract(contract, pytestconfig):
    pytestconfig.caisson_contract = contract


def with_workspaces(launcher):
    """The launcher; skips where it cannot keep workspaces apart."""
    api = Api(launcher.url, launcher.key)
    answer = api.post("/v1/workspaces", {"name": "probe"})
    if answer.status_code == 403:
        pytest.skip(f"refused here: {answer.json()['message']}")
    assert answer.status_code == 200, answer.text
    api.http.delete("/v1/workspaces/probe")
    return launcher


@pytest.fixture(scope="module")
def here(native):
    return with_workspaces(native)


@pytest.fixture
def named(here, contract):
    """named(): a client whose requests name a new workspace."""
    made = []

    def create(**fields) -> Api:
        name = "w" + secrets.token_hex(4)
        one = Api(here.url, here.key, contract)
        one.data("/v1/workspaces", {"name": name, **fields})
        one.http.headers[HEADER] = one.workspace = name
        made.append(one)
        return one

    yield create
    for one in made:
        one.http.delete(f"/v1/workspaces/{one.workspace}")


@pytest.fixture(scope="session")
def agents():
    """The folder of npm's packages, and where sessions see Codex's programs, if a policy grants it at AGENTS."""
    folder = npm.installed("nested")
    vendor = next(folder.glob("node_modules/@openai/codex-linux-*/vendor/*/"), None)
    if vendor is None:
        pytest.skip("no Codex for this processor")
    return folder, f"{AGENTS}/{vendor.relative_to(folder)}"


@pytest.fixture(scope="module")
def chromium():
    """A real Chromium, headless, that keeps what its console says."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="python3-selenium is not installed")
    programs = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if not all(programs):
        pytest.skip("chromium or chromium-driver is not installed")
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(service=webdriver.chrome.service.Service(programs[1], port=free_port()), options=options)
    driver.set_script_timeout(120)
    yield driver
    driver.quit()


@pytest.fixture
def browser(chromium):
    """It has left the page of the test before, which would go on and whose server may be gone."""
    chromium.get("about:blank")
    chromium.get_log("browser")
    return chromium
