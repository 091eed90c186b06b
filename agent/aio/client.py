"""Requests to the server: one connection, JSON both ways, bounded answers. Redirects are not followed, because the key would go along;
proxies of the environment are not used, because the server is beside or inside this machine."""
from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
import urllib.parse

from .failure import ABSENT, DENIED, FAILED, SERVER, TIMEOUT, UNREACHABLE, USAGE, Failure
from .settings import CREDENTIALS, Settings
from .text import cut, visible

MOST_ANSWER = 128 * 1024 * 1024
CONNECT_SECONDS, ANSWER_SECONDS = 10.0, 120.0
AWAY_SECONDS = 20.0  # that the server may be away
IDLE_SECONDS = 5.0
PIECE = 256 * 1024
MOST_TOLD = 2000
ADVICE = "give a credential by " + ", ".join(variable for variable, _ in CREDENTIALS) + " or --key-file"


class Client:
    def __init__(self, settings: Settings):
        self.settings = settings
        self.connection, self.used = None, 0.0

    def copy(self) -> Client:
        """For another thread: a connection of its own."""
        return Client(self.settings)

    def close(self):
        if self.connection is not None:
            self.connection.close()
            self.connection = None

    # --- requests ---

    def data(self, method: str, path: str, body=None, query=None, seconds=ANSWER_SECONDS, again=False):
        """`data` of an answer that says success."""
        return self.envelope(method, path, body, query, seconds, again).get("data")

    def envelope(self, method: str, path: str, body=None, query=None, seconds=ANSWER_SECONDS, again=False) -> dict:
        """The whole answer, which says success. `again`: asking twice does no harm, so a connection that the server closed is replaced."""
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"} if body is not None else {}
        response = self.send(method, path, content, headers, query, seconds, again or method == "GET")
        return self.understood(response, f"{method} {path}")

    def outlast(self, method: str, path: str, body=None, seconds=ANSWER_SECONDS) -> dict:
        """`envelope` of a request that does no harm twice: it is repeated while the server is away, as when it is replaced."""
        end, pause = time.monotonic() + AWAY_SECONDS, 0.1
        while True:
            try:
                return self.envelope(method, path, body, seconds=seconds, again=True)
            except Failure as why:
                if why.code not in (UNREACHABLE, SERVER, TIMEOUT) or time.monotonic() + pause > end:
                    raise
            time.sleep(pause)
            pause = min(pause * 2, 2.0)

    def send(self, method, path, content, headers, query, seconds, again) -> http.client.HTTPResponse:
        """The head of the answer; the body has not been read."""
        target = self.target(path, query)
        for fresh in (self.unconnected(), True):
            connection = self.connected(seconds)
            try:
                connection.request(method, target, content, self.headers(headers))
                return connection.getresponse()
            except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError) as why:
                self.close()
                if fresh or not again:
                    raise self.lost(why) from None
            except (OSError, http.client.HTTPException) as why:
                self.close()
                raise self.lost(why) from None
            except BaseException:  # an interrupt in the middle of an answer: the connection cannot be used again
                self.close()
                raise
        raise AssertionError("unreachable")

    def target(self, path: str, query=None) -> str:
        asked = urllib.parse.urlencode({k: v for k, v in (query or {}).items() if v is not None}, quote_via=urllib.parse.quote)
        return self.settings.prefix + path + ("?" + asked if asked else "")

    def headers(self, more: dict) -> dict:
        return {"Accept": "application/json", "User-Agent": "aio", **self.settings.headers, **more}

    def unconnected(self) -> bool:
        """A server closes what is idle, and a request that meets the close may have been carried out or not: it gets a new connection."""
        if time.monotonic() - self.used > IDLE_SECONDS:
            self.close()
        return self.connection is None or self.connection.sock is None  # the server may have said that an answer is its last

    def connected(self, seconds: float) -> http.client.HTTPConnection:
        if self.unconnected():
            where = (self.settings.host, self.settings.port)
            if self.settings.secure:
                self.connection = http.client.HTTPSConnection(*where, timeout=CONNECT_SECONDS, context=ssl.create_default_context())
            else:
                self.connection = http.client.HTTPConnection(*where, timeout=CONNECT_SECONDS)
            try:
                self.connection.connect()
            except OSError as why:
                self.close()
                within = isinstance(why, socket.timeout)
                failure = Failure(UNREACHABLE, f"{self.settings.url}: no connection within {CONNECT_SECONDS:.0f} s; {REACH}") if within else self.lost(why)
                failure.unsent = True
                raise failure from None
        self.used = time.monotonic()
        self.connection.sock.settimeout(seconds)
        return self.connection

    def lost(self, why: Exception) -> Failure:
        url = visible(self.settings.url)
        if isinstance(why, socket.timeout):
            return Failure(TIMEOUT, f"{url}: no answer in time")
        if isinstance(why, ssl.SSLError):
            return Failure(UNREACHABLE, f"{url}: TLS: {visible(why.reason or why)}; SSL_CERT_FILE may name further roots of trust")
        if isinstance(why, http.client.HTTPException) and not isinstance(why, http.client.RemoteDisconnected):
            return Failure(SERVER, f"{url}: the answer is not HTTP: {cut(visible(why), 200)}")
        return Failure(UNREACHABLE, f"{url}: {visible(getattr(why, 'strerror', None) or why)}; {REACH}")

    # --- answers ---

    def body_of(self, response, most=MOST_ANSWER) -> bytes:
        try:
            content = response.read(most + 1)
            if len(content) > most:
                self.close()
                raise Failure(SERVER, f"the answer is longer than {most} bytes")
            if response.length:
                self.close()
                raise Failure(SERVER, "the answer ended too early")
            return content
        except (OSError, http.client.HTTPException) as why:
            self.close()
            raise self.lost(why) from None
        except BaseException:
            self.close()
            raise

    def understood(self, response, what: str) -> dict:
        content = self.body_of(response)
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError):
            answer = None
        if response.status == 200 and isinstance(answer, dict) and answer.get("success", True) is not False:
            return answer
        raise refusal(response, answer, what)


REACH = "is it running there? --api-url or AIO_API_URL name another"


def refusal(response, answer, what: str) -> Failure:
    """The message of an answer that reports a failure, escaped: the server, or a program behind it, wrote it."""
    status, told = response.status, ""
    if isinstance(answer, dict):
        told = details(answer.get("detail")) or str(answer.get("message") or "")
        if answer.get("hint"):
            told += f" ({answer['hint']})"
    told = cut(visible(told), MOST_TOLD)
    if status == 200:
        if not isinstance(answer, dict):
            return Failure(SERVER, f"{what}: the answer is no JSON object; does --api-url name the sandbox itself?")
        data = answer.get("data")
        absent = isinstance(data, dict) and data.get("error_type") == "not_found"
        return Failure(ABSENT if absent else FAILED, told or f"{what}: it failed, and the server does not say why")
    if 300 <= status < 400:
        there = cut(visible(response.getheader("location", "?")), 200)
        return Failure(SERVER, f"{what}: the server redirects to {there}, where the key is not sent: name the right address by --api-url")
    if status in (401, 403):
        advice = f"; {ADVICE}" if status == 401 else ""
        return Failure(DENIED, f"{what}: {told or status}{advice}")
    code = {404: ABSENT, 405: ABSENT, 400: USAGE, 422: USAGE, 408: TIMEOUT, 504: TIMEOUT}.get(status, SERVER if status >= 500 else FAILED)
    return Failure(code, f"{what}: {told or 'status ' + str(status)}")


def details(detail) -> str:
    """Of a 422: which field, and what is wrong with it."""
    if not isinstance(detail, list):
        return str(detail) if isinstance(detail, str) else ""
    found = []
    for one in detail[:5]:
        if isinstance(one, dict):
            place = one.get("loc")
            found.append(".".join(str(part) for part in (place if isinstance(place, list) else [])) + ": " + str(one.get("msg")))
    return "; ".join(found)
