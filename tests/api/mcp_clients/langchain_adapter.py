"""LangChain's adapter, unmodified. URL_OF_MCP and KEY come by the environment; prints what it saw as JSON."""
import asyncio
import json
import os

from langchain_mcp_adapters.callbacks import Callbacks
from langchain_mcp_adapters.client import MultiServerMCPClient
from mcp.types import ElicitResult

seen = {"progress": [], "asked": []}


async def progress(done, _total, _message, context):
    seen["progress"].append([context.tool_name, done])


async def answer(_mcp_context, params, _context):
    seen["asked"].append(params.message)
    return ElicitResult(action="accept", content={name: "Ada" for name in params.requestedSchema["properties"]})


def text(content):
    return content if isinstance(content, str) else "".join(part["text"] for part in content if part["type"] == "text")


async def main():
    hub = {"transport": "streamable_http", "url": os.environ["URL_OF_MCP"], "headers": {"X-AIO-API-Key": os.environ["KEY"]}}
    client = MultiServerMCPClient({"hub": hub}, callbacks=Callbacks(on_progress=progress, on_elicitation=answer))
    tools = {tool.name: tool for tool in await client.get_tools()}
    seen["tools"] = list(tools)

    async def call(name, **arguments):
        message = await tools[name].ainvoke({"type": "tool_call", "id": "1", "name": name, "args": arguments})
        return {"status": message.status, "text": text(message.content)}

    seen["bash"] = await call("sandbox_execute_bash", cmd="echo from LangChain")
    seen["simple"] = await call("every_test_simple_text")
    seen["failed"] = await call("every_test_error_handling")
    seen["told"] = await call("every_test_tool_with_progress")
    seen["answered"] = await call("every_test_elicitation", message="Who are you?")
    seen["resource"] = [blob.as_string() for blob in await client.get_resources("hub", uris="test://static-text")]
    seen["prompt"] = [message.content for message in await client.get_prompt(
        "hub", "every_test_prompt_with_arguments", arguments={"arg1": "a", "arg2": "b"})]
    print(json.dumps(seen))


asyncio.run(main())
