"""/codex and /opencode: a terminal that begins with that program, configured by the operator's variables. The programs here only say how
they were started, but for Codex's own in the last test."""
import asyncio
import contextlib
import json
import pathlib
import tempfile
import tomllib
import urllib.parse

import pytest
from conftest import AGENTS, HEADER, Api
from launcher_process import Launcher
from successor import kill_agent
from test_shell_ws import Terminal, in_terminal
from test_terminal import Page
from test_tls import words_at_start

pytest.importorskip("websockets")

SYSTEM = "/usr/local/sbin"  # a folder of the system's PATH
KEYS = {"CODEX_API_KEY": "key-codex-1f0c", "ARK_API_KEY": "key-ark-77aa", "OPENCODE_API_KEY": "key-open-93bd"}
VARIABLES = {**KEYS, "CODEX_MODEL": "model-c", "CODEX_BASE_URL": "http://127.0.0.1:9/v1", "OPENCODE_MODEL": "model-o",
             "CODEX_MODEL_CATALOG_JSON": '{"models": []}', "CODEX_CONFIG_TOML": 'model_reasoning_effort = "low"\n', "OPENCODE_JSON": '{"theme": "dark"}'}
PROGRAM = """#!/bin/sh
[ "$1" != --version ] || {{ echo "{name}-cli 0.155.1"; exit; }}
echo "{name} runs with ${{CODEX_API_KEY:-no}} and ${{ARK_API_KEY:-no}} and ${{OPENCODE_API_KEY:-no}}, arguments: $#."
cat >/dev/null
"""


def seen_in(folder: pathlib.Path, place: str, what: str, *domains):
    """Changes policies: these domains see the folder there."""
    def change(policies):
        for domain in domains or ("bash", "shell"):
            policy = json.loads((policies / f"{domain}.json").read_text())
            policy.setdefault("grants", []).append({"path": place, "source": str(folder), "access": "read", "execute": True, "description": what})
            policy.setdefault("weaken", []).append({"field": f"/grants{place}", "why": "the tests run them"})
            (policies / f"{domain}.json").write_text(json.dumps(policy))
    return change


@pytest.fixture(scope="module")
def on_path():
    """on_path(codex="...", ...): changes policies so that these scripts are among the system's programs."""
    with contextlib.ExitStack() as made:
        def put(**scripts):
            folder = pathlib.Path(made.enter_context(tempfile.TemporaryDirectory(prefix="caisson-coding-")))
            folder.chmod(0o755)
            for name, text in scripts.items():
                (folder / name).write_text(text)
                (folder / name).chmod(0o755)
            return seen_in(folder, SYSTEM, "Programs of the tests")
        yield put


@pytest.fixture(scope="module")
def programs(on_path):
    return on_path(**{name: PROGRAM.format(name=name) for name in ("codex", "opencode")})


@pytest.fixture(scope="module")
def server(launch, programs) -> Launcher:
    return launch(policies=programs, **VARIABLES)


@pytest.fixture(scope="module")
def coding(server, contract) -> Api:
    return Api(server.url, server.key, contract)


def started(api, name: str, query="") -> str:
    async def use(t):
        return await t.until("arguments: 0.")
    return in_terminal(api, use, f"&start={name}{query}")


def refusal(api, query: str) -> str:
    async def use(t):
        return await t.message()
    said = in_terminal(api, use, query)
    assert said["type"] == "error", said
    return said["data"]


def in_home(api, path: str) -> str:
    return api.data("/v1/file/read", {"file": f"/home/gem/{path}"})["content"]


def settled(api, path: str) -> str:
    """The file as the next start leaves it."""
    api.bash(f"rm -f ~/{path}")
    started(api, "codex" if "codex" in path else "opencode")
    return in_home(api, path)


# --- the page ---

@pytest.mark.parametrize("name", ["codex", "opencode"])
def test_the_page_leads_to_the_terminal_with_its_credential(coding, name):
    answer = coding.http.get(f"/{name}?ticket=a%26b&workspace=w&session_id=x&start=sh&other=1", headers={"X-AIO-API-Key": ""})
    there = urllib.parse.urlsplit(answer.headers["location"])
    assert (answer.status_code, there.path, there.netloc) == (307, "/terminal", "")
    assert urllib.parse.parse_qs(there.query) == {"start": [name], "ticket": ["a&b"], "workspace": ["w"]}


@pytest.mark.parametrize("name", ["codex", "opencode"])
def test_without_the_program_the_page_says_how_it_is_installed(api, name):
    answer = api.http.get(f"/{name}")
    if answer.status_code == 307:
        pytest.skip("the server under test has this program: its absence cannot be seen there")
    assert answer.status_code == 404 and f"{name.upper()}=VERSION" in answer.text and "image/README.md" in answer.text
    assert answer.text.strip() == refusal(api, f"&start={name}")


def test_the_tools_of_the_sandbox_name_the_programs(coding):
    tools = {tool["name"] for kind in coding.http.get("/v1/sandbox").json()["detail"]["utils"] for tool in kind["tools"]}
    assert {"codex", "opencode"} <= tools


# --- its session ---

def test_the_terminal_begins_with_the_program_and_its_keys(coding):
    text = started(coding, "codex")
    assert "$ codex\r\n" in text and "codex runs with key-codex-1f0c and key-ark-77aa and no, arguments: 0." in text
    assert "opencode runs with no and no and key-open-93bd, arguments: 0." in started(coding, "opencode")


@pytest.mark.parametrize("name", ["sh", "codex;id", "codex%20exec", "Codex", "../codex", ""])
def test_an_address_starts_nothing_else(coding, name):
    before = coding.data("/v1/shell/sessions/stats", method="GET")["total_sessions"]
    assert "codex or opencode" in refusal(coding, f"&start={name}")
    assert coding.data("/v1/shell/sessions/stats", method="GET")["total_sessions"] == before


def test_a_session_that_is_there_is_not_typed_into(coding):
    shell = coding.data("/v1/shell/sessions/create")["session_id"]

    async def use(t):
        await t.begin()
        await t.send(type="input", data="echo on-$((1+1))\r")
        return await t.until("on-2")
    assert "codex" not in in_terminal(coding, use, f"&start=codex&session_id={shell}")
    assert "session_id" in refusal(coding, "&start=codex&readonly=1")


def test_other_sessions_and_workspaces_have_no_keys(coding):
    for run in (coding.bash, coding.shell):
        done = run("env; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a ^CODEX")
        assert not [key for key in KEYS.values() if key in json.dumps(done)], done
    coding.data("/v1/workspaces", {"name": "tenant"})
    tenant = Api(coding.url, coding.key)
    tenant.http.headers[HEADER] = "tenant"
    ticket = tenant.http.post("/tickets", json={"path": "/v1/shell/ws", "workspace": "tenant"}).json()["ticket"]

    class Guest(Terminal):
        def __init__(self):
            super().__init__(coding)
            self.address = f"{coding.url.replace('http', 'ws', 1)}/v1/shell/ws?ticket={ticket}&start=codex"

    async def use():
        async with Guest() as t:
            return await t.until("arguments: 0.")
    assert "codex runs with no and no and no" in asyncio.run(use())
    written = in_home(tenant, ".codex/config.toml")
    assert "nested" in written and not [word for word in ("model-c", "127.0.0.1") if word in written], written
    coding.http.delete("/v1/workspaces/tenant")


def test_no_key_is_in_a_log_a_file_or_an_argument(coding, server):
    started(coding, "codex")
    started(coding, "opencode")
    files = [path for folder in ("audit", "home") for path in (server.dir / folder).rglob("*") if path.is_file()] + [server.log]
    texts = [path.read_bytes() for path in files]
    texts += [path.read_bytes() for path in pathlib.Path("/proc").glob("[0-9]*/cmdline")]
    texts.append(pathlib.Path(f"/proc/{server.agent_pid}/environ").read_bytes())
    assert len(texts) > 10 and not [key for key in KEYS.values() for text in texts if key.encode() in text]


def test_a_terminal_keeps_its_program_when_the_agent_is_replaced(coding, server):
    async def begin(t):
        first = await t.message()
        await t.until("arguments: 0.")
        return first["data"]
    session = in_terminal(coding, begin, "&start=codex")
    kill_agent(server)

    async def go_on(t):
        await t.send(type="input", data="\x04")
        await t.send(type="input", data="echo same-$CODEX_API_KEY\r")
        return await t.until("same-key-codex-1f0c")
    assert in_terminal(coding, go_on, f"&session_id={session}")
    coding.shell("exit", id=session)  # the next command gets a new bash
    assert coding.shell("echo new-$CODEX_API_KEY", id=session)["output"] == "new-key-codex-1f0c"


# --- its configuration ---

def test_codex_is_configured_by_the_variables(coding):
    written = settled(coding, ".codex/config.toml")
    config = tomllib.loads(written)
    assert config["model"] == "model-c" and config["model_reasoning_effort"] == "low" and config["model_provider"] == "caisson"
    assert config["model_providers"]["caisson"] == {"name": "caisson", "base_url": "http://127.0.0.1:9/v1", "wire_api": "responses", "env_key": "CODEX_API_KEY"}
    assert config["default_permissions"] == "nested" and config["features"]["use_legacy_landlock"] is True
    assert json.loads(in_home(coding, config["model_catalog_json"].removeprefix("/home/gem/"))) == {"models": []}


def test_opencode_is_configured_by_the_variables(coding):
    mark, _, written = settled(coding, ".config/opencode/opencode.json").partition("\n")
    config = json.loads(written)
    assert mark.startswith("// ") and config["theme"] == "dark" and config["model"] == "ark/model-o"
    assert config["provider"]["ark"]["options"]["apiKey"] == "{env:OPENCODE_API_KEY}"


@pytest.mark.parametrize("name, path, comment", [("codex", ".codex/config.toml", "#"), ("opencode", ".config/opencode/opencode.json", "//")])
def test_a_file_of_the_users_is_left_as_it_is(coding, name, path, comment):
    written = settled(coding, path)
    for own in (f"{comment} mine\n", "", written + "\n" + comment + " edited", written.split("\n", 1)[1], written.replace("model", "nodel", 1)):
        coding.data("/v1/file/write", {"file": f"/home/gem/{path}", "content": own})
        started(coding, name)
        assert in_home(coding, path) == own


def test_a_file_that_nobody_edited_follows_the_variables(launch, programs, server, contract):
    one = launch(policies=programs, CODEX_MODEL="before")
    api = Api(one.url, one.key, contract)
    assert tomllib.loads(settled(api, ".codex/config.toml"))["model"] == "before"
    one.environment["CODEX_MODEL"] = "after"
    one.restart()
    trusts = '\n\n[projects."/home/gem"]\ntrust_level = "trusted"\n'  # which Codex adds when its user says so
    api.data("/v1/file/write", {"file": "/home/gem/.codex/config.toml", "content": in_home(api, ".codex/config.toml") + trusts})
    started(api, "codex")
    config = tomllib.loads(in_home(api, ".codex/config.toml"))
    assert config["model"] == "after" and config["projects"] == {"/home/gem": {"trust_level": "trusted"}}


def test_a_configuration_that_cannot_be_written_is_named(coding):
    coding.bash("rm -rf ~/.codex && echo x > ~/.codex")
    assert "~/.codex/" in refusal(coding, "&start=codex")
    coding.bash("rm ~/.codex && mkdir ~/.codex && mkfifo ~/.codex/config.toml")
    assert "~/.codex/config.toml" in refusal(coding, "&start=codex")
    coding.bash("rm -r ~/.codex")


@pytest.mark.parametrize("name, value, why", [("CODEX_CONFIG_TOML", "a = 1\nb = = 2", "line 2, column 5 is not TOML"),
                                              ("CODEX_MODEL_CATALOG_JSON", "{", "line 1"), ("OPENCODE_JSON", "[]", "must be a JSON object"),
                                              ("OPENCODE_BASE_URL", "ftp://x", "https://")])
def test_an_invalid_value_is_named_at_start(server, name, value, why):
    said = words_at_start(server, {name: value})
    assert f"{name}: " in said and why in said and "listens on" not in said, said


# --- with a browser, and with Codex itself ---

# A model that says one sentence, whatever it is asked, and keeps with whose key.
MODEL = """
import http.server, json, pathlib
class Model(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        pathlib.Path("asked").write_text(self.path + " " + self.headers.get("authorization", "none"))
        item = {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": "a sentence of the " + "model"}]}
        usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2}
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in ({"type": "response.created", "response": {"id": "r"}}, {"type": "response.output_item.done", "item": item},
                      {"type": "response.completed", "response": {"id": "r", "usage": usage}}):
            self.wfile.write(f"event: {event['type']}\\ndata: {json.dumps(event)}\\n\\n".encode())
    def log_message(self, *_): pass
http.server.ThreadingHTTPServer(("127.0.0.1", 8765), Model).serve_forever()
"""


def test_codex_itself_works_with_what_was_written(launch, on_path, agents, contract):
    """Its screen, which it draws by cursor addresses, is left out: without arguments the program here says its version."""
    codex = on_path(codex=f"#!/bin/sh\n[ $# -gt 0 ] || set -- --version\nexec {agents[1]}/bin/codex \"$@\"\n")
    theirs = seen_in(agents[0], AGENTS, "Agents of the tests")
    one = launch(policies=lambda folder: (codex(folder), theirs(folder)), CODEX_API_KEY="key-real-20c4", CODEX_MODEL="model-of-the-test",
                 CODEX_BASE_URL="http://127.0.0.1:8765/v1")
    api = Api(one.url, one.key, contract)
    api.data("/v1/file/write", {"file": "/home/gem/model.py", "content": MODEL})
    api.data("/v1/bash/exec", {"command": "exec python3 model.py", "exec_dir": "/home/gem", "async_mode": True})

    async def use(t):
        await t.until("codex-cli 0.")
        await t.send(type="input", data="codex exec --skip-git-repo-check 'say something'; echo code-$?\r")
        return await t.until("code-0")
    assert "a sentence of the model" in in_terminal(api, use, "&start=codex")
    assert in_home(api, "asked") == "/v1/responses Bearer key-real-20c4"


def test_the_page_shows_the_program_and_a_reload_starts_no_second(browser, coding):
    browser.get(f"{coding.url}/codex?api_key={coding.key}")
    page = Page.__new__(Page)
    page.driver = browser
    page.shows("codex runs with key-codex-1f0c")
    assert "start=" not in browser.current_url and coding.key not in browser.current_url
    session = page.session()
    browser.refresh()
    page.shows("codex runs with key-codex-1f0c")
    assert page.session() == session and sum("codex runs with" in line for line in page.lines()) == 1
