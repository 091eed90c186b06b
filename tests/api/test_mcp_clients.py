"""/mcp by clients that others wrote, unmodified, with a configured server of either kind of revisions; and by what the protocol's own conformance
suite asks of any server. Its scenarios that need fixed tools are in test_mcp_conformance.py."""
import asyncio
import json
import os
import pathlib
import subprocess

import npm
import own_venv
import pytest
from conftest import Api
from upstream import configured, granting, python

# Of the suite, by revision: what needs no tool, resource or prompt of the suite's own.
SCENARIOS = {
    "2025-11-25": ["server-initialize", "ping", "tools-list", "server-session-lifecycle", "dns-rebinding-protection"],
    "2026-07-28": ["tools-list", "dns-rebinding-protection", "http-header-validation"],
}

def greeted(mode, text):
    """Whether a tool has heard what its client answered: to a request of the tool's own, or to a result that wanted input."""
    if mode == "auto":
        return text == "Hello, Ada!"
    said, _, content = text.partition(", content=")
    return said == "Elicitation completed: action=accept" and json.loads(content) == {"username": "Ada", "email": "Ada"}


@pytest.fixture(scope="module")
def clients():
    return npm.installed("mcp_clients")


@pytest.fixture(scope="module")
def hub(launch):
    return launch(policies=granting("mcp"), EXTRA_MCP_SERVERS=configured(
        every=python("everything", "2025-11-25"), newest=python("everything", "2026-07-28", revision="2026-07-28")))


@pytest.fixture(scope="module")
def api(hub, contract):
    return Api(hub.url, hub.key, contract)


def environment(api, **more):
    return {**os.environ, "URL_OF_MCP": f"{api.url}/mcp", "KEY": api.key, **more}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_python_sdk(api, mode):
    mcp, httpx2 = pytest.importorskip("mcp"), pytest.importorskip("httpx2")
    from mcp.client.streamable_http import streamable_http_client

    async def use():
        async with httpx2.AsyncClient(headers={"X-AIO-API-Key": api.key}, timeout=120) as http, \
                mcp.Client(streamable_http_client(f"{api.url}/mcp", http_client=http), mode=mode) as client:
            tools = await client.list_tools()
            ran = await client.call_tool("sandbox_execute_bash", {"cmd": "echo from Python"})
            code = await client.call_tool("sandbox_execute_code", {"code": "1 / 0"})
            wrong = await client.call_tool("sandbox_file_operations", {"action": "read"})
            return tools, ran, code, wrong

    tools, ran, code, wrong = asyncio.run(use())
    assert "sandbox_execute_bash" in [tool.name for tool in tools.tools]
    assert ran.structured_content["output"] == "from Python" and not ran.is_error
    assert code.structured_content["exit_code"] == 1 and wrong.is_error and "path" in wrong.content[0].text


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_the_python_sdk_hears_of_progress_and_answers_questions(api, mode):
    mcp, httpx2 = pytest.importorskip("mcp"), pytest.importorskip("httpx2")
    from mcp.client.streamable_http import streamable_http_client
    from mcp_types import CreateMessageResult, ElicitResult, TextContent
    asking = {"legacy": "every_test_", "auto": "newest_test_input_required_result_"}[mode]
    told = []

    async def progress(done, total, _message):
        told.append((done, total))

    async def enter(_context, params):
        return ElicitResult(action="accept", content={name: "Ada" for name in params.requested_schema["properties"]})

    async def sample(_context, params):
        heard = TextContent(type="text", text=f"heard {params.messages[0].content.text}")
        return CreateMessageResult(role="assistant", model="script", content=heard)

    async def use():
        async with httpx2.AsyncClient(headers={"X-AIO-API-Key": api.key}, timeout=120) as http, \
                mcp.Client(streamable_http_client(f"{api.url}/mcp", http_client=http), mode=mode, elicitation_callback=enter,
                           sampling_callback=sample) as client:
            await client.call_tool("every_test_tool_with_progress", {}, progress_callback=progress)
            answered = await client.call_tool(asking + "elicitation", {"message": "Who are you?"})
            sampled = await client.call_tool(asking + "sampling", {"prompt": "this"})
            return answered.content[0].text, sampled.content[0].text

    answered, sampled = asyncio.run(use())
    assert told == [(0, 100), (50, 100), (100, 100)] and greeted(mode, answered)
    assert sampled == {"legacy": "LLM response: heard this", "auto": "heard What is the capital of France?"}[mode]


def test_the_typescript_sdks(api, clients):
    done = subprocess.run([npm.node(), "sdk.mjs"], cwd=clients, env=environment(api),
                          capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    for name, seen in json.loads(done.stdout).items():
        assert seen["server"] == "caisson" and "browser_navigate" in seen["tools"] and seen["output"] == "from the SDK", (name, seen)
        assert "cmd" in json.dumps(seen["wrong"]) and "no_such_tool" in json.dumps(seen["unknown"]), (name, seen)
        assert seen["progress"] == [0, 50, 100] and greeted(name, seen["answered"]), (name, seen)


def test_mcp_remote(api, clients):
    """A bridge for clients that speak over pipes alone."""
    program = clients / "node_modules/mcp-remote/dist/proxy.js"
    argv = [npm.node(), str(program), f"{api.url}/mcp", "--allow-http", "--transport", "http-only", "--header", f"X-AIO-API-Key:{api.key}"]
    bridge = subprocess.Popen(argv, cwd=clients, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)
    try:
        def ask(id_, method, params):
            bridge.stdin.write(json.dumps({"jsonrpc": "2.0", "id": id_, "method": method, "params": params}) + "\n")
            while True:
                line = bridge.stdout.readline()
                assert line, bridge.stderr.read()
                if json.loads(line).get("id") == id_:
                    return json.loads(line)["result"]

        hello = ask(1, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}})
        assert hello["serverInfo"]["name"] == "caisson"
        bridge.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        ran = ask(2, "tools/call", {"name": "sandbox_execute_bash", "arguments": {"cmd": "echo over the bridge"}})
        assert ran["structuredContent"]["output"] == "over the bridge"
    finally:
        bridge.kill()
        bridge.wait()


def newer_node(clients):
    """Node.js 22, which some clients need."""
    node = next(clients.glob("node_modules/node-linux-*/bin/node"), None)
    return node or pytest.skip("this client needs Node.js 22, which npm has for x64 and arm64 alone")


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_command_line_of_the_inspector(api, clients, era, tmp_path):
    program = clients / "node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"

    def ask(method, *arguments):
        argv = [newer_node(clients), program, "--cli", f"{api.url}/mcp", "--transport", "http", "--header", f"X-AIO-API-Key: {api.key}",
                "--protocol-era", era, "--format", "json", "--quiet", "--method", method, *arguments]
        done = subprocess.run([str(a) for a in argv], cwd=clients, env={**os.environ, "HOME": str(tmp_path)}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, (done.stdout[-1000:], done.stderr[-2000:])
        return json.loads(done.stdout)["result"]

    tools = [tool["name"] for tool in ask("tools/list")["tools"]]
    assert {"sandbox_execute_bash", "browser_navigate", "every_test_simple_text"} <= set(tools)
    ran = ask("tools/call", "--tool-name", "sandbox_execute_bash", "--tool-arg", "cmd=echo from the inspector")
    assert ran["structuredContent"]["output"] == "from the inspector"
    simple = ask("tools/call", "--tool-name", "every_test_simple_text")
    assert simple["content"] == [{"type": "text", "text": "This is a simple text response for testing."}]
    assert "test://static-text" in [resource["uri"] for resource in ask("resources/list")["resources"]]
    prompt = ask("prompts/get", "--prompt-name", "every_test_prompt_with_arguments", "--prompt-args", "arg1=a", "arg2=b")
    assert "arg1='a', arg2='b'" in prompt["messages"][0]["content"]["text"]


def test_the_adapter_of_langchain(api):
    python = own_venv.installed("langchain", "langchain-mcp-adapters==0.3.2")  # needs version 1 of the Python SDK
    program = npm.HERE / "mcp_clients/langchain_adapter.py"
    done = subprocess.run([python, "-B", program], env=environment(api, LANGSMITH_TRACING="false"), capture_output=True, text=True,
                          timeout=180, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    seen = json.loads(done.stdout)
    assert {"sandbox_execute_bash", "browser_navigate", "every_test_simple_text", "newest_test_simple_text"} <= set(seen["tools"])
    assert seen["bash"]["status"] == "success" and "from LangChain" in seen["bash"]["text"]
    assert seen["simple"]["text"] == "This is a simple text response for testing." and seen["failed"]["status"] == "error"
    assert seen["progress"] == [["every_test_tool_with_progress", done] for done in (0, 50, 100)]
    assert seen["asked"] == ["Who are you?"] and greeted("legacy", seen["answered"]["text"])
    assert seen["resource"] == ["This is the content of the static text resource."]
    assert "arg1='a', arg2='b'" in seen["prompt"][0]


@pytest.fixture(scope="module")
def keyless(launch):
    """The suite sends no key."""
    return launch(key=None, CAISSON_AUTH="none")


@pytest.mark.parametrize(("revision", "scenario"), [(revision, name) for revision, names in SCENARIOS.items() for name in names])
def test_conformance(clients, keyless, revision, scenario, tmp_path):
    program = clients / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    argv = [newer_node(clients), program, "server", "--url", f"{keyless.url}/mcp", "--scenario", scenario, "--spec-version", revision, "-o", tmp_path]
    done = subprocess.run([str(a) for a in argv], cwd=clients, capture_output=True, text=True, timeout=120, check=False)
    found = [check for file in pathlib.Path(tmp_path).rglob("checks.json") for check in json.loads(file.read_text())]
    failed = [check for check in found if check["status"] == "FAILURE"]
    assert found and not failed and done.returncode == 0, (failed, done.stdout[-2000:], done.stderr[-500:])
