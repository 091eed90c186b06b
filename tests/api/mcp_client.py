"""Clients of /mcp, by hand: one of the revisions with `initialize`, one of 2026-07-28."""
import json

LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"
ACCEPT = {"Accept": "application/json, text/event-stream"}
META = "io.modelcontextprotocol/"


def message(method, params=None, id_=1):
    return {"jsonrpc": "2.0", "id": id_, "method": method, **({} if params is None else {"params": params})}


class Client:
    """A client of one of the revisions with `initialize`."""

    def __init__(self, api, revision=LEGACY[-1], path="/mcp", headers=None, capabilities=None):
        self.api, self.path, self.headers = api, path, ACCEPT | (headers or {})
        hello = message("initialize", {"protocolVersion": revision, "capabilities": capabilities or {}, "clientInfo": {"name": "test", "version": "1"}})
        answer = api.http.post(path, json=hello, headers=self.headers)
        assert answer.status_code == 200, answer.text
        self.hello = answer.json()["result"]
        self.headers |= {"Mcp-Session-Id": answer.headers["mcp-session-id"], "MCP-Protocol-Version": self.hello["protocolVersion"]}
        done = api.http.post(path, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=self.headers)
        assert (done.status_code, done.content) == (202, b"")

    def post(self, body, query="", **headers):
        return self.api.http.post(self.path + query, json=body, headers=self.headers | headers)

    def ask(self, method, params=None, query=""):
        answer = self.post(message(method, params), query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def call(self, name, /, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments})["result"]

    def text(self, name, /, **arguments):
        result = self.call(name, **arguments)
        assert not result.get("isError"), result
        return result["content"][0]["text"]

    def stream(self, method, params=None, id_=1, answer=None):
        """All messages of the answer, which is a stream; answer(request): the client's answer to a request in it."""
        with self.api.http.stream("POST", self.path, json=message(method, params, id_), headers=self.headers) as response:
            assert response.status_code == 200 and response.headers["content-type"].startswith("text/event-stream"), response.read()
            out = []
            for event in events(response):
                out.append(event)
                if "id" in event["data"] and "method" in event["data"]:
                    self.post({"jsonrpc": "2.0", "id": event["data"]["id"], **answer(event["data"])})
            return out


def events(response):
    """{"id": ..., "data": a message} of a stream, as they come."""
    event = {}
    for line in response.iter_lines():
        line = line.rstrip("\r\n")  # of older versions of httpx
        name, _, value = line.partition(": ")
        if name in ("id", "data"):
            event[name] = json.loads(value) if name == "data" else value
        elif line == "" and "data" in event:
            yield event
            event = {}


class Stateless:
    """A client of 2026-07-28."""

    def __init__(self, api, capabilities=None, path="/mcp"):
        self.api, self.path, self.capabilities = api, path, capabilities or {}

    def request(self, method, params=None, id_=1, **meta):
        params = dict(params or {})
        params["_meta"] = {META + "protocolVersion": STATELESS, META + "clientCapabilities": self.capabilities, **meta}
        headers = ACCEPT | {"MCP-Protocol-Version": STATELESS, "Mcp-Method": method}
        if method in ("tools/call", "prompts/get", "resources/read"):
            headers["Mcp-Name"] = params.get("name", params.get("uri"))
        return {"json": message(method, params, id_), "headers": headers}

    def ask(self, method, params=None, **meta):
        return self.api.http.post(self.path, **self.request(method, params, **meta)).json()

    def call(self, name, /, **arguments):
        return self.ask("tools/call", {"name": name, "arguments": arguments})["result"]
