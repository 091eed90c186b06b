"""/v1/display/record: a film of the screen, in a file of the workspace."""
import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from conftest import eventually
from screen import needs_desktop, take_over
from test_desktop import processes_of

pytestmark = [needs_desktop, pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="not installed: ffmpeg (scripts/setup --desktop)")]


@pytest.fixture
def record(api):
    def call(action, **fields):
        answer = api.post("/v1/display/record", {"action": action, **fields})
        assert answer.status_code == 200, answer.text
        return answer.json()
    yield call
    api.http.delete("/v1/browser/takeover")
    call("stop")


def facts(api, path, tmp_path):
    """Of the film, by ffprobe: what a player finds."""
    film = tmp_path / "film.mp4"
    film.write_bytes(api.http.get("/v1/file/download", params={"path": path}).content)
    found = subprocess.run(["ffprobe", "-v", "error", "-count_frames", "-show_entries", "stream=codec_name,width,height,nb_read_frames", "-of", "json", film],
                           capture_output=True, text=True, check=True)
    return json.loads(found.stdout)["streams"][0]


def grows(record):
    before = record("status")["data"]["file_size_bytes"]
    return eventually(lambda: record("status")["data"]["file_size_bytes"] > before)


def test_a_film_is_made_and_plays(api, record, tmp_path):
    begun = record("start", save_path="~/film.mp4", fps=10)
    assert begun["success"] and begun["data"]["status"] == "recording", begun
    for _ in range(3):
        grows(record)
    done = record("stop")["data"]
    assert done["status"] == "stopped" and done["duration"] > 0 and done["file_size_bytes"] > 0
    film = facts(api, done["save_path"], tmp_path)
    assert (film["codec_name"], film["width"], film["height"]) == ("h264", 1280, 1024) and int(film["nb_read_frames"]) > 1
    size = api.bash(f"stat -c %s {done['save_path']}")["stdout"].strip()
    assert int(size) == done["file_size_bytes"]


def test_sizes_and_lengths_that_are_asked_for(api, record, tmp_path):
    path = record("start", width=641, height=361, fps=5, max_duration=1)["data"]["save_path"]
    assert path.startswith("/tmp/recordings/recording_") and path.endswith(".mp4")
    eventually(lambda: record("status")["data"]["status"] == "stopped")
    film = facts(api, path, tmp_path)
    assert (film["width"], film["height"]) == (640, 360) and int(film["nb_read_frames"]) <= 7


def test_one_at_a_time(record):
    record("start")
    second = record("start")
    assert second["success"] is False and "stop it first" in second["message"]


@pytest.mark.parametrize("path", ["/etc/film.mp4", "/proc/film.mp4", "/no/such/film.mp4/"])
def test_a_file_that_cannot_be_is_told_before_the_film_begins(native, api, record, path):
    answer = api.post("/v1/display/record", {"action": "start", "save_path": path})
    assert answer.status_code != 200 or answer.json()["success"] is False, answer.text
    assert not processes_of(native, "ffmpeg")


@pytest.mark.parametrize("fields", [{"action": "begin"}, {"action": "start", "fps": 31}, {"action": "start", "fps": 0}, {"action": "start", "crf": 52},
                                    {"action": "start", "max_duration": 0}, {"action": "start", "width": 0}, {"action": "start", "height": 4097}, {}])
def test_bad_requests(api, fields):
    assert api.post("/v1/display/record", fields).status_code == 422


def test_nothing_is_stopped_where_nothing_runs(named):
    other = named()
    assert other.post("/v1/display/record", {"action": "status"}).json()["data"]["status"] == "idle"
    answer = other.post("/v1/display/record", {"action": "stop"}).json()
    assert answer["success"] is False and answer["data"]["status"] == "idle"


@pytest.mark.parametrize("program", ["ffmpeg", "Xvnc"])
def test_a_film_that_was_cut_off_plays_up_to_there(native, api, record, tmp_path, program):
    path = record("start", fps=10)["data"]["save_path"]
    for _ in range(3):  # the head is no film yet
        grows(record)
    [pid] = processes_of(native, program)
    os.kill(pid, signal.SIGKILL)
    eventually(lambda: record("status")["data"]["status"] == "stopped")
    assert int(facts(api, path, tmp_path)["nb_read_frames"]) > 1
    eventually(lambda: not processes_of(native, "ffmpeg"))


def test_a_film_stands_still_in_an_exclusive_takeover(native, api, record):
    record("start", fps=30)
    grows(record)
    take_over(api, mode="exclusive")
    [pid] = processes_of(native, "ffmpeg")

    def state():
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]
    assert eventually(lambda: state() == "T")
    time.sleep(0.2)
    api.http.delete("/v1/browser/takeover")
    eventually(lambda: state() != "T")
    grows(record)
