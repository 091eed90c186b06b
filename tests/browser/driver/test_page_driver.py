"""The page driver with a real Chromium: each operation has its effect in a page."""
import json
import re
import subprocess

import driver_process
import pytest


def value(page, expression):
    return page("evaluate", expression=expression).data


def test_both_tables_of_operations_are_the_same():
    folder, problem = driver_process.installed()
    if problem:
        pytest.skip(problem)
    header = (driver_process.ROOT / "agent" / "frames" / "page_protocol.h").read_text()
    rows = dict(re.findall(r'\{PageOp::\w+,\s*"(\w+)",\s*"([a-z_ ]*)"\}', header))
    script = "const {kOperations} = require('./protocol.js');" \
             "console.log(JSON.stringify(Object.entries(kOperations).map(([name, row]) => [name, Object.keys(row.members).join(' ')])))"
    told = json.loads(subprocess.run([driver_process.node(), "-e", script], cwd=folder, capture_output=True, text=True, check=True).stdout)
    assert dict(told) == rows and [name for name, _ in told] == list(rows)


# Navigation

def test_navigate_answers_with_url_title_and_status(page):
    address = page.site.put("<title>Hello</title>", status=203)
    assert page("navigate", url=address).data == {"url": address, "title": "Hello", "status": 203}


def test_navigate_to_no_address_is_refused_with_words(page):
    refused = page("navigate", url="nonsense")
    assert not refused["ok"] and "invalid URL" in refused["message"] and "\n" not in refused["message"]


def test_navigate_can_be_content_with_less_than_load(page):
    address = page.site.put(f'<title>Early</title><img src="{page.site.url("/hang")}">')
    assert page("navigate", url=address, wait_until="domcontentloaded").data["title"] == "Early"


def test_back_and_forward_go_through_the_history(page):
    first, second = page.show("<title>One</title>"), page.show("<title>Two</title>")
    assert page("back").data["url"] == first
    assert page("forward").data["url"] == second
    assert page("forward")["message"] == "there is no page to go forward to"


def test_reload_loads_the_page_again(page):
    page.show("<script>name = name + 'x'; document.title = name</script>")
    before = value(page, "document.title")
    assert page("reload").data["title"] == before + "x"


# Input

BUTTONS = """<title>-</title><button id=a onclick="document.title='a' + event.detail" oncontextmenu="document.title='menu'; return false">A</button>
<div id=far style="margin-top:3000px" onmouseover="document.title='over'">far</div>"""


def test_click_by_selector_clicks_the_element(page):
    page.show(BUTTONS)
    assert page("click", selector="#a").data["title"] == "a1"


def test_click_counts_and_uses_other_buttons(page):
    page.show(BUTTONS)
    assert page("click", selector="#a", click_count=2).data["title"] == "a2"
    assert page("click", selector="#a", button="right").data["title"] == "menu"


def test_click_by_coordinates_hits_what_is_there(page):
    page.show(BUTTONS)
    box = value(page, "(({x, y}) => ({x: x + 4, y: y + 4}))(a.getBoundingClientRect())")
    assert page("click", **box).data["title"] == "a1"


def test_click_out_of_the_window_is_refused_with_its_size(page):
    page.show(BUTTONS)
    size = value(page, "`${innerWidth} x ${innerHeight}`")
    assert size in page("click", x=99999, y=1)["message"]


def test_click_on_nothing_or_many_fails_with_the_first_line_of_playwright(page):
    page.show("<b>one</b><b>two</b>")
    nothing = page("click", selector="#none", timeout_ms=1500)
    assert "Timeout" in nothing["message"] and nothing["timeout"] and "\n" not in nothing["message"]
    assert "strict mode violation" in page("click", selector="b")["message"]


def test_click_without_a_target_is_invalid(page):
    assert page("click")["invalid"]


def test_hover_moves_the_mouse_over_an_element_that_is_scrolled_to(page):
    page.show(BUTTONS)
    assert page("hover", selector="#far").data["title"] == "over"


FORM = """<input id=t><textarea id=area></textarea><input type=checkbox id=c><input type=radio name=r id=r1><select id=s><option value=1>One</option>
<option value=2>Two</option></select><input type=file id=f multiple><div id=e contenteditable></div>"""


def test_fill_replaces_the_content_of_a_field(page):
    page.show(FORM)
    page("fill", selector="#t", text="old")
    assert page("fill", selector="#t", text="grün 🙂")["ok"]
    assert value(page, "t.value") == "grün 🙂"


def test_type_goes_to_what_has_the_focus(page):
    page.show(FORM)
    page("click", selector="#area")
    assert page("type", text="ab\ncd", delay=1)["ok"]
    assert value(page, "area.value") == "ab\ncd"


def test_type_ends_with_its_operation(page):
    page.show(FORM)
    page("click", selector="#t")
    assert page("type", text="x" * 1000, delay=100, timeout_ms=1000)["timeout"]
    written = value(page, "t.value.length")
    assert 0 < written < 1000
    page("wait", type="timeout", duration_ms=300)
    assert value(page, "t.value.length") == written


def test_press_key_takes_names_in_any_case(page):
    page.show("<body onkeydown='document.title += event.key + event.ctrlKey'>")
    for key in ("enter", "ESC", "a", "ctrl+b"):
        assert page("press_key", key=key)["ok"], key
    assert value(page, "document.title") == "EnterfalseEscapefalseafalseControltruebtrue"


def test_hot_key_presses_keys_together(page):
    page.show(FORM)
    page("fill", selector="#t", text="gone")
    page("click", selector="#t")
    assert page("hot_key", keys=["Ctrl", "a"])["ok"] and page("hot_key", keys=["delete"])["ok"]
    assert value(page, "t.value") == ""
    assert "Unknown key" in page("hot_key", keys=["nokey"])["message"]


@pytest.mark.parametrize("how", [{"value": "2"}, {"label": "Two"}, {"index": 1}])
def test_select_option_selects_by_value_label_and_index(page, how):
    page.show(FORM)
    assert page("select_option", selector="#s", **how).data == {"selected": ["2"]}
    assert value(page, "s.value") == "2"


def test_check_and_uncheck_set_a_box(page):
    page.show(FORM)
    page("check", selector="#c")
    assert value(page, "c.checked") is True
    page("uncheck", selector="#c")
    assert value(page, "c.checked") is False


def test_upload_file_by_path_is_read_by_the_browser(page, tmp_path):
    file = page.chromium.downloads / "up.txt"
    file.write_text("content")
    page.show(FORM)
    assert page("upload_file", selector="#f", files=[str(file)])["ok"]
    assert value(page, "(async () => f.files[0].name + await f.files[0].text())()") == "up.txtcontent"
    file.unlink()
    assert not page("upload_file", selector="#f", files=["/nonexistent"], timeout_ms=3000)["ok"]


def test_upload_file_takes_bytes_of_the_body(page):
    page.show(FORM)
    contents = [{"name": "a.bin", "type": "text/x", "size": 2}, {"name": "b.bin", "size": 3}]
    assert page("upload_file", body=b"xxyyy", selector="#f", contents=contents).data == {"files": 2}
    assert value(page, "(async () => [f.files[0].type, f.files[1].name, await f.files[1].text()])()") == ["text/x", "b.bin", "yyy"]
    assert page("upload_file", body=b"xx", selector="#f", contents=[{"name": "a", "size": 3}])["invalid"]


def test_fill_form_fills_by_type_and_goes_on_after_an_error(page):
    page.show(FORM)
    items = [{"selector": "#t", "value": "x"}, {"selector": "#c", "value": True}, {"selector": "#nosuch", "value": "y"},
             {"selector": "#s", "value": "2"}, {"selector": "#e", "value": "rich"}]
    done = page("fill_form", items=items).data
    assert [one["success"] for one in done["items"]] == [True, True, False, True, True] and done["filled"] == 4
    assert done["items"][2]["error"] and value(page, "[t.value, c.checked, s.value, e.textContent]") == ["x", True, "2", "rich"]


def test_scroll_turns_the_wheel(page):
    page.show("<body style='margin:0; width:5000px; height:5000px'>")
    page("hover", x=100, y=100)
    assert page("scroll", direction="down", amount=400).data == {"x": 0, "y": 400}
    assert page("scroll", direction="right", amount=200).data == {"x": 200, "y": 400}
    assert page("scroll", direction="sideways")["invalid"]


def test_scroll_to_and_to_an_element(page):
    page.show(BUTTONS)
    assert page("scroll_to", y=700).data == {"x": 0, "y": 700}
    assert page("scroll_to_element", selector="#far").data["y"] > 1000


# Tabs

def test_tabs_are_made_listed_activated_and_closed(page):
    address = page.site.put("<title>Second</title>")
    assert page("tab_create", url=address).data == {"index": 1, "url": address, "title": "Second", "active": True}
    assert [tab["active"] for tab in page("tabs").data] == [False, True]
    assert page("tab_activate", index=0).data["active"]
    assert page("html")["ok"] and [tab["active"] for tab in page("tabs").data] == [True, False]
    assert page("tab_close", index=1).data["closed"] and len(page("tabs").data) == 1


def test_the_last_tab_is_emptied_instead_of_closed(page):
    page.show("<title>Last</title>")
    assert page("tab_close", index=0).data["closed"] is False
    assert [tab["url"] for tab in page("tabs").data] == ["about:blank"]


def test_a_tab_that_is_not_there_is_named(page):
    assert page("tab_close", index=7)["message"] == "there is no tab 7: 1 is open"


def test_a_tab_that_a_click_opens_is_the_current_one_and_told(page):
    target = page.site.put("<title>Popup</title>")
    page.show(f'<a href="{target}" target=_blank>go</a>')
    assert f"a new tab was opened: 1, '{target}'" in page("click", selector="a").hint
    assert page("wait", type="load")["ok"] and value(page, "document.title") == "Popup"


def test_a_tab_that_the_page_closes_is_told(page):
    page.show("<button onclick=\"window.open('about:blank').close()\">x</button>")
    assert "a tab was closed" in (page("click", selector="button").hint + page("html").hint)


# Cookies, state, network

def test_cookies_are_set_read_and_cleared(page):
    page("cookies_clear")
    address = page.show("x")
    assert page("cookies_set", cookies=[{"name": "n", "value": "v", "url": address, "sameSite": "lax", "unknown": 1}]).data == {"set": 1}
    assert value(page, "document.cookie") == "n=v"
    assert [one["value"] for one in page("cookies", urls=[address]).data] == ["v"] and page("cookies", urls=["http://example.org/"]).data == []
    assert page("cookies_clear")["ok"] and page("cookies").data == []


def test_a_cookie_without_a_place_is_invalid(page):
    assert page("cookies_set", cookies=[{"name": "n", "value": "v"}])["invalid"]


def test_state_is_saved_and_loaded(page):
    address = page.show("x")
    page("evaluate", expression="localStorage.setItem('k', 'kept'); document.cookie = 'c=1'")
    saved = page("state_save")
    assert saved.data == {"cookies": 1, "origins": 1} and json.loads(saved.body)["origins"][0]["localStorage"]
    page("evaluate", expression="localStorage.clear(); document.cookie = 'c=; max-age=0'")
    assert page("state_load", body=saved.body)["ok"]
    assert page("navigate", url=address)["ok"] and value(page, "localStorage.getItem('k') + document.cookie") == "keptc=1"
    assert page("state_load", body=b"no json")["message"] == "the file is not JSON"
    page("state_load", body=b"{}")


def test_state_is_loaded_from_a_file(page, tmp_path):
    page.show("x")
    file = tmp_path / "state.json"
    file.write_text(json.dumps({"cookies": [{"name": "f", "value": "1", "domain": "127.0.0.1", "path": "/"}], "origins": []}))
    assert page("state_load", path=str(file))["ok"] and [one["name"] for one in page("cookies").data] == ["f"]
    assert "ENOENT" in page("state_load", path=str(tmp_path / "none"))["message"]
    page("cookies_clear")


def test_headers_go_with_every_request_until_they_are_taken_back(page):
    assert page("headers", headers={"X-Test": "yes"})["ok"]
    path = page.show("x").rsplit("/", 1)[1]
    assert page.site.headers_of(f"/{path}")["X-Test"] == "yes"
    page("headers", headers={})
    page("reload")
    assert "X-Test" not in page.site.headers_of(f"/{path}")
    assert page("headers", headers={"bad name": "x"})["invalid"]


def test_scoped_headers_go_to_their_origin_alone(page):
    assert page("scoped_headers", origin=page.site.url(""), headers={"X-Scoped": "1"})["ok"]
    page.site.put("inner", "/elsewhere")
    page.show(f'<iframe src="{page.site.other("/elsewhere")}"></iframe>', "/scoped")
    assert page.site.headers_of("/scoped")["X-Scoped"] == "1" and "X-Scoped" not in page.site.headers_of("/elsewhere")
    page("scoped_headers", origin=page.site.url(""), headers={})
    page("reload")
    assert "X-Scoped" not in page.site.headers_of("/scoped")


def test_a_route_mocks_or_aborts_until_it_is_removed(page):
    page.site.put("real", "/api")
    page.show("x")
    fetched = "fetch('/api').then((r) => r.text().then((t) => r.status + t), () => 'failed')"
    assert page("route_add", url_pattern="**/api", response={"status": 418, "body": "mock", "headers": {}, "content_type": "text/plain"})["ok"]
    assert value(page, fetched) == "418mock"
    assert page("route_add", url_pattern="**/api", abort=True)["ok"] and value(page, fetched) == "failed"
    assert page("route_remove", url_pattern="**/api")["ok"] and value(page, fetched) == "200real"
    assert page("route_remove", url_pattern="**/api")["message"] == "there is no route for '**/api'"


def test_requests_are_listed_and_exported_as_har(page):
    address = page.show("<script>fetch('/nothing-here').then((r) => r.text())</script>")
    page("wait", type="network_idle")
    listed = page("requests", filter="/nothing-here", limit=1).data[0]
    assert (listed["method"], listed["type"], listed["status"]) == ("GET", "fetch", 404) and listed["duration_ms"] > 0
    exported = page("export_har")
    har = json.loads(exported.body)["log"]
    assert har["version"] == "1.2" and address in [entry["request"]["url"] for entry in har["entries"]]
    assert exported.data["count"] == len(har["entries"])
