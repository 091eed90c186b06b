"""/v1/browser/page, tabs, cookies, state, network and captcha, on pages that the workspace's shell wrote, as AIO's evaluation does it."""
import json
import os
import pathlib
import shutil

import pytest
from conftest import BUILD

pytestmark = [pytest.mark.skipif(any(shutil.which(program) is None for program in ("Xvnc", "openbox", "chromium", "node")),
                                 reason="not installed: Xvnc, openbox, chromium or node (scripts/setup --desktop)"),
              pytest.mark.skipif(not (BUILD / "launcher/tools/driver/node_modules").is_dir(), reason="the page driver has no libraries (npm)")]
PAGE = "/v1/browser/page"
FORM = """<!doctype html><title>Form</title><body style="height:5000px"><h1>Order</h1><p>Say <b>friend</b> and enter.</p>
<input id=name placeholder=name><input id=agree type=checkbox><select id=size><option value=s>Small<option value=l>Large</select>
<input id=file type=file><button id=go onclick="document.title='clicked'; console.log('went', name.value)">Go</button>
<div id=far style="position:absolute;top:4000px">far</div><a href="#x">link</a></body>"""


@pytest.fixture
def page(api):
    api.data("/v1/file/write", {"file": "/tmp/form.html", "content": FORM})
    got = api.data(f"{PAGE}/navigate", {"url": "file:///tmp/form.html"})
    assert got == {"url": "file:///tmp/form.html", "title": "Form", "status": None} or got["title"] == "Form"
    return api


def get(api, path, **query):
    return api.http.get(path, params=query).json()


def value(api, expression):
    return api.data(f"{PAGE}/evaluate", {"expression": expression})


def test_a_form_is_filled_and_sent_by_selectors(page):
    page.data(f"{PAGE}/fill", {"selector": "#name", "text": "Grüße 世界"})
    page.data(f"{PAGE}/check", {"selector": "#agree"})
    assert page.data(f"{PAGE}/select_option", {"selector": "#size", "label": "Large"}) == {"selected": ["l"]}
    assert page.data(f"{PAGE}/click", {"selector": "#go"})["title"] == "clicked"
    assert value(page, "[document.getElementById('name').value, agree.checked, size.value]") == ["Grüße 世界", True, "l"]
    page.data(f"{PAGE}/uncheck", {"selector": "#agree"})
    assert value(page, "agree.checked") is False


def test_several_fields_are_filled_at_once(page):
    done = page.data(f"{PAGE}/fill_form", {"items": [{"selector": "#name", "value": "n"}, {"selector": "#nosuch", "value": 1},
                                                     {"selector": "#agree", "value": True}, {"selector": "#size", "value": "l"}]})
    assert [one["success"] for one in done["items"]] == [True, False, True, True] and done["filled"] == 3


def test_elements_have_indexes_that_click_and_fill_take(page):
    elements = get(page, f"{PAGE}/elements")["data"]
    by_tag = {element["tag"]: element for element in elements}
    assert {"input", "select", "button", "a"} <= set(by_tag) and all(element["width"] > 0 for element in elements)
    assert page.data(f"{PAGE}/click", {"index": by_tag["button"]["index"]})["title"] == "clicked"
    stale = page.post(f"{PAGE}/click", {"index": 999}).json()
    assert not stale["success"] and "999" in stale["message"]


def test_keys_are_typed_and_pressed(page):
    page.data(f"{PAGE}/click", {"selector": "#name"})
    page.data(f"{PAGE}/type", {"text": "abc"})
    page.data(f"{PAGE}/press_key", {"key": "Backspace"})
    page.data(f"{PAGE}/hot_key", {"keys": ["Control", "a"]})
    page.data(f"{PAGE}/type", {"text": "x"})
    assert value(page, "document.getElementById('name').value") == "x"


def test_a_file_of_the_workspace_is_uploaded(page):
    page.data("/v1/file/write", {"file": "/tmp/up.txt", "content": "content"})
    assert page.data(f"{PAGE}/upload_file", {"selector": "#file", "files": ["/tmp/up.txt"]}) == {"files": 1}
    assert value(page, "document.getElementById('file').files[0].text()") == "content"
    missing = page.post(f"{PAGE}/upload_file", {"selector": "#file", "files": ["/root/secret"]}).json()
    assert not missing["success"]


def test_the_page_is_scrolled(page):
    assert page.data(f"{PAGE}/scroll_to", {"x": 0, "y": 700}) == {"x": 0, "y": 700}
    assert page.data(f"{PAGE}/scroll", {"direction": "down", "amount": 100})["y"] > 700
    assert page.data(f"{PAGE}/scroll_to_element", {"selector": "#far"})["y"] > 2000
    page.data(f"{PAGE}/scroll_to", {})
    page.data(f"{PAGE}/hover", {"selector": "#go"})


def test_what_the_page_says_is_read(page):
    assert "<h1>Order</h1>" in get(page, f"{PAGE}/html")["data"] and get(page, f"{PAGE}/html", outer="true")["data"].lower().startswith("<!doctype html")
    assert "Say friend and enter." in get(page, f"{PAGE}/text")["data"]
    assert "**friend**" in get(page, f"{PAGE}/markdown")["data"]["markdown"]
    hits = page.data(f"{PAGE}/find_text", {"keyword": "friend"})
    assert len(hits) == 1 and hits[0]["width"] > 0


@pytest.mark.parametrize("expression, result", [("1 + 1", 2), ("() => [document.title]", ["Form"]), ("undefined", None), ("Promise.resolve({a: 'ä'})", {"a": "ä"}),
                                                ("await 3", 3)])
def test_an_expression_is_evaluated(page, expression, result):
    assert value(page, expression) == result


@pytest.mark.parametrize("expression, told", [("throw new Error('no')", "no"), ("nosuch.member", "nosuch"), ("'x'.repeat(9e6)", "8388608"), ("window", "circular")])
def test_an_expression_that_fails_says_why(page, expression, told):
    answer = page.post(f"{PAGE}/evaluate", {"expression": expression}).json()
    assert answer["success"] is False and told in answer["message"]


def test_pictures_of_the_page_have_its_size(page):
    got = page.http.get(f"{PAGE}/screenshot")
    assert got.headers["content-type"] == "image/png" and got.content[:4] == b"\x89PNG" and int(got.headers["x-viewport-width"]) > 300
    whole = page.http.get(f"{PAGE}/screenshot", params={"full_page": "true", "format": "jpeg", "quality": 40})
    assert whole.headers["content-type"] == "image/jpeg" and int(whole.headers["x-screenshot-height"]) >= 5000


def test_history_and_reload(page):
    page.data("/v1/file/write", {"file": "/tmp/two.html", "content": "<title>Two</title>"})
    page.data(f"{PAGE}/navigate", {"url": "file:///tmp/two.html"})
    assert page.data(f"{PAGE}/back")["title"] == "Form" and page.data(f"{PAGE}/forward")["title"] == "Two" and page.data(f"{PAGE}/reload")["title"] == "Two"


def test_tabs_are_opened_shown_and_closed(page):
    made = page.data("/v1/browser/tabs", {"url": "file:///tmp/form.html"})
    assert made["active"] and made["index"] in [tab["index"] for tab in get(page, "/v1/browser/tabs")["data"]]
    page.data("/v1/browser/tabs/0/activate", method="PUT")
    assert get(page, "/v1/browser/tabs")["data"][0]["active"]
    page.data(f"/v1/browser/tabs/{made['index']}", method="DELETE")
    assert page.http.delete("/v1/browser/tabs/x").status_code == 422 and not page.http.delete("/v1/browser/tabs/99").json()["success"]


def test_the_console_is_read_and_exported(page):
    page.data(f"{PAGE}/click", {"selector": "#go"})
    page.data(f"{PAGE}/wait", {"type": "function", "expression": "document.title == 'clicked'"})
    assert any("went" in entry["text"] for entry in get(page, f"{PAGE}/console")["data"])
    said = page.data(f"{PAGE}/console/export", {"save_path": "/tmp/console.json"})
    assert said["save_path"] == "/tmp/console.json" and "went" in page.data("/v1/file/read", {"file": "/tmp/console.json"})["content"]
    refused = page.post(f"{PAGE}/console/export", {"save_path": "/etc/console.json"}).json()
    assert refused["success"] is False and refused["data"]["errno_name"] in ("EACCES", "EROFS", "ENOENT", "EPERM")


def test_cookies_and_state_are_kept_in_files(page):
    page.data("/v1/browser/cookies", {"cookies": [{"name": "a", "value": "b", "url": "http://example.org/"}]})
    assert [one["value"] for one in get(page, "/v1/browser/cookies", urls="http://example.org/")["data"]] == ["b"]
    page.data("/v1/browser/state/save", {"path": "/tmp/state.json"})
    assert json.loads(page.data("/v1/file/read", {"file": "/tmp/state.json"})["content"])["cookies"][0]["name"] == "a"
    page.data("/v1/browser/cookies", method="DELETE")
    assert get(page, "/v1/browser/cookies")["data"] == []
    page.data("/v1/browser/state/load", {"path": "/tmp/state.json"})
    assert [one["name"] for one in get(page, "/v1/browser/cookies")["data"]] == ["a"]
    page.data("/v1/browser/cookies", method="DELETE")


def test_requests_are_answered_in_place_of_their_server(page):
    page.data("/v1/browser/network/route", {"url_pattern": "http://mocked.example/*", "response": {"status": 418, "body": "mock"}})
    assert page.data(f"{PAGE}/navigate", {"url": "http://mocked.example/x"})["status"] == 418
    assert get(page, f"{PAGE}/text")["data"] == "mock"
    assert any(one["status"] == 418 for one in get(page, "/v1/browser/network/requests", filter="mocked.example")["data"])
    page.data("/v1/browser/network/export_har", {"save_path": "/tmp/all.har"})
    assert json.loads(page.data("/v1/file/read", {"file": "/tmp/all.har"})["content"])["log"]["entries"]
    page.data("/v1/browser/network/route", {"url_pattern": "http://mocked.example/*"}, method="DELETE")
    assert not page.post(f"{PAGE}/navigate", {"url": "http://mocked.example/x", "timeout": 10}).json()["success"]
    page.data("/v1/browser/network/headers", {"headers": {"X-A": "b"}})
    page.data("/v1/browser/network/headers", {"headers": {}})
    page.data("/v1/browser/network/scoped_headers", {"origin": "http://mocked.example", "headers": {}})


def test_there_is_no_captcha(page):
    assert get(page, "/v1/browser/captcha/detect")["data"]["detected"] is False
    assert page.data("/v1/browser/captcha/wait", {"timeout": 5}) == {"resolved": True}


@pytest.mark.parametrize("path, body, told", [("wait", {"type": "selector", "selector": "#nosuch", "timeout": 0.5}, "imeout"),
                                              ("wait", {"type": "url", "url": "**/nosuch", "timeout": 0.5}, "imeout"),
                                              ("click", {"selector": "button, a", "timeout": 1}, "strict"), ("evaluate", {"expression": "syntax error here"}, "SyntaxError"),
                                              ("navigate", {"url": "nonsense://x"}, "")])
def test_what_does_not_come_is_success_false_with_the_reason(page, path, body, told):
    answer = page.post(f"{PAGE}/{path}", body).json()
    assert answer["success"] is False and told in answer["message"]


@pytest.mark.parametrize("path, body", [("click", {}), ("click", {"selector": "a", "button": "fourth"}), ("fill", {"text": "x"}), ("hot_key", {"keys": []}),
                                        ("navigate", {}), ("navigate", {"url": "about:blank", "wait_until": "never"}), ("wait", {"type": "nothing"}),
                                        ("scroll", {"direction": "sideways"}), ("record", {"fps": 0}), ("evaluate", {"expression": 1})])
def test_what_no_page_could_do_is_422(page, path, body):
    assert page.post(f"{PAGE}/{path}", body).status_code == 422


def test_a_film_of_the_page_is_written(page):
    if shutil.which("ffmpeg") is None:
        pytest.skip("ffmpeg is not installed")
    done = page.data(f"{PAGE}/record", {"duration": 1, "save_path": "/tmp/page.mp4"})
    assert done["save_path"] == "/tmp/page.mp4" and page.bash("head -c 12 /tmp/page.mp4 | tail -c 8")["stdout"].startswith("ftyp")


def test_the_driver_has_no_more_than_the_sessions_rights(native, page):
    value(page, "1")
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if b"page_driver.js" in (entry / "cmdline").read_bytes() and native.owns(int(entry.name)):
                break
        except OSError:
            continue
    else:
        pytest.fail("no driver runs")
    status = (entry / "status").read_text()
    assert "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status
    assert os.stat(entry).st_uid != 0
