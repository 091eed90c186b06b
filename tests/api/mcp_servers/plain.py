"""The plainest server, one loop over its pipes with one tool: what scripts/bench mcp measures is what stands before it."""
import json
import sys

RESULTS = {
    "ping": {},
    "tools/list": {"tools": [{"name": "greet", "description": "Greets", "inputSchema": {"type": "object", "properties": {}}}]},
    "tools/call": {"content": [{"type": "text", "text": "greetings"}]},
}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = RESULTS.get(message["method"])
        if message["method"] == "initialize":
            result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "plain", "version": "1"}}
        answer = {"result": result} if result is not None else {"error": {"code": -32601, "message": "Method not found"}}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}) + "\n")
        sys.stdout.flush()
