"""contract.json: the facts of the public contract and nothing else, as scripts/gen-contract makes it."""
import importlib.machinery
import importlib.util
import pathlib

import pytest
from contract import FILE

ROOT = pathlib.Path(__file__).resolve().parents[2]
FULL = ROOT.parent / "shared" / "contract" / "openapi.json"
PROSE = {"summary", "title", "description", "example", "examples", "externalDocs"}


@pytest.fixture(scope="module")
def script():
    loader = importlib.machinery.SourceFileLoader("gen_contract", str(ROOT / "scripts" / "gen-contract"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gen_contract", loader))
    loader.exec_module(module)
    return module


def prose(value, named=False):
    """The members of prose in it; below `properties` and the like members are names of the API's own."""
    if isinstance(value, list):
        return [found for item in value for found in prose(item)]
    if not isinstance(value, dict):
        return []
    here = [] if named else [text for key, text in value.items() if key in PROSE and text]
    inner = ((key in ("properties", "schemas", "headers") and not named, item) for key, item in value.items())
    return here + [found for names, item in inner for found in prose(item, names)]


def test_it_holds_no_prose(contract):
    assert prose(contract.document["paths"]) + prose(contract.document["components"]) == []


def test_it_is_what_the_script_makes_of_the_contract(script):
    if not FULL.is_file():
        pytest.skip("the contract itself (../shared/contract/openapi.json) is not here: contract.json cannot be compared with it")
    assert FILE.read_text() == script.dump(script.reduce(script.json.loads(FULL.read_text())))


def test_the_script_keeps_types_bounds_and_names_and_drops_what_explains_them(script):
    made = script.schema({"type": "object", "title": "T", "description": "d", "required": ["title"], "properties": {
        "title": {"type": "integer", "minimum": 1, "default": 2, "description": "d", "examples": [3]},
        "b": {"anyOf": [{"enum": ["x"], "title": "B"}, {"type": "null"}]}}})
    assert made == {"type": "object", "required": ["title"], "properties": {
        "title": {"type": "integer", "minimum": 1, "default": 2}, "b": {"anyOf": [{"enum": ["x"]}, {"type": "null"}]}}}
