"""/v1/openapi.json: valid, exactly what is served, and compatible with the contract."""
import json
import re

import jsonschema
import npm
import pytest
from breaking import Comparison, breaking

FREE = {"/v1/ping", "/healthz", "/readyz"}
# Which AIO does not have.
OWN = {
    "/metrics",
    "/run_code",
    "/run_jupyter",
    "/v1/attestation",
    "/v1/audit/sessions",
    "/v1/audit/sessions/{session_id}",
    "/v1/browser/takeover",
    "/v1/mcp/servers/{server_name}",
    "/v1/mcp/states",
    "/v1/mcp/{server_name}/approve",
    "/v1/policies",
    "/v1/policies/{domain}",
    "/v1/policies/reload",
    "/v1/proxy/asks",
    "/v1/proxy/asks/{id}/allow",
    "/v1/proxy/asks/{id}/deny",
    "/v1/proxy/connections",
    "/v1/proxy/grants/{id}",
    "/v1/sessions",
    "/v1/sessions/{session_id}/confinement",
    "/v1/tokens",
    "/v1/tokens/{id}",
    "/v1/workspaces",
    "/v1/workspaces/{name}",
    "/v1/workspaces/{name}/pause",
    "/v1/workspaces/{name}/reset",
    "/v1/workspaces/{name}/resume",
}


@pytest.fixture(scope="module")
def document(api) -> dict:
    return api.http.get("/v1/openapi.json").json()


@pytest.fixture(scope="module")
def operations(document) -> dict[tuple[str, str], dict]:
    return {(method, path): operation for path, methods in document["paths"].items() for method, operation in methods.items()}


@pytest.fixture(scope="module")
def shared(contract, operations) -> list[tuple[tuple[str, str], dict, dict]]:
    """(method and path, our operation, the contract's)"""
    theirs = contract.document["paths"]
    return [(where, ours, theirs[where[1]][where[0]]) for where, ours in operations.items() if where[0] in theirs.get(where[1], {})]


def resolve(document: dict, schema: dict) -> dict:
    return Comparison.resolve(document, schema)


def types(document: dict, schema: dict) -> set:
    """The JSON types that a schema takes."""
    schema = resolve(document, schema)
    if "anyOf" in schema:
        return set().union(*[types(document, option) for option in schema["anyOf"]])
    if "enum" in schema and "type" not in schema:
        return {"string"}
    return {schema["type"]} if "type" in schema else {"any"}


def body_of(document: dict, operation: dict) -> dict:
    (content,) = operation["requestBody"]["content"].values()
    return {"properties": {}, **Comparison({}, {}).kinds(document, content["schema"])["object"]}  # of any object it names none


def answer_of(document: dict, operation: dict) -> dict:
    return resolve(document, operation["responses"]["200"]["content"].get("application/json", {}).get("schema", {}))


def data_of(document: dict, operation: dict) -> dict | None:
    """The schema of `data` without null; None where it is untyped."""
    data = resolve(document, answer_of(document, operation).get("properties", {}).get("data", {}))
    options = [resolve(document, o) for o in data.get("anyOf", [data]) if o.get("type") != "null"]
    return options[0] if options and options[0] else None


def test_it_is_openapi_3_1(document):
    assert document["openapi"].startswith("3.1.")
    assert document["info"]["title"] and document["info"]["version"]


def test_it_is_valid_for_the_official_meta_schema(document):
    validator = pytest.importorskip("openapi_spec_validator", reason="openapi-spec-validator is not installed")
    validator.validate(document)


def test_it_lints_without_an_error(document):
    """By Redocly's recommended rules. Its warnings are about operations without a refusal (the probes have none) and the like."""
    (npm.installed() / "openapi.json").write_text(json.dumps(document))
    linted = npm.run("node", "lint.mjs", "openapi.json")
    assert linted.returncode == 0, linted.stderr
    assert [p for p in json.loads(linted.stdout) if p["severity"] == "error"] == []


def test_the_linter_finds_an_error(document):
    broken = {**document, "paths": {"/a": {"get": {"responses": {"200": {"$ref": "#/components/responses/nothing"}}}}}}
    (npm.installed() / "broken.json").write_text(json.dumps(broken))
    found = json.loads(npm.run("node", "lint.mjs", "broken.json").stdout)
    assert "no-unresolved-refs" in {p["rule"] for p in found if p["severity"] == "error"}


def test_every_schema_is_a_valid_json_schema(document):
    for name, schema in document["components"]["schemas"].items():
        jsonschema.Draft202012Validator.check_schema(schema)
        assert name


def test_every_reference_resolves(document):
    references = re.findall(r'"\$ref": ?"([^"]+)"', json.dumps(document))
    assert references and all(resolve(document, {"$ref": reference}) for reference in set(references))


def test_operation_ids_are_unique(operations):
    ids = [operation["operationId"] for operation in operations.values()]
    assert len(ids) == len(set(ids))


def test_every_path_parameter_is_declared(operations):
    for (_, path), operation in operations.items():
        declared = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path" and p["required"]}
        assert declared == set(re.findall(r"{(\w+)}", path)), path


def test_every_operation_has_a_summary_a_tag_and_described_answers(document, operations):
    for where, operation in operations.items():
        assert operation["summary"] and operation["tags"], where
        assert all(resolve(document, answer)["description"] for answer in operation["responses"].values()), where


def test_exactly_the_public_routes_need_no_key(document, operations):
    assert document["security"]
    # The handler of one looks for the credential itself.
    assert {path for (_, path), operation in operations.items() if operation.get("security") == []} == FREE | {"/auth"}


def test_every_described_operation_is_served(api, operations):
    for method, path in operations:
        answer = api.http.request(method, path.replace("{session_id}", "unheard-of").replace("{watcher_id}", "unheard-of"))
        assert answer.status_code != 405 and '"message":"Not Found"' not in answer.text, (method, path)


def test_it_describes_every_operation_of_its_areas_and_the_probes(operations):
    areas = [path.split("/")[2] if path.startswith("/v1/") else path for _, path in operations]
    expected = {"bash": 7, "shell": 12, "sandbox": 14, "file": 17, "jupyter": 6, "nodejs": 7, "code": 2}
    assert {area: areas.count(area) for area in expected} == expected
    assert FREE <= {path for _, path in operations}


def test_what_is_refused_before_a_handler_is_described_everywhere(operations):
    for (method, path), operation in operations.items():
        told, public = set(operation["responses"]), path in FREE
        assert {"400", "403", "503"} | (set() if public else {"401", "429"}) <= told, path
        in_workspace = not public and "auth" not in operation["tags"] and not path.startswith("/v1/workspaces")
        assert ("404" in told) == (in_workspace or "{" in path), path
        assert ("422" in told) == (bool({"query", "path"} & {p["in"] for p in operation.get("parameters", [])}) or "requestBody" in operation)


def test_conflicts_are_described_where_they_happen(operations):
    assert {(method, path) for (method, path), operation in operations.items() if "409" in operation["responses"]} == {
        ("get", "/v1/file/download"), ("post", "/v1/tokens"), ("post", "/v1/workspaces"), ("post", "/v1/workspaces/{name}/reset"),
            ("put", "/v1/mcp/servers/{server_name}"), ("delete", "/v1/mcp/servers/{server_name}")}


def test_servers_license_and_tags_are_there(document, operations):
    assert document["servers"] == [{"url": "/", "description": "The server of this document"}]
    assert document["info"]["license"]["identifier"] == "Apache-2.0"
    described = {tag["name"] for tag in document["tags"] if tag["description"]}
    assert {tag for operation in operations.values() for tag in operation["tags"]} <= described


def test_allow_names_what_the_path_is_described_with(api, document):
    for path, methods in document["paths"].items():
        for method in ("OPTIONS", "TRACE"):
            answer = api.http.request(method, re.sub(r"{\w+}", "unheard-of", path))
            assert answer.status_code == (204 if method == "OPTIONS" else 405), path
            assert set(answer.headers["allow"].lower().split(", ")) - {"head", "options"} == set(methods), (method, path)


def test_event_streams_are_declared(operations):
    streams = {path for (_, path), o in operations.items() if "text/event-stream" in o["responses"]["200"]["content"]}
    assert streams == {"/v1/shell/exec", "/v1/shell/view", "/v1/audit/sessions/{session_id}", "/v1/file/watch/{watcher_id}/events",
                       "/v1/sandbox/observe/live"}


# --- beside the contract ---

# Why something is over; of a diagnosis, what decides.
OWN_ANSWERS = {"end", "domain", "steps", "rule", "why", "refusal"}
OWN_FIELDS = {"isolation"}  # of the requests that create a session; never required
OWN_BODIES = {("post", "/tickets")}  # never required


def test_every_operation_but_the_probes_and_our_own_is_one_of_the_contract(shared, operations):
    assert {path for _, path in operations} - {where[1] for where, _, _ in shared} == FREE | OWN


def test_operation_ids_are_those_of_the_contract(shared):
    assert {w: o["operationId"] for w, o, _ in shared} == {w: t["operationId"] for w, _, t in shared}


def test_request_fields_are_those_of_the_contract(document, contract, shared):
    for where, ours, theirs in shared:
        if where[:2] in OWN_BODIES:
            assert ours["requestBody"]["required"] is False and "requestBody" not in theirs, where
            continue
        assert ("requestBody" in ours) == ("requestBody" in theirs), where
        if "requestBody" in ours:
            mine, wanted = body_of(document, ours), body_of(contract.document, theirs)
            assert set(mine["properties"]) - OWN_FIELDS == set(wanted["properties"]), where
            assert set(mine.get("required", [])) == set(wanted.get("required", [])), where


def test_requests_take_every_type_and_default_of_the_contract(document, contract, shared):
    for where, ours, theirs in shared:
        if "requestBody" not in ours or where[:2] in OWN_BODIES:
            continue
        mine, wanted = body_of(document, ours), body_of(contract.document, theirs)
        for name, field in wanted["properties"].items():
            assert types(contract.document, field) <= types(document, mine["properties"][name]), (where, name)
            assert field.get("default") in (None, mine["properties"][name].get("default")), (where, name)


def test_answers_have_every_field_of_the_contract(document, contract, shared):
    for where, ours, theirs in shared:
        wanted = answer_of(contract.document, theirs)
        assert set(wanted.get("properties", [])) <= set(answer_of(document, ours).get("properties", [])), where
        inner = data_of(contract.document, theirs)
        if inner and "properties" in inner:
            mine = data_of(document, ours)
            assert set(mine["properties"]) - OWN_ANSWERS == set(inner["properties"]), where
            assert set(inner.get("required", [])) <= set(mine.get("required", [])), where


def test_answers_have_no_type_that_the_contract_does_not(document, contract, shared):
    for where, ours, theirs in shared:
        wanted, mine = data_of(contract.document, theirs), data_of(document, ours)
        if not wanted or "properties" not in wanted:
            continue
        for name, field in mine["properties"].items():
            if name in OWN_ANSWERS:
                continue
            allowed = types(contract.document, wanted["properties"][name])
            assert "any" in allowed or types(document, field) <= allowed, (where, name)


def test_no_request_or_answer_of_the_contract_is_broken(document, contract):
    assert breaking(contract.document, document) == []


@pytest.mark.parametrize(("old", "new", "found"), [
    ({"type": "string"}, {"type": "integer"}, "string is sent, ['integer'] taken"),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": "string"}, "null is sent, ['string'] taken"),
    ({"type": "integer", "maximum": 9}, {"type": "integer", "maximum": 8}, "maximum 9 is sent, 8 taken"),
    ({"type": "string"}, {"type": "string", "enum": ["a"]}, "anything is sent, ['a'] taken"),
    ({"type": "array", "items": {"type": "number"}}, {"type": "array", "items": {"type": "integer"}}, "number is sent, ['integer'] taken"),
])
def test_a_narrower_request_field_is_found(old, new, found):
    def with_field(field):
        schema = {"type": "object", "properties": {"x": field}}
        post = {"requestBody": {"content": {"application/json": {"schema": schema}}}, "responses": {}}
        return {"paths": {"/p": {"post": post}}}

    assert [text.partition(": ")[2] for text in breaking(with_field(old), with_field(new))] == [found]
    assert breaking(with_field(old), with_field(old)) == []
