"""The tools browser_* and those of the screen over MCP, each once, on a page in the workspace's browser."""
import base64
import json

import pytest
from conftest import eventually
from mcp_client import Client
from screen import needs_desktop
from test_mcp import BROWSER

pytestmark = needs_desktop
PAGE = """<title>tools</title><style>body {height: 4000px}</style>
<button id=press onclick="document.title = 'pressed'">Press me</button>
<input id=field value=old><select id=list><option value=a>Apple</option><option value=b>Berry</option></select>
<p id=hovered onmouseover="textContent = 'hovered'" style="cursor: pointer">Hover me</p>
<a href="#there">A link</a> <a id=save download=mcp.txt href="data:text/plain,saved">Save it</a>"""
USED = set()


class Tools(Client):
    def call(self, name, /, **arguments):
        USED.add(name)
        return super().call(name, **arguments)

    def value(self, script):
        return json.loads(self.text("browser_evaluate", script=script).removeprefix("Execution result:\n"))


@pytest.fixture(scope="module")
def tools(api):
    return Tools(api)


@pytest.fixture
def page(api, tools):
    home = api.http.get("/v1/sandbox").json()["home_dir"]
    api.data("/v1/file/write", {"file": f"{home}/tools.html", "content": PAGE})
    address = f"file://{home}/tools.html"
    shown = tools.text("browser_navigate", url=address)
    assert shown.startswith(f"Navigated to {address}\n") and "Press me</button>" in shown
    yield address
    api.bash("rm -f ~/tools.html ~/Downloads/mcp*")


def index_of(tools, text):
    [line] = [line for line in tools.text("browser_get_clickable_elements").splitlines() if text in line]
    return int(line[1 : line.index("]")])


def picture(result):
    assert result["isError"] is False, result
    [image] = [part for part in result["content"] if part["type"] == "image"]
    data = base64.b64decode(image["data"])
    assert data.startswith(b"\x89PNG") and image["mimeType"] == "image/png"
    return int.from_bytes(data[16:20]), int.from_bytes(data[20:24])


def test_elements_are_clicked_hovered_filled_and_chosen_by_index_and_selector(tools, page):
    assert tools.text("browser_click", index=index_of(tools, "Press me")).startswith("Clicked element: index")
    assert tools.value("() => document.title") == "pressed"
    tools.text("browser_hover", selector="#hovered")
    assert tools.value("document.querySelector('#hovered').textContent") == "hovered"
    field = index_of(tools, "value=old")
    tools.text("browser_form_input_fill", index=field, value=" and new")
    assert tools.value("field.value") == "old and new"
    tools.text("browser_form_input_fill", selector="#field", value="new", clear=True)
    assert tools.value("field.value") == "new"
    tools.text("browser_select", selector="#list", value="b")
    assert tools.value("list.value") == "b"
    tools.text("browser_select", index=index_of(tools, "<select"), value="a")
    assert tools.value("list.value") == "a"
    tools.text("browser_click", selector="#field")
    tools.text("browser_press_key", key="Backspace")
    assert len(tools.value("field.value")) == 2
    for name, arguments in (("browser_click", {}), ("browser_hover", {}), ("browser_form_input_fill", {"value": "x"}), ("browser_select", {"value": "x"})):
        result = tools.call(name, **arguments)
        assert result["isError"] and "selector or index" in result["content"][0]["text"]
    assert tools.call("browser_click", index=9999)["isError"] and tools.call("browser_click", selector="#")["isError"]


def test_the_page_is_read_scrolled_and_left(tools, page):
    assert "Press me" in tools.text("browser_get_text") and tools.text("browser_get_markdown").startswith("tools\n")
    links = tools.call("browser_read_links")["structuredContent"]["links"]
    assert {"text": "A link", "href": "#there"} in links
    tools.text("browser_scroll", amount=500)
    assert tools.value("() => scrollY") > 0
    tools.text("browser_scroll")
    assert tools.value("() => scrollY + innerHeight >= document.documentElement.scrollHeight - 2")
    tools.text("browser_scroll", amount=-400)
    tools.text("browser_navigate", url="about:blank")
    assert tools.text("browser_go_back") == "Navigated back" and tools.value("document.title") == "tools"
    assert tools.text("browser_go_forward") == "Navigated forward" and tools.value("location.href") == "about:blank"
    refused = tools.call("browser_navigate", url="file:///no/such/file")
    assert refused["isError"] and refused["content"][0]["text"]
    assert tools.call("browser_evaluate", script="() => { throw new Error('mine') }")["isError"]


def test_pictures_of_the_page_of_an_element_and_for_a_vision_model(tools, page):
    window = picture(tools.call("browser_screenshot", name="one"))
    assert picture(tools.call("browser_vision_screen_capture")) == window
    assert picture(tools.call("browser_screenshot", fullPage=True))[1] > window[1]
    box = tools.value("(() => { const r = press.getBoundingClientRect(); return [r.x, r.y, r.width, r.height] })()")
    by_selector = picture(tools.call("browser_screenshot", selector="#press"))
    assert by_selector == picture(tools.call("browser_screenshot", index=index_of(tools, "Press me"))) and by_selector < window
    assert abs(by_selector[0] - box[2]) <= 2 and abs(by_selector[1] - box[3]) <= 2
    assert tools.call("browser_screenshot", index=9999)["isError"]
    tools.text("browser_vision_screen_click", x=box[0] + box[2] / 2, y=box[1] + box[3] / 2)
    assert tools.value("document.title") == "pressed"
    tools.value("document.title = 'again'")
    width, height = tools.value("[innerWidth, innerHeight]")
    tools.text("browser_vision_screen_click", x=1000 * (box[0] + 5) / width, y=1000 * (box[1] + 5) / height, factors=[1000, 1000])
    assert tools.value("document.title") == "pressed"
    assert tools.call("browser_vision_screen_click", x=1, y=1, factors=[0])["isError"]


def test_tabs(tools, page):
    before = tools.call("browser_tab_list")["structuredContent"]["tabList"]
    assert tools.text("browser_new_tab", url=page) == f"Opened new tab with URL: {page}"
    listed = tools.call("browser_tab_list")
    tabs = listed["structuredContent"]["tabList"]
    assert len(tabs) == len(before) + 1 and [tab["active"] for tab in tabs] == [False] * len(before) + [True]
    assert listed["content"][0]["text"].startswith(f"Current Tab: [{len(before)}] tools\nAll Tabs:\n")
    assert tools.text("browser_switch_tab", index=0).startswith("Switched to tab 0")
    assert tools.call("browser_tab_list")["structuredContent"]["tabList"][0]["active"]
    assert tools.call("browser_switch_tab", index=99)["isError"]
    tools.text("browser_switch_tab", index=len(before))
    assert tools.text("browser_close_tab") == f"Closed current tab [{len(before)}]"
    assert len(tools.call("browser_tab_list")["structuredContent"]["tabList"]) == len(before)
    tools.text("browser_new_tab")
    assert tools.text("browser_close").startswith("Closed browser")
    [left] = tools.call("browser_tab_list")["structuredContent"]["tabList"]
    assert left["url"] == "about:blank"


def test_downloads_are_listed(tools, page):
    tools.text("browser_click", selector="#save")

    def done():  # the browser is the leg's: it also lists what other files of tests downloaded
        listed = tools.call("browser_get_download_list")["structuredContent"]["list"]
        return [one for one in listed if one["suggestedFilename"] == "mcp.txt" and one["state"] == "completed"]
    [one] = eventually(done)
    assert one["path"].endswith("Downloads/mcp.txt") and one["bytes"] == 5


def test_the_screen(api, tools, page):
    assert picture(tools.call("sandbox_browser_screenshot"))[0] >= 1024
    info = tools.call("sandbox_get_browser_info")["structuredContent"]
    assert info["cdp_url"].startswith("ws://") and info["viewport"]["width"] >= 1024
    moved = tools.call("sandbox_browser_execute_action", action_type="MOVE_TO", x=100, y=100)
    assert moved["isError"] is False
    beside = tools.call("sandbox_browser_execute_action", action_type="MOVE_TO", x=100_000, y=100)
    assert beside["isError"]
    assert tools.call("sandbox_browser_execute_action", action_type="DANCE")["isError"]


def test_names_of_older_images_work(tools, page):
    for name in ("sandbox_browser_get_text", "sandbox_browser_tab_list", "sandbox_browser_get_info", "sandbox_browser_go_back"):
        assert tools.call(name)["isError"] is False, name


def test_a_person_who_has_the_browser_alone_is_not_disturbed(api, tools, page):
    api.data("/v1/browser/takeover", {"mode": "exclusive", "seconds": 60})
    try:
        for name in ("browser_get_text", "browser_screenshot", "sandbox_browser_screenshot"):
            held = tools.call(name)
            assert held["isError"] and "A person has the browser" in held["content"][0]["text"], (name, held)
    finally:
        api.http.delete("/v1/browser/takeover")
    assert tools.call("browser_get_text")["isError"] is False


def test_every_tool_was_called():
    assert set(BROWSER) <= USED
