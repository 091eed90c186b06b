"""What the parts of the leg found, tier by tier: counts, what each claim of a statement rests on, the tables of README.md."""

import collections
import json

import catalogue

WORDS = ("stopped", "residual", "unprovable", "open", "undecided")
HEAD = "| | " + " | ".join(("T3", "T2", "T0", "T1")) + " |"
ORDER = ("T3", "T2", "T0", "T1")
# Residual entries that no case can show, with the reason.
NOT_SHOWN = {"proc-sys-writable": "open to root of the container, which no session is"}
# Between workspaces: attacks on programs of root's in the attacker's home, where nobody puts any; and entries that are about sessions of
# one workspace, or about places that no workspace has.
NOT_BETWEEN = ("FS-18.setuid", "FS-18.setgid", "FS-19.capability-file", "RS-17.lease")
WITHIN = ("loopback-shared", "peers-tunable", "terminals-shared", "names-visible", "path-sockets")
CELLS = []  # the table of the container matrix, for the end of the run
CELLS_BEGIN, CELLS_END = "<!-- container table: begin -->\n", "<!-- container table: end -->"


class Tier:
    """One tier's verdicts beside what its launcher signed."""

    def __init__(self, name, cases, found, controls):
        self.name, self.cases = name, cases
        confinement = found["statement"]["confinement"]
        self.tier = found["statement"]["tier"]
        self.stated = {entry["id"]: entry["what"] for entry in confinement["residual"]}
        self.enforced = {m["name"] for m in confinement["mechanisms"] if m["state"] == "enforced"}
        lost = catalogue.LOST
        self.verdicts = {
            case.id: catalogue.judge(case, found["confined"].get(case.id, lost), controls.get(case.id, lost), set(self.stated))
            for case in cases
        }

    def those(self, word):
        return {case.id: case for case in self.cases if self.verdicts[case.id]["verdict"] == word}

    def counts(self):
        count = collections.Counter(v["verdict"] for v in self.verdicts.values())
        return {**{word: count[word] for word in WORDS}, "controls": sum(v["control"] for v in self.verdicts.values())}

    def stopped_by(self):
        """mechanism -> proven cases that it stopped: of a case's walls the first that is enforced here."""
        found = collections.defaultdict(list)
        for case in self.those("stopped").values():
            if wall := next((m for m in case.mechanisms if m in self.enforced), None):
                found[wall].append(case.id)
        return found

    def shown(self):
        """residual id -> cases that show it."""
        found = collections.defaultdict(list)
        for case in self.those("residual").values():
            found[self.verdicts[case.id]["residual"]].append(case.id)
        return found

    def say(self, word):
        return "\n".join(f"{n}: {v['sign']} {v['note']}" for n, v in self.verdicts.items() if v["verdict"] == word)


def counts_line(tier):
    c = tier.counts()
    return (
        f"{tier.name}: {len(tier.cases)} cases, {c['stopped']} stopped, {c['residual']} residual, {c['unprovable']} unprovable, "
        f"{c['open']} open, {c['undecided']} undecided, {c['controls']} controls succeeded"
    )


def readable(tiers):
    """Every case, one line, with its verdict in each tier."""
    lines = [counts_line(tier) for tier in tiers] + [""]
    for case in tiers[0].cases:
        found = [tier.verdicts[case.id] for tier in tiers]
        words = " ".join(f"{v['verdict']:<10} {v['sign']:<13}" for v in found)
        lines.append(f"{case.id:<30} {words} {case.attack}")
    return "\n".join(lines) + "\n"


def as_json(tiers):
    return json.dumps(
        {tier.name: {"counts": tier.counts(), "residual": tier.stated, "enforced": sorted(tier.enforced), "cases": tier.verdicts}
         for tier in tiers},
        indent=1,
    )  # fmt: skip


def counts_table(tiers):
    """How many attacks proved something where this was written. On another machine other controls succeed."""
    lines = ["| on the build host | stopped | open and named | proves nothing here | open, not named | undecided | controls that succeeded |",
             "|---|---|---|---|---|---|---|"]
    for tier in sorted(tiers, key=lambda tier: ORDER.index(tier.name)):
        c = tier.counts()
        row = [c[word] for word in ("stopped", "residual", "unprovable", "open", "undecided", "controls")]
        lines.append(f"| {tier.name} | " + " | ".join(map(str, row)) + " |")
    return "\n".join(lines)


def open_table(tiers):
    """Counts by area, then what is open by residual id. No errnos and no controls: they differ from machine to machine. A case
    that proves nothing on one machine may on the next, so that only what is open is counted apart; counts_table tells the rest."""
    tiers = sorted(tiers, key=lambda tier: ORDER.index(tier.name))
    cases = tiers[0].cases
    lines = [f"| {len(cases)} attacks | " + " | ".join(tier.name for tier in tiers) + " |", "|---" * (len(tiers) + 1) + "|"]

    def cell(tier, area):
        left = sum(case.area == area for case in tier.those("residual").values())
        total = sum(case.area == area for case in cases)
        return f"{total - left}" + (f" (open: {left})" if left else "")

    for area in dict.fromkeys(case.area for case in cases):
        lines.append(f"| {area} | " + " | ".join(cell(tier, area) for tier in tiers) + " |")
    lines += ["", "| open, by its id in the statement | " + " | ".join(tier.name for tier in tiers) + " |", "|---" * (len(tiers) + 1) + "|"]
    shown = [tier.shown() for tier in tiers]
    for id in dict.fromkeys(id for case in cases for id in case.residual):
        if any(id in one for one in shown):
            lines.append(f"| `{id}` | " + " | ".join(named(one.get(id, [])) for one in shown) + " |")
    return "\n".join(lines)


def named(ids):
    """`PR-03.comm, PR-03.stat` as one word each group: PR-03 (2)."""
    groups = collections.Counter(id.split(".")[0] for id in sorted(ids))
    return ", ".join(f"{group} ({count})" if count > 1 else group for group, count in groups.items()) or "–"


def cells_table(cells):
    """The container matrix: cell -> Tier, or why there is none."""
    lines = ["| outer container | tier | stopped | proves nothing here | open and named | named as | open, not named |", "|---|---|---|---|---|---|---|"]
    for name, tier in cells.items():
        if not isinstance(tier, Tier):
            lines.append(f"| {name} | – | | | | {'failed' if isinstance(tier, Exception) else f'not here: {tier}'} | |")
            continue
        counts, shown = tier.counts(), ", ".join(f"`{id}`" for id in sorted(tier.shown()))
        lines.append(f"| {name} | {tier.tier} | {counts['stopped']} | {counts['unprovable']} | {counts['residual']} | {shown} | {counts['open']} |")
    return "\n".join(lines)


def replaced(text, begin, end, table):
    """The text with the table between its two marks."""
    before, _, rest = text.partition(begin)
    _, mark, after = rest.partition(end)
    assert mark, f"the text lost its marks {begin.strip()}"
    return before + begin + table + "\n" + end + after
