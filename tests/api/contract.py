"""The public contract, contract.json (made by scripts/gen-contract): which operation a request was, whether its response is valid, and
which fields of it the contract does not know."""
import functools
import json
import pathlib
import re

import jsonschema

FILE = pathlib.Path(__file__).resolve().parent / "contract.json"


class Contract:
    def __init__(self, document: dict):
        self.document = document
        self.schemas = document["components"]["schemas"]
        self.extra: dict[str, set[str]] = {}    # operation -> fields beyond the contract, as "data.sessions[].x"
        self.checked: dict[str, int] = {}       # operation -> responses checked

    @staticmethod
    def load():
        return Contract(json.loads(FILE.read_text()))

    def operation(self, method: str, path: str):
        """The contract's operation for a request and its name ("POST /v1/bash/exec"), or (None, None)."""
        for template, operations in sorted(self.document["paths"].items(), key=lambda item: item[0].count("{")):
            if method.lower() in operations and re.fullmatch(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template)), path):
                return operations[method.lower()], f"{method.upper()} {template}"
        return None, None

    @functools.lru_cache(maxsize=200)
    def validator(self, name: str):
        schema = {"$ref": f"#/components/schemas/{name}", "components": {"schemas": self.schemas}}
        return jsonschema.Draft202012Validator(schema)

    def check(self, method: str, path: str, status: int, body) -> str | None:
        """Raises AssertionError on an invalid response; returns the operation's name (None: not in the contract)."""
        operation, name = self.operation(method, path)
        if operation is None or str(status) not in operation["responses"]:
            return None
        schema = operation["responses"][str(status)].get("content", {}).get("application/json", {}).get("schema", {})
        if "$ref" not in schema:  # untyped there
            self.checked[name] = self.checked.get(name, 0) + 1
            self.extra.setdefault(name, set())
            return name
        validator = self.validator(schema["$ref"].rsplit("/", 1)[1])
        problems = [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator.iter_errors(body)]
        assert not problems, f"{name}: {problems} in {json.dumps(body)[:2000]}"
        self.checked[name] = self.checked.get(name, 0) + 1
        self.extra.setdefault(name, set()).update(self.unknown_fields(schema, body))
        return name

    def resolve(self, schema: dict) -> dict:
        while "$ref" in schema:
            schema = self.schemas[schema["$ref"].rsplit("/", 1)[1]]
        return schema

    def unknown_fields(self, schema: dict, value, where="") -> set[str]:
        schema = self.resolve(schema)
        options = schema.get("anyOf") or schema.get("oneOf")
        if options:
            return set.intersection(*[self.unknown_fields(option, value, where) for option in options])
        if isinstance(value, list) and "items" in schema:
            return {name for item in value for name in self.unknown_fields(schema["items"], item, where + "[]")}
        if not isinstance(value, dict) or "type" not in schema:
            return set()
        if schema["type"] != "object":
            return {where + ".*"}  # an object where another kind was meant: not this option
        found = set()
        rest = schema.get("additionalProperties", "properties" not in schema)
        for key, item in value.items():
            inner = schema.get("properties", {}).get(key)
            if inner is not None:
                found |= self.unknown_fields(inner, item, f"{where}.{key}" if where else key)
            elif isinstance(rest, dict):
                found |= self.unknown_fields(rest, item, f"{where}.*")
            elif not rest:
                found.add(f"{where}.{key}" if where else key)
        return found
