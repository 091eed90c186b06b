"""What a session whose policy goes out is asked to reach, and what its launcher has on record of it."""

import json

REACHED = """
def get(host, port=80):
    try:
        s = socket.create_connection((host, port), 10)
        s.sendall(b"GET / HTTP/1.1\\r\\nHost: %s\\r\\nConnection: close\\r\\n\\r\\n" % host.encode())
        text = b""
        while data := s.recv(4096): text += data
        return text.split(b"\\r\\n\\r\\n", 1)[-1].decode() if b" 200 " in text.split(b"\\r\\n")[0] else text.split(b"\\r\\n")[0].decode()
    except socket.gaierror: return "no name"
    except OSError as e: return name(e.errno) if e.errno else type(e).__name__
print(json.dumps(get(*sys.argv[1:2])))
"""
PROGRAM = "import ctypes, errno, json, os, socket, sys\ndef name(number): return errno.errorcode.get(number, str(number))\n" + REACHED
RULES = {
    "network": "allowlist",
    "egress": [{"host": "api.test", "ports": [80], "why": "what a test needs"}, {"host": "denied.test", "deny": True, "why": "what a test needs"}],
    "weaken": [{"field": "/network", "why": "what a test needs"}],
}


def reach(control, session, host):
    return json.loads(control.output(session, "/usr/bin/python3", "-I", "-c", PROGRAM, host))


def handle(connection):
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nserved")


def records(launcher, event, **members):
    return [r for r in launcher.records() if r["event"] == event and all(r.get(k) == v for k, v in members.items())]


def reaches_what_the_rules_permit(launcher, internet):
    """A session that reaches what the rules permit and nothing else: its name."""
    control = launcher.control()
    session = control.create()
    assert reach(control, session, "api.test") == "served"
    assert reach(control, session, "denied.test") == "no name"
    assert "403" in reach(control, session, "unknown.test")
    assert "403" in reach(control, session, "169.254.169.254")
    assert internet.elsewhere == []
    return session
