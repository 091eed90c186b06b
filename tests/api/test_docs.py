"""The page at /v1/docs, in a real Chromium: an operation is found, filled in and carried out with the key, and no answer becomes part of
the page."""
import json
import re
import subprocess

import pytest
from conftest import eventually

pytest.importorskip("selenium.webdriver", reason="python3-selenium is not installed")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

HOSTILE = "<img src=x onerror=document.title='owned'>"


class Page:
    def __init__(self, driver, api, end=""):
        self.driver = driver
        driver.get(f"{api.url}/v1/docs?api_key={api.key}{end}")
        eventually(lambda: " of " in self.text("#count") and not self.text("#count").startswith("0"))

    def script(self, code: str, *arguments):
        return self.driver.execute_script(code, *arguments)

    def text(self, selector: str) -> str:
        return self.script("return [...document.querySelectorAll(arguments[0])].map(n => n.textContent).join('\\n')", selector)

    def find(self, selector: str):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    @staticmethod
    def retype(field, text: str):
        field.send_keys(Keys.CONTROL + "a")
        field.send_keys(text or Keys.DELETE)

    def open(self, operation: str):
        """An operation, by the keyboard alone: searched for, then opened."""
        self.script("document.activeElement.blur()")
        self.driver.switch_to.active_element.send_keys("/")
        self.retype(self.driver.switch_to.active_element, operation)
        eventually(lambda: self.script("return document.activeElement.value") == operation)
        assert 0 < len(self.script("return [...document.querySelectorAll('details.operation:not([hidden])')]")) < 9
        self.script("document.querySelector(arguments[0]).focus()", f"[id='{operation}'] > summary")
        self.driver.switch_to.active_element.send_keys(Keys.ENTER)
        eventually(lambda: self.text(f"[id='{operation}'] .curl"))

    def fill(self, operation: str, body):
        self.retype(self.find(f"[id='{operation}'] textarea"), json.dumps(body))

    def send(self, operation: str, shows: str):
        """What came back: status line and body."""
        self.find(f"[id='{operation}'] .try button[type=submit]").send_keys(Keys.ENTER)
        eventually(lambda: shows in self.text(f"[id='{operation}'] .answer"))
        return self.text(f"[id='{operation}'] .answer [role=status]"), self.text(f"[id='{operation}'] .answer > pre")


@pytest.fixture
def page(browser, api):
    yield Page(browser, api)
    errors = [line["message"] for line in browser.get_log("browser") if line["level"] == "SEVERE"]
    assert not [e for e in errors if " status of 4" not in e], "the console has errors"


def test_it_is_served_without_a_key(api):
    assert api.http.get("/v1/docs", headers={"X-AIO-API-Key": "wrong"}).text.startswith("<!doctype html>")


def test_loads_nothing_and_permits_no_foreign_script(api):
    answer = api.http.get("/v1/docs")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "require-trusted-types-for 'script'" in policy
    assert not re.search(r"\b(src|href)=[\"'](?!#|data:,)", answer.text), "the document refers to something outside itself"


def test_every_operation_is_in_it(page, api):
    document = api.http.get("/v1/openapi.json").json()
    shown = page.script("return [...document.querySelectorAll('details.operation')].map("
                        "n => n.querySelector('.method').textContent + ' ' + n.querySelector('.path').textContent)")
    assert sorted(shown) == sorted(f"{m.upper()} {path}" for path, methods in document["paths"].items() for m in methods)


def test_the_key_leaves_the_address_and_no_storage_has_it(page, api):
    assert "api_key" not in page.driver.current_url and api.key not in page.driver.current_url
    assert page.script("return [sessionStorage.length, localStorage.length, document.cookie]") == [0, 0, ""]
    assert api.key not in page.driver.page_source


def test_a_command_is_run_with_the_key(page):
    page.open("exec")
    assert json.loads(page.find("#exec textarea").get_attribute("value")) == {"command": ""}
    page.fill("exec", {"command": "echo $((6 * 7)) tried"})
    status, body = page.send("exec", '"exit_code": 0')
    assert re.match(r"200 OK \d+\.\d{3} s, \d+ B", status)
    assert json.loads(body)["data"]["stdout"] == "42 tried\n"
    assert "content-type: application/json" in page.text("#exec .answer details")


def test_the_fields_of_the_body_are_told_and_put_into_it(page):
    page.open("exec")
    told = page.text("#exec form table")
    for word in ("command", "async_mode", "max_output_length", "50000", "required", "string", "boolean"):
        assert word in told
    page.find("#exec [aria-label='Put max_output_length into the body']").send_keys(Keys.ENTER)
    assert json.loads(page.find("#exec textarea").get_attribute("value")) == {"command": "", "max_output_length": 50000}


def test_the_line_for_curl_has_the_request_and_no_key(page, api):
    page.open("exec")
    page.fill("exec", {"command": "echo 'it'"})
    line = page.text("#exec .curl")
    assert line.startswith(f"curl -X POST '{api.url}/v1/bash/exec'") and "echo '\\''it'\\''" in line
    assert api.key not in line and "$CAISSON_KEY" in line


def test_the_line_for_curl_shows_what_it_does(page):
    """Characters that reorder or hide text are numbers in it, and the shell that reads it makes them again."""
    body = '{"command": "echo \u202edne\u2069 \'it\' \\\\ \ufeff"}'
    page.open("exec")
    page.retype(page.find("#exec textarea"), body)
    line = page.text("#exec .curl")
    assert "\\u202e" in line and not set("\u202e\u2069\ufeff") & set(line)
    words = subprocess.run(["bash", "-c", f"printf %s {line.split('--data-raw ')[1]}"], env={"LC_ALL": "C.UTF-8"}, capture_output=True, check=True)
    assert words.stdout.decode() == body


def test_parameters_of_path_and_query_are_sent(page):
    page.open("cleanup_shell_session")
    page.find("#cleanup_shell_session [aria-label=session_id]").send_keys("none/such")
    status, body = page.send("cleanup_shell_session", "Session not found")
    assert status.startswith("404") and "%2Fsuch" in page.text("#cleanup_shell_session .curl")


def test_a_refused_body_says_which_field(page):
    page.open("exec")
    page.fill("exec", {"command": 5})
    status, body = page.send("exec", "string_type")
    assert status.startswith("422") and json.loads(body)["detail"][0]["loc"] == ["body", "command"]


def test_what_an_answer_holds_stays_text(page):
    page.open("exec")
    page.fill("exec", {"command": f"echo {HOSTILE!r}"})
    page.send("exec", "onerror")
    assert page.driver.title == "Caisson API" and not page.driver.find_elements(By.TAG_NAME, "img")


def test_marks_of_direction_in_an_answer_are_shown_as_numbers(page):
    page.open("exec")
    page.fill("exec", {"command": "printf 'be\u202egin'"})
    _, body = page.send("exec", "begin".replace("g", "\\u202eg"))
    assert '"be\\u202egin"' in body and "\u202e" not in body


def test_numbers_are_shown_as_they_were_sent(page):
    page.open("exec")
    page.fill("exec", {"command": "exit 3"})
    _, body = page.send("exec", '"exit_code": 3')
    assert "\n    \"exit_code\": 3" in body


def test_a_stream_is_shown_as_it_comes_and_can_be_stopped(page):
    page.open("observe_live_v1_sandbox_observe_live_get")
    box = "[id='observe_live_v1_sandbox_observe_live_get']"
    page.find(f"{box} .bar input").send_keys(Keys.SPACE)
    page.send("observe_live_v1_sandbox_observe_live_get", "event: snapshot")
    page.find(f"{box} .bar button[type=button]").send_keys(Keys.ENTER)
    eventually(lambda: "stopped" in page.text(f"{box} .answer [role=status]"))


def test_a_file_is_offered_for_saving(page, api):
    place = api.bash("f=$(mktemp ~/docs-XXXXXX); printf '\\0\\1\\2' >$f; echo $f")["stdout"].strip()
    page.open("download_file")
    page.find("#download_file [aria-label=path]").send_keys(place)
    page.send("download_file", "Save the answer")
    assert page.find("#download_file .answer a").get_attribute("href").startswith("blob:")
    api.bash(f"rm {place}")


def test_without_a_key_it_asks_for_one(browser, api):
    page = Page(browser, api)
    browser.delete_all_cookies()
    browser.get(f"{api.url}/v1/docs")
    eventually(lambda: page.script("return document.querySelector('#login[open] input') === document.activeElement"))
    browser.switch_to.active_element.send_keys("wrong", Keys.ENTER)
    eventually(lambda: "wrong" in page.text("#login"))
    browser.switch_to.active_element.send_keys(api.key, Keys.ENTER)
    eventually(lambda: " of " in page.text("#count") and not page.text("#count").startswith("0"))


def test_dark_and_light_differ(page):
    def background(scheme: str) -> str:
        page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        return page.script("return getComputedStyle(document.body).backgroundColor")

    assert background("dark") != background("light")
    page.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
