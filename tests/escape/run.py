"""One part of the escape leg, as a process of its own so that the parts can run side by side: `run.py PART PROGRAM OUT`.
PART is a tier (the attacks in its sessions, and what its launcher signs), `workspaces TIER` (the same between two workspaces),
one of policies.KINDS (T3, where sessions may do more) or `controls` (the same attacks unconfined)."""

import json
import pathlib
import shutil
import signal
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "session"))
import between  # noqa: E402
import places  # noqa: E402
import policies  # noqa: E402
import sight  # noqa: E402

# Anybody may walk through it, so that only grants stand before the decoys; and no tier shares it as it shares /tmp.
PLACE = "/srv"


def part(name, base, program):
    tier, kind = name.removeprefix(places.BETWEEN), between.Between if name.startswith(places.BETWEEN) else sight.Sight
    more = name if name in policies.KINDS else None
    one = kind("T3" if more or name == "controls" else tier, base, program, more)
    try:
        if name == "controls":
            return {"controls": one.controls()}
        return {"confined": one.confined(), "statement": one.statement}
    finally:
        one.close()


def main(name, program, out):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what follows is cleared away
    base = pathlib.Path(tempfile.mkdtemp(prefix=f"caisson-escape-{name}-", dir=PLACE))
    try:
        pathlib.Path(out).write_text(json.dumps(part(name, base, pathlib.Path(program))))
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
