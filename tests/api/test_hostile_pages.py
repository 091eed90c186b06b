"""What sessions write, in every place where our pages show it, in a real Chromium: nothing of it runs, what cannot be seen is shown as
a number, and the page answers. Pictures are left in the folder of CAISSON_SCREENSHOTS, or the test's own."""
import base64
import os
import pathlib

import pytest
import test_home
import test_terminal
from cells import needs_kernel
from conftest import eventually
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from test_home import Home, close_all, open_sessions

alone, home, forwarder = test_home.alone, test_home.home, test_terminal.forwarder

RUN = "window.top.pwned=1"
NAMES = ["two\nlines", "a\ttab", "quo'te\"s`$(x)", f"<img src=x onerror={RUN}>", f"<script>{RUN}<\u2215script>", "\u202egnp.exe", "\u05d0\u05d1\u05d2 \u0634.txt",
         "\x1b]0;owned\x07\x1b[2J", "\u2066isolated", "-rf", "javascript:alert(1)"]
UNSEEN = "\u202e\u2066\x1b\x07"
PROGRAM = b"\xe2\x80\xae<b>\x1b\n" + b"'\""  # 15 bytes at most: the name of a process
DENIED = f"import ctypes;c=ctypes.CDLL(None);c.prctl(15,{PROGRAM!r});c.mount(b'a',b'/mnt',b'tmpfs',0,0)"


def pwned(driver) -> bool:
    return driver.execute_script("return 'pwned' in window || document.title === 'owned'")


@pytest.fixture
def page(home):
    yield home
    assert not pwned(home.driver)
    assert not any(c in home.driver.find_element(By.TAG_NAME, "body").text for c in UNSEEN), "what cannot be seen is shown as it is"


def python(api, code: str, **fields):
    return api.bash(f"echo {base64.b64encode(code.encode()).decode()} | base64 -d | /usr/bin/python3 -", **fields)


def entered(page, selector) -> bool:
    """Whether Enter reached it: a list that is drawn anew takes its old elements away."""
    try:
        page.driver.find_element(By.CSS_SELECTOR, selector).send_keys(Keys.ENTER)
    except StaleElementReferenceException:
        return False
    return True


def test_hostile_names_of_files_are_shown_as_names(page, alone):
    python(alone, f"import os\nos.makedirs('names', exist_ok=True)\nfor n in {NAMES!r}: open('names/' + n, 'w').write(n)")
    page.open("files")
    page.entry("names")
    eventually(lambda: page.count("#tree li[aria-level='2']") == len(NAMES))
    shown = page.text("#tree bdi")
    for words in ("two\\u000alines", "a\\u0009tab", "\\u202egnp.exe", "\\u001b]0;owned\\u0007", "onerror=", "\u05d0\u05d1\u05d2 \u0634.txt"):
        assert words in shown
    page.keep("hostile-names")
    assert page.count("#tree img, #tree script, #tree a") == 0
    for name in NAMES:
        page.driver.execute_script("const all = [...document.querySelectorAll('#tree li')]; all.find((n) => n.id.endsWith(arguments[0])).click()",
                                   f"/names/{name}")
        eventually(lambda name=name: page.value("#text") == name.replace("\r", "\n"))


@pytest.mark.parametrize("name, content", [
    ("x.md", f"# x\n<script>{RUN}</script> <img src=x onerror={RUN}> [a](javascript:{RUN})"),
    ("x.html", f"<!doctype html><script>{RUN}</script><body onload={RUN}>"),
    ("x.svg", f'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9" onload="{RUN}"><script>{RUN}</script></svg>'),
    ("x.png", f"<html><script>{RUN}</script>"), ("x.js", RUN), ("x.xml", f'<x xmlns:h="http://www.w3.org/1999/xhtml"><h:script>{RUN}</h:script></x>')])
def test_a_file_runs_nothing_neither_in_its_preview_nor_by_its_address(page, alone, name, content):
    alone.post("/v1/file/write", {"file": f"/home/gem/kinds/{name}", "content": content})
    page.open("files")
    page.entry("kinds")
    page.entry(name)
    eventually(lambda: name in page.text("#file h2") and (page.value("#text") or page.count("#file img")))
    assert page.count("#file script, #file iframe, #file object, #file a") == 0 and not pwned(page.driver)
    answer = alone.http.get("/v1/file/download", params={"path": f"/home/gem/kinds/{name}"})
    assert answer.headers["content-disposition"].startswith("attachment") and answer.headers["x-content-type-options"] == "nosniff"


def test_a_text_whose_marks_change_its_direction_is_said_to_have_them(page, alone):
    alone.post("/v1/file/write", {"file": "/home/gem/marks.py", "content": "if admin:\u202e # check\n"})
    page.open("files")
    page.entry("marks.py")
    eventually(lambda: page.count("#unseen") == 1)
    assert page.value("#text") == "if admin:\u202e # check\n", "it will be saved as it was"


def test_hostile_programs_and_commands_are_shown_as_text(page, alone):
    """The name of a process in what was refused, the command of a shell, and the records of a session."""
    [session] = open_sessions(alone, 1)
    python(alone, DENIED, session_id=session)
    shell = alone.data("/v1/shell/sessions/create")["session_id"]
    alone.data("/v1/shell/exec", {"id": shell, "command": f": '{UNSEEN[:2]}<img src=x onerror={RUN}>'; sleep 600", "async_mode": True})
    page.open()
    eventually(lambda: "mount" in page.text("#refused"))
    page.keep("hostile-refused")
    page.click("#refused button")
    eventually(lambda: "syscall=mount" in page.text("#denials"))
    assert not pwned(page.driver)
    page.open("terminals")
    eventually(lambda: "onerror" in page.text("#terminals") and "\\u202e" in page.text("#terminals"))
    assert page.count("#terminals img, #refused b, #denials b") == 0
    close_all(alone)
    alone.http.delete(f"/v1/shell/sessions/{shell}")


@pytest.mark.parametrize("fields, path", [({"session_id": NAMES[3]}, "/v1/bash/sessions/create"), ({"id": NAMES[4]}, "/v1/shell/sessions/create"),
                                          ({"name": NAMES[3]}, "/v1/workspaces"), ({"name": NAMES[5]}, "/v1/workspaces")])
def test_a_hostile_id_or_name_is_refused_or_shown_as_text(page, alone, fields, path):
    answer = alone.post(path, fields)
    for view in ("overview", "sessions", "terminals", "workspaces"):
        page.open(view)
        eventually(lambda view=view: page.count(f"#tab-{view}[aria-selected=true]"))
        eventually(lambda: page.driver.execute_script("return document.querySelector('main').innerText.length > 15"))
        assert page.count("main img[src=x], main script") == 0 and not pwned(page.driver)
    assert answer.status_code == (422 if path == "/v1/workspaces" else answer.status_code)


@needs_kernel
def test_hostile_outputs_of_a_cell_are_shown_as_text(page):
    page.open("notebooks")
    html = f"<img src=x onerror={RUN}><script>{RUN}</script>"
    page.write("#cell", f"from IPython.display import HTML, Javascript, SVG, Markdown, display\nprint({UNSEEN + html!r})\n"
                        f"for one in (HTML({html!r}), Javascript({RUN!r}), Markdown({html!r})): display(one)\nprint('x' * 10485760)\n{html!r}")
    page.click("#run-cell")
    eventually(lambda: "\\u202e\\u2066\\u001b" in page.text("#outputs") and page.count("#outputs .badge"), 60)
    assert page.count("#outputs img, #outputs script, #outputs iframe") == 0
    assert page.driver.execute_script("return 1 + 1") == 2


@pytest.fixture
def pictures(tmp_path):
    folder = pathlib.Path(os.environ.get("CAISSON_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


SEQUENCES = {
    "title": r"\e]0;owned\a\e]2;owned\a", "icon and title": r"\e]1;owned\e\\", "clipboard": r"\e]52;c;b3duZWQ=\a\e]52;c;?\a",
    "link": r"\e]8;;javascript:window.top.pwned=1\aclick\e]8;;\a", "colours asked": r"\e]4;1;?\a\e]10;?\a\e]11;?\e\\\e]12;?\a",
    "settings asked": r"\eP$q\"p\e\\\eP$qm\e\\\eP$qr\e\\", "terminfo asked": r"\eP+q544e\e\\", "title asked": r"\e[21t\e[20t",
    "window moved": r"\e[3;0;0t\e[4;1;1t\e[8;1;1t\e[1t\e[2t", "echo of a command": r"\e]50;?\a\e]1337;File=inline=1:AAAA\a",
    "unended": r"\e]0;owned", "paste mode": r"\e[?2004h\e[201~"}


@pytest.mark.parametrize("what", SEQUENCES)
def test_no_sequence_acts_outside_the_terminal_or_types_a_word(browser, api, forwarder, what):
    """Questions are asked of a cat that would show an answer: it must have none that has a letter of ours in it."""
    page = test_terminal.Page(browser, api, forwarder.url)
    size = browser.get_window_size()
    page.run("clear; stty -echo; printf '%b' '" + SEQUENCES[what] + r"'; printf '\a\e\\'; sleep 0.5; "
             r"IFS= read -rsd '' -t 1 answer; stty echo; printf '\e[?2004l\ngot-%s-\n' $(printf %s \"$answer\" | tr -dc 'a-zA-Z' | head -c 40)")
    said = eventually(lambda: next((line for line in page.lines() if line.startswith("got-")), None))
    assert not any(word in said for word in ("owned", "rgb", "File", "TN")), said
    if what in ("title", "icon and title", "unended"):
        assert browser.title in ("Terminal: owned", "Caisson terminal"), "a title always says whose it is"
    assert browser.get_window_size() == size and not browser.execute_script("return 'pwned' in window")
    assert not browser.find_elements(By.CSS_SELECTOR, ".xterm a, .xterm img, .xterm script")
    errors = [line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert not errors


@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_finds_no_serious_fault_on_any_width_dark_or_light(browser, api, alone, forwarder, pictures, scheme, width):
    alone.post("/v1/file/write", {"file": "/home/gem/looked-at.txt", "content": "text\n"})
    browser.set_window_size(width, 844)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    try:
        one = Home(browser, alone, pictures)
        for view in ("overview", "files", "terminals", "ports"):
            one.open(view)
            eventually(lambda view=view: one.count(f"#tab-{view}[aria-selected=true]"))
            if view == "files":
                one.entry("looked-at.txt")
                eventually(lambda: one.value("#text") == "text\n")
            one.keep(f"{view}-{scheme}-{width}")
            assert one.faults() == [], view
        page = test_terminal.Page(browser, api, forwarder.url)
        page.run("clear; printf '\\e[31mred \\e[33myellow \\e[0mplain\\n'")
        page.shows("red yellow plain")
        one.keep(f"terminal-{scheme}-{width}")
        assert one.faults() == []
        extent = browser.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
        assert extent[0] <= extent[1], "the terminal is wider than the window"
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        browser.set_window_size(1280, 900)


def test_a_preview_opens_in_a_window_of_its_own_that_knows_no_opener(page, alone):
    [session] = open_sessions(alone, 1)
    python(alone, f"import os\nos.makedirs('web', exist_ok=True)\nopen('web/index.html', 'w').write('<!doctype html><title>owned?</title><h1>hello</h1>"
                  f"<script>try {{ opener.pwned = 1 }} catch (e) {{}} {RUN}</script>')")
    alone.bash("(cd ~/web && python3 -m http.server 8124 >/dev/null 2>&1 &); "
               "for i in $(seq 300); do grep -q :1FBC /proc/net/tcp && break; sleep .1; done", session_id=session)
    page.open("ports")
    page.click("#find-ports")
    eventually(lambda: "8124" in page.text("#ports"))
    own = page.driver.current_window_handle
    eventually(lambda: entered(page, "#ports button"))
    other = eventually(lambda: next((h for h in page.driver.window_handles if h != own), None))
    page.driver.switch_to.window(other)
    try:
        eventually(lambda: page.text("h1") == "hello")
        page.keep("preview")
        assert page.driver.execute_script("return window.opener") is None and alone.key not in page.driver.current_url
        page.driver.get_log("browser")  # its icon, which it has not
    finally:
        page.driver.close()
        page.driver.switch_to.window(own)
    page.open("policies")  # the view of ports looks again and again, each time in a session that would be ended under it
    close_all(alone)
