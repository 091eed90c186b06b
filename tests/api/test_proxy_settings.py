"""/v1/proxy: upstream, mappings, excludes and diagnosis, through the API and the SDK, with a launcher that stands in an internet of the test's own."""
import pathlib
import urllib.parse

import httpx
import pytest
import sdk
from conftest import HEADER, Api, eventually
from launcher_process import BUILD, Launcher
from outside import OTHER, PRIVATE, PUBLIC, HttpProxy, world

SECRET = "hunter2-of-the-proxy"
RULES = {
    "network": "allowlist",
    "egress": [
        {"host": "api.test", "ports": [80, 443], "why": "what a test needs"},
        {"host": "aside.test", "ports": [80], "why": "what a test needs"},
        {"host": "denied.test", "deny": True, "why": "what a test needs"},
        {"host": "proxy.test", "ports": [3128], "private": True, "why": "what a test needs"},
    ],
    "egress_ask": "api",
    "weaken": [{"field": "/network", "why": "what a test needs"}],
}


def edit(policies, name, **fields):
    import json

    file = policies / f"{name}.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


@pytest.fixture(scope="module")
def internet(tmp_path_factory):
    one = world.World(tmp_path_factory.mktemp("internet"))
    one.names.zone.update({"api.test": [PUBLIC], "aside.test": [PUBLIC], "denied.test": [OTHER], "proxy.test": [PRIVATE]})

    def handle(connection):
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nserved")

    one.direct = one.serve(PUBLIC, 80, handle)
    one.behind = one.serve(OTHER, 8080, handle)
    yield one
    one.close()


@pytest.fixture(scope="module")
def proxy(internet):
    return HttpProxy(internet, PRIVATE, 3128, {("api.test", 80): (OTHER, 8080), ("aside.test", 80): (OTHER, 8080)}, f"agent:{SECRET}")


@pytest.fixture(scope="module")
def out(internet):
    """A launcher whose bash goes out; this thread stands beside it."""
    with internet.out.inside():
        one = Launcher(policies=lambda folder: edit(folder, "bash", **RULES), before=internet.wrapper(), documents=True)
        if "tier T2" not in one.log.read_text() and "tier T3" not in one.log.read_text():
            one.close()
            pytest.skip("without a network namespace there is no way out")
        yield one
        one.close()


@pytest.fixture(scope="module")
def api(out, contract):
    with Api(out.url, out.key, contract).http as client:
        yield client


@pytest.fixture
def clean(api):
    yield api
    api.delete("/v1/proxy/upstream")
    for kind, member in (("mappings", "source"), ("excludes", None)):
        for one in api.get(f"/v1/proxy/{kind}").json()["data"]:
            if member:
                api.delete("/v1/proxy/mappings/" + urllib.parse.quote(one[member], safe=""))
            else:
                api.request("DELETE", "/v1/proxy/excludes", json={"pattern": one})


def curl(api, *arguments, **headers):
    done = api.post("/v1/bash/exec", json={"command": "curl -sS --max-time 60 " + " ".join(arguments)}, headers=headers).json()["data"]
    return (done["stdout"] or "") + (done["stderr"] or "")


@pytest.mark.skipif(not (BUILD / "launcher/tools/markitdown").is_dir(), reason="markitdown is not installed (scripts/test does it)")
def test_a_document_is_fetched_where_bash_may_go_and_nowhere_else(clean, internet):
    def convert(uri):
        return clean.post("/v1/util/convert_to_markdown", json={"uri": uri}).json()
    before = len(internet.direct)
    assert convert("http://api.test/")["data"] == "served" and len(internet.direct) == before + 1
    for uri in ("http://denied.test/", "http://unlisted.test/", "http://api.test:8080/"):
        refused = convert(uri)
        assert refused["success"] is False and "cannot be fetched, with the network of the domain bash" in refused["message"]
    assert len(internet.direct) == before + 1
    del internet.direct[before:]


def test_curl_in_a_session_goes_through_the_proxy_that_a_client_sets(clean, internet, proxy):
    assert clean.get("/v1/proxy/upstream").json()["data"] is None
    assert curl(clean, "http://api.test/") == "served" and len(internet.direct) == 1
    shown = clean.put("/v1/proxy/upstream", json={"server": f"agent:{SECRET}@proxy.test:3128"})
    assert shown.status_code == 200 and shown.json()["data"] == {"addr": "proxy.test:3128", "username": "agent", "password": None}
    assert curl(clean, "http://api.test/") == "served"
    assert [one[:2] for one in proxy.asked] == [("api.test", 80)] and len(internet.direct) == 1
    assert clean.get("/v1/proxy/upstream").json()["data"] == shown.json()["data"]
    assert clean.delete("/v1/proxy/upstream").json() == {"success": True, "message": "Upstream proxy removed", "data": None, "hint": None}
    assert curl(clean, "http://api.test/") == "served" and len(internet.direct) == 2


def test_the_secret_is_nowhere_that_others_can_look(clean, out, proxy):
    clean.put("/v1/proxy/upstream", json={"server": f"agent:{SECRET}@proxy.test:3128"})
    assert curl(clean, "http://api.test/") == "served"
    refused = clean.put("/v1/proxy/upstream", json={"server": f"agent:{SECRET}@elsewhere.test:3128"})
    wrong = clean.put("/v1/proxy/upstream", json={"server": f"agent:{SECRET}@nowhere"})
    assert (refused.status_code, wrong.status_code) == (403, 422)
    seen = [answer.text for answer in (refused, wrong, clean.get("/v1/proxy/upstream"), clean.get("/v1/proxy/diagnose", params={"url": "http://api.test"}))]
    seen += [file.read_text(errors="replace") for file in [out.log, *(out.dir / "audit").rglob("*")] if file.is_file()]
    seen += [curl(clean, "--version") + clean.post("/v1/bash/exec", json={"command": "env; cat /proc/*/environ /proc/*/cmdline 2>&1"}).text]
    for pid in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if out.owns(int(pid.name)):
                seen += [(pid / name).read_bytes().decode(errors="replace") for name in ("environ", "cmdline")]
        except (OSError, IndexError):  # it ended meanwhile
            continue
    assert not any(SECRET in text for text in seen)


def test_what_the_policy_does_not_permit_is_refused_and_says_what_it_lacks(clean):
    for server in ("elsewhere.test:3128", "127.0.0.1:8080", "169.254.169.254:80", "proxy.test:80"):
        answer = clean.put("/v1/proxy/upstream", json={"server": server})
        assert answer.status_code == 403 and "egress" in answer.json()["message"], server
    assert clean.put("/v1/proxy/upstream", json={"server": "proxy.test:3128", "auth_cmd": "echo a:b"}).status_code == 403
    assert clean.post("/v1/proxy/mappings", json={"source": "a.com", "target": "10.0.0.1:80"}).status_code == 403
    for body in ({}, {"server": ""}, {"server": "proxy.test"}, {"server": 3128}):
        assert clean.put("/v1/proxy/upstream", json=body).status_code == 422, body
    for body in ({}, {"source": "https://a.com", "target": "3000"}, {"source": "a.com", "target": "x"}, {"source": "a.com"}):
        assert clean.post("/v1/proxy/mappings", json=body).status_code == 422, body
    assert clean.post("/v1/proxy/excludes", json={"pattern": "*"}).status_code == 422
    assert clean.get("/v1/proxy/diagnose").status_code == 422
    assert clean.delete("/v1/proxy/mappings/a.com").status_code == 404
    assert clean.request("DELETE", "/v1/proxy/excludes", json={"pattern": "a.com"}).status_code == 404


def test_a_mapping_leads_to_a_server_of_the_session(clean):
    server = "python3 -c 'import http.server as h; h.ThreadingHTTPServer((\"127.0.0.1\", 3000), h.SimpleHTTPRequestHandler).serve_forever()' >/dev/null 2>&1"
    clean.post("/v1/bash/exec", json={"command": f"mkdir -p ~/site/x; echo mine >~/site/x/index.html; cd ~/site; {server}", "async_mode": True})
    made = clean.post("/v1/proxy/mappings", json={"source": "http://myapp.com/v1/*", "target": ":3000/"}).json()["data"]
    assert made == {"source": "http://myapp.com/v1/*", "target": "127.0.0.1:3000/", "source_host": "myapp.com", "source_path": "/v1/", "internal_port": 312}
    assert clean.get("/v1/proxy/mappings").json()["data"] == [made]
    assert curl(clean, "--retry 30 --retry-connrefused --retry-delay 1 --retry-all-errors -f http://myapp.com/v1/x/").startswith("mine\n")
    found = clean.get("/v1/proxy/diagnose", params={"url": "http://myapp.com/v1/x/"}).json()["data"]
    assert (found["route"], found["matched_mapping"], found["target_reachable"]) == ("mapping", made, True)
    # Another workspace does not see it.
    clean.post("/v1/workspaces", json={"name": "other"})
    assert clean.get("/v1/proxy/mappings", headers={HEADER: "other"}).json()["data"] == []
    assert "not_listed" in curl(clean, "http://myapp.com/v1/x/", **{HEADER: "other"})
    clean.delete("/v1/workspaces/other")


@pytest.mark.parametrize("source", ["myapp.com", "api.myapp.com/v1/*", "http://myapp.com:8080/a%20b", "*.staging.app.com"])
def test_a_source_in_the_path_as_it_is_or_encoded(clean, source):
    for path in (source.replace("%", "%25"), urllib.parse.quote(source, safe=""), urllib.parse.quote(source, safe="/")):
        assert clean.post("/v1/proxy/mappings", json={"source": source, "target": "3000"}).status_code == 200
        where = clean.base_url.copy_with(raw_path=f"/v1/proxy/mappings/{path}".encode())  # as it is: httpx would encode it
        assert clean.send(httpx.Request("DELETE", where, headers=clean.headers)).status_code == 200, path
    assert clean.get("/v1/proxy/mappings").json()["data"] == []


def test_excludes_go_beside_it(clean, internet, proxy):
    clean.put("/v1/proxy/upstream", json={"server": f"agent:{SECRET}@proxy.test:3128"})
    assert clean.post("/v1/proxy/excludes", json={"pattern": "*.TEST"}).status_code == 200
    assert clean.get("/v1/proxy/excludes").json()["data"] == ["*.test"]
    before, through = len(internet.direct), len(proxy.asked)
    assert curl(clean, "http://aside.test/") == "served"
    assert (len(internet.direct), len(proxy.asked)) == (before + 1, through)
    assert clean.request("DELETE", "/v1/proxy/excludes", json={"pattern": "*.test"}).status_code == 200
    assert curl(clean, "http://aside.test/") == "served"
    assert (len(internet.direct), len(proxy.asked)) == (before + 1, through + 1)


def test_the_pac_file_says_the_same(clean):
    assert clean.get("/v1/browser/proxy.pac").status_code == 404
    clean.put("/v1/proxy/upstream", json={"server": "proxy.test:3128"})
    clean.post("/v1/proxy/excludes", json={"pattern": ".aside.test"})
    clean.post("/v1/proxy/mappings", json={"source": "*.app.com", "target": "3000"})
    pac = clean.get("/v1/browser/proxy.pac")
    assert pac.headers["content-type"] == "application/x-ns-proxy-autoconfig"
    assert pac.text.splitlines() == [
        "function FindProxyForURL(url, host) {",
        '  if (dnsDomainIs(host, ".app.com")) return "PROXY 127.0.0.1:312";',
        '  if (dnsDomainIs(host, ".aside.test") || host == "aside.test") return "DIRECT";',
        '  return "PROXY 127.0.0.1:312";',
        "}",
    ]


def test_health(clean, out):
    assert clean.get("/v1/proxy/health").json()["data"] == {
        "healthy": True, "gost_alive": True, "nginx_alive": True, "config_consistent": True, "inconsistencies": []}


def test_what_a_credential_needs(clean, out):
    token = clean.post("/v1/tokens", json={"label": "reader", "scopes": ["proxy:read"], "seconds": 600}).json()["data"]["token"]
    reader = httpx.Client(base_url=out.url, headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=120)
    with reader:
        assert reader.get("/v1/proxy/upstream").status_code == 200
        for method, path in (("PUT", "/v1/proxy/upstream"), ("DELETE", "/v1/proxy/upstream"), ("GET", "/v1/proxy/diagnose?url=http://api.test"), ("GET", "/v1/bash/sessions")):
            assert reader.request(method, path).status_code == 403, path


def test_every_method_of_the_sdk(clean, out, contract):
    client = sdk.sandbox_of(Api(out.url, out.key, contract))
    proxy = sdk.Recorded(client.proxy, "proxy", contract)
    assert proxy.set_upstream(server="agent:secret@proxy.test:3128").data.username == "agent"
    assert proxy.get_upstream().data.password is None
    assert proxy.add_mapping(source="http://myapp.com/v1/*", target=":3000").data.source_host == "myapp.com"
    assert [one.source for one in proxy.list_mappings().data] == ["http://myapp.com/v1/*"]
    assert proxy.remove_mapping("http://myapp.com/v1/*").success
    assert proxy.add_exclude(pattern="*.aside.test").success
    assert proxy.list_excludes().data == ["*.aside.test"]
    assert proxy.remove_exclude(pattern="*.aside.test").success
    assert proxy.diagnose(url="http://denied.test").data.route == "denied"
    assert proxy.remove_upstream().success
    assert proxy.get_upstream().data is None
    assert not proxy.uncalled() - {"with_raw_response"}


def test_a_policy_without_a_way_out_has_no_settings_and_says_what_it_lacks():
    with_none = Launcher()
    try:
        with httpx.Client(base_url=with_none.url, headers={"X-AIO-API-Key": with_none.key}, trust_env=False, timeout=120) as client:
            assert [client.get(f"/v1/proxy/{what}").json()["data"] for what in ("upstream", "mappings", "excludes")] == [None, [], []]
            assert client.get("/v1/browser/proxy.pac").status_code == 404
            for method, path, body in (
                ("PUT", "/v1/proxy/upstream", {"server": "proxy.test:3128"}),
                ("POST", "/v1/proxy/mappings", {"source": "api.test", "target": "3000"}),
                ("POST", "/v1/proxy/excludes", {"pattern": "api.test"}),
                ("DELETE", "/v1/proxy/excludes", {"pattern": "api.test"}),
            ):
                answer = client.request(method, path, json=body)
                assert answer.status_code == 403 and '"network": "allowlist"' in answer.json()["message"], path
            health = client.get("/v1/proxy/health").json()["data"]
            assert health["healthy"] is False and "allowlist" in health["inconsistencies"][0]
    finally:
        with_none.close()


def figures(api):
    from test_operate import samples

    return {(name, *(value for _, value in labels)): value for (name, labels), value in samples(api.get("/metrics").text).items() if name.startswith("caisson_egress_")}


def test_what_goes_out_is_shown_and_counted(clean):
    clean.post("/v1/workspaces", json={"name": "looked-at"})
    assert clean.get("/v1/proxy/connections", headers={HEADER: "looked-at"}).json()["data"] == {"connections": []}
    before = figures(clean)
    assert curl(clean, "http://api.test/") == "served"
    assert "not_listed" in curl(clean, "http://unknown.test/")
    assert "canary" in curl(clean, "http://169.254.169.254/")
    alarm, refused, made = clean.get("/v1/proxy/connections").json()["data"]["connections"][:3]
    assert (alarm["host"], alarm["refusal"], alarm["alarm"], alarm["refused"]) == ("169.254.169.254", "canary", True, True)
    assert (refused["host"], refused["port"], refused["refusal"], refused["refused"], "alarm" in refused) == ("unknown.test", 80, "not_listed", True, False)
    assert (made["host"], made["port"], made["rule"], made["why"], made["refused"]) == ("api.test", 80, 0, "what a test needs", False)
    assert made["down"] > 0 and made["up"] > 0 and made["time"] <= refused["time"] <= alarm["time"]
    # No other workspace is shown it.
    assert clean.get("/v1/proxy/connections", headers={HEADER: "looked-at"}).json()["data"] == {"connections": []}
    clean.delete("/v1/workspaces/looked-at")

    def grown(*key):
        return figures(clean).get(key, 0) - before.get(key, 0)

    eventually(lambda: grown("caisson_egress_refusals_total", "canary") == 1)
    assert grown("caisson_egress_connections_total", "made") == 1 and grown("caisson_egress_refusals_total", "not_listed") == 1
    assert grown("caisson_egress_alarms_total", "canary") == 1 and grown("caisson_egress_bytes_total", "down") > 0
    assert grown("caisson_egress_names_total") >= 2


def test_what_a_session_was_refused_is_a_question_that_a_client_answers(clean, internet):
    internet.names.zone["new.test"] = [PUBLIC]
    assert "the operator may allow it" in curl(clean, "http://new.test/")
    asked = lambda: [one for one in clean.get("/v1/proxy/asks").json()["data"]["asked"] if one["host"] == "new.test"]  # noqa: E731
    (one,) = eventually(asked)
    assert (one["domain"], one["port"], one["refusal"]) == ("bash", 80, "not_listed")
    at = f"/v1/proxy/asks/{one['id']}"
    for body in ({}, {"for": "ever"}, {"for": "time"}, {"for": "time", "seconds": 0}, {"for": "once", "seconds": 5}):
        assert clean.post(f"{at}/allow", json=body).status_code == 422, body
    for path in ("/v1/proxy/asks/999/deny", "/v1/proxy/asks/x/deny", "/v1/proxy/asks/1e3/deny"):
        assert clean.post(path).status_code == 404, path
    assert clean.post(f"{at}/allow", json={"for": "policy"}).json()["data"]["rule"]["host"] == "new.test"
    assert "not_listed" in curl(clean, "http://new.test/"), "that allowed nothing"
    done = clean.post(f"{at}/allow", json={"for": "time", "seconds": 600}).json()["data"]
    assert (done["by"], done["ask"], done["seconds"]) == ("api", "allow", 600) and asked() == []
    assert curl(clean, "http://new.test/") == "served"
    (grant,) = clean.get("/v1/proxy/asks").json()["data"]["granted"]
    assert grant["id"] == one["id"]
    assert clean.delete(f"/v1/proxy/grants/{grant['id']}").status_code == 200
    assert clean.delete(f"/v1/proxy/grants/{grant['id']}").status_code == 404
    assert "not_listed" in curl(clean, "http://new.test/")
    assert clean.post(f"/v1/proxy/asks/{eventually(asked)[0]['id']}/deny").json()["data"]["ask"] == "deny"
    assert "not_listed" in curl(clean, "http://new.test/") and asked() == []


def test_questions_of_a_workspace_are_its_own(clean):
    clean.post("/v1/workspaces", json={"name": "asked"})
    assert "not_listed" in curl(clean, "http://elsewhere.test/")
    assert eventually(lambda: [one for one in clean.get("/v1/proxy/asks").json()["data"]["asked"] if one["host"] == "elsewhere.test"])
    assert clean.get("/v1/proxy/asks", headers={HEADER: "asked"}).json()["data"] == {"asked": [], "granted": []}
