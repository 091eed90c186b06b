"""Ways around the list, each tried where the internet is, where it arrives, and in a session whose policy goes out, from which nothing may
arrive: what counts is what a socket of packets beside the servers sees. In containers: tests/container/test_egress_attacks.py."""

import json
import os
import pathlib
import tempfile
import types

import attacks
import harness
import places
import pytest
import without
from attacks import ATTACKS, BEHALF, DOOR, HOWS, PORTS, TABLES, TCP, Seen, told
from connected import REQUIRED
from harness import AGENT, edit, eventually
from over_http import OverHttp
from run import PLACE
from sight import CarelessLauncher
from world import PUBLIC, World

STANDS = {"T3": DOOR, "T3 without nf_tables": PORTS, "T2": DOOR, "T2 without nf_tables": PORTS, "T0": BEHALF, "T1": BEHALF}


@pytest.fixture(scope="module")
def controls(here, tmp_path_factory):
    """name: what an attack says where the internet is, and whether it arrives."""
    world = World(tmp_path_factory.mktemp("controls"))
    attacks.listens(world)
    seen, out = Seen(world), {}
    for name, (code, protocol, address, _) in ATTACKS.items():
        seen.packets()
        (said,) = attacks.unconfined(world, code)
        out[name] = said, (protocol, address) in seen.packets()
    yield out
    world.close()


@pytest.mark.parametrize("attack", ATTACKS)
def test_what_is_tried_arrives_from_outside(controls, attack):
    """Else that nothing arrives from a session proved nothing."""
    said, arrives = controls[attack]
    if said == "EPROTONOSUPPORT":
        pytest.skip("not in this kernel")
    assert arrives, said


@pytest.fixture(scope="module", params=STANDS)
def stand(here, tmp_path_factory, request):
    """A session whose policy goes out: what codes say in it, what arrives, and what is on record."""
    tier, _, lacks = request.param.partition(" ")
    if tier == "T1" and not AGENT.exists():
        pytest.skip("the agent is not built: scripts/test session builds it")
    world = World(tmp_path_factory.mktemp("attacks"))
    attacks.listens(world)
    with tempfile.TemporaryDirectory(prefix="caisson-attacks-", dir=PLACE) as name, launcher(tier, pathlib.Path(name)) as one:
        edit(one.policies / "bash.json", **attacks.POLICY)
        if tier in ("T0", "T1"):
            edit(one.policies / "base.json", require=REQUIRED)
        if tier == "T1":
            for path in (one.base, *one.base.rglob("*")):
                os.chown(path, places.UID, places.UID)
        with world.out.inside():  # where the agent of T1 listens
            one.start(wrapper=[*world.wrapper(), *places.wrapper(tier, one.home), *(without.wrapper() if lacks else [])])
            control = OverHttp(one) if tier == "T1" else one.control()
            if control.hello["tier"] != tier:
                pytest.skip(f"this kernel does not give tier {tier}")
            session = control.create()

            def inside(*codes):
                return json.loads(control.output(session, "/usr/bin/python3", "-I", "-c", told(*codes, agent=one.port)))

            yield types.SimpleNamespace(inside=inside, seen=Seen(world), records=one.records, kind=STANDS[request.param])
    world.close()


def launcher(tier, base):
    base.chmod(0o755)
    return CarelessLauncher(base) if tier == "T1" else harness.Launcher(base)


@pytest.mark.parametrize("table", TABLES)
def test_ways_around_the_list_fail_as_they_should_and_are_on_record(stand, table):
    attacks.try_all(stand, table)


@pytest.mark.parametrize("how", HOWS)
def test_no_spelling_of_another_host_is_reached_by_the_door(stand, how):
    attacks.try_spellings(stand, HOWS[how])


def test_names_carry_nothing_out(stand):
    attacks.try_names(stand)


def test_what_a_session_may_do_it_can(stand):
    """Else nothing of this proved anything."""
    stand.seen.packets()
    assert stand.inside("proxied(b'api.test:80')")[0].startswith("HTTP/1.1 200")
    eventually(lambda: (TCP, PUBLIC) in stand.seen.packets(), what="it arrives")
