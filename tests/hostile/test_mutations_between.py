"""Each wall left out in turn where tenants have fewer of them (T2, T0): the launcher refuses its sessions, or the escape program, sent from
one workspace to another, says what has changed."""

import pathlib
import sys
import tempfile

import pytest
from faults import TABLE, FaultyLauncher, folder, of_this_build
from harness import TESTS, Refused, eventually

sys.path.insert(0, str(TESTS / "escape"))
import between  # noqa: E402
import catalogue  # noqa: E402

# What every tier has, and what T2 has besides. Limits: the program would be unbounded.
EVERYWHERE = ("landlock_rules", "close_fds", "stdio", "uid", "capabilities", "no_new_privs", "landlock", "seccomp", "denial_listener")
WITH_MOUNTS = (
    "user_ns", "net_ns", "mount_ns", "open_grants.read_only", "open_grants.noexec", "attach_grants", "hide_paths", "pivot_root",
    "pivot_root.read_only", "namespaces", "namespaces.mnt", "namespaces.ipc", "namespaces.uts", "namespaces.cgroup", "devices", "hostname",
)  # fmt: skip
MUTATIONS = [("T0", one) for one in EVERYWHERE] + [("T2", one) for one in (*EVERYWHERE, *WITH_MOUNTS)]

UNSURE = ("KS-20.random", "IP-09.keys", "IP-09.key-users")  # what they find is another thing each time, whatever stands


class Mutant(between.Between):
    """Two workspaces of a launcher with that fault from its very start."""

    def __init__(self, tier, base, program, fault):
        self.fault = fault
        super().__init__(tier, base, program)

    def make_launcher(self, base):
        one = FaultyLauncher(base)
        one.fault.set(self.fault)
        return one

    def found(self):
        """What is open of what neither exhausts anything nor ends its own session."""
        chosen = [c.id for c in self.cases.values() if c.area != "resources" and not {"alone", "spare"} & set(c.flags) and c.id not in UNSURE]
        session = self.attacking()
        got, over = catalogue.in_session(self.control, session, self.path, chosen, self.places)
        return {id for id in chosen if got.get(id, catalogue.LOST)["verdict"] == "open"}, over


@pytest.fixture(scope="module")
def base(tier):
    with folder("/srv") as made:
        yield made


@pytest.fixture(scope="module")
def program(base):
    (base / "program").mkdir()
    return catalogue.program(base / "program")


def seen(base, program, tier, fault):
    """Why there are no such sessions, or what the program finds open."""
    try:
        one = Mutant(tier, pathlib.Path(tempfile.mkdtemp(dir=base)), program, fault)
    except (Refused, AssertionError) as e:
        return str(e).strip().splitlines()[-1], None
    try:
        open_, over = one.found()
        return None, open_ | ({f"its session ended: {over}"} if over else set())
    except Refused as e:
        return e.error["what"], None
    finally:
        one.close()


@pytest.fixture(scope="module")
def sound(base, program):
    """tier -> what is open where all walls stand."""
    found = {}
    for tier in ("T0", "T2"):
        refused, found[tier] = seen(base, program, tier, "")
        assert refused is None
    return found


@pytest.mark.parametrize(("tier_", "mutation"), MUTATIONS, ids=[" ".join(one) for one in MUTATIONS])
def test_a_wall_between_workspaces_that_is_left_out_is_noticed(base, program, sound, tier_, mutation):
    running = set(of_this_build())
    noticed, _ = seen(base, program, tier_, f"skip:{mutation}")
    blind, open_ = seen(base, program, tier_, f"blind,skip:{mutation}")
    cases = sorted((open_ or set()) - sound[tier_])
    TABLE.append((f"{tier_} {mutation}", noticed, cases))
    eventually(lambda: set(of_this_build()) <= running, what="nothing runs any more")
    assert noticed or cases, f"nobody notices; a launcher that goes on: {blind}"
