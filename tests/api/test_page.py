"""The page at /caisson/, in a real Chromium: what it shows, that the keyboard suffices, and that nothing a session writes runs in it."""
import json
import re

import pytest
from conftest import eventually

pytest.importorskip("selenium.webdriver", reason="python3-selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

DENIED = "python3 -c 'import ctypes; ctypes.CDLL(None).mount(b\"a\", b\"/mnt\", b\"tmpfs\", 0, 0)'"
HOSTILE = "<img src=x onerror=document.title='owned'>"


class Page:
    def __init__(self, driver, api):
        self.driver = driver
        driver.get(f"{api.url}/caisson/?api_key={api.key}")
        eventually(lambda: "tier" in self.text("#boot"))

    def count(self, selector: str) -> int:
        return len(self.driver.find_elements(By.CSS_SELECTOR, selector))

    # The page redraws itself: what a node says is read in one step, not of a node that may be gone.
    def text(self, selector: str) -> str:
        return self.driver.execute_script("return [...document.querySelectorAll(arguments[0])].map(n => n.textContent).join('\\n')", selector)

    def attributes(self, selector: str, name: str) -> set:
        return set(self.driver.execute_script("return [...document.querySelectorAll(arguments[0])].map(n => n.getAttribute(arguments[1]))",
                                              selector, name))

    def press(self, *keys: str):
        self.driver.switch_to.active_element.send_keys(*keys)

    def focus(self, selector: str):
        self.driver.execute_script("document.querySelector(arguments[0]).focus()", selector)

    def choose(self, words: str):
        """A session by the keyboard alone."""
        eventually(lambda: words in self.text("#sessions"))
        self.focus("#sessions")
        self.press(Keys.HOME)
        for _ in range(self.count("#sessions li")):
            if words in self.text("#sessions [aria-selected=true]"):
                return
            self.press(Keys.ARROW_DOWN)
        assert words in self.text("#sessions [aria-selected=true]")


@pytest.fixture
def page(browser, api):
    page = Page(browser, api)
    yield page
    errors = [line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    # Of a session that the keyboard passes in the list, and that has ended since the list was made, nothing can be had. What is refused
    # without a login is asked for on purpose.
    allowed = r"/sessions/[^/]+/confinement - .* 404 | status of 401 |/v1/shell/ws' failed"
    assert not [e for e in errors if not re.search(allowed, e)], "the console has errors"


def test_the_key_leaves_the_address_and_no_storage_has_it(page, api):
    assert page.driver.current_url == f"{api.url}/caisson/#sessions"
    kept = page.driver.execute_script("return [document.cookie, sessionStorage.length, localStorage.length, document.referrer]")
    assert kept == ["", 0, 0, ""] and api.key not in page.driver.page_source


def test_without_a_login_it_asks_for_the_key(page, api):
    page.driver.delete_all_cookies()
    page.driver.get(f"{api.url}/caisson/")
    eventually(lambda: page.count("#login[open]"))
    page.press("wrong", Keys.ENTER)
    eventually(lambda: "wrong" in page.text("#login"))
    page.press(api.key, Keys.ENTER)
    eventually(lambda: "tier" in page.text("#boot"))
    assert not page.count("#login")


def test_logging_out_leaves_nothing_that_comes_in(page, api):
    page.driver.find_element(By.CSS_SELECTOR, "button.logout").click()
    eventually(lambda: page.count("#login[open]"))
    assert page.driver.get_cookies() == []


# A page of a preview has our origin: what its scripts may do is what these scripts try.
def test_a_script_of_our_origin_gets_neither_token_nor_api(page, api):
    tried = page.driver.execute_async_script("""
        const done = arguments[0];
        (async () => {
          const api = await fetch('/v1/sandbox', {credentials: 'include'});
          const forged = await fetch('/v1/sandbox', {headers: {'X-Caisson-Page': 'guessed'}});
          const document_ = await (await fetch('/caisson/', {headers: {Accept: 'text/html'}})).text();
          const cached = await (await fetch('/caisson/', {cache: 'force-cache'})).text();
          const socket = await new Promise((resolve) => {
            const s = new WebSocket(location.origin.replace('http', 'ws') + '/v1/shell/ws');
            s.onopen = () => resolve('open');
            s.onerror = () => resolve('refused');
          });
          return [api.status, forged.status, document_.includes('caisson-page" content'), cached.includes('caisson-page" content'), socket];
        })().then(done, (why) => done(String(why)));""")
    assert tried == [401, 401, False, False, "refused"]


def test_a_page_takes_a_websocket_with_a_ticket(page):
    # What socketAddress() of api.js does; a module's functions cannot be called from outside.
    opened = page.driver.execute_async_script("""
        const done = arguments[0], token = document.querySelector('meta[name="caisson-page"]').content;
        fetch('/tickets', {method: 'POST', headers: {'X-Caisson-Page': token, 'Content-Type': 'application/json'},
                           body: JSON.stringify({path: '/v1/shell/ws'})}).then((a) => a.json()).then(({ticket}) => {
          const s = new WebSocket(`${location.origin.replace('http', 'ws')}/v1/shell/ws?ticket=${ticket}`);
          s.onmessage = (event) => { s.close(); done(JSON.parse(event.data).type); };
          s.onerror = () => done('refused');
        });""")
    assert opened == "session_id"


def test_loads_nothing_and_permits_no_foreign_script(api):
    answer = api.http.get("/caisson/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "require-trusted-types-for 'script'" in policy
    assert len(re.findall(r"'sha256-[A-Za-z0-9+/]{43}='", policy)) == 2
    assert not re.search(r"\b(src|href)=[\"'](?!#|data:,)", answer.text), "the document refers to something outside itself"


def test_it_can_be_loaded_again(page):
    page.driver.refresh()
    eventually(lambda: "tier" in page.text("#boot"))


def test_a_session_shows_its_walls_and_use(page, session):
    page.choose(session)
    eventually(lambda: "seccomp" in page.text("#confinement"))
    shown = page.text("#confinement")
    for wall in ("landlock", "capabilities", "/usr", "Not stopped"):
        assert wall in shown
    eventually(lambda: page.attributes("#use meter", "aria-label") >= {"memory", "processes", "commands"})
    assert "loopback" in page.text("#use")


def test_a_denial_appears_as_it_happens(page, api, session):
    page.choose(session)
    eventually(lambda: "session_start" in page.text("#records"))
    assert "mount" not in page.text("#denials")
    api.bash(DENIED, session_id=session)
    eventually(lambda: "syscall=mount" in page.text("#denials"))


def test_what_a_session_writes_stays_text(page, api, session):
    page.choose(session)
    api.bash(f": {HOSTILE!r}", session_id=session)
    eventually(lambda: "onerror" in page.text("#records"))
    assert page.driver.title == "Caisson" and not page.count("#records img")


# What the API would say of a session that asks for hosts, and a server that answers, with the worst names.
CONNECTIONS = [
    {"time": "2026-01-31T12:00:00.000001Z", "refused": True, "session": "s-0123", "host": HOSTILE, "port": 80, "rule": -1, "refusal": "not_listed", "detail": HOSTILE},
    {"time": "2026-01-31T12:00:01Z", "refused": True, "host": "169.254.169.254", "port": 80, "rule": -1, "refusal": "canary", "alarm": True, "detail": "\u202egnp.exe"},
    {"time": "2026-01-31T12:00:02Z", "refused": False, "session": "s-0123", "host": "api.test", "port": 443, "rule": 0, "why": HOSTILE, "up": 10, "down": 2048},
]


def test_the_way_out_is_shown_as_text_only(page, browser):
    script = """
        const real = window.fetch;
        window.fetch = (path, options) => String(path).startsWith('/v1/proxy/connections')
            ? Promise.resolve(new Response(JSON.stringify({success: true, data: {connections: %s}}), {headers: {'Content-Type': 'application/json'}}))
            : real(path, options);""" % json.dumps(CONNECTIONS)
    added = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
    try:
        page.driver.refresh()
        eventually(lambda: "api.test" in page.text("#connections"))
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
    rows = [page.text(f"#connections tbody tr:nth-child({n})") for n in (1, 2, 3)]
    assert all(part in rows[0] for part in ("12:00:00", "s-0123", "refused", HOSTILE, "80", "not_listed"))
    assert all(part in rows[1] for part in ("alarm", "not known", "169.254.169.254", "canary", "\\u202egnp.exe"))
    assert all(part in rows[2] for part in ("connected", "443", "10 B, 2.0 KiB", "rule 0", HOSTILE))
    assert page.driver.title == "Caisson" and not page.count("#connections img")


def test_without_a_way_out_it_says_so(page):
    page.focus("#tab-walls")
    page.driver.find_element(By.ID, "tab-walls").click()
    eventually(lambda: "connected to the outside" in page.text("#no-connections"))
    assert page.text("#connections") == "" and page.driver.find_element(By.ID, "no-connections").is_displayed()


def test_an_ended_session_keeps_its_records(page, api):
    made = api.data("/v1/bash/sessions/create")["session_id"]
    api.bash("echo last words", session_id=made)
    api.post(f"/v1/bash/sessions/{made}/close")
    eventually(lambda: made in page.text("#ended"))
    page.focus("#ended")
    page.press(Keys.HOME)
    eventually(lambda: "session_end" in page.text("#records"))


def test_tabs_by_keyboard(page):
    page.focus("#tab-sessions")
    page.press(Keys.ARROW_RIGHT)
    assert page.driver.switch_to.active_element.get_attribute("id") == "tab-workspaces"
    eventually(lambda: "default" in page.text("#workspaces"))
    page.press(Keys.ARROW_RIGHT)
    eventually(lambda: "/usr" in page.text("#policy"))
    page.press(Keys.ARROW_RIGHT)
    eventually(lambda: "bash" in page.text("#walls"))


def test_two_policies_are_compared(page):
    page.focus("#tab-policies")
    page.press(Keys.ENTER)
    eventually(lambda: "bash" in page.text("#policy-a"))
    for select, name in (("#policy-a", "bash"), ("#policy-b", "file")):
        page.focus(select)
        page.press(name)
        page.press(Keys.ENTER)
    eventually(lambda: "Only in bash" in page.text("#policy") and "Only in file" in page.text("#policy"))
    assert "network" in page.text("#policy")


def test_the_score_is_that_of_the_command_with_its_reasons(page, api):
    score = api.data("/v1/policies/bash", method="GET")["score"]
    page.focus("#tab-policies")
    page.press(Keys.ENTER)
    page.focus("#policy-b")
    page.press(Keys.HOME, Keys.ENTER)
    page.focus("#policy-a")
    page.press("bash", Keys.ENTER)
    eventually(lambda: f"Score {score['value']} of 100" in page.text("#policy .score"))
    shown = page.text("#policy .score")
    assert score["value"] == max(0, 100 - sum(d["points"] for d in score["deductions"])) and score["deductions"]
    for deduction in score["deductions"]:
        assert f"−{deduction['points']} {deduction['field']}: {deduction['reason']}" in shown


def test_dark_and_light_differ(page):
    def background(scheme: str) -> str:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        return page.driver.execute_script("return getComputedStyle(document.body).backgroundColor")

    assert background("dark") != background("light")
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
