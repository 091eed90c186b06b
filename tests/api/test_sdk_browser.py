"""The official SDK's methods for browser and display, every one, unmodified."""
import pytest
import sdk
from screen import needs_desktop

pytest.importorskip("agent_sandbox", reason="the SDK is not installed (scripts/test does it)")
from agent_sandbox import Resolution, RestartRequest, RouteResponseModel  # noqa: E402
from agent_sandbox.core.api_error import ApiError  # noqa: E402
from agent_sandbox.browser import types as actions  # noqa: E402

pytestmark = needs_desktop
AREAS = ("browser", "browser_page", "browser_tabs", "browser_cookies", "browser_network", "browser_state", "browser_captcha", "display")
FORM = """<title>Form</title><style>body{height:3000px}</style><h1>Heading</h1><input id=name><input type=checkbox id=agree>
<select id=size><option value=s>Small</option><option value=l>Large</option></select><input type=file id=file>
<button id=go onclick="document.title='clicked'; console.log('said')" onmouseover="this.dataset.over=1">Go</button>"""


@pytest.fixture(scope="module")
def areas(api, contract):
    sandbox = sdk.sandbox_of(api)
    return {area: sdk.Recorded(getattr(sandbox, area), area, contract) for area in AREAS}


@pytest.fixture(scope="module")
def place(api):
    name = api.bash("mktemp -d -p ~ sdk-XXXXXX")["stdout"].strip()
    api.data("/v1/file/write", {"file": f"{name}/form.html", "content": FORM})
    yield name
    api.bash(f"rm -rf {name}")


@pytest.fixture
def page(areas, place):
    pages = areas["browser_page"]
    assert pages.navigate(url=f"file://{place}/form.html", wait_until="load").data["title"] == "Form"
    return pages


def value(page, expression):
    return page.evaluate(expression=expression).data


def test_the_browser_and_its_screen(areas):
    browser = areas["browser"]
    info = browser.get_info().data
    assert (info.viewport.width, info.viewport.height) == (1280, 1024) and info.cdp_url.startswith("ws") and "Chrome" in info.user_agent
    assert b"".join(browser.screenshot())[:4] == b"\x89PNG"
    try:
        assert browser.set_config(resolution=Resolution(width=1024, height=768)).success
        assert browser.get_info().data.viewport.width == 1024
    finally:
        browser.set_config(resolution=Resolution(width=1280, height=1024))
    with pytest.raises(ApiError, match="404"):  # none is in force
        browser.get_proxy_pac()
    assert browser.restart(request=RestartRequest(mode="soft")).success


@pytest.mark.parametrize("action", [
    actions.Action_MoveTo(x=5, y=6), actions.Action_MoveRel(x_offset=1, y_offset=1), actions.Action_Click(x=600, y=600), actions.Action_MouseDown(),
    actions.Action_MouseUp(), actions.Action_RightClick(x=600, y=600), actions.Action_Press(key="escape"), actions.Action_DoubleClick(x=600, y=600),
    actions.Action_DragTo(x=610, y=610), actions.Action_DragRel(x_offset=5, y_offset=5), actions.Action_Scroll(dx=0, dy=-1), actions.Action_Typing(text="a"),
    actions.Action_KeyDown(key="shift"), actions.Action_KeyUp(key="shift"), actions.Action_Hotkey(keys=["ctrl", "a"]), actions.Action_Wait(duration=0.01),
], ids=lambda action: action.action_type)
def test_each_action(areas, page, action):
    done = areas["browser"].execute_action(request=action)
    assert done.status == "success" and done.action_performed == action.action_type


def test_a_form_by_its_elements(page, place):
    assert page.fill(selector="#name", text="filled").success and value(page, "document.getElementById('name').value") == "filled"
    assert page.check(selector="#agree").success and value(page, "agree.checked") is True
    assert page.uncheck(selector="#agree").success and value(page, "agree.checked") is False
    assert page.select_option(selector="#size", value="l").success and value(page, "size.value") == "l"
    assert page.upload_file(selector="#file", files=[f"{place}/form.html"]).success and value(page, "file.files[0].name") == "form.html"
    assert page.hover(selector="#go").success and value(page, "go.dataset.over") == "1"
    assert page.fill_form(items=[{"selector": "#name", "value": "again"}]).success
    assert page.click(selector="#go").success and value(page, "document.title") == "clicked"


def test_keys(page):
    page.click(selector="#name")
    assert page.type_text(text="typed").success and page.press_key(key="Backspace").success
    assert value(page, "document.getElementById('name').value") == "type"
    assert page.hot_key(keys=["Control", "a"]).success and page.press_key(key="Delete").success
    assert value(page, "document.getElementById('name').value") == ""


def test_scrolling(page):
    assert page.scroll(direction="down", amount=300).success and value(page, "scrollY > 0") is True
    assert page.scroll_to(x=0, y=1000).success and value(page, "scrollY") == 1000
    assert page.scroll_to_element(selector="h1").success and value(page, "scrollY < 1000") is True


def test_reading(page, place):
    assert "Heading" in page.get_text().data and "<h1>" in page.get_html().data and "Heading" in page.get_markdown().data["markdown"]
    assert {"input", "button"} <= {element["tag"] for element in page.get_elements().data}
    assert page.find_text(keyword="Heading").data
    page.click(selector="#go")
    assert "said" in str(page.get_console().data)
    assert page.export_console(save_path=f"{place}/console.json").success
    assert b"".join(page.screenshot(format="png"))[:4] == b"\x89PNG"
    assert page.wait(type="selector", selector="#go").success


def test_history(page, place):
    page.navigate(url="data:text/html,<title>second</title>")
    assert page.back().success and value(page, "document.title") == "Form"
    assert page.forward().success and value(page, "document.title") == "second"
    assert page.reload().success


def test_tabs(areas, page):
    tabs = areas["browser_tabs"]
    assert tabs.create(url="data:text/html,<title>another</title>").success
    listed = tabs.list().data
    at = next(i for i, tab in enumerate(listed) if "another" in tab["url"])
    assert tabs.activate(at).success and tabs.close(at).success
    assert len(tabs.list().data) == len(listed) - 1


def test_cookies_and_state(areas, page, place):
    cookies, state = areas["browser_cookies"], areas["browser_state"]
    assert cookies.set_cookies(cookies=[{"name": "n", "value": "v", "url": "http://sdk.test/"}]).success
    assert [one["value"] for one in cookies.get_cookies(urls="http://sdk.test/").data] == ["v"]
    assert state.save(path=f"{place}/state.json").success
    assert cookies.clear_cookies().success and cookies.get_cookies().data == []
    assert state.load(path=f"{place}/state.json").success
    assert [one["value"] for one in cookies.get_cookies(urls="http://sdk.test/").data] == ["v"]


def test_network(areas, page, place):
    network = areas["browser_network"]
    try:
        assert network.add_route(url_pattern="http://sdk.test/*", response=RouteResponseModel(status=200, body="<title>routed</title>", content_type="text/html")).success
        assert network.set_headers(headers={"X-Of-All": "1"}).success
        assert network.set_scoped_headers(origin="http://sdk.test", headers={"X-Of-One": "1"}).success
        assert page.navigate(url="http://sdk.test/a").data["title"] == "routed"
        assert [one["url"] for one in network.get_requests(filter="sdk.test", limit=1).data] == ["http://sdk.test/a"]
        assert network.export_har(save_path=f"{place}/requests.har").success
    finally:
        network.set_headers(headers={})
        assert network.remove_route(url_pattern="http://sdk.test/*").success


def test_captchas(areas, page):
    captcha = areas["browser_captcha"]
    assert captcha.detect().success
    assert captcha.wait(timeout=1, poll_interval=0.2).success


def test_films(areas, page, place, api):
    assert page.record(action="start", save_path=f"{place}/page.webm").success
    assert page.record(action="stop").success
    display = areas["display"]
    assert display.record(action="start", save_path=f"{place}/screen.mp4", fps=5).success
    assert display.record(action="stop").success
    assert api.bash(f"head -c 64 {place}/screen.mp4 | grep -ac ftyp")["stdout"] == "1\n"


def test_every_method_was_called(areas):
    assert {area: one.uncalled() for area, one in areas.items() if one.uncalled()} == {}


def test_every_checked_answer_was_valid(contract):
    served = {name for name in contract.checked if name.split(" ")[1].startswith(("/v1/browser", "/v1/display"))}
    assert len(served) >= 50
