"""A narrowed session beside one of the whole policy: what it reaches, the other reaches too."""

import json
import os
import random

import pytest
from harness import SESSION_UID, Refused, inside
from test_grants import domain

USR = {"path": "/usr", "execute": True}
PATHS = ["/srv/data", "/srv/data/open", "/srv/data/secret", "/srv/data/secret/sub", "/home/gem/fixed"]
REACHED = """
import subprocess
out = {}
for path in %r:
    out[path] = [
        tried(lambda: open(path + "/file").read()),
        tried(lambda: os.close(os.open(path + "/file", os.O_WRONLY))),
        tried(lambda: subprocess.run([path + "/program"], check=False).returncode or None),
    ]
"""


def reached(control, domain="data", paths=PATHS, **narrow):
    """What one session can do: path, and which of read, write and run."""
    found = inside(control, control.create(domain, **narrow), REACHED % paths)
    return {(path, i) for path, done in found.items() for i, result in enumerate(done) if result in ("text", "ok")}


def fill(*folders):
    """Each with a file and a program, of the sessions' user."""
    for folder in folders:
        folder.mkdir()
        (folder / "file").write_text("text")
        (folder / "program").write_text("#!/bin/sh\n")
        (folder / "program").chmod(0o755)
        for path in (folder, folder / "file", folder / "program"):
            os.chown(path, SESSION_UID, SESSION_UID)


@pytest.fixture
def control(fresh):
    data, fixed = fresh.base / "data", fresh.base / "fixed"
    fill(data, data / "open", data / "secret", data / "secret/sub", fixed)
    base = json.loads((fresh.policies / "base.json").read_text())
    grants = [
        {"path": "/srv/data", "source": str(data), "access": "read-write", "execute": True},
        {"path": "/home/gem/fixed", "source": str(fixed)},
    ]
    domain(fresh.policies, grants, hide=[*base["hide"], "/srv/data/secret"])
    return fresh.start().control()


def test_flaw_03_no_narrowing_uncovers_what_is_hidden(control):
    whole = reached(control)
    assert whole == {(path, i) for path in ("/srv/data", "/srv/data/open") for i in range(3)} | {("/home/gem/fixed", 0)}
    data = {"path": "/srv/data", "access": "read-write", "execute": True}
    for grants in ([], [data], [{**data, "path": "/srv/data/open"}], [{**data, "path": "/srv/data/secret"}]):
        assert reached(control, narrow={"grants": [USR, *grants]}) <= whole, grants
    for path in ("/srv/data/secret/sub", "/srv/data/secret/file"):
        with pytest.raises(Refused) as refused:
            control.create("data", narrow={"grants": [USR, {**data, "path": path}]})
        error = refused.value.error
        assert error["code"] == "permission_denied" and f"'{path}' lies in '/srv/data/secret', which is hidden" in error["what"]


def test_flaw_03_no_narrowing_opens_what_is_read_only_in_the_home(control):
    session = control.create("data", narrow={"grants": [USR]})
    assert inside(control, session, "out = tried(open, '/home/gem/fixed/new', 'w')") == "EROFS"
    alone = control.create("data", narrow={"grants": [USR], "home": "private"})
    assert inside(control, alone, "out = tried(os.listdir, '/home/gem/fixed')") == "ENOENT"


NAMES = ["", "/a", "/a/b", "/a/b/c", "/a/d", "/e", "/e/f", "/e/f/g"]


class Dice(random.Random):
    """Random policies of the tree of NAMES, mounted at /srv/data and once more in the home, and random narrowings of them."""

    def grant(self, path, source):
        return {"path": path, "source": source, "access": self.choice(["read", "read-write"]), "execute": self.random() < 0.5}

    def policy(self, data, fixed):
        names = {"", *self.sample(NAMES, self.randint(0, 3))}
        grants = [self.grant(f"/srv/data{name}", f"{data}{name}") for name in sorted(names)]
        if self.random() < 0.5:
            grants.append(self.grant("/home/gem/fixed", str(fixed)))
        # What is granted for writing inside what is hidden starts nothing.
        hidden = [name for name in NAMES[1:] if not any(f"{other}/".startswith(f"{name}/") for other in names)]
        return grants, [f"/srv/data{name}" for name in self.sample(hidden, self.randint(0, min(2, len(hidden))))]

    def narrowing(self, grants):
        """Most of what is asked at random is refused, so half of it is what is there."""
        wanted = {}
        for grant in self.sample(grants, self.randint(0, len(grants))):
            path = grant["path"]
            if self.random() < 0.5 and path.startswith("/srv"):
                path = self.choice([f"/srv/data{name}" for name in NAMES if f"/srv/data{name}/".startswith(f"{path}/")])
            same = {key: grant[key] for key in ("access", "execute")}
            wanted[path] = {"path": path, **(same if self.random() < 0.6 else {"access": self.choice(["read", "read-write"])})}
        more = {"home": "private"} if self.random() < 0.2 else {"tmp": "private"} if self.random() < 0.2 else {}
        return {"grants": [USR, *wanted.values()], **more}


def test_flaw_03_no_random_narrowing_of_a_random_policy_is_wider(fresh):
    seed = int(os.environ.get("CAISSON_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    print(f"CAISSON_TEST_SEED={seed}")
    dice = Dice(seed)
    data, fixed = fresh.base / "data", fresh.base / "fixed"
    fill(*(fresh.base / f"data{name}" for name in NAMES), fixed)
    base = json.loads((fresh.policies / "base.json").read_text())
    policies = {f"random{i}": dice.policy(data, fixed) for i in range(5)}
    for name, (grants, hide) in policies.items():
        domain(fresh.policies, grants, name, hide=[*base["hide"], *hide])
    control = fresh.start().control()
    paths = [*(f"/srv/data{name}" for name in NAMES), "/home/gem/fixed"]
    built = 0
    for name, (grants, hide) in policies.items():
        whole = reached(control, name, paths)
        for _ in range(6):
            narrowing = dice.narrowing(grants)
            try:
                narrowed = reached(control, name, paths, narrow=narrowing)
            except Refused as refused:
                assert refused.error["code"] == "permission_denied", (name, grants, hide, narrowing, refused.error)
                continue
            built += 1
            assert narrowed <= whole, (name, grants, hide, narrowing)
    assert built >= 5, "hardly anything was compared"
