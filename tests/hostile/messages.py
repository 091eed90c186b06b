"""Messages that break the protocol: each ends the agent that says it, in every state. name -> bytes."""

import json

LIST = b'{"id": 1000000, "op": "session_list"%s}'


def member(text):
    return LIST % (b", " + text)


def value(text):
    return member(b'"x": ' + text)


FATAL = {
    "nothing": b"",
    "a NUL": b"\0",
    "4 GiB as a length": b"\xff\xff\xff\xff",
    "a frame of another protocol": b"\x02\0\0\0{}",
    "spaces": b"    ",
    "an empty object": b"{}",
    "an array": b"[]",
    "an array of requests": b"[" + LIST % b"" + b"]",
    "null": b"null",
    "a number": b"1",
    "truncated at the end": (LIST % b"")[:-1],
    "truncated in a key": b'{"id": 1, "o',
    "truncated in a string": b'{"id": 1, "op": "session_list',
    "truncated in an escape": b'{"id": 1, "op": "session_list", "x": "\\u12',
    "two objects": LIST % b"" * 2,
    "an object and a NUL": LIST % b"" + b"\0",
    "an object and what would be another": LIST % b"" + b"\n" + LIST % b"",
    "a byte order mark": b"\xef\xbb\xbf" + LIST % b"",
    "UTF-16": (LIST % b"").decode().encode("utf-16"),
    "not UTF-8": value(b'"\xff"'),
    "overlong UTF-8": value(b'"\xc0\xaf"'),
    "a surrogate in UTF-8": value(b'"\xed\xa0\x80"'),
    "UTF-8 that breaks off": value(b'"\xe2\x82"'),
    "a lone high surrogate": value(b'"\\ud800"'),
    "a lone low surrogate": value(b'"\\udc00"'),
    "surrogates the wrong way round": value(b'"\\udc00\\ud800"'),
    "a raw NUL in a string": value(b'"\0"'),
    "a raw newline in a string": value(b'"\n"'),
    "depth 33": value(b"[" * 33 + b"]" * 33),
    "depth 30000": value(b"[" * 30000 + b"]" * 30000),
    "depth 60000, never closed": value(b"[" * 60000),
    "objects of depth 10000": value(b'{"":' * 10000 + b"1" + b"}" * 10000),
    "a duplicate id": b'{"id": 1000000, "id": 1000001, "op": "session_list"}',
    "a duplicate op": b'{"id": 1000000, "op": "session_list", "op": "session_create"}',
    "a duplicate op by an escape": b'{"id": 1000000, "op": "session_list", "\\u006fp": "session_create"}',
    "a duplicate key deep inside": value(b'{"a": {"b": 1, "b": 2}}'),
    "20000 values": value(b"[" + b"1," * 20000 + b"1]"),
    "1e400": value(b"1e400"),
    "-1e400": value(b"-1e400"),
    "NaN": value(b"NaN"),
    "Infinity": value(b"Infinity"),
    "a number with a leading 0": value(b"01"),
    "a number with a plus": value(b"+1"),
    "a hexadecimal number": value(b"0x1"),
    "a comment": b'{"id": 1000000, /* x */ "op": "session_list"}',
    "a comma too many": b'{"id": 1000000, "op": "session_list",}',
    "single quotes": b"{'id': 1000000, 'op': 'session_list'}",
    "no id": b'{"op": "session_list"}',
    "id 0": b'{"id": 0, "op": "session_list"}',
    "id -1": b'{"id": -1, "op": "session_list"}',
    "id true": b'{"id": true, "op": "session_list"}',
    "id null": b'{"id": null, "op": "session_list"}',
    "id 1.0": b'{"id": 1.0, "op": "session_list"}',
    "id as text": b'{"id": "1000000", "op": "session_list"}',
    "id as an array": b'{"id": [1000000], "op": "session_list"}',
    "id 2^63": b'{"id": 9223372036854775808, "op": "session_list"}',
    "id 10^30": b'{"id": 1000000000000000000000000000000, "op": "session_list"}',
    "id of 60000 digits": b'{"id": ' + b"9" * 60000 + b', "op": "session_list"}',
    "no op": b'{"id": 1000000}',
    "op null": b'{"id": 1000000, "op": null}',
    "op as a number": b'{"id": 1000000, "op": 1}',
    "op as an object": b'{"id": 1000000, "op": {"session_list": 1}}',
    "an empty op": b'{"id": 1000000, "op": ""}',
    "an unknown op": b'{"id": 1000000, "op": "shutdown"}',
    "an op with a NUL behind": b'{"id": 1000000, "op": "session_list\\u0000"}',
    "an op in capitals": b'{"id": 1000000, "op": "SESSION_LIST"}',
    "an op with a space": b'{"id": 1000000, "op": " session_list"}',
    "an answer instead of a request": b'{"id": 1000000, "ok": true}',
    "an event instead of a request": b'{"event": "exec_exit", "session": "s-0", "exec": "e-1", "exit_code": 0}',
    "64 KiB and a byte": value(b'"' + b"x" * (64 * 1024 + 1 - len(value(b'""'))) + b'"'),
    "200000 bytes": value(b'"' + b"x" * 200000 + b'"'),
}
assert len(FATAL["64 KiB and a byte"]) == 64 * 1024 + 1

# One of each kind, for every state. The parser knows no states: the rest is said in one of them.
EVERYWHERE = [
    "nothing",
    "an empty object",
    "an array of requests",
    "truncated in a string",
    "two objects",
    "not UTF-8",
    "a lone high surrogate",
    "a raw NUL in a string",
    "depth 30000",
    "a duplicate op",
    "1e400",
    "no id",
    "id -1",
    "id 10^30",
    "an unknown op",
    "an event instead of a request",
    "64 KiB and a byte",
]

# What ends an agent only when a connection is (or is not yet) open.
BEFORE_HELLO = {
    op: json.dumps({"id": 1000000, "op": op, **members}).encode()
    for op, members in {
        "session_create": {"domain": "bash"},
        "session_exec": {"session": "s-0000000000000000", "argv": ["true"]},
        "exec_signal": {"session": "s-0000000000000000", "exec": "e-1", "signal": "SIGKILL"},
        "session_stat": {"session": "s-0000000000000000"},
        "session_report": {"session": "s-0000000000000000"},
        "session_list": {},
        "session_destroy": {"session": "s-0000000000000000"},
        "workspace_create": {"name": "x"},
        "workspace_list": {},
        "workspace_destroy": {"workspace": "x"},
    }.items()
}
SECOND_HELLO = b'{"id": 1000000, "op": "hello", "protocol": 1}'
