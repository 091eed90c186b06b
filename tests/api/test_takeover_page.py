"""The page /vnc/ in a real Chromium: a person sees the screen there, uses it, and gives it back."""
import os
import signal

import pytest
from conftest import eventually
from npm import installed
from screen import act, copy_on_screen, needs_desktop, open_field, take_over, typed_anew

pytest.importorskip("selenium.webdriver", reason="python3-selenium is not installed")
from selenium.webdriver import ActionChains, Keys  # noqa: E402
from test_desktop import SIZES, processes_of  # noqa: E402

pytestmark = needs_desktop


class Page:
    def __init__(self, driver, api):
        self.driver, self.api = driver, api

    def open(self, address):
        self.driver.get(address)
        eventually(self.connected)
        return self

    def connected(self):
        return self.run("return document.documentElement.classList.contains('noVNC_connected')")

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def text(self, name):
        return self.run("return document.getElementById(arguments[0]).textContent", name)

    def click(self, name):
        self.run("document.getElementById(arguments[0]).click()", name)

    def canvas(self):
        return self.driver.find_element("css selector", "#screen canvas")

    def type(self, text):
        chain = ActionChains(self.driver).click(self.canvas())
        for letter in text:
            chain.send_keys(letter).pause(0.03)
        chain.perform()

    def press(self, text):
        """As the keyboard of another layout does: each character by one of its keys."""
        for i, letter in enumerate(text):
            for kind in ("keyDown", "keyUp"):
                self.key(kind, letter, f"Key{chr(65 + i % 26)}")

    def key(self, kind, key, code, modifiers=0):
        self.driver.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": kind, "key": key, "code": code, "modifiers": modifiers})

    def erase(self):
        """Control and a, then Delete."""
        self.key("keyDown", "Control", "ControlLeft", 2)
        for kind in ("keyDown", "keyUp"):
            self.key(kind, "a", "KeyA", 2)
        self.key("keyUp", "Control", "ControlLeft")
        for kind in ("keyDown", "keyUp"):
            self.key(kind, "Delete", "Delete")


@pytest.fixture
def page(browser, api):
    browser.delete_all_cookies()
    one = Page(browser, api)
    yield one
    # A connection that is refused, the question for a ticket before the key was given, and what was on its way when a server was killed.
    told = ("WebSocket", "/tickets - Failed to load resource: the server responded with a status of 401", "Got data while disconnected")
    faults = [line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE" and not any(t in line["message"] for t in told)]
    api.http.delete("/v1/browser/takeover")
    browser.get("about:blank")  # else the page asks for its own size again
    api.http.post("/v1/browser/config", json={"resolution": {"width": 1280, "height": 1024}})
    assert not faults, "the console has errors"


@pytest.fixture
def field(api):
    return open_field(api)


def test_a_person_sees_clicks_and_types(page, api, field):
    page.open(api.http.get("/v1/browser/info").json()["data"]["vnc_url"])
    assert page.text("state") == "Connected" and "ticket" not in page.driver.current_url
    page.type("Hello, World: 42 (tabs & \"quotes\")!")
    eventually(lambda: field() == "Hello, World: 42 (tabs & \"quotes\")!")


def test_a_person_types_what_the_screens_own_layout_lacks(page, api, field):
    text = "Grüße, Ελληνικά, Русский, 日本語"
    page.open(take_over(api)["url"]).canvas().click()
    eventually(lambda: typed_anew(page.erase, lambda: page.press(text + "!"), field) == text + "!")


def test_a_view_only_link_shows_and_does_nothing(page, api, field):
    page.open(take_over(api, view_only=True)["url"])
    assert page.text("state") == "Connected, view-only"
    page.run("document.querySelector('#screen canvas').focus()")
    page.type("not typed")
    assert page.run("return document.getElementById('copied').hidden")
    assert field() == ""


def test_text_is_copied_both_ways(page, api, field):
    page.open(take_over(api)["url"])
    copy_on_screen(api, "vom Schirm: 画面")
    eventually(lambda: page.run("return document.getElementById('text').value") == "vom Schirm: 画面")
    page.run("document.getElementById('text').value = 'zum Schirm: 日本語'")
    page.click("send")
    act(api, "HOTKEY", keys=["ctrl", "a"])

    def pasted():
        act(api, "HOTKEY", keys=["ctrl", "v"])
        return "zum Schirm: 日本語" in field()
    eventually(pasted)


@pytest.mark.parametrize("size", [(768, 1024), (1600, 900)], ids=["a tablet", "a wide window"])
def test_the_screen_takes_the_size_of_the_window(page, api, size):
    page.driver.set_window_size(*size)
    try:
        page.open(take_over(api)["url"])
        wanted = page.run("return [document.getElementById('screen').clientWidth, document.getElementById('screen').clientHeight]")

        def sizes():
            headers = api.http.get("/v1/browser/screenshot").headers
            return [int(headers[f"x-screen-{side}"]) for side in ("width", "height")]
        eventually(lambda: all(abs(is_ - should) <= 1 for is_, should in zip(sizes(), wanted)))
    finally:
        page.driver.set_window_size(1280, 900)


def test_the_page_shows_each_size_that_the_screen_takes(page, api):
    page.open(take_over(api)["url"] + "&resize=scale")
    for width, height in SIZES:
        assert api.http.post("/v1/browser/config", json={"resolution": {"width": width, "height": height}}).json()["success"]
        eventually(lambda: page.run("const c = document.querySelector('#screen canvas'); return [c.width, c.height]") == [width, height])


def test_the_page_connects_again_by_itself(page, native, api):
    page.open(take_over(api)["url"])
    [pid] = processes_of(native, "Xvnc")
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: not page.connected())
    eventually(page.connected, 60)


def test_an_exclusive_takeover_is_shown_and_given_back(page, api):
    page.open(take_over(api, mode="exclusive")["url"])
    eventually(lambda: "alone" in page.text("control"))
    assert api.http.get("/v1/browser/screenshot").json()["success"] is False
    page.click("back")
    eventually(lambda: "Programs" in page.text("control"))
    assert api.http.get("/v1/browser/screenshot").headers["content-type"] == "image/png"


def test_an_address_as_other_servers_have_it_works(page, api):
    ticket = api.post("/tickets", {}).json()["ticket"]
    page.open(f"{api.url}/vnc/index.html?autoconnect=true&ticket={ticket}&path=websockify%3Fticket%3D{ticket}")
    page.driver.delete_all_cookies()
    page.open(f"{api.url}/vnc/vnc.html?path=websockify%3Fticket%3D{api.post('/tickets', {}).json()['ticket']}")


def test_without_a_right_the_page_asks_for_the_key(page, api):
    page.driver.get(f"{api.url}/vnc/")
    eventually(lambda: page.run("return document.querySelector('#login input')"))
    assert not page.connected()


def test_axe_finds_no_serious_fault(page, api):
    page.open(take_over(api, mode="exclusive")["url"])
    eventually(lambda: "alone" in page.text("control"))
    page.click("copied")
    page.run((installed() / "node_modules/axe-core/axe.min.js").read_text())
    found = page.driver.execute_async_script("const done = arguments[0]; axe.run().then((r) => done(r.violations))")
    assert [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in found if v["impact"] in ("serious", "critical")] == []


def test_the_keys_of_the_page_are_not_the_screens(page, api, field):
    page.open(take_over(api)["url"])
    page.type("x")
    ActionChains(page.driver).key_down(Keys.SHIFT).send_keys(Keys.F6).key_up(Keys.SHIFT).perform()
    assert page.run("return document.activeElement.id") == "copied"
    eventually(lambda: field() == "x")
