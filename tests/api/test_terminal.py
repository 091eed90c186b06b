"""The page at /terminal, in a real Chromium, through a forwarder that can cut its connections."""
import contextlib
import hashlib
import re
import socket
import threading
import urllib.parse

import pytest
from conftest import eventually
from launcher_process import ROOT

pytest.importorskip("selenium.webdriver", reason="python3-selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

VENDOR = ROOT / "agent/page/vendor"
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'>"


class Forwarder:
    """A port of this host that leads to the server until cut()."""

    def __init__(self, url: str):
        there = urllib.parse.urlsplit(url)
        self.target, self.open, self.refuses = (there.hostname, there.port), [], False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                if self.refuses:
                    client.close()
                    continue
                server = socket.create_connection(self.target)
                self.open += [client, server]
                for a, b in ((client, server), (server, client)):
                    threading.Thread(target=self.copy, args=(a, b), daemon=True).start()

    @staticmethod
    def copy(a, b):
        with contextlib.suppress(OSError):
            while data := a.recv(65536):
                b.sendall(data)
        for one in (a, b):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def cut(self):
        for one in self.open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self.open = []

    def close(self):
        self.listener.close()
        self.cut()


@pytest.fixture
def forwarder(api):
    made = Forwarder(api.url)
    yield made
    made.close()


class Page:
    def __init__(self, driver, api, url, query="", ready=True, credential=""):
        self.driver = driver
        driver.get(f"{url}/terminal?{credential or f'api_key={api.key}'}{query}")
        if ready:
            eventually(lambda: self.state().startswith("Connected"))

    def script(self, code: str, *arguments):
        return self.driver.execute_script(code, *arguments)

    def state(self) -> str:
        return self.script("return document.getElementById('state').textContent")

    def lines(self) -> list[str]:
        """The visible ones."""
        return self.script("return [...document.querySelectorAll('.xterm-rows > div')].map(n => n.textContent.replaceAll('\\u00a0', ' '))")

    def shows(self, words: str):
        eventually(lambda: words in "\n".join(self.lines()))

    def type(self, *keys: str):
        self.driver.find_element(By.CSS_SELECTOR, ".xterm-helper-textarea").send_keys(*keys)

    def run(self, line: str):
        eventually(lambda: any("$" in one for one in self.lines()))
        self.type(line, Keys.ENTER)

    def session(self) -> str:
        return urllib.parse.parse_qs(urllib.parse.urlsplit(self.driver.current_url).query)["session_id"][0]

    def everything(self) -> list[str]:
        """All lines, from the oldest that can be scrolled to."""
        found, last = [], None
        while (lines := self.settled()) != last:
            last = lines
            self.type(Keys.SHIFT + Keys.PAGE_UP)
        last = None
        while (lines := self.settled()) != last:
            found += lines if last is None else lines[self.overlap(last, lines):]
            last = lines
            self.type(Keys.SHIFT + Keys.PAGE_DOWN)
        return found

    def settled(self):
        def same():
            before = self.lines()
            return self.script("return new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(true))))") and before == self.lines()
        eventually(same)
        return self.lines()

    @staticmethod
    def overlap(before, after):
        return next(n for n in range(len(after), -1, -1) if n == 0 or before[-n:] == after[:n])


@pytest.fixture
def open_page(browser, api, forwarder):
    """open_page(query): the page, whose console must stay free of errors, but for connections that were cut."""
    yield lambda query="", **options: Page(browser, api, forwarder.url, query, **options)
    errors = [line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert not [e for e in errors if "WebSocket connection" not in e], "the console has errors"


def test_the_page_comes_without_a_key_and_its_socket_does_not(api):
    page = api.http.get("/terminal", headers={"X-AIO-API-Key": "wrong"})
    assert page.status_code == 200 and api.key not in page.text and "caisson-page\" content" not in page.text
    assert api.http.get("/v1/shell/ws", headers={"X-AIO-API-Key": "wrong"}).status_code == 401


def test_the_policy_permits_nothing_that_the_page_does_not_name(api):
    answer, other = api.http.get("/terminal"), api.http.get("/terminal")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "require-trusted-types-for 'script'" in policy
    (nonce,) = set(re.findall(r"'nonce-([0-9a-f]{32})'", policy))
    assert answer.text.count(f'nonce="{nonce}"') == 5 and nonce not in other.text and "@NONCE@" not in answer.text
    assert set(re.findall(r"\b(?:src|href)=\"(?!data:)([^\"]*)", answer.text)) == {
        "/static/xterm-5.5.0/xterm.js", "/static/xterm-5.5.0/xterm.css", "/static/xterm-addon-fit-0.10.0/addon-fit.js"}


@pytest.mark.parametrize("package, name", [("xterm-5.5.0", "xterm.js"), ("xterm-5.5.0", "xterm.css"), ("xterm-addon-fit-0.10.0", "addon-fit.js")])
def test_third_parties_files_are_the_released_ones_and_may_be_kept(api, package, name):
    answer = api.http.get(f"/static/{package}/{name}", headers={"X-AIO-API-Key": "", "Accept-Encoding": "identity"})
    digest = hashlib.sha256(answer.content).hexdigest()
    assert answer.status_code == 200 and answer.content == (VENDOR / name).read_bytes()
    assert re.search(rf"^\| `{re.escape(name)}` .*`{digest}` \|$", (VENDOR / "README.md").read_text(), re.M)
    assert answer.headers.get_list("cache-control") == ["public, max-age=31536000, immutable"]
    again = api.http.get(f"/static/{package}/{name}", headers={"If-None-Match": answer.headers["etag"]})
    assert again.status_code == 304 and again.content == b""


@pytest.mark.parametrize("path", ["/static/xterm-5.5.0/LICENSE", "/static/xterm-5.4.0/xterm.js", "/static/x/%2e%2e%2fmain.cc", "/static/xterm-5.5.0/xterm.js.map"])
def test_nothing_else_is_served_there(api, path):
    assert api.http.get(path).status_code == 404


def test_what_is_typed_is_run_and_shown(open_page, api):
    page = open_page()
    page.run("echo sum-$((40+2))")
    page.shows("sum-42")
    assert page.session() in api.data("/v1/shell/sessions", method="GET")["sessions"]


def test_a_ticket_for_the_page_opens_its_socket(open_page, api, shell):
    one = api.http.post("/tickets", json={"path": "/terminal"}).json()["ticket"]
    page = open_page(f"&session_id={shell}", credential=f"ticket={one}")
    page.run("echo by-ti$((0))cket")
    page.shows("by-ti0cket")
    assert page.session() == shell and one not in page.driver.current_url


def test_the_key_leaves_the_address(open_page, api):
    page = open_page()
    assert api.key not in page.driver.current_url and "session_id=" in page.driver.current_url


def test_the_terminal_has_the_size_of_the_window(open_page):
    page = open_page()
    for width in (1280, 700):
        page.driver.set_window_size(width, 700)

        def fits(width=width):  # on a slow machine what is typed may come before the new size
            page.run(f"clear; echo at-{width}-$(stty size | tr ' ' x)-")
            rows, cols = eventually(lambda: re.search(rf"at-{width}-(\d+)x(\d+)-", "\n".join(page.lines()))).groups()
            return int(rows) == len(page.lines()) > 10 and (int(cols) > 100) == (width > 1000)

        eventually(fits)
    page.driver.set_window_size(1280, 900)


def test_a_cut_connection_goes_on_without_a_lost_or_doubled_line(open_page, forwarder):
    page = open_page()
    page.run("clear; for i in $(seq 600); do echo line-$i-; sleep .005; done; echo en$((1))d")
    for seen in (100, 250, 400):
        eventually(lambda: any(int(n) > seen for n in re.findall(r"line-(\d+)-", "\n".join(page.lines()))))
        forwarder.cut()
    page.shows("en1d")
    numbers = [int(n) for n in re.findall(r"line-(\d+)-", "\n".join(page.everything()))]
    assert numbers == list(range(1, 601))


def test_it_says_that_it_is_not_connected_and_comes_back(open_page, forwarder):
    page = open_page()
    forwarder.refuses = True
    forwarder.cut()
    eventually(lambda: page.state().startswith("Reconnecting"))
    forwarder.refuses = False
    eventually(lambda: page.state() == "Connected")
    page.run("echo on-$((1+1))")
    page.shows("on-2")


def test_an_ended_session_is_said_to_be_and_a_new_one_can_be_had(open_page):
    page = open_page()
    first = page.session()
    page.run("exit")
    eventually(lambda: page.state() == "Ended: the shell has ended")
    page.driver.find_element(By.ID, "again").send_keys(Keys.ENTER)
    eventually(lambda: page.state() == "Connected")
    page.run("echo on-$((1+1))")
    page.shows("on-2")
    assert page.session() != first


def test_an_unknown_session_is_said_to_be(open_page):
    page = open_page("&session_id=unheard-of", ready=False)
    eventually(lambda: page.state().startswith("Ended: Session not found"))


def test_a_second_window_sees_the_same_and_a_read_only_one_cannot_type(open_page):
    page = open_page()
    page.run("echo first-$((1+1))")
    page.shows("first-2")
    first, session = page.driver.current_window_handle, page.session()
    page.driver.switch_to.new_window("tab")
    looker = open_page(f"&session_id={session}&readonly=1")
    try:
        looker.shows("first-2")
        assert looker.state() == "Connected, read-only"
        looker.type("echo owned-$((1+1))", Keys.ENTER)
        page.driver.switch_to.window(first)
        page.type("echo second-$((1+1))", Keys.ENTER)
        page.shows("second-2")
        page.driver.switch_to.window(looker_handle(page, first))
        looker.shows("second-2")
        assert not any("owned" in line for line in looker.lines())
    finally:
        page.driver.close()
        page.driver.switch_to.window(first)


@pytest.fixture
def linked(open_page):
    """A page, its window, and a link to watch it; the link is open in a second window, which is shown."""
    page = open_page()
    page.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]})
    page.run("echo first-$((1+1))")
    page.shows("first-2")
    page.driver.find_element(By.ID, "share").click()
    eventually(lambda: "Copied" in page.script("return document.getElementById('share').textContent"))
    page.link = page.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0])")
    page.first, page.cookies = page.driver.current_window_handle, page.driver.get_cookies()
    page.driver.switch_to.new_window("tab")
    page.driver.get(page.link)
    yield page
    page.driver.close()
    page.driver.switch_to.window(page.first)


def test_a_link_watches_replaces_no_login_and_leaves_the_address(linked, api):
    assert api.key not in linked.link and "#watch=ct_" in linked.link
    for _ in range(2):
        linked.shows("first-2")
        assert linked.state() == "Connected, read-only" and "ct_" not in linked.driver.current_url
        linked.driver.refresh()
    assert [c["value"] for c in linked.driver.get_cookies()] == [c["value"] for c in linked.cookies]
    assert not linked.driver.find_element(By.ID, "share").is_displayed()
    linked.type("echo owned-$((1+1))", Keys.ENTER)
    linked.driver.switch_to.window(linked.first)
    linked.run("echo second-$((1+1))")
    linked.shows("second-2")
    assert not any("owned" in line for line in linked.lines())
    linked.driver.switch_to.window(looker_handle(linked, linked.first))


def test_a_revoked_link_ends_for_whoever_watches_and_asks_for_no_key(linked):
    linked.shows("first-2")
    looker = linked.driver.current_window_handle
    linked.driver.switch_to.window(linked.first)
    linked.driver.find_element(By.ID, "revoke").click()
    eventually(lambda: "revoked" in linked.script("return document.getElementById('share').textContent"))
    linked.driver.switch_to.window(looker)
    eventually(lambda: linked.state() == "Ended: the credential has ended or was revoked")
    linked.driver.refresh()
    eventually(lambda: linked.state() == "Ended: this link has ended")
    assert linked.driver.find_elements(By.ID, "login") == [], "it asks for no key"
    assert not linked.driver.find_element(By.ID, "again").is_displayed()
    linked.driver.get_log("browser")  # the 401 of the link


def looker_handle(page, first):
    return next(handle for handle in page.driver.window_handles if handle != first)


def test_hostile_output_is_text(open_page, api):
    page = open_page()
    title = page.driver.title
    page.run(f"clear; cat <<'E'\n{HOSTILE}\nE")
    page.shows("onerror")
    page.run(r"clear; printf 'be\u202eevil\u2066gin\n'; printf '\e]52;c;b3duZWQ=\a\e]8;;javascript:alert(1)\alink\e]8;;\a\n'; printf '\e]11;#ff0000\a\e]10;?\a'; echo en$((1))d")
    page.shows("beevilgin")
    page.shows("en1d")
    assert page.driver.title == title and not page.driver.find_elements(By.CSS_SELECTOR, ".xterm-rows img, .xterm-rows script, .xterm-rows a")
    assert not page.driver.find_elements(By.CSS_SELECTOR, ".xterm-rows [style*=underline], .xterm-rows .xterm-underline-5")
    assert not any("rgb:" in line for line in page.lines()), "a question was answered into the input"


def test_a_title_is_one_short_line_and_says_whose_it_is(open_page):
    page = open_page()
    page.run(r"printf '\e]0;%s\u202e%0300d\a' '<b>My bank</b>' 7")
    eventually(lambda: page.driver.title.startswith("Terminal: <b>My bank</b>0000"))
    assert "\u202e" not in page.driver.title and len(page.driver.title) <= 90
    assert page.script("return document.getElementById('title').children.length") == 0


def test_a_line_of_10_mib_leaves_the_page_alive(open_page):
    page = open_page()
    page.run("head -c 10485760 /dev/zero | tr '\\0' x; clear; echo on-$((1+1))")
    eventually(lambda: "on-2" in "\n".join(page.lines()), 180)
    assert page.state() == "Connected"


def test_true_colours_are_shown_in_spite_of_the_policy(open_page):
    page = open_page()
    page.run(r"clear; printf '\e[48;2;10;20;30mcoloured\e[0m\n'")
    page.shows("coloured")
    eventually(lambda: page.script("return [...document.querySelectorAll('.xterm-rows span')].some("
                                   "n => n.textContent.includes('coloured') && getComputedStyle(n).backgroundColor === 'rgb(10, 20, 30)')"))


def paste(page, text):
    page.script("const data = new DataTransfer(); data.setData('text/plain', arguments[0]); document.querySelector('.xterm-helper-textarea')"
                ".dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}))", text)


def test_a_pasted_text_cannot_end_its_paste(open_page):
    page = open_page()
    page.run(r"clear; bind 'set enable-bracketed-paste on'; echo re$((1))ady")
    page.shows("re1ady")
    paste(page, "echo ha\x1b[201~rm\u20ac")
    page.shows("echo ha[201~rm\u20ac")


def test_the_history_of_a_session_asks_nothing_again(open_page):
    """The question for the cursor's position was answered when it was new."""
    page = open_page()
    page.run(r"printf '\e[6n'; read -rsd R -t 60 answer; echo; echo got-${#answer}")
    eventually(lambda: re.search(r"got-[1-9]", "\n".join(page.lines())))
    session = page.session()
    page = open_page(f"&session_id={session}")
    eventually(lambda: re.search(r"got-[1-9]", "\n".join(page.lines())))
    page.type("echo on-$((1+1))", Keys.ENTER)
    page.shows("on-2")
    assert not any(re.search(r"\d+;\d+R", line) for line in page.lines())


def test_the_keyboard_leaves_the_terminal(open_page):
    page = open_page()
    assert "xterm" in page.driver.switch_to.active_element.get_attribute("class")
    page.type(Keys.SHIFT + Keys.F6)
    assert page.driver.switch_to.active_element.get_attribute("id") == "share"


def test_dark_and_light_differ(open_page):
    page = open_page()

    def background(scheme: str) -> str:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        return page.script("return getComputedStyle(document.querySelector('.xterm-viewport')).backgroundColor")

    for scheme, colour in (("dark", "rgb(20, 23, 26)"), ("light", "rgb(251, 250, 248)")):
        eventually(lambda: background(scheme) == colour)
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
