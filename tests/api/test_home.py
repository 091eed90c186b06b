"""The home page in a real Chromium: what it shows with no session, five and 300, its files, ports and notebooks, and that nothing
hostile runs in it. Pictures of each state are left in the folder of CAISSON_SCREENSHOTS, or the test's own."""
import os
import pathlib
import time

import pytest
from cells import needs_kernel
from conftest import eventually
from launcher_process import Launcher
from npm import installed

pytest.importorskip("selenium.webdriver", reason="python3-selenium is not installed")
from conftest import Api  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

DENIED = "python3 -c 'import ctypes; ctypes.CDLL(None).mount(b\"a\", b\"/mnt\", b\"tmpfs\", 0, 0)'"
SCRIPT = "<script>document.title='owned'</script><img src=x onerror=document.title='owned'>"
HOSTILE = SCRIPT + "\u001b]0;owned\u0007\u001b[2J\u202egnp.exe\u2066"
VIEWS = ("overview", "files", "terminals", "ports", "notebooks", "sessions", "workspaces", "policies", "walls")


@pytest.fixture(scope="module")
def alone(contract):
    """A launcher with nothing in it, so that sessions can be counted."""
    launcher = Launcher(MAX_BASH_SESSIONS="400", CAISSON_WARM_SESSIONS="0", CAISSON_KERNEL_POOL="0")
    yield Api(launcher.url, launcher.key, contract)
    launcher.close()


class Home:
    def __init__(self, driver, api, folder):
        self.driver, self.api, self.folder = driver, api, folder

    def open(self, view="overview"):
        self.driver.get("about:blank")
        self.driver.get(f"{self.api.url}/?api_key={self.api.key}#{view}")
        eventually(lambda: "tier" in self.text("#boot"))

    def text(self, selector):
        return self.driver.execute_script("return [...document.querySelectorAll(arguments[0])].map(n => n.textContent).join('\\n')", selector)

    def count(self, selector):
        return len(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def click(self, selector):
        self.driver.execute_script("document.querySelector(arguments[0]).click()", selector)

    def entry(self, name):
        """Opens the entry of the tree that has this name."""
        # In one step: the tree is drawn anew meanwhile.
        click = ("const one = [...document.querySelectorAll('#tree li')].find((n) => n.querySelector('bdi')?.textContent === arguments[0]);"
                 "one?.click(); return Boolean(one)")
        eventually(lambda: self.driver.execute_script(click, name))

    def keep(self, name):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.driver.save_screenshot(str(self.folder / f"{name}.png"))

    def value(self, selector):
        return self.driver.execute_script("return document.querySelector(arguments[0])?.value", selector)

    def write(self, selector, text):
        self.driver.execute_script("document.querySelector(arguments[0]).value = arguments[1]", selector, text)

    def faults(self):
        """Serious and critical findings of axe."""
        source = (installed() / "node_modules/axe-core/axe.min.js").read_text()
        self.driver.execute_script(source)
        found = self.driver.execute_async_script("const done = arguments[0]; axe.run().then((r) => done(r.violations))")
        return [(v["id"], [n["html"][:200] for n in v["nodes"]]) for v in found if v["impact"] in ("serious", "critical")]


@pytest.fixture
def home(browser, alone, tmp_path):
    one = Home(browser, alone, pathlib.Path(os.environ.get("CAISSON_SCREENSHOTS") or tmp_path))
    yield one
    errors = [line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert not errors, "the console has errors"
    assert browser.title != "owned"


def close_all(api):
    for one in api.data("/v1/bash/sessions", method="GET"):
        api.post(f"/v1/bash/sessions/{one['session_id']}/close")


def open_sessions(api, n):
    close_all(api)
    return [api.data("/v1/bash/sessions/create")["session_id"] for _ in range(n)]


def figures(home):
    """name -> value"""
    return dict(home.driver.execute_script(
        "return [...document.querySelectorAll('.figure')].map((n) => [n.querySelector('span').textContent, n.querySelector('strong').textContent])"))


@pytest.mark.parametrize("sessions", [0, 5, 300])
def test_what_runs_is_counted_and_few_are_listed(home, alone, sessions):
    open_sessions(alone, sessions)
    home.open()
    eventually(lambda: figures(home).get("idle sessions") == str(sessions))
    home.keep(f"home-{sessions}")
    home.open("sessions")
    eventually(lambda: home.text("#session-count") == f"({sessions})")
    assert home.count("#sessions li") == min(sessions, 20)
    if sessions == 300:
        assert "280 more idle sessions" in home.text("#idle-sessions")
        home.click("#toggle-idle")
        eventually(lambda: home.count("#sessions li") == 300)
    close_all(alone)


def test_what_was_refused_comes_first(home, alone):
    [session] = open_sessions(alone, 1)
    alone.bash(DENIED, session_id=session)
    home.open()
    eventually(lambda: "mount → EPERM" in home.text("#refused"))  # the name of a program that has ended may be missing
    assert home.driver.execute_script("return document.querySelector('#refused').getBoundingClientRect().top < "
                                      "document.querySelector('#figures').getBoundingClientRect().top")
    eventually(lambda: home.count("#timeline .refused .mark") >= 1)
    home.keep("refused")
    home.click("#refused button")
    eventually(lambda: "syscall=mount" in home.text("#denials"))


def test_the_chambers_say_what_each_may_reach(home, alone):
    open_sessions(alone, 2)
    home.open()
    eventually(lambda: "2 × bash" in home.text("#chambers"))
    assert "home (workspace)" in home.text("#chambers") and "loopback alone" in home.text("#chambers")


@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_no_serious_fault(home, alone, view):
    [session] = open_sessions(alone, 1)
    alone.bash(f"{DENIED}; echo x > ~/axe.txt; (sleep 60 &)", session_id=session)
    home.open(view)
    eventually(lambda: home.count(f"#tab-{view}[aria-selected=true]"))
    eventually(lambda: home.driver.execute_script("return document.querySelector('main').innerText.length > 15"))
    home.keep(f"view-{view}")
    assert home.faults() == []


def test_files_are_shown_edited_and_kept_from_a_conflict(home, alone):
    alone.bash("mkdir -p ~/notes && echo first > ~/notes/notes.txt")
    home.open("files")
    home.entry("notes")
    home.entry("notes.txt")
    eventually(lambda: home.value("#text") == "first\n")
    home.write("#text", "mine\n")
    alone.bash("echo theirs > ~/notes/notes.txt")
    home.click(".actions button")
    eventually(lambda: "changed by another" in home.text("#saved"))
    assert alone.bash("cat ~/notes/notes.txt")["stdout"] == "theirs\n"
    home.keep("conflict")
    home.click("#saved button")
    eventually(lambda: "Saved at" in home.text("#saved"))
    assert alone.bash("cat ~/notes/notes.txt")["stdout"] == "mine\n"


def test_files_are_uploaded(home, alone, tmp_path):
    (tmp_path / "brought.txt").write_text("from outside\n")
    home.open("files")
    home.driver.find_element(By.ID, "upload").send_keys(str(tmp_path / "brought.txt"))
    home.entry("brought.txt")
    eventually(lambda: home.value("#text") == "from outside\n")
    assert alone.bash("cat ~/brought.txt")["stdout"] == "from outside\n"


def test_pictures_are_shown(home, alone):
    alone.bash("python3 -c \"import zlib,struct;c=lambda t,d:struct.pack('>I',len(d))+t+d+struct.pack('>I',zlib.crc32(t+d));"
               "open('dot.png','wb').write(b'\\x89PNG\\r\\n\\x1a\\n'+c(b'IHDR',struct.pack('>IIBBBBB',3,2,8,0,0,0,0))+"
               "c(b'IDAT',zlib.compress(b'\\0abc'*2))+c(b'IEND',b''))\"")
    home.open("files")
    home.entry("dot.png")
    eventually(lambda: home.driver.execute_script("return document.querySelector('#file img')?.naturalWidth") == 3)


def test_names_and_contents_that_are_hostile_stay_text(home, alone):
    name = "a\nb" + HOSTILE.replace("/", "_")
    alone.post("/v1/file/write", {"file": f"/home/gem/hostile/{name}", "content": HOSTILE})
    alone.bash("cd hostile && printf '%10485760s' x > long.txt && printf '%s' '<svg xmlns=\"http://www.w3.org/2000/svg\" "
               "onload=\"document.title=1\"><script>document.title=\"owned\"</script></svg>' > x.svg")
    home.open("files")
    home.entry("hostile")
    eventually(lambda: "\\u000a" in home.text("#tree") and "\\u202e" in home.text("#tree"))
    home.click("#tree li[aria-level='2']")
    eventually(lambda: home.value("#text") == HOSTILE or home.text("#file"))
    home.entry("long.txt")
    eventually(lambda: "Larger than" in home.text("#file"))
    home.entry("x.svg")
    eventually(lambda: home.count("#file img") == 1)
    home.keep("hostile")
    assert home.count("#tree script, #tree img, #file script") == 0


def test_ports_that_listen_are_found(home, alone):
    [session] = open_sessions(alone, 1)
    alone.bash("(python3 -m http.server 8123 >/dev/null 2>&1 &); for i in $(seq 300); do grep -q :1FBB /proc/net/tcp && break; sleep .1; done",
               session_id=session)
    home.open("ports")
    home.click("#find-ports")
    eventually(lambda: "8123" in home.text("#ports"))
    home.keep("ports")


@needs_kernel
def test_a_cell_runs_and_its_output_stays_text(home):
    home.open("notebooks")
    home.write("#cell", f"print({SCRIPT!r})\n41 + 1")
    home.driver.find_element(By.ID, "cell").send_keys(Keys.CONTROL, Keys.ENTER)
    eventually(lambda: "42" in home.text("#outputs") and "<script>" in home.text("#outputs"), 60)
    assert home.count("#outputs script, #outputs img") == 0
    home.write("#cell", "1/0")
    home.click("#run-cell")
    eventually(lambda: "ZeroDivisionError" in home.text("#outputs"), 60)


# Answers on files of the default workspace come late.
LATE = """const send = window.fetch;
window.fetch = async (path, options) => {
  const answer = await send(path, options);
  if (/file.list/.test(path) && !options.headers['X-Caisson-Workspace']) await new Promise((done) => setTimeout(done, 1000));
  return answer;
}"""


@pytest.mark.parametrize("late", [False, True])
def test_another_workspace_is_chosen(home, alone, late):
    """At any time: also while the files of the one before are still asked for. They are not shown as the new one's."""
    alone.data("/v1/workspaces", {"name": "second"})
    try:
        for name, where in (("only-here.txt", {"X-Caisson-Workspace": "second"}), ("only-there.txt", {})):
            alone.http.post("/v1/file/write", json={"file": name, "content": "x"}, headers=where)
        home.open("files")
        eventually(lambda: "second" in home.text("#workspace"))
        if late:
            eventually(lambda: "only-there.txt" in home.text("#tree"))
            home.driver.execute_script(LATE)
            home.click("#tab-overview")
            home.click("#tab-files")
        home.driver.execute_script("const s = document.querySelector('#workspace'); s.value = 'second'; s.dispatchEvent(new Event('change'))")
        home.entry("only-here.txt")
        if late:
            time.sleep(1.5)
        assert "only-there.txt" not in home.text("#tree") and home.text("#problem") == ""
    finally:
        home.driver.get("about:blank")  # the page would ask for files of a workspace that is gone
        alone.http.delete("/v1/workspaces/second")


def test_it_fits_a_phone(home, alone):
    home.driver.set_window_size(390, 800)
    try:
        for view in ("overview", "files", "sessions"):
            home.open(view)
            width = home.driver.execute_script("return [document.documentElement.scrollWidth, innerWidth]")
            assert width[0] <= width[1], f"{view} is wider than the window"
        home.keep("phone")
    finally:
        home.driver.set_window_size(1280, 900)
