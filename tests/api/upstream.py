"""Launchers with MCP servers of the tests: programs in tests/api/mcp_servers, which their sessions see at /opt/mcp."""
import json
import pathlib

SERVERS = pathlib.Path(__file__).parent / "mcp_servers"
SEEN = "/opt/mcp"


def granting(*domains):
    """Policies in which these domains, new ones of the domain mcp included, see the servers."""
    def change(folder):
        for domain in domains or ("mcp",):
            policy = json.loads((folder / "mcp.json").read_text())
            policy["grants"] = [{"path": SEEN, "source": str(SERVERS), "access": "read", "description": "Servers of the tests"}]
            policy["weaken"] = [{"field": f"/grants{SEEN}", "why": "the tests' servers are there"}]
            (folder / f"{domain}.json").write_text(json.dumps(policy))
    return change


def python(program, *arguments, **more):
    """A server's configuration."""
    return {"command": "/usr/bin/python3", "args": ["-B", f"{SEEN}/{program}.py", *arguments], **more}


def configured(**servers):
    return json.dumps({"mcpServers": servers})
