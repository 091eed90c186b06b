"""What the protocol's own conformance suite requires of servers, in both kinds of revisions: its fixture of tools, resources and prompts is
a configured server without a prefix. Then with a prefix: only names differ."""
import json
import pathlib
import subprocess

import npm
import pytest
from upstream import configured, granting, python

REVISIONS = {"2025-11-25": 30, "2026-07-28": 37}


@pytest.fixture(scope="module")
def clients():
    return npm.installed("mcp_clients")


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_required_scenario_passes(clients, launch, revision, tmp_path):
    node = next(clients.glob("node_modules/node-linux-*/bin/node"), None)
    if node is None:
        pytest.skip("the suite needs Node.js 22, which npm has for x64 and arm64 alone")
    server = launch(key=None, policies=granting("mcp"), CAISSON_AUTH="none",
                    EXTRA_MCP_SERVERS=configured(fixture=python("everything", revision, prefix="", revision=revision)))
    program = clients / "node_modules/@modelcontextprotocol/conformance/dist/index.js"
    argv = [node, program, "server", "--url", f"{server.url}/mcp", "--requirements", revision, "-o", tmp_path]
    done = subprocess.run([str(a) for a in argv], cwd=clients, capture_output=True, text=True, timeout=400, check=False)
    found = {file.parent.name: json.loads(file.read_text()) for file in pathlib.Path(tmp_path).rglob("checks.json")}
    required = (clients / f"node_modules/@modelcontextprotocol/conformance/requirements/{revision}.yaml").read_text()
    names = required.partition("\nserver:\n")[2].partition("\n\n")[0].replace("  - ", "").split()
    assert len(names) == REVISIONS[revision]
    failed = {}
    for name in names:
        checks = [check for folder, checks in found.items() if f"-{name}-" in f"{folder}-" or folder.endswith(name) for check in checks]
        wrong = [check for check in checks if check["status"] == "FAILURE"]
        if wrong or not checks:
            failed[name] = wrong or "it did not run"
    assert not failed, (json.dumps(failed, indent=1)[:6000], done.stdout[-1500:], done.stderr[-500:])
