"""The page driver with a real Chromium: what pages show and say comes back as it is."""
import json
import shutil
import struct
import subprocess

import pytest

INNER = "<button onclick=\"top.postMessage('inner', '*')\">inside</button>"
PAGE = """<title>T</title><script>onmessage = (m) => {{ document.title = m.data }}</script><style>.hidden {{ display: none }}</style>
<a href="/x">link</a><input id=q type=search placeholder="Search here" value=v><input type=password id=p value=secret>
<p class=hidden><button>no</button></p><x-card></x-card><select aria-label=Pick><option>1</select><div style="cursor:pointer" id=js>js</div>
<iframe src="{same}"></iframe><iframe src="{other}"></iframe><script>
document.querySelector('x-card').attachShadow({{mode: 'open'}}).innerHTML = '<div><button onclick="document.title = 42">shadow</button></div>'
</script>"""


def show_elements(page):
    page.site.put(INNER, "/inner")
    page.show(PAGE.format(same=page.site.url("/inner"), other=page.site.other("/inner")))
    return page("elements").data


def test_elements_are_in_document_order_also_of_shadow_roots_and_frames(page):
    found = show_elements(page)
    assert [(one["tag"], one["role"]) for one in found] == [
        ("a", "link"), ("input", "searchbox"), ("input", "textbox"), ("button", "button"), ("select", "combobox"), ("div", ""), ("button", "button"),
        ("button", "button")]
    assert [one["index"] for one in found] == list(range(8)) and found[0]["href"].endswith("/x")
    assert (found[1]["name"], found[1]["value"], found[1]["type"]) == ("Search here", "v", "search") and found[4]["name"] == "Pick"
    assert found[3]["text"] == "shadow" and found[7]["text"] == "inside" and found[7]["width"] > 10


def test_what_stands_in_a_password_field_is_not_in_the_list(page):
    assert show_elements(page)[2]["value"] == ""


@pytest.mark.parametrize("index, title", [(3, "42"), (6, "inner"), (7, "inner")])
def test_an_index_clicks_its_element_wherever_it_is(page, index, title):
    show_elements(page)
    assert page("click", index=index)["ok"]
    assert page("wait", type="function", expression=f"document.title === '{title}'")["ok"]


@pytest.mark.parametrize("index, title", [(3, "42"), (7, "inner")])
def test_the_selector_of_an_element_can_be_used_for_it(page, index, title):
    assert page("click", selector=show_elements(page)[index]["selector"])["ok"]
    assert page("wait", type="function", expression=f"document.title === '{title}'")["ok"]


@pytest.mark.parametrize("index", [0, 6, 7])
def test_the_place_of_an_element_is_that_in_the_window(page, index):
    one = show_elements(page)[index]
    page("evaluate", expression="addEventListener('click', (e) => { e.preventDefault(); document.title = 'link' })")
    assert page("click", x=one["x"] + one["width"] / 2, y=one["y"] + one["height"] / 2)["ok"]
    assert page("wait", type="function", expression="['link', 'inner'].includes(document.title)")["ok"]


def test_an_index_keeps_its_element_when_others_come_before_it(page):
    page.show("<button onclick=\"document.title = 'first'\">1</button>")
    page("elements")
    page("evaluate", expression="document.body.prepend(document.createElement('button'))")
    assert page("click", index=0).data["title"] == "first"


def test_an_index_is_stale_when_its_element_has_gone(page):
    page.show("<button>1</button>")
    page("elements")
    page("evaluate", expression="document.body.innerHTML = '<button>other</button>'")
    assert page("click", index=0)["message"] == "element 0 is not in the page any more: call elements again"
    assert "there is no element 5" in page("click", index=5)["message"]


def test_an_index_is_stale_after_a_navigation(page):
    page.show("<button>1</button>")
    page("elements")
    page.show("<button>2</button>")
    assert "call elements first" in page("fill", index=0, text="x")["message"]
    page("elements")
    page("evaluate", expression="location.reload()")
    page("wait", type="load")
    assert "call elements again" in page("click", index=0)["message"]


def test_html_is_of_the_body_or_of_the_document(page):
    page.show("<!doctype html><title>x</title><body><p>one</p></body>")
    assert page("html").data == "<p>one</p>"
    assert page("html", outer=True).data == "<!DOCTYPE html>\n<html><head><title>x</title></head><body><p>one</p></body></html>"


def test_text_is_what_is_seen(page):
    page.show("<p>one</p><p style='display:none'>two</p><p>three</p>")
    assert page("text").data == "one\n\nthree"


def test_a_long_text_comes_whole(page):
    page.show("<body><pre></pre><script>document.querySelector('pre').textContent = ('ä€🙂x'.repeat(16) + '\\n').repeat(50000)</script>")
    assert page("text").data.strip() == "\n".join(["ä€🙂x" * 16] * 50_000)


def test_a_text_beyond_the_limit_is_refused_with_its_size(page):
    page.show("x")
    page("evaluate", expression="document.body.append('y'.repeat(40000000)); 1")
    refused = page("html")
    assert not refused["ok"] and "40000001 bytes" in refused["message"]
    assert page("navigate", url="about:blank")["ok"]


def test_markdown_is_the_article_of_the_page(page):
    text = "A sentence of the article that is long enough to be taken for content. " * 12
    address = page.show("<title>Page</title><nav><a href=/a>menu</a></nav>"
                        f"<article><h1>Head</h1><p>{text}</p><p><b>bold</b> {text}</p></article>")
    made = page("markdown").data
    assert made["title"] == "Page" and made["url"] == address and "**bold**" in made["markdown"] and "menu" not in made["markdown"]


def test_markdown_of_a_page_without_an_article_is_all_of_it(page):
    page.show("<h2>Short</h2><ul><li>one</li></ul>")
    assert page("markdown").data["markdown"].replace("   ", " ") == "## Short\n\n- one"


@pytest.mark.parametrize("expression, expected", [
    ("1 + 1", 2), ("({a: [1, 'x', null]})", {"a": [1, "x", None]}), ("undefined", None), ("() => 7", 7), ("async () => 8", 8), ("await 9", 9),
    ("const once = 1; once", 1), ("NaN", None), ("12n", "12"), ("'\\ud800'", "\ufffd"), ("document.body", {}),
    ("new Date(0)", "1970-01-01T00:00:00.000Z")])
def test_evaluate_answers_with_json(page, expression, expected):
    page.show("x")
    assert page("evaluate", expression=expression).data == expected


@pytest.mark.parametrize("expression, message", [
    ("throw new TypeError('bad')", "TypeError: bad"), ("no.such", "ReferenceError: no is not defined"), ("(a = []).push(a), a", "circular"),
    ("{", "SyntaxError"), ("Symbol()", "a symbol is no JSON value"), ("Promise.reject('why')", "why")])
def test_evaluate_fails_with_the_reason(page, expression, message):
    page.show("x")
    refused = page("evaluate", expression=expression)
    assert not refused["ok"] and message in refused["message"]


def test_find_text_finds_across_elements_and_white_space(page):
    page.show("<p>say  Hello <b>wor</b>ld now</p><p>hello</p><p>world</p><p style='display:none'>hello world</p>")
    hits = page("find_text", keyword="hello world").data
    assert len(hits) == 1 and hits[0]["text"] == "Hello world" and hits[0]["context"] == "say Hello world now" and hits[0]["width"] > 20


def test_find_text_lists_at_most_two_hundred(page):
    page.show("<p>word</p>" * 300)
    found = page("find_text", keyword="word")
    assert len(found.data) == 200 and "first 200" in found.hint


@pytest.mark.parametrize("members, kind", [({}, b"\x89PNG"), ({"format": "jpeg", "quality": 50}, b"\xff\xd8\xff")])
def test_a_screenshot_has_the_size_of_the_window(page, members, kind):
    page.show("x")
    shot = page("screenshot", **members)
    size = page("evaluate", expression="[innerWidth, innerHeight]").data
    assert shot.body.startswith(kind) and [shot.data["screenshot_width"], shot.data["screenshot_height"]] == size
    assert [shot.data["viewport_width"], shot.data["viewport_height"]] == size


def test_a_screenshot_of_the_full_page_has_the_size_of_the_page(page):
    page.show("<body style='margin:0; height:3000px'>")
    shot = page("screenshot", full_page=True)
    assert shot.data["screenshot_height"] == 3000 and struct.unpack(">I", shot.body[20:24])[0] == 3000


def test_a_screenshot_of_an_endless_page_is_cut(page):
    page.show("<body style='margin:0; height:900000px'>")
    shot = page("screenshot", full_page=True, format="jpeg")
    assert shot.data["screenshot_height"] == 16384 and "900000" in shot.hint


def test_console_messages_are_kept_cleared_and_exported(page):
    page("console", clear=True)
    address = page.show("<script>console.warn('w', 1); setTimeout(() => { throw new Error('boom') })</script>")
    page("wait", type="function", expression="true")
    kept = page("console").data
    assert (kept[0]["type"], kept[0]["text"], kept[0]["location"]["url"]) == ("warning", "w 1", address)
    assert any(one["type"] == "pageerror" and "boom" in one["text"] for one in kept)
    exported = page("console_export", clear=True)
    assert exported["body"] == "file" and len(json.loads(exported.body)) == exported.data["count"] and page("console").data == []


def playable(film):
    probe = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=codec_name,nb_read_frames", "-of", "json", "-"],
                           input=film, capture_output=True, check=True)
    return json.loads(probe.stdout)["streams"][0]


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
def test_record_once_makes_a_film(page):
    page.show("<script>setInterval(() => { document.body.textContent = Math.random() }, 50)</script>")
    film = page("record", action="once", duration=1, fps=10)
    assert film.data["status"] == "stopped" and film.data["frames"] >= 5
    assert playable(film.body) == {"codec_name": "h264", "nb_read_frames": str(film.data["frames"])}


@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="ffmpeg is not installed")
def test_a_recording_goes_on_beside_other_operations(page):
    page.show("<p>still</p>")
    assert page("record", action="status").data["status"] == "idle"
    assert page("record", action="start", fps=5).data["status"] == "recording"
    assert page("html")["ok"] and page("ping").data["keeps"]["recording"] is True
    assert page("record", action="start")["message"] == "a recording is going on: stop it first"
    assert page("record", action="pause").data["status"] == "paused" and page("record", action="resume").data["status"] == "recording"
    assert playable(page("record", action="stop").body)["codec_name"] == "h264"
    assert page("record", action="stop")["message"] == "nothing is being recorded"


def test_a_captcha_is_detected_and_waited_for(page):
    page.show("<div class=g-recaptcha style='width:300px;height:80px'></div>")
    assert page("captcha_detect").data == {"detected": True, "kind": "recaptcha", "selector": "html > body > div"}
    assert page("captcha_wait", poll_interval=0.1, timeout_ms=1000).data == {"resolved": False}
    page("evaluate", expression="setTimeout(() => document.querySelector('div').remove(), 300)")
    assert page("captcha_wait", poll_interval=0.1).data == {"resolved": True}
    assert page("captcha_detect").data["detected"] is False


# Waiting

def later(page, code):
    page("evaluate", expression=f"setTimeout(() => {{ {code} }}, 300); 1")


def test_wait_for_a_selector_and_its_end(page):
    page.show("<p id=there>x</p>")
    later(page, "document.body.innerHTML = '<i id=i>x</i>'")
    assert page("wait", type="selector", selector="#i").data == {"type": "selector", "selector": "#i", "state": "visible"}
    assert page("wait", type="selector", selector="#there", state="detached")["ok"]
    assert page("wait", type="selector", selector="#i", state="odd")["invalid"]


def test_wait_for_a_url(page):
    page.show("x")
    later(page, "location.hash = 'there'")
    assert page("wait", type="url", url="**#there").data["url"].endswith("#there")


def test_wait_for_a_function_across_a_navigation(page):
    address = page.site.put("<script>window.ready = true</script>")
    page.show("x")
    later(page, f"location = '{address}'")
    assert page("wait", type="function", expression="() => window.ready", polling=50)["ok"]


def test_wait_for_a_request_and_a_response(page):
    page.site.put("data", "/data")
    page.show("x")
    later(page, "fetch('/data')")
    assert page("wait", type="response", url_pattern="**/data").data["status"] == 200
    later(page, "fetch('/data', {method: 'POST'})")
    assert page("wait", type="request", url_pattern="**/data").data["method"] == "POST"


def test_wait_for_a_download_tells_where_it_is(page):
    page.site.put(b"some bytes", "/file", kind="application/octet-stream", Content_Disposition="attachment; filename=report.bin")
    page.show("<a href=/file>get</a>")
    page("click", selector="a")
    done = page("wait", type="download").data
    assert (done["suggested_filename"], done["size"], done["url"]) == ("report.bin", 10, page.site.url("/file"))
    assert open(done["path"], "rb").read() == b"some bytes" and done["path"].startswith(str(page.chromium.downloads))


@pytest.mark.parametrize("members", [
    {"type": "selector", "selector": "#no"}, {"type": "function", "expression": "false"}, {"type": "url", "url": "**/no"},
    {"type": "response", "url_pattern": "**/no"}, {"type": "download"}])
def test_what_does_not_come_is_a_failure_in_time(page, members):
    page.show("x")
    refused = page("wait", timeout_ms=800, **members)
    assert not refused["ok"] and refused["timeout"]


def test_wait_for_a_time_is_a_success(page):
    assert page("wait", type="timeout", duration_ms=50).data == {"type": "timeout"}
    assert page("wait", type="nonsense")["invalid"]


def test_info_tells_the_user_agent_and_the_window(page):
    page.show("<title>Seen</title>")
    told = page("info").data
    size = page("evaluate", expression="({width: innerWidth, height: innerHeight})").data
    assert "Chrome/" in told["user_agent"] and told["page_viewport"] == size and told["current"]["title"] == "Seen"
