"""Containers as others start the image, with few rights and few places to write: each is of use in the tier that its flags permit, and
says what that costs, or ends with one sentence that says what to give."""
import json
import re

import pytest

from conftest import ROOT, sh, with_flags

FEW = ["--cap-drop=ALL", "--security-opt", "no-new-privileges"]
OUR_PROFILE = ["--cap-drop=ALL", "--cap-add=SETUID", "--cap-add=SETGID", "--cap-add=KILL", "--security-opt",
               f"seccomp={ROOT}/image/seccomp.json"]
# As a volume with fsGroup: the group may write, others may not.
HOME = ["--mount", "type=tmpfs,destination=/home/gem,tmpfs-mode=2770,chown"]
IN_MEMORY = {"audit-in-memory", "home-in-memory"}
ROOT_ALONE = "root-without-capabilities"
# Flags, the tiers that they may give, and what the statement says of the container.
CELLS = {
    "root without capabilities": (["--cap-drop=ALL"], {"T1"}, {ROOT_ALONE, "home-in-memory"}),
    "DeerFlow's": ([*FEW, "--pids-limit", "512"], {"T1"}, {ROOT_ALONE, "home-in-memory"}),
    "root without capabilities, unconfined": ([*FEW, "--security-opt", "seccomp=unconfined"], {"T1"}, {ROOT_ALONE, "home-in-memory"}),
    "read-only": (["--read-only"], {"T2", "T3"}, IN_MEMORY),
    "read-only without another tmpfs": (["--read-only", "--read-only-tmpfs=false"], {"T2", "T3"}, IN_MEMORY),
    "read-only, our profile": (["--read-only", *OUR_PROFILE], {"T2", "T3"}, IN_MEMORY),
    "OpenShift's arbitrary id": (["--user", "1000650000:0", *FEW], {"T1"}, IN_MEMORY),
    "nobody": (["--user", "65534", *FEW], {"T1"}, IN_MEMORY),
    "readOnlyRootFilesystem, runAsNonRoot, fsGroup": (["--read-only", "--user", "1000:1000", *FEW, *HOME], {"T1"}, {"audit-in-memory"}),
    "readOnlyRootFilesystem, hostUsers: false": (
        ["--read-only", *OUR_PROFILE, "--userns=auto:size=70000", "--security-opt", "unmask=ALL"], {"T3"}, IN_MEMORY),
}


@pytest.fixture(scope="module", params=CELLS)
def cell(request, engine, image):
    flags, tiers, residual = CELLS[request.param]
    if engine != "podman" and any(f.startswith(("--read-only-tmpfs", "--userns")) for f in flags):
        pytest.skip("flags of podman")
    if "--userns=auto:size=70000" in flags:
        sh("bash", "-c", f'. {ROOT}/scripts/lib/common.sh; . {ROOT}/scripts/lib/tiers.sh; ensure_id_range || die "$TIER_WHY"')
    with with_flags(engine, image, "caisson-cell-" + re.sub("[^a-z]+", "-", request.param.lower()).strip("-"), flags) as served:
        served.eventually(served.ready)
        served.tiers, served.residual = tiers, residual
        yield served


def test_flaw_18_commands_write_into_the_home(cell):
    data = cell.bash("cd && echo kept > ~/file && cat ~/file && [ -w . ] && cat /etc/shadow")
    assert data["stdout"] == "kept\n" and data["exit_code"] != 0, data


def test_flaw_18_the_files_api_writes(cell):
    written = cell.http.post("/v1/file/write", json={"file": "written.txt", "content": "written"}).json()
    assert written["success"], written
    assert cell.bash("cat ~/written.txt")["stdout"] == "written"


def test_flaw_18_notebooks_run(cell):
    done = cell.http.post("/v1/jupyter/execute", json={"code": "open('cell.txt', 'w').write('x') + 41"}).json()
    assert [o["data"]["text/plain"] for o in done["data"]["outputs"]] == ["42"], done


def test_flaw_18_what_is_attested_is_so(cell):
    statement = cell.http.get("/v1/attestation?nonce=of-the-cells").json()["data"]["statement"]
    said = {r["id"] for r in statement["residual"]}
    assert statement["tier"] in cell.tiers
    assert said & {ROOT_ALONE, *IN_MEMORY} == cell.residual
    assert all("RLIMIT_NPROC" in r["what"] for r in statement["residual"] if r["id"] == ROOT_ALONE)
    assert all(f"caisson-launcher: {r['what']}" in cell.logs() for r in statement["residual"] if r["id"] in cell.residual)
    shown = dict(line.split(":\t") for line in cell.bash("grep -E '^(Uid|Cap)' /proc/self/status")["stdout"].splitlines())
    assert {v for k, v in shown.items() if k.startswith("Cap")} == {"0" * 16}
    assert (shown["Uid"].split()[0] == "0") == (ROOT_ALONE in said)


@pytest.mark.parametrize("flags, sentence", [
    (["--cap-drop=SETUID"], "add the capabilities SETUID, SETGID and KILL"),
    (["--read-only", "--read-only-tmpfs=false", "--mount", "type=tmpfs,destination=/dev/shm,ro"], "mount a tmpfs or a volume"),
    (["--read-only", "-e", "CAISSON_AUDIT_DIR=/var/log/elsewhere"], "'/var/log/elsewhere'"),
], ids=["capabilities without SETUID", "nothing can be written", "a directory that was asked for"])
def test_flaw_18_what_cannot_be_served_ends_with_one_sentence(engine, image, flags, sentence):
    if engine != "podman" and "--read-only-tmpfs=false" in flags:
        pytest.skip("flags of podman")
    with with_flags(engine, image, "caisson-cell-refused", flags) as served:
        served.eventually(lambda: not served.running())
        said = [line for line in served.logs().splitlines() if line]
        assert len(said) == 1 and said[0].startswith("caisson-launcher: ") and sentence in said[0], json.dumps(said, indent=1)
