"""The file API where no mount tree can be built: the worker is executed where it lies, and Landlock is the wall."""
import os
import pathlib
import sys

import pytest
from conftest import Api
from launcher_process import Launcher

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "escape"))
import places  # noqa: E402

UID = 61101  # not that of the escape leg, which may exhaust its limits at this very moment


class Lower(Launcher):
    home_seen = "/home/gem"
    tier = "T0"

    def start(self):
        self.before = places.wrapper(self.tier, self.dir / "home", UID)
        if self.tier == "T1":
            for name in ("home", "audit", "run"):
                os.chown(self.dir / name, UID, UID)
        super().start()


@pytest.fixture(scope="module", params=["T0", "T1"])
def lower(request, contract):
    if "CAISSON_URL" in os.environ:
        pytest.skip("the server under test is not a process of this host (CAISSON_URL)")
    request.getfixturevalue("launch")  # skips, or fails, where no launcher can be started
    launcher = type("Tier", (Lower,), {"tier": request.param})()
    api = Api(launcher.url, launcher.key, contract)
    assert api.http.get("/v1/sandbox").status_code == 200
    yield api
    launcher.close()


def test_files_are_read_written_listed_and_watched(lower):
    assert lower.data("/v1/file/write", {"file": "in/a.txt", "content": "x\n"})["bytes_written"] == 2
    assert lower.data("/v1/file/read", {"file": "in/a.txt"})["content"] == "x\n" == lower.bash("cat ~/in/a.txt")["stdout"]
    assert [e["name"] for e in lower.data("/v1/file/list", {"path": "in"})["files"]] == ["a.txt"]
    watcher = lower.post("/v1/file/watch", {"path": "in", "debounce": 50}).json()["watcher_id"]
    lower.bash("touch ~/in/b")
    assert lower.post(f"/v1/file/watch/{watcher}/poll", {"timeout": 60}).json()["events"][0]["relative_path"] == "b"


def test_what_is_not_granted_is_refused(lower):
    for path in ("/etc/shadow", "/root/x", "/var/lib/dpkg/status"):
        answer = lower.fails("/v1/file/read", {"file": path})
        assert answer["data"]["errno_name"] in ("EACCES", "ENOENT"), path
    assert lower.fails("/v1/file/write", {"file": "/usr/x", "content": ""})["data"]["errno_name"] == "EACCES"
