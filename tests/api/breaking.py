"""What would break a client of one OpenAPI document (`old`) that talks to a server of another (`new`): requests that it may send are no
longer taken, or answers hold what it does not expect."""
LOWEST = ("minimum", "exclusiveMinimum", "minLength", "minItems")
HIGHEST = ("maximum", "exclusiveMaximum", "maxLength", "maxItems")


class Comparison:
    def __init__(self, old: dict, new: dict):
        self.old, self.new = old, new
        self.found: list[str] = []
        self.seen: set[tuple] = set()

    def say(self, where: str, what: str):
        self.found.append(f"{where}: {what}")

    @staticmethod
    def resolve(document: dict, value: dict) -> dict:
        while "$ref" in value:
            at = document
            for step in value["$ref"].removeprefix("#/").split("/"):
                at = at[step]
            value = at
        return value

    def kinds(self, document: dict, schema: dict) -> dict[str, dict]:
        """Its alternatives by their JSON type; `any` where it names none. Of several objects, one that has the members of all."""
        schema = self.resolve(document, schema)
        options = schema.get("anyOf") or schema.get("oneOf")
        if not options:
            values = schema.get("enum", [])
            return {schema.get("type") or ("string" if values and isinstance(values[0], str) else "any"): schema}
        out: dict[str, dict] = {}
        for option in options:
            for kind, inner in self.kinds(document, option).items():
                if kind == "object" and kind in out:
                    both = {**inner.get("properties", {}), **out[kind].get("properties", {})}
                    required = set(inner.get("required", [])) & set(out[kind].get("required", []))
                    inner = {"type": "object", "properties": both, "required": sorted(required)}
                out[kind] = inner
        return out

    def schema(self, where: str, old: dict, new: dict, request: bool):
        """`given` is what one side may send, `taken` what the other expects."""
        mark = (id(old), id(new), request)
        if mark in self.seen:  # types that hold themselves
            return
        self.seen.add(mark)
        before, after = self.kinds(self.old, old), self.kinds(self.new, new)
        given, taken = (before, after) if request else (after, before)
        for kind, sent in given.items():
            wanted = taken.get(kind) or (taken.get("number") if kind == "integer" else None)
            if "any" in taken:
                continue
            if wanted is None:
                self.say(where, f"{kind} is sent, {sorted(taken)} taken")
                continue
            self.values(where, sent, wanted)
            was, is_ = (sent, wanted) if request else (wanted, sent)
            self.inside(where, was, is_, request)

    def values(self, where: str, sent: dict, wanted: dict):
        for names, worse in ((LOWEST, lambda a, b: a < b), (HIGHEST, lambda a, b: a > b)):
            for name in names:
                if name in wanted and (name not in sent or worse(sent[name], wanted[name])):
                    self.say(where, f"{name} {sent.get(name)} is sent, {wanted[name]} taken")
        choices = [s.get("enum", [s["const"]] if "const" in s else None) for s in (sent, wanted)]
        if choices[1] is not None and (choices[0] is None or set(choices[0]) - set(choices[1])):
            self.say(where, f"{choices[0] or 'anything'} is sent, {choices[1]} taken")

    def inside(self, where: str, old: dict, new: dict, request: bool):
        if "items" in old and "items" in new:
            self.schema(f"{where}[]", old["items"], new["items"], request)
        both = [s.get("additionalProperties") for s in (old, new)]
        if all(isinstance(s, dict) for s in both):
            self.schema(f"{where}.*", *both, request)
        was, is_ = set(old.get("required", [])), set(new.get("required", []))
        for name in sorted(is_ - was if request else was - is_):
            self.say(where, f"{name} is {'' if request else 'no longer '}required")
        for name, field in old.get("properties", {}).items():
            inner = new.get("properties", {}).get(name)
            if inner is None:
                self.say(where, f"{name} is gone")
            else:
                self.schema(f"{where}.{name}", field, inner, request)

    def content(self, where: str, old: dict, new: dict, request: bool):
        for kind, media in old.items():
            if kind not in new:
                self.say(where, f"{kind} is gone")
            elif "schema" in media:
                self.schema(where, media["schema"], new[kind].get("schema", {}), request)

    def operation(self, where: str, old: dict, new: dict):
        parameters = [{(p["in"], p["name"]): p for p in o.get("parameters", [])} for o in (old, new)]
        for key, parameter in parameters[1].items():
            before = parameters[0].get(key, {"required": False})
            if parameter["required"] and not before["required"]:
                self.say(where, f"parameter {key[1]} is required")
        for key, parameter in parameters[0].items():
            if key not in parameters[1]:
                self.say(where, f"parameter {key[1]} is gone")
            else:
                self.schema(f"{where} ?{key[1]}", parameter["schema"], parameters[1][key]["schema"], True)
        bodies = [o.get("requestBody", {}) for o in (old, new)]
        if bodies[1].get("required", False) and not bodies[0].get("required", False):
            self.say(where, "a body is required")
        self.content(f"{where} body", bodies[0].get("content", {}), bodies[1].get("content", {}), True)
        for status, answer in old["responses"].items():
            if status not in new["responses"]:
                self.say(where, f"{status} is gone")
                continue
            answers = [self.resolve(d, a).get("content", {}) for d, a in ((self.old, answer), (self.new, new["responses"][status]))]
            self.content(f"{where} {status}", *answers, False)


def breaking(old: dict, new: dict) -> list[str]:
    """Of the operations that both have."""
    comparison = Comparison(old, new)
    for path, methods in old["paths"].items():
        for method, operation in methods.items():
            if method in new["paths"].get(path, {}):
                comparison.operation(f"{method.upper()} {path}", operation, new["paths"][path][method])
    return comparison.found
