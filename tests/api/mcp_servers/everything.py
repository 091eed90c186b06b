"""A server with the tools, resources and prompts that @modelcontextprotocol/conformance asks of any server, in both kinds of revisions:
`python3 everything.py 2025-11-25` or `2026-07-28`."""
import base64
import hashlib
import hmac
import json
import struct
import sys
import time
import zlib

from rpc import CLIENT, Failure, notify, serve

NEWEST = sys.argv[1:] == ["2026-07-28"]
META = "io.modelcontextprotocol/"
SECRET = b"of this run alone"


def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    pixel = chunk(b"IHDR", struct.pack(">2I5B", 1, 1, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + pixel).decode()


def wav():
    head = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8) + b"data" + struct.pack("<I", 8) + b"\x80" * 8
    return base64.b64encode(b"RIFF" + struct.pack("<I", len(head)) + head).decode()


def text(value):
    return {"type": "text", "text": value}


IMAGE = {"type": "image", "data": png(), "mimeType": "image/png"}


def embedded(uri, kind, value):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": value}}


def said(*content, **more):
    return {"content": list(content), **more}


# --- tools ---

def with_logging(params):
    level = "info" if not NEWEST else params["_meta"].get(META + "logLevel")
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        if level:
            notify("notifications/message", level="info", logger="conformance", data=line)
        time.sleep(0.05)
    return said(text("logged"))


def with_progress(params):
    token = params.get("_meta", {}).get("progressToken")
    for done in (0, 50, 100):
        if token is not None:
            notify("notifications/progress", progressToken=token, progress=done, total=100)
        time.sleep(0.05)
    return said(text("done"))


def sampling(params):
    prompt = {"role": "user", "content": text(params["arguments"]["prompt"])}
    answer = CLIENT.ask("sampling/createMessage", {"messages": [prompt], "maxTokens": 100})
    return said(text("LLM response: " + answer["content"]["text"]))


def elicit(schema, message="Please answer"):
    answer = CLIENT.ask("elicitation/create", {"message": message, "requestedSchema": {"type": "object", "properties": schema}})
    return said(text(f"Elicitation completed: action={answer['action']}, content={json.dumps(answer.get('content'))}"))


def elicitation(params):
    return elicit({"username": {"type": "string", "description": "User's response"},
                   "email": {"type": "string", "description": "User's email address"}}, params["arguments"]["message"])


def rounds_of_questions(params):
    """The client's roots, and then a question about them; progress comes in between."""
    roots = CLIENT.ask("roots/list", {})["roots"]
    answer = elicit({"name": {"type": "string"}}, f"What is in {json.dumps(roots)}?")
    if "progressToken" in params.get("_meta", {}):
        notify("notifications/progress", progressToken=params["_meta"]["progressToken"], progress=1, total=1)
    return answer


def defaults(_params):
    return elicit({"name": {"type": "string", "default": "John Doe"}, "age": {"type": "integer", "default": 30},
                   "score": {"type": "number", "default": 95.5}, "verified": {"type": "boolean", "default": True},
                   "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"}})


def enums(_params):
    plain = ["option1", "option2", "option3"]
    return elicit({
        "untitledSingle": {"type": "string", "enum": plain},
        "titledSingle": {"type": "string", "oneOf": [{"const": f"value{i}", "title": f"{n} Option"} for i, n in enumerate(("First", "Second", "Third"), 1)]},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": plain}},
        "titledMulti": {"type": "array", "items": {"anyOf": [{"const": f"value{i}", "title": f"{n} Choice"} for i, n in enumerate(("First", "Second", "Third"), 1)]}},
    })


# --- results that ask for input (2026-07-28) ---

def question(method, **params):
    return {"method": method, "params": params}


def form(message, **fields):
    return question("elicitation/create", message=message, requestedSchema={
        "type": "object", "properties": {name: {"type": kind} for name, kind in fields.items()}, "required": list(fields)})


def prompt(message, most=100):
    return question("sampling/createMessage", messages=[{"role": "user", "content": text(message)}], maxTokens=most)


ROOTS = question("roots/list")


def wanted(state=None, **requests):
    return {"resultType": "input_required", "inputRequests": requests, **({"requestState": state} if state else {})}


def responses(params, *names):
    """nullopt: nothing was answered yet, or not all of it."""
    given = params.get("inputResponses", {})
    if not isinstance(given, dict) or any(not isinstance(one, dict) for one in given.values()):
        raise Failure(-32602, "inputResponses must be an object of objects")
    return given if all(name in given for name in names) else None


def signed(value):
    return f"{value}.{hmac.new(SECRET, value.encode(), hashlib.sha256).hexdigest()}"


def opened(state):
    value = state.rpartition(".")[0]
    if not hmac.compare_digest(signed(value), state):
        raise Failure(-32602, "requestState is not the one that was given")
    return value


def needs(key, request, finish, state=None):
    def tool(params):
        given = responses(params, key)
        if given is None:
            return wanted(signed(state) if state else None, **{key: request})
        if state:
            opened(params.get("requestState", ""))
        return finish(given[key])
    return tool


def content_of(answer):
    return answer.get("content", {})


def multiple(params):
    given = responses(params, "user_name", "greeting", "client_roots")
    if given is None:
        return wanted(signed("many"), user_name=form("What is your name?", name="string"), greeting=prompt("Generate a greeting", 50), client_roots=ROOTS)
    opened(params["requestState"])
    return said(text("all three"))


def rounds(params):
    state = opened(params["requestState"]) if "requestState" in params else "0"
    if state == "0" or (state == "1" and responses(params, "step1") is None):
        return wanted(signed("1"), step1=form("Step 1: What is your name?", name="string"))
    if state == "1" or responses(params, "step2") is None:
        return wanted(signed("2"), step2=form("Step 2: What is your favorite color?", color="string"))
    return said(text("both steps"))


def capable(params):
    can = params["_meta"].get(META + "clientCapabilities", {})
    asked = {"ask": form("Which?", which="string")} if "elicitation" in can else {}
    if "sampling" in can:
        asked["sample"] = prompt("Say something")
    return wanted(**asked)


def missing(params):
    if "sampling" not in params.get("_meta", {}).get(META + "clientCapabilities", {}):
        raise Failure(-32021, "sampling is required", requiredCapabilities={"sampling": {}})
    return said(text("sampled"))


def hello(answer):
    return said(text(f"Hello, {content_of(answer).get('name')}!"))


def changed(kind):
    def tool(_params):
        notify(f"notifications/{kind}/list_changed")
        return said(text("changed"))
    return tool


PROMPT_FIELD = {"prompt": {"type": "string"}}
SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}, "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                   "phone": {"type": "string"}, "email": {"type": "string"}},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]}, "then": {"required": ["phone"]},
    "else": {"required": ["email"]}, "additionalProperties": False}
NO_ARGUMENTS = {"type": "object", "properties": {}}

TOOLS = {
    "test_simple_text": (NO_ARGUMENTS, lambda _: said(text("This is a simple text response for testing."))),
    "test_image_content": (NO_ARGUMENTS, lambda _: said(IMAGE)),
    "test_audio_content": (NO_ARGUMENTS, lambda _: said({"type": "audio", "data": wav(), "mimeType": "audio/wav"})),
    "test_embedded_resource": (NO_ARGUMENTS, lambda _: said(embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."))),
    "test_multiple_content_types": (NO_ARGUMENTS, lambda _: said(
        text("Multiple content types test:"), IMAGE, embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'))),
    "test_error_handling": (NO_ARGUMENTS, lambda _: said(text("This tool intentionally returns an error for testing"), isError=True)),
    "test_tool_with_logging": (NO_ARGUMENTS, with_logging),
    "test_logging_tool": (NO_ARGUMENTS, with_logging),
    "test_tool_with_progress": (NO_ARGUMENTS, with_progress),
    "test_sampling": ({"type": "object", "properties": PROMPT_FIELD, "required": ["prompt"]}, sampling),
    "test_elicitation": ({"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]}, elicitation),
    "test_elicitation_sep1034_defaults": (NO_ARGUMENTS, defaults),
    "test_elicitation_sep1330_enums": (NO_ARGUMENTS, enums),
    "json_schema_2020_12_tool": (SCHEMA_2020, lambda p: said(text(json.dumps(p["arguments"])))),
    "test_trigger_tool_change": (NO_ARGUMENTS, changed("tools")),
    "test_trigger_prompt_change": (NO_ARGUMENTS, changed("prompts")),
}
NEWEST_TOOLS = {
    "test_input_required_result_elicitation": needs("user_name", form("What is your name?", name="string"), hello),
    "test_input_required_result_sampling": needs("capital_question", prompt("What is the capital of France?"), lambda a: said(text(a["content"]["text"]))),
    "test_input_required_result_list_roots": needs("client_roots", ROOTS, lambda a: said(text(json.dumps(a["roots"])))),
    "test_input_required_result_request_state": needs("confirm", form("Please confirm", ok="boolean"), lambda _: said(text("state-ok")), "confirm"),
    "test_input_required_result_tampered_state": needs("confirm", form("Please confirm", ok="boolean"), lambda _: said(text("state-ok")), "tampered"),
    "test_streaming_elicitation": needs("user_name", form("What is your name?", name="string"), hello),
    "test_input_required_result_multiple_inputs": multiple,
    "test_input_required_result_multi_round": rounds,
    "test_input_required_result_capabilities": capable,
    "test_missing_capability": missing,
}
if not NEWEST:
    TOOLS["test_rounds"] = (NO_ARGUMENTS, rounds_of_questions)
if NEWEST:
    TOOLS |= {name: (NO_ARGUMENTS, run) for name, run in NEWEST_TOOLS.items()}


def list_tools(_params):
    return {"tools": [{"name": name, "description": f"For tests: {name}", "inputSchema": schema} for name, (schema, _) in TOOLS.items()]}


def call_tool(params):
    if params["name"] not in TOOLS:
        raise Failure(-32602, "Unknown tool")
    return TOOLS[params["name"]][1](params)


# --- resources and prompts ---

RESOURCES = {
    "test://static-text": ("text/plain", {"text": "This is the content of the static text resource."}),
    "test://static-binary": ("image/png", {"blob": png()}),
    "test://watched-resource": ("text/plain", {"text": "watched"}),
    "test://example-resource": ("text/plain", {"text": "example"}),
}
TEMPLATE = "test://template/{id}/data"


def list_resources(_params):
    return {"resources": [{"uri": uri, "name": uri[7:], "description": "For tests", "mimeType": kind} for uri, (kind, _) in RESOURCES.items()]}


def read(params):
    uri = params["uri"]
    if uri in RESOURCES:
        kind, content = RESOURCES[uri]
    elif uri.startswith("test://template/") and uri.endswith("/data"):
        number = uri[len("test://template/"):-len("/data")]
        kind, content = "application/json", {"text": json.dumps({"id": number, "templateTest": True, "data": f"Data for ID: {number}"})}
    else:
        raise Failure(-32602 if NEWEST else -32002, "Resource not found", uri=uri)
    return {"contents": [{"uri": uri, "mimeType": kind, **content}]}


def message(content):
    return {"role": "user", "content": content}


def asking_prompt(params):
    given = responses(params, "user_context")
    if given is None:
        return wanted(user_context=form("What context should the prompt use?", context="string"))
    return {"messages": [message(text(f"In the context of {content_of(given['user_context'])}"))]}


def argument(name):
    return {"name": name, "description": "For tests", "required": True}


PROMPTS = {
    "test_simple_prompt": ([], lambda _: {"messages": [message(text("This is a simple prompt for testing."))]}),
    "test_prompt_with_arguments": ([argument("arg1"), argument("arg2")], lambda p: {"messages": [message(text(
        f"Prompt with arguments: arg1='{p['arguments']['arg1']}', arg2='{p['arguments']['arg2']}'"))]}),
    "test_prompt_with_embedded_resource": ([argument("resourceUri")], lambda p: {"messages": [
        message(embedded(p["arguments"]["resourceUri"], "text/plain", "Embedded resource content for testing.")),
        message(text("Please process the embedded resource above."))]}),
    "test_prompt_with_image": ([], lambda _: {"messages": [message(IMAGE), message(text("Please analyze the image above."))]}),
}
if NEWEST:
    PROMPTS["test_input_required_result_prompt"] = ([], asking_prompt)


def get_prompt(params):
    if params["name"] not in PROMPTS:
        raise Failure(-32602, "Unknown prompt")
    return PROMPTS[params["name"]][1](params)


CAPABILITIES = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": {"subscribe": True, "listChanged": True},
                "completions": {}, "logging": {}}
HANDLERS = {
    "ping": lambda _: {},
    "tools/list": list_tools, "tools/call": call_tool,
    "resources/list": list_resources, "resources/read": read,
    "resources/templates/list": lambda _: {"resourceTemplates": [{"uriTemplate": TEMPLATE, "name": "template", "description": "For tests", "mimeType": "application/json"}]},
    "prompts/list": lambda _: {"prompts": [{"name": name, "description": "For tests", "arguments": given} for name, (given, _) in PROMPTS.items()]},
    "prompts/get": get_prompt,
    "completion/complete": lambda p: {"completion": {"values": [p["argument"]["value"] + "ing"], "total": 1, "hasMore": False}},
}
if NEWEST:
    HANDLERS["server/discover"] = lambda _: {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES}
else:
    HANDLERS |= {
        "initialize": lambda p: {"protocolVersion": p["protocolVersion"], "capabilities": CAPABILITIES, "serverInfo": {"name": "everything", "version": "1"}},
        "logging/setLevel": lambda _: {}, "resources/subscribe": lambda _: {}, "resources/unsubscribe": lambda _: {},
    }

serve(HANDLERS)
