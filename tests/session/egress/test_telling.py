"""What is told of the way out: figures of all workspaces, the last connections of one, and alarms, which no flood hides."""

import concurrent.futures
import os
import shutil
import signal
import socket
import time

import pytest
import stage
import world
from harness import eventually
from stage import FIGURES, RECORD, answer_of, opened
from whole import Whole
from world import METADATA, OTHER, PRIVATE, PUBLIC, list_of, rule

FLOOD = """
import socket
for at in range(1200):
    with socket.create_connection(("127.0.0.1", 312), 60) as s:
        s.sendall(b"GET http://unknown%d.test/ HTTP/1.1\\r\\nHost: unknown%d.test\\r\\nConnection: close\\r\\n\\r\\n" % (at, at))
        assert b" 403 " in s.recv(4096)
        while s.recv(4096): pass
out = "refused"
"""


@pytest.fixture
def whole(internet):
    if world.UNSEALED or not shutil.which("curl"):
        pytest.skip("needs curl, and a build without sanitizers")
    internet.names.zone.update({"api.test": [PUBLIC], "leads.test": [METADATA], "bait.test": [OTHER], "inside.test": [PRIVATE]})

    def handle(connection):
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nserved")

    internet.serve(PUBLIC, 80, handle)
    rules = [rule("api.test", ports=[80]), rule("leads.test"), rule("inside.test"), rule("denied.test", deny=True), rule("bait.test", deny=True, alarm=True)]
    one = Whole(internet, list_of(*rules))
    yield one
    one.close()


def figures_when(whole, holds):
    """They come once a second."""
    found = {}

    def there():
        found.update(whole.ask("figures"))
        return holds(found)

    eventually(there, 60, "the figures come")
    return found


def test_figures_count_what_went_out_and_what_did_not(whole):
    assert whole.curl("http://api.test/") == (0, "served")
    assert whole.curl("http://denied.test/")[0] == 6
    for _ in range(2):
        assert "not_listed" in whole.curl("http://unknown.test/")[1]
    figures = figures_when(whole, lambda f: f["ended"] == 1 and f["refused"]["not_listed"] == 2 and f["open"] == 0)
    assert figures["up"] > 0 and figures["down"] > 6 and figures["names"] >= 4 and figures["failed"] == figures["dropped"] == 0
    assert figures["refused"]["rule"] >= 1 and set(figures["alarms"].values()) == {0}


def test_figures_stay_when_the_door_is_another_one(whole):
    assert whole.curl("http://api.test/") == (0, "served")
    before = figures_when(whole, lambda f: f["ended"] == 1)
    door = next(int(p) for p in os.listdir("/proc") if p.isdigit() and is_door(p) and parent_of(p) == whole.process.pid)
    os.kill(door, signal.SIGKILL)
    whole.told_until("start", process="door")
    end = time.monotonic() + 60
    while whole.curl("http://api.test/") != (0, "served"):
        assert time.monotonic() < end
    after = figures_when(whole, lambda f: f["ended"] >= 2)
    assert after["up"] > before["up"] and after["names"] > before["names"]


def is_door(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            return file.read().split("\0")[:2][1:] == ["door"]
    except OSError:
        return False


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def test_what_nobody_does_by_mistake_is_an_alarm(whole):
    listening = whole.internet.out.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.bind(("11.0.0.1", 8080))
    listening.listen()
    whole.curl(f"http://{METADATA}/latest/meta-data/")
    assert whole.told_until("refused", refusal="canary")["alarm"] is True
    assert whole.curl("http://bait.test/")[0] == 6
    record = whole.told_until("refused", host="bait.test")
    assert (record["refusal"], record["alarm"]) == ("canary", True)
    assert "canary" in whole.curl("http://leads.test/")[1]
    record = whole.told_until("refused", host="leads.test")
    assert (record["refusal"], record["address"], record["alarm"]) == ("canary", METADATA, True)
    whole.curl("http://11.0.0.1:8080/")
    record = whole.told_until("refused", address="11.0.0.1", port=8080)
    assert record["alarm"] is True and record["own_port"] is True
    listening.close()
    figures = figures_when(whole, lambda f: f["refused"]["canary"] >= 3)
    assert figures["alarms"]["canary"] == figures["refused"]["canary"] and figures["alarms"]["own_port"] == 1


def test_what_is_merely_refused_is_none(whole):
    for host in ("http://unknown.test/", "http://denied.test/", "http://inside.test/", f"http://{PRIVATE}/", "http://11.0.0.1:8081/", f"http://{OTHER}:22/"):
        whole.curl(host)
        assert "alarm" not in whole.told_until("refused"), host
    assert set(whole.ask("figures")["alarms"].values()) == {0}


def test_a_flood_of_refusals_hides_no_alarm(whole):
    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        flood = beside.submit(lambda: (whole.place.run(FLOOD), whole.curl(f"http://{METADATA}/")))
        assert whole.told_until("refused", refusal="canary")["alarm"] is True  # and reads what comes before, as the launcher does
        assert flood.result()[0] == "refused"
    # The door tells them once a second, so the last may come after the others.
    assert figures_when(whole, lambda f: f["refused"]["not_listed"] == 1200)["dropped"] > 0


def test_the_last_connections_are_shown_and_only_these(whole):
    assert whole.ask("recent") == {"records": []}
    assert whole.curl("http://api.test/") == (0, "served")
    whole.curl("http://unknown.test/")
    eventually(lambda: len(whole.ask("recent")["records"]) == 2, 60, "both are there")
    refused, made = whole.ask("recent")["records"]
    assert refused["refused"] and (refused["host"], refused["port"], refused["refusal"]) == ("unknown.test", 80, "not_listed")
    assert not made["refused"] and (made["host"], made["address"], made["rule"], made["why"]) == ("api.test", PUBLIC, 0, "a test") and made["down"] > 6
    assert whole.place.run(FLOOD.replace("1200", "100")) == "refused"
    eventually(lambda: whole.ask("recent")["records"][0]["host"] == "unknown99.test", 60, "the newest is the first")
    assert len(whole.ask("recent")["records"]) == 60


def ask(gate, op, workspace=1):
    return stage.ask(gate.socket, op, workspace)


@pytest.mark.parametrize("hostile", [b"[]", b"{", {"up": -5, "ended": "many", "refused": []}, {"refused": {"canary": -1, "none": 7, "other": 7}}, {"up": 1 << 62}])
def test_a_door_that_was_taken_over_makes_no_nonsense_of_the_figures(gate, place, hostile):
    door, _, _ = opened(gate, place)
    door.say(FIGURES, {"ended": 2, "up": 10, "open": 1, "refused": {"rule": 3}}, workspace=1)
    door.say(FIGURES, hostile, workspace=1)
    door.say(FIGURES, {"ended": 900}, workspace=7)
    door.say(FIGURES, {"ended": 5, "up": 20, "refused": {"rule": 4}}, workspace=1)
    door.say(RECORD, {"name": "after"}, workspace=1)
    gate.told_until("connection")
    figures = ask(gate, "figures")
    assert 5 <= figures["ended"] <= 7 and 20 <= figures["up"] <= (1 << 50) + 50 and 4 <= figures["refused"]["rule"] <= 7
    assert set(figures["alarms"].values()) == {0} and "other" not in figures["refused"] and "none" not in figures["refused"]


def test_a_session_sees_only_its_own_workspace(gate, place):
    door, _, _ = opened(gate, place)
    second = stage.Namespaces()
    assert answer_of(gate.open(second, workspace=2, name="other")) == "made"
    door.say(RECORD, {"host": "first.test", "up": 1}, workspace=1)
    door.say(RECORD, {"host": "second.test", "refusal": "rule"}, workspace=2)
    door.say(FIGURES, {"ended": 1}, workspace=1)
    door.say(FIGURES, {"ended": 2}, workspace=2)
    assert gate.told_until("refused")["workspace"] == "other"
    assert [r["host"] for r in ask(gate, "recent")["records"]] == ["first.test"]
    assert [r["host"] for r in ask(gate, "recent", 2)["records"]] == ["second.test"]
    eventually(lambda: ask(gate, "figures", 2)["ended"] == 3, 60, "the figures are of both")
    # Of a workspace that has ended, what was counted stays.
    gate.order(stage.CLOSE, 2)
    door.say(FIGURES, {"ended": 4}, workspace=2)
    door.say(stage.CLOSED, workspace=2)
    door.say(RECORD, {"host": "late.test"}, workspace=1)
    gate.told_until("connection")
    eventually(lambda: ask(gate, "figures")["ended"] == 5, 60, "its last figures count")
    second.close()


def test_what_a_record_says_of_itself_is_no_alarm(gate, place):
    door, _, _ = opened(gate, place)
    door.say(RECORD, {"host": "a.test", "refusal": "rule", "alarm": True}, workspace=1)
    assert "alarm" not in gate.told_until("refused")
    door.say(RECORD, {"host": "a.test", "refusal": "canary", "alarm": False}, workspace=1)
    assert gate.told_until("refused")["alarm"] is True


def test_a_record_that_is_too_long_is_not_shown_and_the_answer_comes(gate, place):
    door, _, _ = opened(gate, place)
    for at in range(80):
        door.say(RECORD, {"host": f"{at}.test", "why": "é" * 1000, "detail": "x" * 1000, "ended": "y" * 1000, "error": "z" * 1000}, workspace=1)
        gate.told_until("connection")
    records = ask(gate, "recent")["records"]
    assert len(records) <= 60 and all(len(record.get("why", "")) <= 200 for record in records)
