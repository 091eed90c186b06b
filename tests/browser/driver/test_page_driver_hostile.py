"""The page driver and pages that mean harm: a bounded answer with words each time, and the next operation works."""
import os
import signal
import struct

import pytest


def answers(page):
    """The page, or another one in its place, can be used."""
    page.show("<p>fine</p>")
    return page("text").data == "fine"


def test_a_page_that_never_loads_ends_with_its_time(page):
    refused = page("navigate", url=page.site.url("/hang"), timeout_ms=1500)
    assert not refused["ok"] and refused["timeout"] and "Timeout" in refused["message"]
    assert answers(page)


def test_an_endless_evaluate_ends_and_leaves_the_page_usable(page):
    page.show("<p>still here</p>")
    refused = page("evaluate", expression="for (;;) ;", timeout_ms=1500)
    assert refused["timeout"] and "evaluate did not end within 1.5 seconds" in refused["message"]
    assert page("text").data == "still here"


def test_an_evaluate_that_never_settles_ends_with_its_time(page):
    page.show("<p>x</p>")
    assert page("evaluate", expression="new Promise(() => {})", timeout_ms=1000)["timeout"]
    assert page("text").data == "x"


def test_a_page_that_hangs_by_itself_is_left_by_the_next_navigation(page):
    page.show("<button onclick='for (;;) ;'>hang</button>")
    page("click", selector="button", timeout_ms=1500)
    assert answers(page)


@pytest.mark.parametrize("code, told, result", [
    ("alert('hi')", "alert 'hi' was accepted", None), ("confirm('sure?')", "confirm 'sure?' was dismissed", False),
    ("prompt('name?', 'x')", "prompt 'name?' was dismissed", None)])
def test_a_dialog_of_an_operation_is_closed_and_told(page, code, told, result):
    page.show("x")
    answer = page("evaluate", expression=code)
    assert answer.data == result and told in answer.hint


def test_a_dialog_against_leaving_is_accepted(page):
    page.show("<button>x</button><script>onbeforeunload = (e) => { e.preventDefault(); e.returnValue = 'x' }</script>")
    page("click", selector="button")
    answer = page("navigate", url=page.site.put("<title>Left</title>"))
    assert answer.data["title"] == "Left" and "beforeunload was accepted" in answer.hint


def test_a_dialog_between_operations_waits_for_the_person_until_one_needs_the_page(page):
    page.show("<title>T</title>")
    page("evaluate", expression="setTimeout(() => { window.answer = confirm('later') }, 200); 1")
    assert page("wait", type="timeout", duration_ms=50)["ok"]
    hint = ""
    while "later" not in hint:
        hint = page("evaluate", expression="1").hint
    assert page("evaluate", expression="window.answer").data is False


def test_a_flood_of_dialogs_is_told_boundedly(page):
    page.show("x")
    answer = page("evaluate", expression="for (let i = 0; i < 40; ++i) alert('a'.repeat(5000)); 1")
    assert answer.data == 1 and "28 more of these" in answer.hint and len(answer.hint) <= 4096


def test_endless_dialogs_end_with_the_operation(page):
    page.show("x")
    assert page("evaluate", expression="for (;;) alert(1)", timeout_ms=2000)["timeout"]
    assert answers(page)


HOSTILE = """<script>
for (const type of [Object, Array, Function, String, Promise, Element, Node, Document, HTMLElement, Map, Range])
  for (const name of Object.getOwnPropertyNames(type.prototype))
    try { type.prototype[name] = () => { throw new Error('mine') } } catch {}
JSON.stringify = () => 'lie'; window.getComputedStyle = null; document.querySelectorAll = null; Symbol.iterator;
</script>"""


def test_a_page_that_overrides_every_prototype_is_read_all_the_same(page):
    page.show(f"<title>T</title><p>words</p><button id=b>b</button>{HOSTILE}")
    assert page("text").data.startswith("words") and "<p>words</p>" in page("html").data
    assert [one["selector"] for one in page("elements").data] == ["#b"] and len(page("find_text", keyword="words").data) == 1
    assert "words" in page("markdown").data["markdown"] and page("click", index=0)["ok"] and page("screenshot")["ok"]


def test_what_a_page_makes_of_json_is_refused_or_taken_as_it_is(page):
    page.show(HOSTILE)
    assert not page("evaluate", expression="({a: 1})")["ok"]
    page.show("<script>JSON.stringify = () => '[1, 2'</script>")
    assert not page("evaluate", expression="({a: 1})")["ok"] and answers(page)


def test_fields_that_hide_the_nodes_of_their_form_hide_nothing(page):
    names = ["children", "parentNode", "nodeType", "getAttribute", "localName", "shadowRoot", "attributes", "innerText", "isConnected"]
    page.show(f"<form>{''.join(f'<input name={name}>' for name in names)}<button>send</button></form>")
    assert len(page("elements").data) == len(names) + 1
    # playwright reads the form's nodes by their names, and does not find the button: the answer says so in time.
    assert not page("click", index=len(names), timeout_ms=3000)["ok"] and answers(page)


def test_a_huge_value_is_refused_with_its_size(page):
    page.show("x")
    assert "9000002 bytes" in page("evaluate", expression="'x'.repeat(9000000)")["message"]
    refused = page("evaluate", expression="['x'.repeat(200000000)]")
    assert not refused["ok"] and "200000004 bytes" in refused["message"]
    assert not page("evaluate", expression="'x'.repeat(200000000)")["ok"]
    assert page("evaluate", expression="1").data == 1


def test_a_value_of_many_levels_is_refused(page):
    page.show("x")
    assert "nested too deeply" in page("evaluate", expression="let a = []; for (let i = 0; i < 2000; ++i) a = [a]; a")["message"]


def test_huge_console_messages_are_cut_or_left_out(page):
    page("console", clear=True)
    page.show("<script>console.log('a'.repeat(20000)); for (let i = 0; i < 20; ++i) console.log('b'.repeat(5000000));"
              "console.log('end')</script>")
    kept = []
    while not kept or kept[-1]["text"] != "end":  # 100 MB are on their way
        assert page("wait", type="timeout", duration_ms=100)["ok"]
        kept = page("console").data
    assert len(kept[0]["text"].encode()) <= 8192 and sum(one["type"] == "dropped" for one in kept) == 20


def test_the_ring_of_the_console_keeps_the_last_thousand(page):
    page.show("<script>for (let i = 0; i < 3000; ++i) console.log(i)</script>")
    assert page("wait", type="timeout", duration_ms=300)["ok"]
    kept = page("console").data
    assert len(kept) == 1000 and kept[-1]["text"] == "2999"


def test_a_long_address_and_title_are_cut(page):
    address = page.show(f"<title>{'t' * 100_000}</title>") + "#" + "u" * 100_000
    answer = page("navigate", url=address).data
    assert len(answer["url"].encode()) <= 8192 and len(answer["title"].encode()) <= 1024
    assert len(page("tabs").data[0]["url"].encode()) <= 8192


def test_a_deep_document_is_read(page):
    page.show("<script>let at = document.body; for (let i = 0; i < 20000; ++i) at = at.appendChild(document.createElement('i'));"
              "at.append('deep')</script>")
    assert page("text")["ok"] and page("find_text", keyword="deep")["ok"]
    assert page("elements")["ok"] and page("markdown")["ok"]


def test_many_elements_are_listed_boundedly(page):
    page.show("<body><script>document.body.innerHTML = '<button>b</button>'.repeat(5000)</script>")
    found = page("elements")
    assert len(found.data) == 2000 and "the first 2000" in found.hint


def test_frames_within_frames_end(page):
    page.site.put("<button>b</button><script>if (parent !== self && location.search.length < 40) {"
                  "const f = document.createElement('iframe'); f.src = location.pathname + location.search + 'x'; document.body.append(f) }"
                  "</script>", "/nest")
    page.show('<iframe src="/nest?"></iframe>')
    assert 1 <= len(page("elements").data) <= 8


def test_a_page_that_opens_many_tabs_is_told_boundedly(page):
    page.show("<button>x</button>")
    page("evaluate", expression="document.querySelector('button').onclick = () => { for (let i = 0; i < 20; ++i) open('about:blank#' + i) }; 1")
    answer = page("click", selector="button")
    assert answer["ok"] and len(answer.hint) <= 4096 and len(page("tabs").data) >= 2


def test_a_second_operation_is_refused_while_one_runs(page):
    page.show("x")
    first = page.send("wait", type="timeout", duration_ms=1500, timeout_ms=20_000)
    second = page("html")
    assert not second["ok"] and second["busy"] and page("ping").data["running"] == first
    assert page.answer(first)["ok"] and page("html")["ok"]


def test_an_operation_is_cancelled_and_does_nothing_later(page):
    page.show("<title>-</title>")
    first = page.send("click", selector="#later", timeout_ms=20_000)
    page.send("cancel", request=first)
    assert page.answer(first)["message"] == "the operation was cancelled"
    page("evaluate", expression="document.body.innerHTML = '<button id=later onclick=\"document.title = 1\">x</button>'; 1")
    assert page("wait", type="timeout", duration_ms=500)["ok"] and page("evaluate", expression="document.title").data == "-"


@pytest.mark.parametrize("members", [
    {"op": "nothing"}, {"op": "constructor"}, {"op": "click", "selektor": "x"}, {"op": "fill", "selector": "x"}, {"op": "click", "index": 1.5},
    {"op": "click", "selector": 5}, {"op": "html", "timeout_ms": 0}, {"op": "hot_key", "keys": [1]}, {"op": "cookies_set", "cookies": [1]},
    {"op": "navigate", "url": "about:blank", "wait_until": "never"}, {"op": "screenshot", "format": "gif"}, {"op": "record", "action": "no"}])
def test_a_wrong_request_is_invalid_and_nothing_else(page, members):
    refused = page.answer(page.send(**members))
    assert not refused["ok"] and refused["invalid"] and refused["message"]


def test_a_crashed_page_is_replaced_by_the_next_navigation(fresh, site):
    driver = fresh()
    assert driver("navigate", url=site.put("x"))["ok"]
    driver("navigate", url="chrome://crash", timeout_ms=3000)
    assert not driver("html", timeout_ms=3000)["ok"]
    answer = driver("navigate", url=site.put("<title>Alive</title>"))
    assert answer.data["title"] == "Alive" and "crashed" in answer.hint


def test_a_driver_connects_while_a_tab_runs_an_endless_loop(fresh, site):
    driver = fresh()
    driver("navigate", url=site.put("<p>x</p>"))
    driver.send("evaluate", expression="for (;;) ;", timeout_ms=600_000)
    driver.process.kill()
    again = fresh()
    assert again("text").data == "x"


def test_a_driver_connects_while_a_dialog_is_open(fresh, site):
    driver = fresh()
    driver("navigate", url=site.put("<p>x</p>"))
    driver("evaluate", expression="setTimeout(() => alert('mine'), 100); 1")
    driver("tabs")
    driver("wait", type="timeout", duration_ms=50)
    driver.process.kill()
    again = fresh()
    assert again("tabs")["ok"]
    assert again("navigate", url=site.put("<title>Works</title>")).data["title"] == "Works"


def test_tabs_of_other_clients_contexts_are_not_touched(fresh, site):
    bridge = fresh.chromium.bridge
    driver = fresh()
    assert len(driver("tabs").data) == 1
    bridge.command("Target.createBrowserContext", {"disposeOnDetach": False})
    assert driver("headers", headers={"X-Mine": "1"})["ok"] and len(driver("tabs").data) == 1


def test_the_end_of_the_socket_ends_the_driver(fresh):
    driver = fresh()
    assert driver("tabs")["ok"]
    fresh.chromium.bridge.cut()
    assert driver.process.wait(30) == 6 and driver.stderr().splitlines() == ["page driver: the browser's socket has ended"]


def test_a_driver_without_a_socket_ends_with_status_three(fresh):
    fresh.chromium.bridge.close()
    os.unlink(fresh.chromium.socket)
    driver = fresh()
    assert driver.process.wait(30) == 3 and driver.stderr().count("\n") == 1


def test_a_killed_browser_ends_the_driver(fresh):
    driver = fresh()
    assert driver("tabs")["ok"]
    os.killpg(fresh.chromium.process.pid, signal.SIGKILL)
    assert driver.process.wait(30) == 6


@pytest.mark.parametrize("frame", [struct.pack("<I", 0xFFFFFFFF), struct.pack("<I", 2) + b"[]", struct.pack("<I", 5) + b"{bad}",
                                   struct.pack("<I", 12) + b'{"bytes":-1}'])
def test_a_broken_frame_ends_the_driver_with_status_one(fresh, frame):
    driver = fresh()
    assert driver("tabs")["ok"]
    driver.process.stdin.write(frame)
    driver.process.stdin.flush()
    assert driver.process.wait(30) == 1 and driver.stderr().startswith("page driver: a broken frame")


def test_a_frame_that_never_answers_does_not_hide_the_other_elements(page):
    page.site.put("<script>for (;;) ;</script>", "/endless")
    page.show("<button>before</button><button>after</button>")
    page("evaluate", expression=f"const f = document.createElement('iframe'); f.src = '{page.site.other('/endless')}'; document.body.append(f); 1")
    found = page("elements")
    assert [one["text"] for one in found.data] == ["before", "after"] and "a frame does not answer" in found.hint
