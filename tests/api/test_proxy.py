"""The preview proxy: a server inside a session is reached by a path, a name or a header, and sees the request as a server does that has
no proxy before it."""
import hashlib

import httpx
import pytest
from proxied import ECHO, app


@pytest.fixture(scope="module")
def echo(api):
    with app(api, ECHO) as port:
        yield port


@pytest.fixture
def client(api):
    """A client without the contract: answers are the apps' own, 5xx among them."""
    with httpx.Client(base_url=api.url, headers={"X-AIO-API-Key": api.key}, timeout=120, trust_env=False) as made:
        yield made


def seen(answer) -> dict:
    assert answer.status_code == 200, answer.text
    found = answer.json()
    found["headers"] = {name.lower(): value for name, value in found["headers"]}
    return found


def test_a_server_in_a_session_answers_below_its_port(client, echo):
    assert seen(client.get(f"/proxy/{echo}/a/b?c=d&e"))["target"] == "/a/b?c=d&e"
    assert seen(client.get(f"/proxy/{echo}/"))["target"] == "/"


@pytest.mark.parametrize("way", ["path", "absolute", "host", "name", "header"])
def test_every_way_leads_to_the_server(client, echo, way):
    path, headers, sees = {
        "path": (f"/proxy/{echo}/x?q=1", {}, "/x?q=1"),
        "absolute": (f"/absproxy/{echo}/x?q=1", {}, f"/absproxy/{echo}/x?q=1"),
        "host": ("/x?q=1", {"Host": f"{echo}-preview.example"}, "/x?q=1"),
        "name": ("/v1/ping", {"Host": f"{echo}-abc:8080"}, "/v1/ping"),
        "header": ("/proxy/1/x?q=1", {"X-AIO-Proxy-Port": str(echo)}, "/proxy/1/x?q=1"),
    }[way]
    found = seen(client.get(path, headers=headers))
    assert (found["target"], found["headers"]["host"]) == (sees, f"localhost:{echo}")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "PATCH", "PROPFIND"])
def test_methods_pass(client, echo, method):
    found = seen(client.request(method, f"/proxy/{echo}/", content=b"x" * 10 if method != "GET" else None))
    assert (found["method"], found["size"]) == (method, 0 if method == "GET" else 10)


def test_head_has_the_length_and_no_body(api, echo):
    with api.raw() as raw:
        raw.send(api.request(f"HEAD /proxy/{echo}/"))
        head = raw.head()
        assert head.status == 200 and int(head.headers["content-length"]) > 0 and raw.silent()
        raw.send(api.request(f"GET /proxy/{echo}/"))
        assert raw.answer().status == 200


@pytest.mark.parametrize("method", ["TRACE", "CONNECT"])
def test_methods_that_mean_the_proxy_itself_are_refused(api, echo, method):
    with api.raw() as raw:
        raw.send(api.request(f"{method} /proxy/{echo}/"))
        assert raw.answer().status == 405


def test_the_port_alone_leads_to_its_slash(client, echo):
    answer = client.get(f"/proxy/{echo}?a=b")
    assert (answer.status_code, answer.headers["location"]) == (307, f"/proxy/{echo}/?a=b")


def test_no_credential_of_ours_reaches_the_server(api, client, echo):
    key = api.key
    answer = client.get(f"/proxy/{echo}/?a=1&api_key={key}&%61pi_key={key}&ticket=T{key}&b=2", headers={
        "Authorization": f"Bearer {key}", "Cookie": f"a=b; caisson_login={key}; CAISSON_x={key};c=d", "X-Caisson-Page": key,
        "X-Caisson-Workspace": "default", "Referer": f"{api.url}/proxy/{echo}/?api_key={key}"})
    found = seen(answer)
    assert key not in answer.text
    assert (found["target"], found["headers"]["cookie"], found["headers"]["referer"]) == ("/?a=1&b=2", "a=b; c=d",
                                                                                          f"{api.url}/proxy/{echo}/")
    assert not [name for name in found["headers"] if name.startswith(("x-caisson", "x-aio"))]


def test_a_key_in_authorization_alone_stays_here(api, echo):
    answer = httpx.get(f"{api.url}/proxy/{echo}/", headers={"Authorization": f"Bearer {api.key}"}, trust_env=False)
    assert "authorization" not in seen(answer)["headers"] and api.key not in answer.text


def test_authorization_of_the_apps_own_passes(client, echo):
    assert seen(client.get(f"/proxy/{echo}/", headers={"Authorization": "Basic YTpi"}))["headers"]["authorization"] == "Basic YTpi"


def test_what_ends_at_this_hop_is_removed(client, echo):
    found = seen(client.get(f"/proxy/{echo}/", headers={
        "Connection": "keep-alive, X-Mine, Cookie", "X-Mine": "1", "Cookie": "a=b", "TE": "trailers", "Upgrade": "h2c", "HTTP2-Settings": "x",
        "Keep-Alive": "timeout=5", "Proxy-Authorization": "Basic x", "Trailer": "X", "X-Kept": "1"}))["headers"]
    assert found["x-kept"] == "1" and found["connection"] == "keep-alive"
    assert not {"x-mine", "cookie", "te", "upgrade", "http2-settings", "keep-alive", "proxy-authorization", "trailer"} & set(found)


def test_forwarded_headers_are_ours_alone(client, echo):
    found = seen(client.get(f"/proxy/{echo}/", headers={
        "X-Forwarded-For": "192.0.2.1", "X-Forwarded-Host": "evil", "X-Forwarded-Proto": "https", "X-Forwarded-Prefix": "/evil",
        "X-Forwarded-User": "root", "Forwarded": "for=192.0.2.1", "X-Real-IP": "192.0.2.1", "Host": "box:8080"}))["headers"]
    assert {k: v for k, v in found.items() if "forwarded" in k or k == "x-real-ip"} == {
        "x-forwarded-for": "127.0.0.1", "x-forwarded-host": "box:8080", "x-forwarded-proto": "http", "x-forwarded-prefix": f"/proxy/{echo}"}


def test_the_origin_of_the_page_is_the_servers_own(api, client, echo):
    assert seen(client.post(f"/proxy/{echo}/", headers={"Origin": api.url}))["headers"]["origin"] == f"http://localhost:{echo}"


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_large_body_arrives_whole(client, echo, framing):
    body = bytes(range(256)) * 65536
    pieces = (body[i:i + 100_000] for i in range(0, len(body), 100_000))
    found = seen(client.post(f"/proxy/{echo}/", content=body if framing == "length" else pieces))
    assert (found["size"], found["sha256"]) == (len(body), hashlib.sha256(body).hexdigest())


def test_it_takes_a_key(api, echo):
    for headers in ({}, {"Host": f"{echo}-x"}, {"X-AIO-Proxy-Port": str(echo)}):
        for path in ("/v1/ping", f"/proxy/{echo}/", f"/absproxy/{echo}/"):
            answer = httpx.get(api.url + path, headers=headers, trust_env=False)
            assert answer.status_code == (200 if path == "/v1/ping" and not headers else 401)


def test_a_foreign_page_is_refused(client, echo):
    assert client.post(f"/proxy/{echo}/", headers={"Origin": "https://evil.example"}).status_code == 403


def test_each_workspace_has_ports_of_its_own(api, client, named, echo):
    one = named()
    headers = {"X-Caisson-Workspace": one.workspace}
    assert client.get(f"/proxy/{echo}/", headers=headers).status_code == 502
    with app(one, ECHO) as port:
        assert seen(client.get(f"/proxy/{port}/", headers=headers))["target"] == "/"
        assert client.get(f"/proxy/{port}/").status_code == 502
    assert client.get(f"/proxy/{echo}/", headers={"X-Caisson-Workspace": "nobody"}).status_code == 404


def test_a_port_without_a_server_is_502_and_says_so(client):
    answer = client.get("/proxy/9/")
    assert (answer.status_code, answer.json()["success"]) == (502, False)
    assert "Nothing listens on port 9" in answer.json()["message"]
