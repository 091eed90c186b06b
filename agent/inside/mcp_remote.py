"""An MCP server of the network, as a program that speaks over its pipes (MCP, "stdio"): each line of stdin is POSTed to the server's address,
and what the server says is printed. It runs in a sealed session whose policy says which names it may reach. Transports: Streamable HTTP
(2025-03-26 and later) and, with events, HTTP+SSE (2024-11-05). Redirects are not followed: the headers are meant for one server.

A line before this one has the settings: SETTINGS = {"url", "headers", "events", "newest"}. They come by stdin, with the program, for they have
secrets.
"""
import base64
import json
import os
import queue
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

MOST_LINE = 8 * 1024 * 1024  # of what the server says, as the hub has it
MOST_UNDER_WAY = 64  # requests at a time
SILENCE = 600  # seconds; a stream of notifications that is silent for longer is opened anew
TOLD = {"initialize", "server/discover"}
NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}

SETTINGS = globals()["SETTINGS"]
URL, HEADERS = SETTINGS["url"], SETTINGS["headers"]
LOCK, STATE = threading.Lock(), {"session": None, "revision": None, "post": None}
ROOM = threading.BoundedSemaphore(MOST_UNDER_WAY)


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, req, fp, code, msg, headers, newurl):
        return None


OPENER = urllib.request.build_opener(NoRedirect)


def say(message):
    with LOCK:
        sys.stdout.write(json.dumps(message, separators=(",", ":")) + "\n")
        sys.stdout.flush()


def note(text):
    print(text, file=sys.stderr, flush=True)


def failed(message, text):
    note(text)
    if "id" in message and "method" in message:
        say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32603, "message": text}})


def header_text(value):
    """A name as a header's value (2026-07-28): text that is not visible ASCII is encoded in base64."""
    plain = all(" " < c <= "~" for c in value) and not value.startswith("=?base64?")
    return value if plain else f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def headers_of(message):
    out = {"Accept": "application/json, text/event-stream", "User-Agent": "caisson-mcp", **HEADERS}
    if STATE["session"]:
        out["Mcp-Session-Id"] = STATE["session"]
    if STATE["revision"]:
        out["MCP-Protocol-Version"] = STATE["revision"]
    if message is not None:
        out["Content-Type"] = "application/json"
        if SETTINGS.get("newest") and "method" in message:
            out["MCP-Protocol-Version"] = "2026-07-28"
            out["Mcp-Method"] = message["method"]
            member = NAMED.get(message["method"])
            if member and isinstance(message.get("params", {}).get(member), str):
                out["Mcp-Name"] = header_text(message["params"][member])
    return out


def open_url(url, message=None, timeout=SILENCE):
    body = None if message is None else json.dumps(message).encode()
    return OPENER.open(urllib.request.Request(url, body, headers_of(message)), timeout=timeout)


def events(response):
    """(event, data, id) of a stream, each within the bound."""
    name, data, number, size = "message", [], None, 0
    while True:
        line = response.readline(MOST_LINE + 1)
        if not line:
            return
        size += len(line)
        if size > MOST_LINE:
            raise ValueError("the server sent an event of more than 8 MiB")
        line = line.decode("utf-8", "replace").rstrip("\r\n")
        if not line:
            if data:
                yield name, "\n".join(data), number
            name, data, size = "message", [], 0
            continue
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif field == "id":
            number = value


def take(text):
    """One message, or a batch, of the server."""
    told = json.loads(text)
    for message in told if isinstance(told, list) else [told]:
        result = message.get("result") if isinstance(message, dict) else None
        if isinstance(result, dict) and isinstance(result.get("protocolVersion"), str):
            STATE["revision"] = result["protocolVersion"]
        say(message)


def why(error):
    if isinstance(error, urllib.error.HTTPError):
        told = error.read(2048).decode("utf-8", "replace")
        return f"{URL} answered {error.code}: {told}" if error.code >= 400 else f"{URL} redirects, which is not followed"
    return f"{URL}: {getattr(error, 'reason', None) or error}"


def read_stream(response):
    """The answer in a stream; continued, if it breaks and its events have ids."""
    last, answered = None, False
    while True:
        for name, data, number in events(response):
            last = number or last
            if name == "message" and data:
                take(data)
                answered = answered or '"result"' in data or '"error"' in data
        if answered or last is None or not STATE["session"]:
            return
        time.sleep(1)
        request = urllib.request.Request(URL, None, {**headers_of(None), "Accept": "text/event-stream", "Last-Event-ID": last})
        response = OPENER.open(request, timeout=SILENCE)


def post(message):
    try:
        with open_url(STATE["post"] or URL, message) as response:
            STATE["session"] = response.headers.get("Mcp-Session-Id") or STATE["session"]
            kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
            if kind == "text/event-stream":
                read_stream(response)
            elif response.status != 202:
                body = response.read(MOST_LINE + 1)
                if len(body) > MOST_LINE:
                    raise ValueError("the server's answer has more than 8 MiB")
                if body.strip() and kind == "application/json":
                    take(body)
    except (OSError, ValueError, AttributeError, TypeError) as error:
        if isinstance(error, urllib.error.HTTPError) and error.code == 404 and STATE["session"] and not STATE["post"]:
            note(f"{URL} has forgotten the session")
            failed(message, "the server has forgotten the session; it begins anew")
            os._exit(3)
        failed(message, why(error))
    finally:
        ROOM.release()


def listen():
    """What the server says unasked: a stream that it need not have."""
    while True:
        try:
            request = urllib.request.Request(URL, None, {**headers_of(None), "Accept": "text/event-stream"})
            with OPENER.open(request, timeout=SILENCE) as response:
                for name, data, _ in events(response):
                    if name == "message" and data:
                        take(data)
        except urllib.error.HTTPError:
            return
        except (OSError, ValueError) as error:
            note(why(error))
        time.sleep(5)


def listen_for_events(ready):
    """The one stream of HTTP+SSE, which first says where to POST."""
    try:
        with open_url(URL) as response:
            for name, data, _ in events(response):
                if name == "endpoint":
                    there = urllib.parse.urljoin(URL, data.strip())
                    if urllib.parse.urlsplit(there)[:2] != urllib.parse.urlsplit(URL)[:2]:
                        raise ValueError("the server's endpoint is at another origin")
                    STATE["post"] = there
                    ready.put(None)
                elif name == "message" and data:
                    take(data)
        raise ValueError("the server ended the stream")
    except (OSError, ValueError) as error:
        note(why(error))
        os._exit(4)


def main():
    if SETTINGS.get("events"):
        ready = queue.Queue()
        threading.Thread(target=listen_for_events, args=(ready,), daemon=True).start()
        ready.get()
    listening = bool(SETTINGS.get("events")) or bool(SETTINGS.get("newest"))
    for line in sys.stdin:
        message = json.loads(line)
        ROOM.acquire()
        if message.get("method") in TOLD:
            post(message)  # what follows needs the session and the revision
            continue
        threading.Thread(target=post, args=(message,), daemon=True).start()
        if message.get("method") == "notifications/initialized" and not listening:
            listening = True
            threading.Thread(target=listen, daemon=True).start()


main()
