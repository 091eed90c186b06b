"""/mcp by clients that others wrote, unmodified, and by what the protocol's own conformance suite asks of any server. Its scenarios that need
a server of fixed tools are for upstream servers."""
import asyncio
import json
import os
import pathlib
import subprocess

import npm
import pytest

# Of the suite, by revision: what needs no tool, resource or prompt of the suite's own.
SCENARIOS = {
    "2025-11-25": ["server-initialize", "ping", "tools-list", "server-session-lifecycle", "dns-rebinding-protection"],
    "2026-07-28": ["tools-list", "dns-rebinding-protection", "http-header-validation"],
}


@pytest.fixture(scope="module")
def clients():
    return npm.installed("mcp_clients")


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


def test_the_typescript_sdks(api, clients):
    done = subprocess.run([npm.node(), "sdk.mjs"], cwd=clients, env={**os.environ, "URL_OF_MCP": f"{api.url}/mcp", "KEY": api.key},
                          capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stderr
    for name, seen in json.loads(done.stdout).items():
        assert seen["server"] == "caisson" and "browser_navigate" in seen["tools"] and seen["output"] == "from the SDK", (name, seen)
        assert "cmd" in json.dumps(seen["wrong"]) and "no_such_tool" in json.dumps(seen["unknown"]), (name, seen)


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


@pytest.fixture(scope="module")
def keyless(launch):
    """The suite sends no key."""
    return launch(key=None, CAISSON_AUTH="none")


@pytest.mark.parametrize(("revision", "scenario"), [(revision, name) for revision, names in SCENARIOS.items() for name in names])
def test_conformance(clients, keyless, revision, scenario, tmp_path):
    program = clients / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    node = next(clients.glob("node_modules/node-linux-*/bin/node"), None)
    if node is None:
        pytest.skip("the suite needs Node.js 22, which npm has for x64 and arm64 alone")
    argv = [node, program, "server", "--url", f"{keyless.url}/mcp", "--scenario", scenario, "--spec-version", revision, "-o", tmp_path]
    done = subprocess.run([str(a) for a in argv], cwd=clients, capture_output=True, text=True, timeout=120, check=False)
    found = [check for file in pathlib.Path(tmp_path).rglob("checks.json") for check in json.loads(file.read_text())]
    failed = [check for check in found if check["status"] == "FAILURE"]
    assert found and not failed and done.returncode == 0, (failed, done.stdout[-2000:], done.stderr[-500:])
