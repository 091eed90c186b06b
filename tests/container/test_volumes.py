"""Volumes as others mount them into the image: where their commands begin, and what they may do there."""
import json

import pytest

from conftest import engine_run, sh, with_flags

VOLUMES = {"/mnt/user-data/workspace": "", "/mnt/user-data/uploads": "", "/mnt/skills": ":ro", "/workspace": ""}
FEW = ["--cap-drop=ALL", "--security-opt", "no-new-privileges"]
CELLS = {"no flag": [], "DeerFlow's": FEW, "off": ["-e", "CAISSON_MOUNTS="]}


@pytest.fixture(scope="module", params=CELLS)
def served(request, engine, image):
    name = "caisson-volumes-" + "".join(c for c in request.param.lower() if c.isalpha())
    volumes = [f"{name}-{i}" for i in range(len(VOLUMES))]
    mounts = [f for v, (path, mode) in zip(volumes, VOLUMES.items()) for f in ("-v", f"{v}:{path}{mode}")]
    # As a host's directory that anybody may write to.
    sh(*engine_run(engine, image).stdout.split(), "--rm", *[m.removesuffix(":ro") for m in mounts], "--entrypoint", "sh", image, "-c",
       "chmod 777 /mnt/user-data/* /mnt/skills /workspace && echo skill > /mnt/skills/file")
    try:
        with with_flags(engine, image, name, [*CELLS[request.param], *mounts]) as one:
            one.eventually(one.ready)
            one.granted = request.param != "off"
            yield one
    finally:
        sh(engine, "volume", "rm", "-f", *volumes, check=False)


def test_commands_begin_in_a_volume(served):
    done = served.bash("cd /mnt/user-data/workspace && echo kept > file && cat file && cd /workspace && echo too > file && cat file")
    assert (done["stdout"] == "kept\ntoo\n") == served.granted, done


def test_the_files_api_works_in_it(served):
    done = served.http.post("/v1/file/write", json={"file": "/mnt/user-data/uploads/a.txt", "content": "x"})
    read = served.http.post("/v1/file/read", json={"file": "/mnt/user-data/uploads/a.txt"})
    assert (done.json()["success"] and read.json()["data"]["content"] == "x") == served.granted, done.text


def test_one_for_reading_is_only_read(served):
    done = served.bash("cat /mnt/skills/file; echo x > /mnt/skills/new; echo $?")
    assert done["stdout"].splitlines() == (["skill", "1"] if served.granted else ["1"]), done


def test_the_image_s_directories_around_it_are_not_opened(served):
    assert served.bash("touch /mnt/user-data/x /mnt/x 2>/dev/null; echo $?")["stdout"] == "1\n"


def test_explain_in_the_container_and_the_statement_name_them(served):
    explained = served.exec("caisson", "policy", "explain", "bash").stdout
    id = served.http.post("/v1/bash/sessions/create", json={}).json()["data"]["session_id"]
    said = json.dumps(served.http.get(f"/v1/sessions/{id}/confinement").json())
    for path in VOLUMES:
        assert (path in explained) == (f"/grants{path}" in said) == served.granted
