"""A client in TypeScript: every operation of the tags that are served, with types made of the contract by a public generator (js/client.ts;
the official JavaScript SDK is not on npm). What the compiler takes as a request is accepted, what is answered is valid."""
import collections
import json
import os
import pathlib
import shutil
import subprocess

import pytest
from cells import needs_kernel
from contract import FILE

SOURCE = pathlib.Path(__file__).parent / "js"
BUILD = pathlib.Path(__file__).resolve().parents[2] / "build" / "js"
TAGS = ("/v1/bash", "/v1/shell", "/v1/file", "/v1/jupyter", "/v1/code", "/v1/nodejs", "/v1/sandbox")


def run(*argv, timeout=300):
    return subprocess.run([str(a) for a in argv], cwd=BUILD, capture_output=True, text=True, timeout=timeout, check=False,
                          env={**os.environ, "npm_config_update_notifier": "false"})


@pytest.fixture(scope="module")
def client(contract) -> pathlib.Path:
    """The program, compiled. Strictly: a request that the contract does not know is an error."""
    missing = [tool for tool in ("node", "npm") if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"not installed here: {', '.join(missing)}")
    BUILD.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json", "client.ts"):
        shutil.copy(SOURCE / name, BUILD)
    try:
        done = run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=0", timeout=120)
    except subprocess.TimeoutExpired:
        pytest.skip("npm cannot install openapi-typescript and TypeScript here: no answer within two minutes")
    if done.returncode != 0:
        pytest.skip(f"npm cannot install openapi-typescript and TypeScript here: {done.stderr[-300:]}")
    bin_ = BUILD / "node_modules" / ".bin"
    done = run(bin_ / "openapi-typescript", FILE, "--default-non-nullable", "false", "-o", "contract.ts")
    assert done.returncode == 0, done.stderr
    done = run(bin_ / "tsc", "--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", "--outDir", "out", "client.ts")
    assert done.returncode == 0, done.stdout
    return BUILD / "out" / "client.js"


@needs_kernel
def test_every_operation_from_typescript(client, api, contract):
    place = api.bash("mktemp -d -p ~ js-XXXXXX")["stdout"].strip()
    done = run("node", client, api.url, api.key, place)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    seen = collections.Counter()
    for answer in answers:
        name = contract.operation(answer["method"], answer["path"])[1]
        assert answer["status"] == 200 and name, answer
        if answer["json"]:
            contract.check(answer["method"], answer["path"], answer["status"], answer["body"])
        seen[name] += 1
    every = {f"{method.upper()} {path}" for path, operations in contract.document["paths"].items() if path.startswith(TAGS)
             for method in operations}
    assert every - set(seen) == set()
    api.bash(f"rm -rf {place}")
