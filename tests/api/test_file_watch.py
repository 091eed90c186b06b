"""/v1/file/watch: what changes is told, once, and what is lost is said."""
import json
import threading
import time

import pytest
from conftest import eventually


@pytest.fixture
def place(api):
    name = api.bash("mktemp -d -p ~ w-XXXXXX")["stdout"].strip()
    yield name
    api.bash(f"rm -rf {name}")


@pytest.fixture
def watch(api):
    made = []

    def start(path, **fields):
        answer = api.post("/v1/file/watch", {"path": path, "debounce": 50, **fields})
        assert answer.status_code == 200, answer.text
        made.append(answer.json()["watcher_id"])
        return answer.json()

    yield start
    for watcher in made:
        api.http.delete(f"/v1/file/watch/{watcher}")


def poll(api, watcher, cursor=0, timeout=30, **fields):
    answer = api.post(f"/v1/file/watch/{watcher}/poll", {"cursor": cursor, "timeout": timeout, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def changes_until(api, watcher, wanted, cursor=0):
    """Events from the cursor on until one of each (type, relative path) has come."""
    events = []

    def look():
        nonlocal cursor
        got = poll(api, watcher, cursor, timeout=2)
        cursor = got["cursor"]
        events.extend(got["events"])
        return wanted <= {(e["type"], e["relative_path"]) for e in events}

    eventually(look)
    return events


def test_trap_12_answers_are_a_superset(api, place, watch):
    made = watch(place)
    assert made["success"] is True and made["data"]["watcher_id"] == made["watcher_id"]
    assert (made["path"], made["recursive"], made["debounce"]) == (place, True, 50)
    listed = api.http.get("/v1/file/watch").json()
    assert made["watcher_id"] in [w["watcher_id"] for w in listed["watchers"]] and listed["data"]["watchers"] == listed["watchers"]


def test_each_kind_of_change_is_told(api, place, watch):
    api.bash(f"cd {place} && touch w c r && echo > m")
    watcher = watch(place, debounce=3000)["watcher_id"]  # all of them in one window, so that none is told in two parts
    api.bash(f"cd {place} && touch new && echo x >> w && chmod 600 c && rm r && mv m moved")
    events = changes_until(api, watcher, {("create", "new"), ("write", "w"), ("chmod", "c"), ("remove", "r"), ("rename", "moved")})
    assert len(events) == 5 and [e["seq"] for e in events] == [1, 2, 3, 4, 5]
    moved = next(e for e in events if e["type"] == "rename")
    assert (moved["old_path"], moved["path"], moved["is_dir"]) == (f"{place}/m", f"{place}/moved", False)
    written = next(e for e in events if e["type"] == "write")
    assert written["size"] == 2 and written["inode"] > 0 and written["mtime"].startswith("20")


def test_directories_that_come_later_are_watched_too(api, place, watch):
    watcher = watch(place)["watcher_id"]
    api.bash(f"mkdir -p {place}/a/b && echo x > {place}/a/b/early")
    events = changes_until(api, watcher, {("create", "a"), ("create", "a/b"), ("create", "a/b/early")})
    api.bash(f"echo x > {place}/a/b/late; mv {place}/a {place}/z; sleep 0.2; echo y > {place}/z/b/after")
    changes_until(api, watcher, {("rename", "z"), ("create", "z/b/after")}, max(e["seq"] for e in events))


def test_many_writes_in_one_window_are_one_change(api, place, watch):
    watcher = watch(place, debounce=5000)["watcher_id"]
    api.bash(f"for i in 1 2 3 4 5 6 7 8; do echo $i >> {place}/f; done; touch {place}/gone; rm {place}/gone")
    got = poll(api, watcher)
    assert [(e["type"], e["relative_path"]) for e in got["events"]] == [("create", "f")]


def test_exclude_and_include(api, place, watch):
    plain = watch(place)["watcher_id"]
    only = watch(place, include_patterns=["*.py", "docs/**"], exclude=["skip"])["watcher_id"]
    api.bash(f"cd {place} && mkdir -p .git skip docs && touch .git/x a.pyc skip/a.py docs/d a.py b.txt")
    first = changes_until(api, plain, {("create", "a.py"), ("create", "b.txt"), ("create", "skip/a.py")})
    assert not [e for e in first if ".git" in e["path"] or e["path"].endswith(".pyc")]
    assert {e["relative_path"] for e in changes_until(api, only, {("create", "a.py"), ("create", "docs/d")})} <= {"a.py", "docs/d", "docs"}


def test_not_recursive(api, place, watch):
    api.bash(f"mkdir {place}/sub")
    watcher = watch(place, recursive=False)["watcher_id"]
    api.bash(f"touch {place}/sub/deep {place}/top")
    assert [e["relative_path"] for e in changes_until(api, watcher, {("create", "top")}) if "deep" in e["path"]] == []


def test_one_file_can_be_watched(api, place, watch):
    api.bash(f"echo 1 > {place}/f")
    watcher = watch(f"{place}/f")["watcher_id"]
    api.bash(f"touch {place}/other; echo 2 >> {place}/f")
    events = changes_until(api, watcher, {("write", "f")})
    assert {e["path"] for e in events} == {f"{place}/f"}


def test_cursors(api, place, watch):
    watcher = watch(place, debounce=2000)["watcher_id"]  # touch does two things to a file: they are one change
    api.bash(f"cd {place}; touch 1 2 3 4 5")
    changes_until(api, watcher, {("create", str(n)) for n in range(1, 6)})
    first = poll(api, watcher, 0, limit=2)
    assert [e["seq"] for e in first["events"]] == [1, 2] and first["cursor"] == 2 and first["has_more"] is True
    rest = poll(api, watcher, first["cursor"])
    assert [e["seq"] for e in rest["events"]] == [3, 4, 5] and rest["overflow"] is False
    assert poll(api, watcher, rest["cursor"], timeout=0)["events"] == []
    # The SDK's name for it (3.1 C); cursor wins.
    assert [e["seq"] for e in api.post(f"/v1/file/watch/{watcher}/poll", {"since": 4}).json()["events"]] == [5]
    for wrong in ("4", -1, 1.5, True):  # a string is no number
        assert api.post(f"/v1/file/watch/{watcher}/poll", {"since": wrong}).json()["detail"][0]["loc"] == ["body", "since"]
    assert api.http.post(f"/v1/file/watch/{watcher}/poll").json()["cursor"] == 5
    assert api.post(f"/v1/file/watch/{watcher}/poll", {"limit": 0}).status_code == 422


def test_a_poll_waits(api, place, watch):
    watcher = watch(place)["watcher_id"]
    threading.Timer(0.5, lambda: api.bash(f"touch {place}/late")).start()
    assert [e["relative_path"] for e in poll(api, watcher, timeout=60)["events"]] == ["late"]


def test_an_overflow_is_told_once(api, place, watch):
    watcher = watch(place)["watcher_id"]
    for half in (1, 2):
        api.bash(f"cd {place}; for i in $(seq 800); do : > {half}-$i; done")
        eventually(lambda h=half: api.http.get("/v1/file/watch").json()["watchers"][-1]["cursor"] >= 800 * h)
    got = poll(api, watcher, 0, limit=1000)
    assert got["overflow"] is True
    assert poll(api, watcher, got["cursor"], timeout=0)["overflow"] is False


def test_a_tree_that_is_too_large_to_be_watched_is_an_overflow_from_the_beginning(api, place, watch):
    """8,192 directories are; without a word the rest would look quiet."""
    api.bash(f"cd {place} && seq 8300 | xargs mkdir", timeout=60)
    watcher = watch(place)["watcher_id"]
    assert poll(api, watcher, 0, timeout=60)["overflow"] is True
    small = watch(f"{place}/1")["watcher_id"]
    assert poll(api, small, 0, timeout=0)["overflow"] is False


def test_a_kind_of_event_that_is_none_is_refused(api, place):
    answer = api.post("/v1/file/watch/wait", {"path": f"{place}/x", "timeout": 20, "event_types": ["create", "modify"]})
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"] == ["body", "event_types", 1]


def test_the_end_of_the_worker_is_an_overflow_and_watching_goes_on(api, native, place, watch):
    import os
    watcher = watch(place)["watcher_id"]
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{entry}/exe").endswith("caisson-file-worker") and native.owns(int(entry)):
                os.kill(int(entry), 9)
        except OSError:
            continue
    cursor = eventually(lambda: (lambda g: g["overflow"] and g["cursor"])(poll(api, watcher, 0, timeout=1)))
    poll(api, watcher, cursor, timeout=0)
    api.bash(f"touch {place}/again")
    changes_until(api, watcher, {("create", "again")}, cursor)


# --- events ---

def test_trap_13_events_stream_only_when_asked_for(api, place, watch):
    watcher = watch(place, debounce=2000)["watcher_id"]  # touch does two things to a file: they are one change
    api.bash(f"touch {place}/one")
    changes_until(api, watcher, {("create", "one")})
    plain = api.http.get(f"/v1/file/watch/{watcher}/events", headers={"accept": "*/*"})
    assert plain.headers["content-type"] == "application/json" and len(plain.json()["events"]) == 1
    with api.http.stream("GET", f"/v1/file/watch/{watcher}/events", headers={"accept": "text/event-stream"}) as answer:
        lines = answer.iter_lines()
        seen = [next(lines).rstrip() for _ in range(6)]
    assert seen[0] == "event: watch_started" and json.loads(seen[1][6:])["watcher_id"] == watcher
    assert set(seen[3:5]) == {f"id: {watcher}:1", "event: file_change"} and json.loads(seen[5][6:])["relative_path"] == "one"


def test_a_stream_goes_on_where_it_ended(api, place, watch):
    watcher = watch(place)["watcher_id"]
    api.bash(f"touch {place}/one {place}/two")
    changes_until(api, watcher, {("create", "one"), ("create", "two")})
    headers = {"accept": "text/event-stream", "last-event-id": f"{watcher}:1"}
    with api.http.stream("GET", f"/v1/file/watch/{watcher}/events", headers=headers) as answer:
        lines = answer.iter_lines()
        ids = [line for line in [next(lines).rstrip() for _ in range(6)] if line.startswith("id: ")]
    assert ids == [f"id: {watcher}:2"]


# --- wait ---

def test_wait_for_a_file_that_comes(api, place):
    threading.Timer(0.5, lambda: api.bash(f"touch {place}/other; echo x > {place}/wanted")).start()
    got = api.post("/v1/file/watch/wait", {"path": f"{place}/wanted", "timeout": 60}).json()
    assert got["success"] is True and got["event"]["path"] == f"{place}/wanted" and got["event"]["type"] == "create"
    assert got["data"]["event"] == got["event"]


def test_wait_for_what_is_there_returns_at_once_unless_create_is_not_wanted(api, place):
    api.bash(f"touch {place}/there")
    began = time.monotonic()
    assert api.post("/v1/file/watch/wait", {"path": f"{place}/there", "timeout": 30}).json()["event"]["type"] == "create"
    assert time.monotonic() - began < 25
    threading.Timer(4, lambda: api.bash(f"rm {place}/there")).start()  # it is waited for by then
    got = api.post("/v1/file/watch/wait", {"path": f"{place}/there", "timeout": 60, "event_types": ["remove"]}).json()
    assert got["event"]["type"] == "remove"


def test_wait_ends_with_its_timeout(api, place):
    got = api.post("/v1/file/watch/wait", {"path": f"{place}/never", "timeout": 1}).json()
    assert (got["success"], got["event"], got["timed_out"]) == (False, None, True)


# --- bounds ---

def test_what_cannot_be_watched_is_an_error_of_the_resource(api):
    answer = api.post("/v1/file/watch", {"path": "/tmp/missing"})
    assert answer.status_code == 404 and answer.json()["data"]["errno_name"] == "ENOENT" and "detail" in answer.json()
    for call in (lambda p: api.post(p + "/poll"), lambda p: api.http.get(p + "/events"), api.http.delete):
        assert call("/v1/file/watch/nope").status_code == 404


def test_a_workspace_has_a_limit_of_watchers(api, place):
    made, kernel = [], "Too many open files"

    def answer():
        """The refusal: ours, or the kernel's. The kernel counts all inotify instances for root; other legs may use them up for a while."""
        got = api.post("/v1/file/watch", {"path": place})
        if got.status_code == 200:
            made.append(got.json()["watcher_id"])
            return None
        assert got.status_code == 400 and got.json()["data"]["errno_name"] == "EMFILE", got.text
        return got.json()["message"]
    try:
        for _ in range(300):
            message = answer()
            if message and kernel not in message:
                break
            time.sleep(0.2 if message else 0)
        if kernel in (message or ""):
            pytest.skip("fs.inotify.max_user_instances: others have all of them")
        assert "32 watchers" in message
        assert len(api.http.get("/v1/file/watch").json()["watchers"]) == 32
    finally:
        for watcher in made:
            api.http.delete(f"/v1/file/watch/{watcher}")


def test_a_watcher_that_is_stopped_is_gone(api, place, watch):
    watcher = watch(place)["watcher_id"]
    assert api.http.delete(f"/v1/file/watch/{watcher}").json()["stopped"] is True
    assert api.post(f"/v1/file/watch/{watcher}/poll").status_code == 404
