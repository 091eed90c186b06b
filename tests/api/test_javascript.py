"""A client in TypeScript: every operation of the tags that are served, with types made of the contract by a public generator (js/client.ts;
the official JavaScript SDK is not on npm). What the compiler takes as a request is accepted, what is answered is valid."""
import collections
import json
import pathlib

import pytest
from cells import needs_kernel
from contract import FILE
from npm import installed, run

TAGS = ("/v1/bash", "/v1/shell", "/v1/file", "/v1/jupyter", "/v1/code", "/v1/nodejs", "/v1/sandbox")


@pytest.fixture(scope="module")
def client(contract) -> pathlib.Path:
    """The program, compiled. Strictly: a request that the contract does not know is an error."""
    build = installed()
    bin_ = build / "node_modules" / ".bin"
    done = run(bin_ / "openapi-typescript", FILE, "--default-non-nullable", "false", "-o", "contract.ts")
    assert done.returncode == 0, done.stderr
    done = run(bin_ / "tsc", "--strict", "--target", "es2022", "--module", "nodenext", "--skipLibCheck", "--outDir", "out", "client.ts")
    assert done.returncode == 0, done.stdout
    return build / "out" / "client.js"


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
