"""HTTP as clients meet it: keys, paths, methods, bodies; the negative cases are generated from /v1/openapi.json."""
import concurrent.futures
import json
import re

import pytest
from conftest import eventually

FREE = {"/v1/ping", "/healthz", "/readyz"}
EVIL = "http://evil.example"
NO_WAY_OUT = (403,)  # of what sets it: no domain of the policies has one
OTHERS = ["GET", "POST", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "BREW"]
# Wrong for every type that a field of ours has.
WRONG = {"string": [1, True, [], {}], "boolean": ["maybe", "true", 1, [], {}],
         "integer": ["x", "5", True, 1.5, [], {}, 10**30], "number": ["x", "5", True, [], {}],
         "object": ["x", 1, []], "array": ["x", 1, {}]}


@pytest.fixture(scope="module")
def document(api) -> dict:
    return api.http.get("/v1/openapi.json").json()


@pytest.fixture(scope="module")
def operations(document) -> list[tuple[str, str, dict]]:
    """(method, path with its parameters filled in, operation)"""
    return [(method.upper(), re.sub(r"{\w+}", "unheard-of", path), operation)
            for path, methods in document["paths"].items() for method, operation in methods.items()]


@pytest.fixture(scope="module")
def bodies(document, operations) -> list[tuple[str, dict]]:
    """(path, schema of the JSON body that is posted to it). One that is a choice of objects has tests of its own (test_desktop.py)."""
    def schema_of(operation):
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        schema = next((option for option in schema.get("anyOf", []) if "$ref" in option), schema)  # or null
        return document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]] if "$ref" in schema else None
    found = [(path, schema_of(operation)) for method, path, operation in operations
             if method == "POST" and "application/json" in operation.get("requestBody", {}).get("content", {})]
    return [(path, schema) for path, schema in found if schema]


@pytest.fixture(scope="module")
def harmless(bodies) -> list[tuple[str, dict]]:
    """Without those that a browser would carry out, some of them for minutes: test_pages.py has what they refuse."""
    return [(path, schema) for path, schema in bodies if not path.startswith("/v1/browser/")]


def kinds(schema: dict) -> set[str]:
    return {option.get("type", "object") for option in schema.get("anyOf", [schema]) if "type" in option or "$ref" in option}


def filled(schema: dict) -> dict:
    """The smallest body that is valid."""
    values = {"string": "unheard-of", "boolean": False, "integer": 1, "number": 1, "object": {}, "array": []}
    fields = {name: schema["properties"][name] for name in schema.get("required", [])}
    return {name: field["enum"][0] if "enum" in field else values[(kinds(field) - {"null"}).pop()] for name, field in fields.items()}


def details(answer) -> list:
    assert answer.status_code == 422, (answer.request.url, answer.request.content, answer.status_code, answer.text)
    detail = answer.json()["detail"]
    assert detail and all({"loc", "msg", "type"} <= set(entry) for entry in detail)
    return detail


# --- keys ---

@pytest.mark.parametrize("headers, query", [
    (["X-AIO-API-Key: {key}"], ""), (["x-aio-api-key:{key}"], ""), (["Authorization: Bearer {key}"], ""),
    (["Authorization: bearer {key}"], ""), ([], "?api_key={key}"), ([], "?other=1&api_key={key}")])
def test_the_key_is_taken_in_all_three_places(api, headers, query):
    with api.raw() as raw:
        lines = [f"GET /v1/sandbox{query} HTTP/1.1", "Host: x", *headers, "", ""]
        raw.send("\r\n".join(lines).format(key=api.key).encode())
        assert raw.answer().status == 200


@pytest.mark.parametrize("headers, query", [
    ([], ""), (["X-AIO-API-Key:"], ""), (["X-AIO-API-Key: {key}x"], ""), (["X-AIO-API-Key: {half}"], ""),
    (["Authorization: Basic {key}"], ""), (["Authorization: {key}"], ""), (["Authorization: Bearer"], ""), ([], "?api_key="),
    ([], "?API_KEY={key}"), (["Cookie: api_key={key}"], "")])
def test_without_the_right_key_it_is_401(api, headers, query):
    with api.raw() as raw:
        lines = [f"GET /v1/sandbox{query} HTTP/1.1", "Host: x", *headers, "", ""]
        raw.send("\r\n".join(lines).format(key=api.key, half=api.key[:-1]).encode())
        answer = raw.answer()
    assert (answer.status, answer.json()["success"], answer.headers["www-authenticate"][:6]) == (401, False, "Bearer")


def test_two_key_headers_are_400(api):
    with api.raw() as raw:
        raw.send(api.request("GET /v1/sandbox", "", f"X-AIO-API-Key: {api.key}"))
        assert raw.answer().status == 400


def test_the_refusal_comes_before_the_body(api):
    with api.raw() as raw:
        raw.send(b"POST /v1/bash/exec HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
        assert raw.answer().status == 401


def test_no_100_continue_without_the_key(api):
    with api.raw() as raw:
        raw.send(b"POST /v1/bash/exec HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n")
        assert raw.answer().status == 401


def test_without_a_key_every_route_is_401_and_none_is_told_from_a_missing_one(api, operations):
    told = {}
    for method, path, _ in [*operations, ("GET", "/v1/nothing", None), ("POST", "/", None), ("GET", "/v1/openapi.json", None)]:
        with api.raw() as raw:
            raw.send(f"{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            answer = raw.answer()
            told[f"{method} {path}"] = (answer.status, answer.body)
    assert {told[f"GET {path}"][0] for path in FREE} == {200}
    assert len({outcome for name, outcome in told.items() if name.split(" ")[1] not in FREE}) == 1
    assert told["GET /v1/nothing"][0] == 401


# --- 404, 405, 422, 413 for every route ---

def test_a_path_that_is_not_served_is_404_in_the_envelope(api):
    answer = api.http.get("/v1/nothing")
    assert (answer.status_code, answer.json()) == (404, {"success": False, "message": "Not Found", "data": None})


def test_another_method_is_405_with_allow_on_every_route(api, operations):
    served: dict[str, set] = {}
    for method, path, _ in operations:
        served.setdefault(path, set()).add(method)
    for path, methods in served.items():
        # A session may be called "create".
        named = {"DELETE"} if re.match(r"/v1/(shell|jupyter)/sessions/", path) else set()
        if path == "/v1/policies/reload":
            named = {"GET", "HEAD"}  # so may a policy
        if path == "/v1/file/watch/wait":
            named = {"DELETE"}  # and a watcher
        if path in ("/v1/skills/metadatas", "/v1/skills/register"):
            named = {"DELETE"}  # and a skill
        for method in set(OTHERS) - methods - named - {"CONNECT"}:
            answer = api.http.request(method, path)
            assert (answer.status_code, answer.json()["success"]) == (405, False), (method, path)
            assert methods <= set(answer.headers["allow"].split(", "))


def test_head_is_answered_as_get_without_a_body_on_every_route(api, operations):
    for path in {path for method, path, _ in operations if method == "GET" and "terminal-url" not in path and "unheard-of" not in path}:
        if path in ("/v1/file/download", "/v1/proxy/diagnose", "/v1/browser/proxy.pac"):
            continue  # nothing without a path, a URL, a setting: test_file_transfer.py, test_proxy_settings.py
        answer = api.http.head(path)
        assert (answer.status_code, answer.content) == (200, b""), path
        assert int(answer.headers["content-length"]) > 0


def test_options_needs_no_key_and_does_not_tell_which_routes_exist(api):
    answers = []
    for path in ("/v1/bash/exec", "/v1/nothing"):
        with api.raw() as raw:
            raw.send(f"OPTIONS {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            answer = raw.answer()
            answers.append((answer.status, answer.headers["allow"]))
    assert answers[0] == answers[1] and answers[0][0] == 204


def test_every_missing_required_field_is_422_and_named(api, bodies):
    for path, schema in bodies:
        for name in schema.get("required", []):
            body = {key: value for key, value in filled(schema).items() if key != name}
            assert ["body", name] in [entry["loc"] for entry in details(api.post(path, body))]


def test_null_in_a_required_field_is_422(api, bodies):
    for path, schema in bodies:
        for name in schema.get("required", []):
            assert details(api.post(path, {**filled(schema), name: None}))[0]["loc"] == ["body", name]


def test_every_wrong_type_is_422_and_named(api, bodies):
    for path, schema in bodies:
        for name, field in schema["properties"].items():
            for value in WRONG[(kinds(field) - {"null"}).pop()]:
                assert details(api.post(path, {**filled(schema), name: value}))[0]["loc"][:2] == ["body", name]


def test_null_in_an_optional_field_is_an_absent_field(api, harmless):
    for path, schema in harmless:
        optional = {name: None for name in schema["properties"] if name not in schema.get("required", [])}
        refused = NO_WAY_OUT if path.startswith("/v1/proxy/") else ()
        assert api.post(path, {**filled(schema), **optional}).status_code in (200, 404, *refused), path


@pytest.mark.parametrize("text", [b"{", b"{} {}", b"nul", b"'x'", b"{\"a\":1,}", b"\xff\xfe", b"{\"a\":\"\xff\"}", b"[" * 5000,
                                  b"{\"a\":" * 500, b"\"\\ud800\"", b"{\"command\":NaN}", b"\x00"])
def test_invalid_json_is_422_on_every_route_with_a_body(api, bodies, text):
    for path, _ in bodies:
        details(api.http.post(path, content=text))


@pytest.mark.parametrize("text", [b"[]", b"1", b"\"x\"", b"true", b"[{}]"])
def test_a_body_that_is_no_object_is_422_on_every_route_with_a_body(api, bodies, text):
    for path, _ in bodies:
        assert details(api.http.post(path, content=text))[0]["loc"] == ["body"]


@pytest.mark.parametrize("text", [b"", b"null"])
def test_no_body_is_an_empty_object_where_nothing_is_required(api, harmless, text):
    for path, schema in harmless:
        expected = 422 if schema.get("required") else 404 if "unheard-of" in path else 200
        assert api.http.post(path, content=text).status_code == expected, path


def test_a_body_over_the_limit_is_413_on_every_route_with_a_body(api, bodies):
    for path, _ in bodies:
        with api.raw() as raw:
            raw.send(api.request(f"POST {path}", "", "Content-Length: 900000000"))
            assert (raw.answer().status, raw.closed()) == (413, True)


def test_a_chunked_body_over_the_limit_is_413(api):
    with api.raw() as raw:
        raw.send(api.request("POST /v1/bash/exec", "", "Transfer-Encoding: chunked"))
        piece = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
        with pytest.raises(OSError):
            for _ in range(60):
                raw.send(piece)
            raise OSError("all was taken, too")
        assert raw.answer().status == 413


def test_trap_19_a_delete_may_carry_a_body(api):
    made = api.data("/v1/shell/sessions/create")["session_id"]
    answer = api.http.request("DELETE", f"/v1/shell/sessions/{made}", json={"any": "thing"})
    assert (answer.status_code, answer.json()["success"]) == (200, True)


def test_unknown_fields_are_ignored(api):
    assert api.bash("echo x", no_such_field=1, another={"a": []})["stdout"] == "x\n"


def test_the_content_type_of_a_request_does_not_matter(api):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-8", ""):
        answer = api.http.post("/v1/bash/exec", content=json.dumps({"command": "echo x"}), headers={"Content-Type": kind})
        assert answer.json()["data"]["stdout"] == "x\n", kind


# --- paths ---

@pytest.mark.parametrize("path, status", [
    ("//v1/sandbox", 400), ("/v1//sandbox", 400), ("/v1/./sandbox", 400), ("/v1/../v1/sandbox", 400), ("/v1/%2e%2e/v1/sandbox", 400),
    ("/v1/%2E/sandbox", 400), ("/v1/sandbox%00", 400), ("/v1/sandbox%0d%0aX:1", 400), ("/v1/sandbox%", 400), ("/v1/sandbox%g1", 400),
    ("/v1/%ff", 400), ("/v1/..;/v1/sandbox", 404), ("/v1/sandbox;x", 404), ("/v1/sandbox/", 404), ("/V1/sandbox", 404),
    ("/v1/Sandbox", 404), ("/v1%2fsandbox", 404), ("/v1/%73andbox", 200), ("/v1/sandbox?a=%00", 400), ("/v1/sandbox?a=b#c", 400),
    ("/v1/sandbox\\", 404), ("/v1\\sandbox", 404), ("/v1/sandbox?" + "a=b&" * 101, 400), ("/" + "a" * 9000, 400),
    ("/v1/%252e%252e/sandbox", 404), ("v1/sandbox", 400), ("http://x/v1/sandbox", 400), ("*", 400), ("/v1/sandbox%c0%af", 400)])
def test_a_path_has_one_reading(api, path, status):
    with api.raw() as raw:
        raw.send(api.request(f"GET {path}"))
        assert raw.answer().status == status


@pytest.mark.parametrize("path", ["/v1/shell/sessions/..%2f..%2fetc", "/v1/shell/sessions/%2e%2e", "/v1/shell/sessions/a%2fb"])
def test_a_session_id_in_a_path_is_only_a_name(api, path):
    assert api.http.delete(path).status_code in (400, 404)


# --- origins ---

@pytest.mark.parametrize("origin", [EVIL, "null", "http://127.0.0.1:1", "https://localhost", "chrome-extension://x", "x", ""])
def test_a_foreign_origin_is_403_even_with_the_key(api, origin):
    with api.raw() as raw:
        raw.send(api.request("GET /v1/sandbox", "", f"Origin: {origin}"))
        assert raw.answer().status == 403


def test_the_own_origin_is_served(api):
    with api.raw() as raw:
        lines = ["GET /v1/sandbox HTTP/1.1", f"Host: {raw.host}", f"Origin: http://{raw.host}", f"X-AIO-API-Key: {api.key}", "", ""]
        raw.send("\r\n".join(lines).encode())
        assert raw.answer().status == 200


def test_a_foreign_page_gets_no_cors_header(api):
    with api.raw() as raw:
        lines = ["OPTIONS /v1/bash/exec HTTP/1.1", "Host: x", f"Origin: {EVIL}", "Access-Control-Request-Method: POST", "", ""]
        raw.send("\r\n".join(lines).encode())
        answer = raw.answer()
    assert not [name for name in answer.headers if name.startswith("access-control")]


# --- failures are not 5xx ---

ODD = ["", " ", "\x00", "\x7f\x1b[0m", "\ufffd", "\U0010ffff", "../../etc/shadow", "/proc/self/mem", "-", "--", "x" * 5000, "\n", "$(id)",
       "%s%n", "'", "\"", "\\", "a\r\nb", "/dev/full", "~root", "\u202e", "NaN", "None"]
NUMBERS = [0, -1, 1, 0.001, -0.5, 1e308, -1e308, 2**31, 2**53, -2**53, 2**63 - 1]


def odd_values(kind: str) -> list:
    return {"string": ODD, "boolean": [True, False], "integer": [n for n in NUMBERS if isinstance(n, int)], "number": NUMBERS,
            "array": [[], [""], ["\x00"], ["**"] * 200, ["["], ["x" * 5000], [1, 2], [-1, 2**53]],
            "object": [{"": ""}, {"A" * 5000: "x"}, {"PATH": None}, {"LD_PRELOAD": "/x.so"}, {"BASH_ENV": "/dev/zero"}]}[kind]


def test_trap_13_no_odd_value_of_any_field_is_a_5xx(api, harmless):
    made = {"/v1/bash/exec": {"command": "true", "timeout": 2, "hard_timeout": 2}, "/v1/shell/exec": {"command": "true", "timeout": 2},
            "/v1/file/watch/wait": {"timeout": 1}}
    session = api.data("/v1/bash/sessions/create")["session_id"]
    shell = api.data("/v1/shell/sessions/create")["session_id"]
    asked = []
    for path, schema in harmless:
        known = {"id": shell, "session_id": session, "seconds": 0, "max_wait_seconds": 0, "wait_timeout": 0.01}
        base = {**filled(schema), **made.get(path, {})} | {k: v for k, v in known.items() if k in schema["properties"]}
        for name, field in schema["properties"].items():
            for value in odd_values((kinds(field) - {"null"}).pop()):
                more = {"timeout": 2} if name == "no_change_timeout" and path == "/v1/shell/exec" else {}
                asked.append((path, name, {**base, name: value, **more}))

    def ask(path, name, body):
        answer = api.post(path, body)
        refused = (403, 409, 429) if path == "/v1/workspaces" else (400, 403) if path.startswith("/v1/file/watch") else ()
        refused += NO_WAY_OUT if path.startswith("/v1/proxy/") else ()
        assert answer.status_code in (200, 404, 422, *refused), (path, name, body[name], answer.text)

    # Most of them wait for a time limit.
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        for one in [pool.submit(ask, *one) for one in asked]:
            one.result()
    for watcher in api.http.get("/v1/file/watch").json()["watchers"]:
        api.http.delete(f"/v1/file/watch/{watcher['watcher_id']}")
    assert eventually(lambda: api.http.get("/readyz").status_code == 200)
