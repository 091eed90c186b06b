"""The front door in front of the routes: request ids and the access log, proxies, rates, compression, CORS, the end."""
import contextlib
import gzip
import json
import os
import re
import signal
import threading
import time

import pytest
from conftest import Api, eventually

PAGE = "http://app.example"
PUBLIC = "https://public.example"


@pytest.fixture(scope="module")
def proxied(launch):
    """A server that takes this host for its proxy."""
    return launch(CAISSON_TRUSTED_PROXIES="127.0.0.1, 10.0.0.0/8", CAISSON_REQUESTS_PER_SECOND="20", CAISSON_ALLOW_ORIGIN=PAGE)


@pytest.fixture
def via(proxied):
    """via(headers, path): the answer of the proxied server, as if a client of its own asked."""
    count = iter(range(1, 250))

    def ask(path="/v1/sandbox", key=True, **headers):
        client = {"X-Forwarded-For": f"203.0.113.{next(count)}"}
        given = {"X-AIO-API-Key": proxied.key} if key else {}
        return Api(proxied.url, "").http.get(path, headers=given | client | {k.replace("_", "-"): v for k, v in headers.items()})

    return ask


def lines(launcher) -> list[dict]:
    """The access log so far."""
    return [json.loads(line) for line in launcher.log.read_text().splitlines() if line.startswith('{"log":"access"')]


def line_of(launcher, request_id: str) -> dict:
    return eventually(lambda: [line for line in lines(launcher) if line.get("request_id") == request_id])[0]


# --- request ids ---

@pytest.mark.parametrize("request_line, status", [("GET /v1/sandbox", 200), ("GET /v1/nothing", 404), ("POST /v1/sandbox", 405), ("GET /v1//x", 400),
                                                  ("get /", 400), ("OPTIONS /v1/sandbox", 204), ("HEAD /v1/sandbox", 200), ("POST /run_code", 422)])
def test_every_answer_has_an_id_of_its_own(api, request_line, status):
    ids = set()
    for _ in range(2):
        with api.raw() as raw:
            raw.send(api.request(request_line, "", "X-Request-Id: mine"))
            answer = raw.answer(bodiless=request_line.startswith("HEAD"))
            assert answer.status == status
            ids.add(answer.headers["x-request-id"])
    assert len(ids) == 2 and all(re.fullmatch("[0-9a-f]{16}", one) for one in ids)


def test_an_event_stream_has_an_id(api):
    with api.raw() as raw:
        raw.send(api.request("POST /v1/shell/exec", json.dumps({"command": "echo x"}), "Accept: text/event-stream"))
        head = raw.head().headers
        assert head["content-type"] == "text/event-stream" and re.fullmatch("[0-9a-f]{16}", head["x-request-id"])


def test_a_proxys_id_is_kept_and_logged(proxied, via):
    assert via(X_Request_Id="abc.DEF_1-2").headers["x-request-id"] == "abc.DEF_1-2"
    assert line_of(proxied, "abc.DEF_1-2")["status"] == 200


@pytest.mark.parametrize("bad", ["a b", "a,b", "x" * 65, "\"a\"", "<script>"])
def test_a_proxys_id_that_is_not_plain_is_replaced(via, bad):
    assert re.fullmatch("[0-9a-f]{16}", via(X_Request_Id=bad).headers["x-request-id"])


# --- access log ---

def test_a_request_is_one_line_without_its_query_and_key(api, native):
    answer = api.http.get("/v1/sandbox?secret=value&api_key=x", headers={"User-Agent": "probe/1", "Accept-Encoding": "identity"})
    line = line_of(native, answer.headers["x-request-id"])
    assert {k: line[k] for k in ("remote", "method", "path", "status", "user_agent")} == {
        "remote": "127.0.0.1", "method": "GET", "path": "/v1/sandbox", "status": 200, "user_agent": "probe/1"}
    assert line["bytes"] > len(answer.content) and 0 < line["ms"] < 60_000
    log = native.log.read_text()
    assert "secret=value" not in log and api.key not in log


def test_refusals_are_logged_too(native):
    answer = Api(native.url, "").http.get("/v1/nothing")
    assert line_of(native, answer.headers["x-request-id"])["status"] == 401
    with Api(native.url, "").raw() as raw:
        raw.send(b"get / HTTP/1.1\r\n\r\n")
        assert line_of(native, raw.answer().headers["x-request-id"])["status"] == 400


def test_the_workspace_is_logged(here, named):
    one = named()
    answer = one.http.get("/v1/sandbox")
    assert line_of(here, answer.headers["x-request-id"])["workspace"] == one.workspace


def test_probes_are_not_logged(api, native):
    ids = [api.http.get(path).headers["x-request-id"] for path in ("/healthz", "/readyz", "/v1/ping")]
    line_of(native, api.http.get("/v1/sandbox").headers["x-request-id"])
    assert not [line for line in lines(native) if line.get("request_id") in ids]


def test_a_hostile_client_cannot_forge_a_line_or_steer_a_terminal(api, native):
    with api.raw() as raw:
        raw.send(api.request("GET /v1/x\"}\\u000a{", "", "User-Agent: a\x80\xe2\x80\xae\"}\\n{\"log\":\"access\"}" + "x" * 3000).replace(b"\xc2\x80", b"\x80"))
        answer = raw.answer()
    line = line_of(native, answer.headers["x-request-id"])
    assert len(line["user_agent"]) < 300 and line["path"] == "/v1/x\"}\\u000a{"
    assert native.log.read_text().isascii()


def test_the_log_can_be_switched_off(launch):
    quiet = launch(CAISSON_ACCESS_LOG="off")
    assert Api(quiet.url, quiet.key).http.get("/v1/sandbox").status_code == 200
    quiet.stop()
    assert lines(quiet) == []


def test_a_reader_of_the_log_that_stops_stops_nobody(launch, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)  # holds it open, and does not read
    silent = launch(before=["/bin/sh", "-c", 'exec 2>"$0"; exec "$@"', str(pipe)], CAISSON_REQUESTS_PER_SECOND="0")
    with Api(silent.url, silent.key).raw() as raw:
        one = Api(silent.url, silent.key).request("GET /v1/sandbox", "", "User-Agent: " + "x" * 300)
        for _ in range(60):
            raw.send(one * 50)
            for _ in range(50):
                assert raw.answer().status == 200
    text = b""

    def dropped():
        nonlocal text
        with contextlib.suppress(BlockingIOError):
            text += os.read(reader, 1 << 20)
        return b'"dropped":' in text
    eventually(dropped)
    os.close(reader)


# --- proxies ---

def test_the_client_behind_a_proxy_is_the_one_in_the_log(proxied, via):
    answer = via(X_Forwarded_For="127.0.0.1, 198.51.100.7, 10.1.2.3")
    assert line_of(proxied, answer.headers["x-request-id"])["remote"] == "198.51.100.7"


def test_without_a_list_nobody_is_a_proxy(api, native):
    answer = api.http.get("/v1/sandbox", headers={"X-Forwarded-For": "198.51.100.7", "Forwarded": "for=198.51.100.7"})
    assert line_of(native, answer.headers["x-request-id"])["remote"] == "127.0.0.1"


def test_the_own_origin_is_that_which_the_proxy_names(via, api):
    assert via(Origin=PUBLIC, X_Forwarded_Host="public.example", X_Forwarded_Proto="https").status_code == 200
    assert via(Origin=PUBLIC).status_code == 403
    assert api.http.get("/v1/sandbox", headers={"Origin": PUBLIC, "X-Forwarded-Host": "public.example"}).status_code == 403


# --- rates ---

def test_a_client_that_asks_too_often_gets_429_and_others_do_not(proxied, via):
    api = Api(proxied.url, proxied.key)
    with api.raw() as raw:
        raw.send(api.request("GET /v1/sandbox", "", "X-Forwarded-For: 198.51.100.99") * 200)
        answers = [raw.answer() for _ in range(200)]
    refused = [answer for answer in answers if answer.status == 429]
    assert refused and {answer.status for answer in answers} == {200, 429}
    assert {answer.headers["retry-after"] for answer in refused} == {"1"}
    assert via(X_Forwarded_For="198.51.100.98").status_code == 200
    assert via("/healthz", X_Forwarded_For="198.51.100.99").status_code == 200, "probes are exempt"
    assert line_of(proxied, refused[0].headers["x-request-id"])["status"] == 429
    eventually(lambda: via(X_Forwarded_For="198.51.100.99").status_code == 200)


def test_a_client_without_a_key_that_asks_too_often_gets_429(proxied):
    with Api(proxied.url, "").raw() as raw:
        raw.send(b"GET /v1/sandbox HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 198.51.100.97\r\n\r\n" * 100)
        assert {raw.answer().status for _ in range(100)} == {401, 429}


# --- compression ---

def packed(api, path="/v1/openapi.json", *headers, line="GET"):
    with api.raw() as raw:
        raw.send(api.request(f"{line} {path}", "", *headers))
        return raw.answer(bodiless=line == "HEAD")


def test_text_is_compressed_for_clients_that_take_it(api):
    plain, small = packed(api), packed(api, "/v1/openapi.json", "Accept-Encoding: br;q=1.0, gzip;q=0.8")
    assert "content-encoding" not in plain.headers and plain.headers["vary"] == small.headers["vary"] == "Accept-Encoding"
    assert small.headers["content-encoding"] == "gzip" and len(small.body) < len(plain.body) / 4
    assert gzip.decompress(small.body) == plain.body


def test_small_text_is_compressed_at_once(api):
    plain, small = packed(api, "/v1/sandbox"), packed(api, "/v1/sandbox", "Accept-Encoding: gzip")
    assert len(plain.body) > 1024 and json.loads(gzip.decompress(small.body)).keys() == plain.json().keys()


def test_head_has_the_length_of_the_compressed_text(api):
    got, head = (packed(api, "/v1/openapi.json", "Accept-Encoding: gzip", line=line) for line in ("GET", "HEAD"))
    assert head.headers["content-length"] == got.headers["content-length"] == str(len(got.body))


@pytest.mark.parametrize("headers", [["Accept-Encoding: gzip;q=0"], ["Accept-Encoding: br"], ["Accept-Encoding: gzip", "Cookie: a=b"],
                                     ["Accept-Encoding: gzip;q=0.2, identity;q=0.3"]])
def test_other_clients_get_plain_text(api, headers):
    assert "content-encoding" not in packed(api, "/v1/openapi.json", *headers).headers


def test_an_event_stream_and_a_short_answer_are_never_compressed(api):
    assert "content-encoding" not in packed(api, "/v1/ping", "Accept-Encoding: gzip").headers
    with api.raw() as raw:
        body = json.dumps({"command": "head -c 20000 /dev/zero | tr '\\0' a"})
        raw.send(api.request("POST /v1/shell/exec", body, "Accept: text/event-stream", "Accept-Encoding: gzip"))
        head = raw.head().headers
        assert head["content-type"] == "text/event-stream" and "content-encoding" not in head


def test_an_answer_that_is_compressed_in_pieces_arrives_whole(api):
    answer = api.bash("seq 9000")  # httpx takes gzip
    assert answer["stdout"] == "".join(f"{n}\n" for n in range(1, 9001))


# --- CORS ---

def test_a_listed_page_gets_no_credentials_and_may_not_send_the_pages_own_header(via):
    answer = via(Origin=PAGE)
    assert (answer.headers["access-control-allow-origin"], answer.headers["access-control-expose-headers"]) == (PAGE, "mcp-session-id, x-request-id")
    assert "access-control-allow-credentials" not in answer.headers


def test_a_preflight_names_no_header_that_proves_the_own_page(proxied):
    with Api(proxied.url, "").raw() as raw:
        lines = ["OPTIONS /v1/bash/exec HTTP/1.1", "Host: x", f"Origin: {PAGE}", "Access-Control-Request-Method: POST",
                 "Access-Control-Request-Headers: x-caisson-page", "X-Forwarded-For: 203.0.113.251", "", ""]
        raw.send("\r\n".join(lines).encode())
        headers = raw.answer().headers
    assert "x-caisson-page" not in headers["access-control-allow-headers"] and "access-control-allow-credentials" not in headers


# --- order and end ---

def test_hundreds_of_pipelined_requests_are_answered_in_order(api):
    with api.raw() as raw:
        asked = [api.request(f"GET /v1/nothing-{n % 2}" if n % 3 else "GET /v1/ping") for n in range(600)]
        sender = threading.Thread(target=raw.send, args=(b"".join(asked),))
        sender.start()
        assert [raw.answer().status for _ in range(600)] == [404 if n % 3 else 200 for n in range(600)]
        sender.join()


def test_on_sigterm_a_request_under_way_is_answered_and_its_connection_closed(launch):
    ending = launch()
    api = Api(ending.url, ending.key)
    with api.raw() as busy, api.raw() as idle:
        idle.send(api.request("GET /v1/ping"))
        assert idle.answer().status == 200
        busy.send(api.request("POST /v1/bash/exec", json.dumps({"command": "echo begun > begun; read -t 1 x; echo done"}))
                  + api.request("GET /v1/ping"))
        eventually(lambda: (ending.dir / "home/begun").exists())
        ending.process.send_signal(signal.SIGTERM)
        assert idle.closed()
        answer = busy.answer()
        assert answer.json()["data"]["stdout"] == "done\n" and answer.headers["connection"] == "close"
        assert busy.closed()
    began = time.monotonic()
    assert ending.process.wait(60) == 0 and time.monotonic() - began < 30


# --- ranges ---

@pytest.mark.parametrize("spec", ["bytes=0-0", "bytes=-1", "bytes=9-1", "bytes=0-" + ",5-" * 1300, "lines=1-2", "bytes=" + "9" * 400 + "-"])
def test_a_range_of_an_answer_that_is_no_file_is_all_of_it(api, spec):
    for path in ("/v1/sandbox", "/v1/openapi.json", "/v1/sessions", "/v1/policies"):
        answer = api.http.get(path, headers={"Range": spec})
        assert answer.status_code == 200 and "content-range" not in answer.headers and answer.json(), path


def test_a_thousand_ranges_of_a_file_are_no_thousand_copies(api):
    api.data("/v1/file/write", {"file": "/home/gem/ranged", "content": "x" * 100_000})
    answer = api.http.get("/v1/file/download", params={"path": "/home/gem/ranged"}, headers={"Range": "bytes=0-" + ",5-" * 1300})
    assert answer.status_code in (200, 206, 416) and len(answer.content) <= 100_000
