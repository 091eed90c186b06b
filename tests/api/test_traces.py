"""Traces by OTLP/HTTP (OTEL_EXPORTER_OTLP_ENDPOINT), read as OpenTelemetry's own messages, and what has no room in them."""
import base64
import json
import pathlib
import re
import secrets
import threading
import time

import httpx
import pytest
from conftest import Api, eventually
from courier_servers import Authority, Server, courier_of, send
from google.protobuf import json_format
from launcher_process import ANY_CERTIFICATE
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from test_tls import Issuer, Pair

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


def parsed(body: bytes) -> ExportTraceServiceRequest:
    """Strictly: an unknown member fails. Ids are hexadecimal in OTLP, where Protobuf's own mapping has base64."""
    def with_bytes(found):
        return f'"{found[1]}":"{base64.b64encode(bytes.fromhex(found[2])).decode()}"'

    text = re.sub(r'"(traceId|spanId|parentSpanId)":"([0-9a-f]+)"', with_bytes, body.decode())
    return json_format.Parse(text, ExportTraceServiceRequest(), ignore_unknown_fields=False)


class Collector(Server):
    def __init__(self, answer=None, context=None, path=""):
        super().__init__(answer or send({}), context, path)

    def spans(self) -> list[Span]:
        out = []
        for one in list(self.asked):
            for resource in parsed(one.body).resource_spans:
                assert {a.key: a.value.string_value for a in resource.resource.attributes}["service.name"] == "caisson"
                out += [span for scope in resource.scope_spans for span in scope.spans]
        return out

    def named(self, name: str, count=1) -> list[Span]:
        return eventually(lambda: (found := [s for s in self.spans() if s.name == name]) and len(found) >= count and found)


    def at(self, path: str) -> Span:
        """The span of the request of this path, which is the only one."""
        return eventually(lambda: next((s for s in self.spans() if about(s).get("url.path") == path), None))


def unknown_path() -> str:
    return f"/v1/nothing/{secrets.token_hex(4)}"


def about(span: Span) -> dict:
    return {a.key: a.value.int_value if a.value.HasField("int_value") else a.value.string_value for a in span.attributes}


@pytest.fixture(scope="module")
def collector():
    made = Collector()
    yield made
    made.close()


@pytest.fixture(scope="module")
def traced(launch, collector):
    return launch(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_EXPORTER_OTLP_HEADERS="x-team=sandboxes, authorization=Bearer%20t0ken-of-ours")


@pytest.fixture
def api(traced):
    return Api(traced.url, traced.key)


def test_a_request_is_a_server_span(api, collector):
    before = time.time_ns()
    api.http.get("/v1/sandbox?secret=query")
    (span,) = collector.named("GET /v1/sandbox")[:1]
    assert span.kind == Span.SPAN_KIND_SERVER and len(span.trace_id) == 16 and len(span.span_id) == 8 and span.parent_span_id == b""
    facts = about(span)
    assert re.fullmatch("[0-9a-f]{16}", facts.pop("caisson.request.id"))
    assert facts == {"http.request.method": "GET", "http.route": "/v1/sandbox", "url.path": "/v1/sandbox", "url.scheme": "http",
                     "http.response.status_code": 200}
    assert before - 1e9 < span.start_time_unix_nano < span.end_time_unix_nano < time.time_ns() + 1e9


def test_it_is_posted_as_the_operator_says(api, collector):
    api.http.get("/v1/sandbox")
    one = collector.wait_for(1)[-1]
    assert (one.method, one.path, one.headers["content-type"]) == ("POST", "/v1/traces", "application/json")
    assert one.headers["x-team"] == "sandboxes" and one.headers["authorization"] == "Bearer t0ken-of-ours"


@pytest.mark.parametrize(("header", "follows"), [
    (f"00-{TRACE}-{PARENT}-01", True), (f"cc-{TRACE}-{PARENT}-01-more", True), (f"00-{TRACE}-{PARENT}-01-more", False),
    (f"00-{TRACE.upper()}-{PARENT}-01", False), (f"00-{'0' * 32}-{PARENT}-01", False), (f"ff-{TRACE}-{PARENT}-01", False), ("x" * 4000, False)])
def test_a_valid_parent_is_continued_and_no_other(api, collector, header, follows):
    route = unknown_path()
    api.http.get(route, headers={"traceparent": header, "tracestate": "vendor=1"})
    span = collector.at(route)
    assert (span.trace_id.hex() == TRACE, span.parent_span_id.hex() == PARENT) == (follows, follows)
    assert span.trace_state == ("vendor=1" if follows else "")
    assert about(span)["http.response.status_code"] == 404 and "http.route" not in about(span) and span.name == "GET"
    assert span.status.code == Status.STATUS_CODE_UNSET


def test_two_parents_are_none(api, collector):
    path, line = unknown_path(), f"traceparent: 00-{TRACE}-{PARENT}-01"
    with api.raw() as raw:
        raw.send(api.request(f"GET {path}", "", line, line))
        assert raw.head().status == 404
    assert collector.at(path).trace_id.hex() != TRACE


@pytest.mark.parametrize(("lines", "state"), [
    (("a=1", "b=2"), "a=1,b=2"), (("a=1", "no state"), ""), (("a=1,=2",), ""), (("a=" + "v" * 600,), "")])
def test_a_valid_state_is_passed_on_with_its_parent(api, collector, lines, state):
    path = unknown_path()
    with api.raw() as raw:
        raw.send(api.request(f"GET {path}", "", f"traceparent: 00-{TRACE}-{PARENT}-01", *(f"tracestate: {line}" for line in lines)))
        assert raw.head().status == 404
    assert collector.at(path).trace_state == state


def test_what_its_client_does_not_sample_is_not_recorded(api, collector):
    hidden, seen = unknown_path(), unknown_path()
    api.http.get(hidden, headers={"traceparent": f"00-{TRACE}-{PARENT}-00"})
    api.http.get(seen)
    collector.at(seen)
    assert not [s for s in collector.spans() if about(s).get("url.path") == hidden]


def test_the_launchers_work_is_a_child_of_its_request(api, collector):
    trace = secrets.token_hex(16)
    api.http.post("/v1/bash/exec", json={"command": "echo x"}, headers={"traceparent": f"00-{trace}-{PARENT}-01"})
    mine = eventually(lambda: (s := [s for s in collector.spans() if s.trace_id.hex() == trace]) and len(s) >= 3 and s)
    (request,) = [s for s in mine if s.kind == Span.SPAN_KIND_SERVER]
    children = {s.name: s for s in mine if s is not request}
    assert request.name == "POST /v1/bash/exec" and set(children) == {"session_create", "session_exec"}
    for child in children.values():
        assert child.parent_span_id == request.span_id and child.kind == Span.SPAN_KIND_INTERNAL
        assert request.start_time_unix_nano <= child.start_time_unix_nano <= child.end_time_unix_nano <= request.end_time_unix_nano
        assert about(child)["caisson.domain"] == "bash" and about(child)["caisson.session.id"] == about(request)["caisson.session.id"]


def test_a_named_workspace_is_in_its_spans(api, collector):
    name = f"w{secrets.token_hex(4)}"
    api.http.post("/v1/workspaces", json={"name": name})
    api.http.post("/v1/bash/exec", json={"command": "true"}, headers={"X-Caisson-Workspace": name})
    eventually(lambda: [s for s in collector.spans() if about(s).get("caisson.workspace") == name and s.name == "POST /v1/bash/exec"])
    api.http.delete(f"/v1/workspaces/{name}")


def test_refusals_and_previews_have_spans_and_probes_have_none(traced, api, collector):
    httpx.get(traced.url + "/v1/sandbox", trust_env=False)
    eventually(lambda: [s for s in collector.spans() if s.name == "GET /v1/sandbox" and about(s)["http.response.status_code"] == 401])
    path = f"/proxy/9/{secrets.token_hex(4)}"
    httpx.get(traced.url + path, headers={"X-AIO-API-Key": traced.key}, trust_env=False)
    span = collector.at(path)
    assert about(span)["http.response.status_code"] == 502 and span.status.code == Status.STATUS_CODE_ERROR
    assert not [s for s in collector.spans() if about(s).get("url.path") == "/readyz"], "which the test has asked for until it was ready"


def test_no_secret_leaves_in_a_span(traced, api, collector):
    marks = {name: f"m4rk{secrets.token_hex(8)}" for name in ("query", "command", "output", "body", "header", "environment")}
    api.http.post(f"/v1/bash/exec?x={marks['query']}", headers={"X-Mine": marks["header"], "Cookie": f"a={marks['header']}"},
                  json={"command": f"echo {marks['command']}; printf {marks['output']}", "env": {"A": marks["environment"]}})
    api.http.post("/v1/file/write", json={"file": "mark", "content": marks["body"]})
    httpx.get(f"{traced.url}/v1/sandbox?api_key={traced.key}", trust_env=False)
    last = unknown_path()
    api.http.get(last)
    collector.at(last)  # spans are posted in the order of their ends
    told = b"".join(one.body for one in collector.asked).decode()
    assert [what for what, mark in marks.items() if mark in told] == [] and traced.key not in told


def test_the_agent_has_no_header_of_the_operators(traced, api):
    assert api.bash("echo x")["stdout"] == "x\n"
    environment = pathlib.Path(f"/proc/{traced.agent_pid}/environ").read_bytes()
    assert b"OTEL_EXPORTER_OTLP_ENDPOINT" in environment and b"t0ken-of-ours" not in environment
    assert b"t0ken-of-ours" in pathlib.Path(f"/proc/{courier_of(traced)}/environ").read_bytes()


def outcomes(launcher) -> dict:
    text = httpx.get(launcher.url + "/metrics", headers={"X-AIO-API-Key": launcher.key}, trust_env=False).text
    return {o: float(n) for o, n in re.findall(r'^caisson_trace_spans_total\{outcome="(\w+)"\} (\S+)$', text, re.MULTILINE)}


def burst(launcher, count: int):
    with httpx.Client(base_url=launcher.url, headers={"X-AIO-API-Key": launcher.key}, trust_env=False, timeout=120) as http:
        for _ in range(count):
            assert http.get("/v1/sandbox").status_code == 200


def test_posted_spans_are_counted(launch):
    collector = Collector()
    launcher = launch(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector.url}/own/path?x=1")
    began = time.monotonic()
    burst(launcher, 600)
    eventually(lambda: outcomes(launcher).get("posted", 0) >= 600)
    assert {one.path for one in collector.asked} == {"/own/path?x=1"} and len({one.connection for one in collector.asked}) == 1
    assert max(len(one.body) for one in collector.asked) <= 128 * 1024
    assert len(collector.asked) < time.monotonic() - began + 20, "one a second, or full"
    launcher.close()
    collector.close()


def test_a_collector_that_hangs_holds_nobody_up(launch):
    hang = threading.Event()
    collector = Collector(lambda handler: hang.wait(60))
    launcher = launch(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, OTEL_EXPORTER_OTLP_TIMEOUT="60000", CAISSON_REQUESTS_PER_SECOND="0")
    slowest = 0.0
    with httpx.Client(base_url=launcher.url, headers={"X-AIO-API-Key": launcher.key}, trust_env=False, timeout=60) as http:
        for _ in range(3500):
            began = time.monotonic()
            assert http.get("/v1/sandbox").status_code == 200
            slowest = max(slowest, time.monotonic() - began)
    assert slowest < 30, "it hangs for a minute"
    lost = eventually(lambda: (o := outcomes(launcher)) and o.get("dropped", 0) + o.get("lost", 0) > 1000 and o)
    assert "posted" not in lost
    resident = int(pathlib.Path(f"/proc/{courier_of(launcher)}/status").read_text().split("VmHWM:")[1].split()[0])
    assert resident < 64 * 1024
    hang.set()
    launcher.close()
    collector.close()


def test_a_busy_collector_is_asked_again_as_late_as_it_wants(launch):
    busy, free = send({}, 503, **{"retry-after": "3"}), send({})
    collector = Collector(lambda handler: (busy if len(collector.asked) == 1 else free)(handler))
    launcher = launch(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    burst(launcher, 1)
    first = collector.wait_for(1)[0]
    second = collector.wait_for(2)[1]
    assert second.at - first.at >= 3 and second.body == first.body
    eventually(lambda: outcomes(launcher).get("posted", 0) >= 1)
    launcher.close()
    collector.close()


@pytest.mark.parametrize("status", [400, 302, 404])
def test_a_collector_that_refuses_is_not_asked_again(launch, status):
    elsewhere = Collector()
    collector = Collector(send({}, status, location=elsewhere.url))
    launcher = launch(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    burst(launcher, 1)
    eventually(lambda: outcomes(launcher).get("lost", 0) >= 1)
    bodies = [one.body for one in collector.asked]
    assert len(bodies) == len(set(bodies)) and elsewhere.asked == []
    assert f"spans are lost: the collector answers {status}" in launcher.log.read_text()
    for one in (launcher, collector, elsewhere):
        one.close()


def test_a_collector_with_https_is_verified(launch, tmp_path):
    authority = Authority(tmp_path)
    collector = Collector(context=authority.context("IP:127.0.0.1"))
    trusting = launch(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, SSL_CERT_FILE=str(authority.file))
    burst(trusting, 1)
    collector.wait_for(1)
    trusting.close()
    stranger = launch(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    before = len(collector.asked)
    burst(stranger, 1)
    eventually(lambda: outcomes(stranger).get("lost", 0) >= 1)
    assert len(collector.asked) == before
    stranger.close()
    collector.close()
    authority.remove()


def test_keys_and_spans_share_the_courier(launch):
    collector = Collector()
    keys = Server(send({"keys": []}))
    launcher = launch(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, CAISSON_JWKS_URL=keys.url)
    burst(launcher, 1)
    collector.wait_for(1)
    keys.wait_for(1)
    assert json.loads(collector.asked[0].body) and keys.asked[0].headers["content-type"] is None
    for one in (launcher, collector, keys):
        one.close()


def test_the_last_spans_are_posted_before_the_end(launch):
    collector = Collector()
    launcher = launch(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, CAISSON_DRAIN_MS="0")
    burst(launcher, 3)
    launcher.stop()
    assert len(collector.named("GET /v1/sandbox", 3)) == 3
    launcher.close()
    collector.close()


def test_a_port_with_a_certificate_is_https_in_its_spans(launch):
    pair, collector = Pair(), Collector()
    pair.write(*Issuer("test").server())
    launcher = launch(OTEL_EXPORTER_OTLP_ENDPOINT=collector.url, **pair.environment())
    with httpx.Client(base_url=launcher.url, headers={"X-AIO-API-Key": launcher.key}, trust_env=False, verify=ANY_CERTIFICATE) as http:
        assert http.get("/v1/sandbox").status_code == 200
    assert about(collector.named("GET /v1/sandbox")[0])["url.scheme"] == "https"
    for one in (launcher, collector):
        one.close()
    pair.remove()


def test_without_a_collector_nothing_is_counted(native):
    assert outcomes(native) == {}
