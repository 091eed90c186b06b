"""Configured MCP servers where less can be had: the shipped domain starts none, and says why; one that shares the workspace's home does."""
import json
import os

import pytest
from conftest import Api
from mcp_client import Client
from test_file_tiers import Lower
from upstream import SERVERS, configured, granting


def policies(folder):
    granting("mcp")(folder)
    shared = {"description": "Servers in the workspace's home.", "extends": "mcp", "home": "workspace", "tmp": "workspace",
              "weaken": [{"field": "/home", "why": "nothing can be mounted"}, {"field": "/tmp", "why": "nothing can be mounted"}]}
    (folder / "mcp-shared.json").write_text(json.dumps(shared))


@pytest.fixture(scope="module", params=["T0", "T1"])
def tiered(request, contract):
    if "CAISSON_URL" in os.environ:
        pytest.skip("the server under test is not a process of this host (CAISSON_URL)")
    request.getfixturevalue("launch")

    def program(name, argument, **more):  # a grant is where it lies: nothing can be mounted at another place
        return {"command": "/usr/bin/python3", "args": ["-B", f"{SERVERS}/{name}.py", argument], **more}
    launcher = type("Tier", (Lower,), {"tier": request.param})(policies=policies, EXTRA_MCP_SERVERS=configured(
        sealed=program("hostile", "nothing"), shared=program("hostile", "nothing", domain="mcp-shared"), spy=program("hostile", "spy", domain="mcp-shared")))
    yield Client(Api(launcher.url, launcher.key, contract))
    launcher.close()


def call(client, tool):
    return client.ask("tools/call", {"name": tool, "arguments": {}}, query="?servers=" + tool.partition("_")[0])


def test_the_domain_mcp_needs_mounts(tiered):
    assert "needs a mount namespace, and there is none here" in call(tiered, "sealed_hello")["error"]["message"]


def test_a_domain_that_shares_the_home_starts_and_has_no_network(tiered):
    assert call(tiered, "shared_hello")["result"]["content"][0]["text"].startswith("hello from nothing")
    found = json.loads(call(tiered, "spy_act")["result"]["content"][0]["text"])
    assert "Operation not permitted" in found["connect"] and "Operation not permitted" in found["api"] and "denied" in found["config"]
