"""MCP servers of the network: a program in a sealed session reaches them, by what the domain's policy lets out and no further. By Streamable
HTTP, in both kinds of revisions, and by HTTP+SSE."""
import json
import os
import pathlib
import queue

import pytest
from conftest import Api
from launcher_process import Launcher
from mcp_client import Client, Stateless
from outside import OTHER, PUBLIC, world
from upstream import configured

SECRET = "Bearer s3cret-of-the-far-server"
TOOLS = [{"name": name, "description": name, "inputSchema": {"type": "object", "properties": {}}} for name in ("hello", "slow", "big", "moved")]


def policies(folder):
    policy = {"description": "An MCP server of the network.", "extends": "mcp", "network": "allowlist",
              "egress": [{"host": "far.test", "ports": [80], "why": "the server"}], "weaken": [{"field": "/network", "why": "the server is far"}]}
    (folder / "mcp-far.json").write_text(json.dumps(policy))


def chunk(data):
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


class FarServer:
    """Streamable HTTP at /mcp, HTTP+SSE at /sse; both by hand, on connections of the test's own internet."""

    def __init__(self):
        self.heads, self.streams = [], queue.Queue()

    def handle(self, connection):
        file = connection.makefile("rb")
        while True:
            line = file.readline().decode()
            if not line.strip():
                return
            head = {}
            for field in iter(lambda: file.readline().decode().strip(), ""):
                name, _, value = field.partition(":")
                head[name.lower()] = value.strip()
            body = file.read(int(head.get("content-length", 0)))
            method, path, _ = line.split(" ", 2)
            self.heads.append((method, path, head))
            if head.get("authorization") != SECRET:
                self.answer(connection, 401, {"error": "who are you?"})
            elif path.startswith("/sse"):
                self.events(connection, method, body)
                if method == "GET":
                    return
            elif method == "GET":
                self.answer(connection, 405, {})
            else:
                self.streamable(connection, head, json.loads(body))

    @staticmethod
    def answer(connection, status, value, more=""):
        body = json.dumps(value).encode()
        connection.sendall(f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\n{more}Content-Length: {len(body)}\r\n\r\n".encode() + body)

    def streamable(self, connection, head, message):
        if "id" not in message:
            connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")
        elif message["method"] == "tools/call" and message["params"]["name"] == "moved":
            self.answer(connection, 307, {}, "Location: http://other.test/mcp\r\n")
        elif message["method"] == "tools/call" and message["params"]["name"] in ("slow", "big"):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            token = message["params"].get("_meta", {}).get("progressToken")
            told = [{"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}}, self.reply(message)]
            if message["params"]["name"] == "big":
                told[1]["result"]["content"][0]["text"] = "x" * 9_000_000
            for one in told:
                connection.sendall(chunk(f"data: {json.dumps(one)}\n\n".encode()))
            connection.sendall(chunk(b""))
        else:
            session = "Mcp-Session-Id: far-1\r\n" if message["method"] == "initialize" else ""
            self.answer(connection, 200, self.reply(message), session)

    def events(self, connection, method, body):
        if method == "GET":
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
            connection.sendall(chunk(b"event: endpoint\ndata: /sse/post?session=1\n\n"))
            while True:
                connection.sendall(chunk(f"event: message\ndata: {json.dumps(self.streams.get())}\n\n".encode()))
        message = json.loads(body)
        if "id" in message:
            self.streams.put(self.reply(message))
        connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")

    @staticmethod
    def reply(message):
        results = {"initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "far", "version": "1"}},
                   "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
                   "tools/list": {"tools": TOOLS}, "tools/call": {"content": [{"type": "text", "text": "from afar"}]}}
        if message["method"] not in results:
            return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}}
        return {"jsonrpc": "2.0", "id": message["id"], "result": results[message["method"]]}


@pytest.fixture(scope="module")
def far():
    return FarServer()


@pytest.fixture(scope="module")
def internet(tmp_path_factory, far):
    one = world.World(tmp_path_factory.mktemp("internet"))
    one.names.zone.update({"far.test": [PUBLIC], "other.test": [OTHER]})
    one.direct = one.serve(PUBLIC, 80, far.handle)
    one.other = one.serve(OTHER, 80, far.handle)
    yield one
    one.close()


@pytest.fixture(scope="module")
def secret():
    folder = pathlib.Path("/etc/caisson/mcp")
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o755)
    file = folder / f"far-{os.getpid()}"
    file.write_text(SECRET + "\n")
    file.chmod(0o644)
    yield str(file)
    file.unlink()


@pytest.fixture(scope="module")
def launcher(internet, secret):
    def server(path="mcp", host="far.test", **more):
        return {"url": f"http://{host}/{path}", "domain": "mcp-far", "headerFiles": {"Authorization": secret}, **more}
    with internet.out.inside():
        one = Launcher(policies=policies, before=internet.wrapper(), EXTRA_MCP_SERVERS=configured(
            far=server(), newest=server(revision="2026-07-28"), old=server("sse", type="sse"), other=server(host="other.test"),
            keyless=server(headerFiles={}), missing=server(headerFiles={"Authorization": "/etc/caisson/mcp/not-there"})))
        if "tier T2" not in one.log.read_text() and "tier T3" not in one.log.read_text():
            one.close()
            pytest.skip("without a network namespace there is no way out")
        yield one
        one.close()


@pytest.fixture(scope="module")
def client(launcher, contract):
    return Client(Api(launcher.url, launcher.key, contract))


def call(client, tool):
    return client.ask("tools/call", {"name": tool, "arguments": {}}, query="?servers=" + tool.rpartition("_")[0])


@pytest.mark.parametrize("server", ["far", "newest", "old"])
def test_a_far_server_is_called_by_either_transport(client, far, server):
    assert call(client, f"{server}_hello")["result"]["content"] == [{"type": "text", "text": "from afar"}]
    post = [head for method, path, head in far.heads if method == "POST" and head.get("authorization") == SECRET][-1]
    if server == "far":
        assert post["mcp-session-id"] == "far-1" and post["mcp-protocol-version"] == "2025-11-25"
    if server == "newest":
        assert (post["mcp-method"], post["mcp-name"], post["mcp-protocol-version"]) == ("tools/call", "hello", "2026-07-28")


def test_progress_of_a_far_server_comes_before_its_result(client):
    told = client.stream("tools/call", {"name": "far_slow", "arguments": {}, "_meta": {"progressToken": "p"}})
    assert [event["data"].get("method") for event in told] == ["notifications/progress", None]
    assert told[0]["data"]["params"] == {"progress": 1, "progressToken": "p"}


def test_what_no_rule_permits_is_not_reached(client, internet):
    error = call(client, "other_hello")["error"]
    assert "other" in error["message"] and len(internet.other) == 0


def test_a_redirect_is_not_followed_with_the_secret(client, internet):
    error = call(client, "far_moved")["error"]
    assert "redirects" in error["message"] and len(internet.other) == 0


def test_too_large_an_answer_is_an_error_and_the_next_call_works(client):
    assert "more than 8 MiB" in call(client, "far_big")["error"]["message"]
    assert call(client, "far_hello")["result"]["content"]


def test_a_refused_credential_and_a_missing_file_are_named(client):
    assert "401" in call(client, "keyless_hello")["error"]["message"]
    assert "/etc/caisson/mcp/not-there" in call(client, "missing_hello")["error"]["message"]


def test_the_secret_is_nowhere_but_with_its_server(client, launcher):
    assert Stateless(client.api).call("far_hello")["content"]
    word = SECRET.split()[1]
    assert word not in launcher.log.read_text() and word not in client.api.http.get("/v1/sessions").text
    assert not any(word.encode() in file.read_bytes() for file in (launcher.dir / "audit").rglob("*") if file.is_file())
