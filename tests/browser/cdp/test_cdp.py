"""Many clients of one real Chromium with its sandbox on: they share it, and cannot reach each other."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

import cdp
import places


@pytest.fixture
def client(shared):
    one = shared.client()
    yield one
    one.close()


def gone(place):
    """All clients have ended, and with them what they had."""
    return cdp.until(lambda: (s := place.ask_status())["clients"] == 0 and s["sessions"] == 0 and s["unanswered"] == 0, "the end of all clients")


def test_a_client_is_greeted_with_the_browsers_name(shared, client):
    assert client.hello["hello"] == "ok"
    assert client.hello["browser"] == shared.ask_status()["browser"]


def test_the_socket_is_the_users_alone(shared):
    assert shared.socket.stat().st_mode & 0o777 == 0o600


def test_two_clients_work_on_tabs_of_their_own_at_once(shared):
    clients = [shared.client() for _ in range(2)]
    tabs = [one.tab() for one in clients]
    for i, one in enumerate(clients):
        one.evaluate(f"window.mine = 'of {i}'", tabs[i][1])
    numbers = [one.send("Runtime.evaluate", {"expression": "window.mine"}, tabs[i][1]) for i, one in enumerate(clients)]
    assert [one.answer(n)["result"]["result"]["value"] for one, n in zip(clients, numbers)] == ["of 0", "of 1"]
    for i, one in enumerate(clients):
        one.call("Target.closeTarget", {"targetId": tabs[i][0]})
        one.close()
    gone(shared)


def test_six_clients_use_the_same_ids_and_get_their_own_answers(shared):
    clients = [shared.client() for _ in range(6)]
    tabs = [one.tab() for one in clients]
    assert len({one.last for one in clients}) == 1
    sent = [one.send("Runtime.evaluate", {"expression": f"{i} * 1000"}, tabs[i][1]) for i, one in enumerate(clients)]
    assert len(set(sent)) == 1
    assert [one.answer(n)["result"]["result"]["value"] for one, n in zip(clients, sent)] == [i * 1000 for i in range(6)]
    for i, one in enumerate(clients):
        one.call("Target.closeTarget", {"targetId": tabs[i][0]})
        one.close()
    gone(shared)


@pytest.mark.parametrize("number", [0, -1, -9999, 2**53, 2**63])
def test_any_integer_is_an_id(client, number):
    client.write(json.dumps({"id": number, "method": "Browser.getVersion"}).encode() + b"\0")
    assert client.answer(number)["result"]["product"]


def test_what_is_no_id_is_answered_as_chromium_does(client):
    client.write(b'{"id":"x","method":"Browser.getVersion"}\0')
    assert client.read() == {"error": {"code": -32600, "message": "Message must have integer 'id' property"}}


@pytest.mark.parametrize("text", ['{"id":1,"id":2,"method":"A.b"}', '{"id":1,"m\\u0065thod":"Browser.close"}', "[]", '{"id":1',
                                  '{"id":1,"method":"Browser.\\u0063lose"}', '{"id":1,"method":"A.b"/**/}'])
def test_an_ambiguous_message_ends_its_client_alone(shared, client, text):
    bad = shared.client()
    bad.write(text.encode() + b"\0")
    assert bad.read() is None and bad.ended
    assert client.call("Browser.getVersion")


def test_anothers_session_does_not_exist(shared, client):
    other = shared.client()
    target, session = other.tab()
    answer = client.answer(client.send("Runtime.evaluate", {"expression": "1"}, session))
    assert answer["error"]["code"] == -32001
    assert "error" in client.answer(client.send("Target.detachFromTarget", {"sessionId": session}))
    assert other.evaluate("2", session) == 2
    other.call("Target.closeTarget", {"targetId": target})
    other.close()


def test_a_clients_end_closes_no_tab_and_detaches_it(shared, client):
    other = shared.client()
    target, _ = other.tab()
    assert client.pages()[target]["attached"]
    other.close()
    cdp.until(lambda: not client.pages()[target]["attached"], "the detaching")
    client.call("Target.closeTarget", {"targetId": target})


def test_a_page_is_reached_by_its_id(shared, client):
    target, _ = client.tab("data:text/html,<title>here</title>")
    page = shared.client({"hello": "page", "target": target})
    assert page.hello["hello"] == "ok"
    cdp.until(lambda: page.evaluate("document.title") == "here")
    client.call("Target.closeTarget", {"targetId": target})
    while page.read():
        pass
    assert page.ended, "a page's end is its clients'"


def test_a_page_that_is_not_there_is_refused_in_words(shared):
    assert shared.client({"hello": "page", "target": "nobody"}).hello == {"hello": "refused", "why": "No target with given id found"}


@pytest.mark.parametrize("method", ["Browser.close", "Browser.crash", "Browser.crashGpuProcess"])
def test_closing_the_browser_ends_the_client_alone(shared, client, method):
    leaving = shared.client()
    assert leaving.call(method) == {}
    assert leaving.read() is None and leaving.ended
    assert client.call("Browser.getVersion")


@pytest.mark.parametrize("method, params", [
    ("Target.exposeDevToolsProtocol", {"targetId": "x"}), ("Target.sendMessageToTarget", {"message": '{"id":1,"method":"Browser.close"}'}),
    ("Extensions.loadUnpacked", {"path": "/tmp"}), ("Target.setRemoteLocations", {"locations": []})])
def test_what_reaches_beyond_a_session_is_refused(client, method, params):
    assert "is not available" in client.answer(client.send(method, params))["error"]["message"]


def test_a_command_that_its_page_will_not_answer_is_answered_at_its_end(client):
    target, session = client.tab()
    never = client.send("Runtime.evaluate", {"expression": "new Promise(() => 0)", "awaitPromise": True}, session)
    closing = client.send("Target.closeTarget", {"targetId": target})
    messages = {}
    while not {never, closing} <= messages.keys():
        message = client.read()
        messages[message.get("id")] = message
    assert "error" in messages[never]


def test_the_last_pages_end_is_not_the_browsers(fresh):
    fresh.start().event("ready")
    one = fresh.client()
    for target in one.pages():
        one.call("Target.closeTarget", {"targetId": target})
    cdp.until(one.pages, "a new page")


def test_a_slow_reader_of_100_mb_delays_nobody(shared, client):
    slow = shared.client()
    target, session = slow.tab()
    number = slow.send("Runtime.evaluate", {"expression": "'x'.repeat(100e6)", "returnByValue": True}, session)
    cdp.until(lambda: bool(cdp.select.select([slow.in_], [], [], 0)[0]), "the first bytes")
    for _ in range(20):
        assert client.call("Browser.getVersion")
    assert len(slow.answer(number)["result"]["result"]["value"]) == 100_000_000
    slow.call("Target.closeTarget", {"targetId": target})
    slow.close()


def test_while_held_nothing_passes(fresh):
    fresh.start().event("ready")
    one = fresh.client()
    _, session = one.tab()
    one.call("Runtime.enable", session=session)
    fresh.say(do="hold")
    fresh.event("held")
    number = one.send("Runtime.evaluate", {"expression": "console.log('asked')"}, session)
    heard = [message.get("id") for message in iter(lambda: one.read(timeout=1), None)]
    fresh.say(do="release")
    fresh.event("released")
    assert number not in heard
    assert one.answer(number)["result"]


def test_the_death_of_the_browser_is_told(fresh):
    started = fresh.start().event("started")
    fresh.event("ready")
    one = fresh.client()
    os.kill(started["pid"], signal.SIGKILL)
    ended = fresh.event("ended")
    assert (ended["signal"], ended["asked"], ended["why"]) == (signal.SIGKILL, False, "it ended by itself")
    while one.read():
        pass
    assert one.ended
    cdp.until(lambda: not fresh.processes(), "the end of what it started")
    assert fresh.client().hello == {"hello": "refused", "why": "the browser is not running"}


def test_a_restart_keeps_the_profile(fresh):
    fresh.start().event("ready")
    one = fresh.client()
    cookie = {"name": "kept", "value": "yes", "url": "http://example.org/", "expires": time.time() + 86400}
    one.call("Storage.setCookies", {"cookies": [cookie]})
    fresh.say(do="restart", locale="de")
    assert fresh.event("ended")["asked"]
    fresh.event("ready")
    two = fresh.client()
    assert [c["value"] for c in two.call("Storage.getCookies")["cookies"] if c["name"] == "kept"] == ["yes"]
    assert two.hello["browser"] != one.hello["browser"]
    _, session = two.tab()
    assert two.evaluate("navigator.language", session).startswith("de")


def test_a_killed_browser_starts_again_in_its_profile(fresh):
    fresh.start().event("ready")
    for _ in range(3):
        os.kill(fresh.ask_status()["pid"], signal.SIGKILL)
        fresh.event("ended")
        fresh.say(do="restart")
        fresh.event("ready")
    assert fresh.client().call("Browser.getVersion")


def status_of(pid):
    return dict(line.split(":", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())


def test_each_renderer_is_confined_and_the_look_agrees(shared, client):
    client.tab()
    cdp.until(lambda: shared.ask_status()["renderers"] >= 2, "a look at the renderers")
    parents = {int(p.name): int((p / "stat").read_text().rsplit(")", 1)[1].split()[1])
               for p in pathlib.Path("/proc").iterdir() if p.name.isdigit() and (p / "stat").exists()}

    def ours(pid):
        while pid > 1 and pid != shared.process.pid:
            pid = parents.get(pid, 0)
        return pid == shared.process.pid

    renderers = [pid for pid in parents if ours(pid) and b"--type=renderer" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert renderers
    for status in map(status_of, renderers):
        assert len(status["NSpid"].split()) > 1
        assert int(status["Seccomp_filters"]) >= 1
        assert int(status["CapEff"], 16) == 0
    assert shared.ask_status()["running"]
    assert not any("no-sandbox" in line for line in shared.processes().values())


def test_too_few_filters_end_the_browser(fresh):
    fresh.start("--least-filters", "50").event("ready")
    assert "seccomp filters, and must have 50" in fresh.event("unconfined")["why"]
    ended = fresh.event("ended")
    assert ended["signal"] == signal.SIGKILL and "is not confined" in ended["why"]
    assert not fresh.ask_status()["running"]


def test_a_renderer_without_namespaces_ends_the_browser(fresh):
    fake = fresh.folder / "fake"
    fake.write_text("#!/bin/sh\nsh -c 'read x <&3' --type=renderer\n")
    fake.chmod(0o755)
    fresh.start("--program", fake)
    assert "no PID namespace of its own" in fresh.event("unconfined")["why"]
    assert fresh.event("ended")["signal"] == signal.SIGKILL


@pytest.mark.parametrize("argument", ["--no-sandbox", "-no-sandbox", "--disable-features=NetworkServiceSandbox", "--remote-debugging-port=9222",
                                      "--user-data-dir=/tmp/x", "--load-extension=/tmp/x", "--single-process", "--no-zygote"])
def test_a_dangerous_argument_is_refused_by_name(fresh, argument):
    fresh.start(extra=[argument])
    assert f"argument '{argument}' for the browser is refused" in fresh.event("failed")["why"]
    assert fresh.process.wait(cdp.WAIT_S) == 2


def test_a_browser_that_cannot_start_is_told(fresh):
    fresh.start("--program", "/nowhere")
    assert "ENOENT" in fresh.event("failed")["why"]
    assert not fresh.ask_status()["running"]


def test_lists_of_a_restart_are_chromiums_policies(fresh):
    if os.geteuid() != 0:
        pytest.skip("the folder of Chromium's policies is root's")
    managed = fresh.run / "policies"
    script = f'mount -t tmpfs none /etc/chromium && mkdir /etc/chromium/policies && ln -s {managed} /etc/chromium/policies/managed && exec "$@"'
    if subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", "true"], capture_output=True).returncode != 0:
        pytest.skip("no mount namespace can be made here")
    fresh.start(around=["unshare", "-m", "sh", "-c", script, "sh"]).event("ready")
    fresh.say(do="restart", url_blocklist=["blocked.example"])
    fresh.event("ended")
    fresh.event("ready")
    one = fresh.client()
    _, session = one.tab()
    assert one.call("Page.navigate", {"url": "http://blocked.example/"}, session)["errorText"] == "net::ERR_BLOCKED_BY_ADMINISTRATOR"


def test_the_end_leaves_nothing(fresh):
    fresh.start().event("ready")
    assert fresh.processes()
    fresh.say(do="end")
    assert fresh.process.wait(cdp.WAIT_S) == 0
    cdp.until(lambda: not fresh.processes(), "the end of the browser")


def test_the_end_of_stdin_is_the_end(fresh):
    fresh.start().event("ready")
    fresh.process.stdin.close()
    assert fresh.process.wait(cdp.WAIT_S) == 0


def test_the_death_of_caisson_cdp_is_the_browsers(fresh):
    fresh.start().event("ready")
    fresh.process.kill()
    cdp.until(lambda: not fresh.processes(), "the end of the browser")


def test_fifty_clients_leave_nothing(shared):
    proc = pathlib.Path(f"/proc/{shared.process.pid}")

    def held():
        gone(shared)
        return len(list((proc / "fd").iterdir())), int(status_of(shared.process.pid)["VmRSS"].split()[0])

    def visit():
        one = shared.client()
        target, session = one.tab()
        one.evaluate("'x'.repeat(1e6)", session)
        one.call("Target.closeTarget", {"targetId": target})
        one.close()

    for _ in range(5):
        visit()
    descriptors, kilobytes = held()
    for _ in range(50):
        visit()
    after = held()
    assert after[0] == descriptors
    assert after[1] - kilobytes < 4096, "some slack of the allocator's"


def test_a_relay_passes_a_conversation_and_ends_with_it(shared):
    one = shared.client(relay=True)
    assert one.hello["hello"] == "ok"
    target, session = one.tab()
    assert len(one.evaluate("'x'.repeat(5e6)", session)) == 5_000_000
    one.call("Target.closeTarget", {"targetId": target})
    assert one.call("Browser.close") == {}
    assert one.process.wait(cdp.WAIT_S) == 0
    one.process.stdin.close()
    gone(shared)


def test_a_relay_ends_when_its_input_does(shared):
    one = shared.client(relay=True)
    one.close()
    assert one.process.returncode == 0
    gone(shared)


def test_a_relay_says_that_nobody_listens(fresh):
    done = subprocess.run([fresh.tool("caisson-relay"), str(fresh.socket)], capture_output=True, text=True)
    assert done.returncode == 1 and "ENOENT" in done.stderr


REFUSE = """
import ctypes, os, struct, sys
sys.path.insert(0, sys.argv[1])
import places
code, count = places.refusing((int(sys.argv[2]),), True)
program, libc = ctypes.create_string_buffer(code), ctypes.CDLL(None)
assert libc.prctl(22, 2, struct.pack("=HxxxxxxQ", count, ctypes.addressof(program)), 0, 0) == 0
os.execvp(sys.argv[3], sys.argv[3:])
"""


@pytest.mark.parametrize("call, number", [("chroot", 161 if places.X86 else 51), ("unshare", 272 if places.X86 else 97)])
def test_a_container_that_refuses_a_call_of_the_sandbox_is_named_before_the_start(fresh, call, number):
    fresh.start(around=(sys.executable, "-c", REFUSE, pathlib.Path(places.__file__).parent, str(number)))
    failed = fresh.event("failed")
    assert failed["final"] is True and failed["why"].startswith(call) and "EPERM" in failed["why"], failed
    assert not fresh.processes()
