"""What is attested against what an independent program could do: neither may claim more or less than the other shows."""

import json
import os

import places
import pytest
import verdicts
from harness import ROOT

SCHEMA = json.loads((ROOT / "launcher" / "common" / "attest" / "statement.schema.json").read_text())
MECHANISMS = set(SCHEMA["$defs"]["mechanism"]["enum"])
BEGIN, END = "<!-- escape table: begin -->\n", "<!-- escape table: end -->"
COUNTS_BEGIN, COUNTS_END = "<!-- escape counts: begin -->\n", "<!-- escape counts: end -->"


def test_the_catalogue_has_at_least_150_attacks(cases):
    assert len({case.id for case in cases}) == len(cases) >= 150


def test_every_attack_says_what_stops_it_and_how(cases):
    vague = [case.id for case in cases if not case.field.startswith("/") or not case.expected or set(case.mechanisms) - MECHANISMS]
    assert not vague
    # What nothing stops in any tier must at least be stated.
    assert not [case.id for case in cases if not case.mechanisms and not case.residual]


def test_no_attack_is_undecided(tier):
    assert not tier.those("undecided"), tier.say("undecided")


def test_every_attack_is_stopped_or_stated(tier):
    assert not tier.those("open"), tier.say("open")


def test_no_mechanism_is_called_enforced_that_an_attack_passed(tier):
    passed = {**tier.those("open"), **tier.those("residual")}
    lies = {id: sorted(tier.enforced.intersection(case.mechanisms)) for id, case in passed.items()}
    assert not {id: walls for id, walls in lies.items() if walls}


def test_every_mechanism_called_enforced_stops_a_proven_attack(tier):
    # Refused calls on record stop nothing: tests/session/test_denials.py.
    assert not tier.enforced - {"denial_audit"} - set(tier.stopped_by())


def test_everything_stated_as_open_is_open(tier):
    unseen = set(tier.stated) - set(tier.shown()) - set(verdicts.NOT_SHOWN)
    assert not unseen - set(verdicts.WITHIN if tier.name.startswith(places.BETWEEN) else ())


@pytest.mark.parametrize("name", ("T3", "T2", "T0"))
def test_what_is_open_within_a_workspace_alone_is_not_open_between_two(judged, name):
    assert not set(judged[places.BETWEEN + name].shown()) & set(verdicts.WITHIN)


def test_every_control_succeeds_or_says_why_not(tier):
    silent = [id for id, v in tier.verdicts.items() if not v["control"] and not v["reason"]]
    assert not silent
    assert tier.counts()["controls"] >= 150


def test_a_lower_tier_stops_nothing_that_its_statement_hides(tiers):
    """What a higher tier stops and a lower one does not is in the lower one's list and not in the higher one's."""
    for name, tier in tiers.items():
        assert set(tier.shown()) <= set(tier.stated), name


# Where sessions install packages they are root of a copy, and changes of user and owner are answered without being made. What judges
# by these sees an effect; outside nothing has one, or the case's note would say what.
OF_THE_COPY = ("FS-03.", "FS-01.var-log", "FS-01.shadow", "FS-01.gshadow")  # shadow: a file of its own, without a password
ANSWERED = ("PV-01.", "PV-03.capset", "PV-09.pretend", "FS-02.chown", "FS-04.chown")
ALREADY_ROOT = {"FS-18.setuid": "", "FS-18.setgid": "", "FS-19.capability-file": "", "KS-20.random": "the walls are gone"}
OWNED = ("PR-03.init-fd",)  # which numbers of descriptors the session's first process has


def test_a_copy_of_the_system_opens_nothing_but_itself(packages, tiers):
    assert packages.enforced == tiers["T3"].enforced
    assert set(packages.stated) == {*tiers["T3"].stated, "system-shared"}
    assert not packages.those("undecided"), packages.say("undecided")
    more = {
        id: packages.verdicts[id]
        for id in packages.those("open")
        if not id.startswith(OF_THE_COPY + ANSWERED + OWNED) or packages.verdicts[id]["note"]
    }
    assert {id: v["note"] for id, v in more.items()}.items() <= ALREADY_ROOT.items(), packages.say("open")


# What the set opens by itself, and what the capabilities of such namespaces open: each in these namespaces alone (nested-user-ns).
MADE = {"PV-06.unshare-user", "PV-06.clone-user", "PV-06.clone-user-high"}
CAPABLE = {*MADE, "PV-06.clone-pid", "PV-03.CapPrm", "PV-03.CapEff", "PV-03.CapBnd", "PV-03.capset", "PV-03.capset-inheritable", "PV-03.ambient",
           "PV-03.securebits-handed", "FS-09.chroot", "KS-06.number-chroot", "KS-11.transparent", "KS-11.mark", "NW-18.low-port"}
# There no network device is up, processes have other numbers, and the empty file over a hidden one may be read: refusals of other words.
OTHER_WORDS = {"NW-02.": ("ENETUNREACH", "EADDRNOTAVAIL"), "PV-08.": ("ENOENT",), "FS-19.setxattr": ("EINVAL",), "FS-37.hidden": ("",)}


def test_namespaces_of_a_browsers_own_open_nothing_that_is_not_stated(nested, tiers):
    name, tier = nested
    assert set(tier.stated) == {*tiers["T3"].stated, "nested-user-ns"}
    assert set(tier.those("open")) <= {"nested-sandbox": MADE, "nested": CAPABLE}[name], tier.say("open")
    signs = {id: next((s for start, s in OTHER_WORDS.items() if id.startswith(start) and name == "nested"), ()) for id in tier.those("undecided")}
    assert not [id for id, allowed in signs.items() if tier.verdicts[id]["sign"] not in allowed], tier.say("undecided")


def test_the_table_of_the_readme_is_what_was_seen(tiers):
    path = ROOT / "tests/escape/README.md"
    text = path.read_text()
    table = text.partition(BEGIN)[2].partition(END)[0]
    fresh = verdicts.open_table(list(tiers.values()))
    if os.environ.get("CAISSON_UPDATE") == "1":
        text = verdicts.replaced(text, BEGIN, END, fresh)
        path.write_text(verdicts.replaced(text, COUNTS_BEGIN, COUNTS_END, verdicts.counts_table(list(tiers.values()))))
        return
    assert table == fresh + "\n", "CAISSON_UPDATE=1 scripts/test escape writes it anew"
