"""Hostile requests as rows: name, the bytes on one connection, the statuses of all answers in their order, whether the connection then
ends. `{key}` is the right key, `{host}` the server's address. A row with fewer answers than its sender hoped for is a smuggling attempt
that failed: the second request was never read as one."""
import dataclasses

GET = "GET /v1/sandbox HTTP/1.1\r\nHost: {host}\r\nX-AIO-API-Key: {key}\r\n"
POST = "POST /v1/bash/exec HTTP/1.1\r\nHost: {host}\r\nX-AIO-API-Key: {key}\r\n"
WS = ("GET /v1/shell/ws HTTP/1.1\r\nHost: {host}\r\nX-AIO-API-Key: {key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n")
# What an attacker hides behind another request. Its answer would show the mark.
HIDDEN = ("POST /v1/bash/exec HTTP/1.1\r\nHost: {host}\r\nX-AIO-API-Key: {key}\r\nContent-Length: 26\r\n\r\n"
          """{"command":"echo sm''ugg"}""")


@dataclasses.dataclass(frozen=True)
class Row:
    name: str
    data: str
    statuses: tuple[int, ...]
    ends: bool = True


def once(name: str, data: str, status: int, ends=True) -> Row:
    return Row(name, data, (status,), ends)


def bad(name: str, data: str) -> Row:
    """Refused as malformed, and what follows on the connection is not read."""
    return once(name, data + HIDDEN, 400)


def framed(name: str, *headers: str, body="0\r\n\r\n") -> Row:
    return bad(name, POST + "".join(header + "\r\n" for header in headers) + "\r\n" + body)


def chunked(name: str, body: str) -> Row:
    return framed(name, "Transfer-Encoding: chunked", body=body)


def path(name: str, target: str, status: int) -> Row:
    """A spelling of a path, with the right key. A malformed one ends the connection."""
    return once(name, f"GET {target} HTTP/1.1\r\nHost: {{host}}\r\nX-AIO-API-Key: {{key}}\r\n\r\n", status, status == 400)


def keyless(name: str, target: str, status=401) -> Row:
    """A spelling of a path that needs a key, without one."""
    return once(name, f"GET {target} HTTP/1.1\r\nHost: {{host}}\r\n\r\n", status, status == 400)


SMUGGLING = [
    framed("CL.TE", "Content-Length: 6", "Transfer-Encoding: chunked", body="0\r\n\r\nG"),
    framed("TE.CL", "Transfer-Encoding: chunked", "Content-Length: 4", body="5c\r\n"),
    framed("CL.0 with TE", "Content-Length: 0", "Transfer-Encoding: chunked"),
    framed("TE.TE, two headers", "Transfer-Encoding: chunked", "Transfer-Encoding: identity"),
    framed("TE.TE, the same twice", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
    framed("TE.TE, a list", "Transfer-Encoding: chunked, identity"),
    framed("TE.TE, chunked twice", "Transfer-Encoding: chunked, chunked"),
    framed("TE identity", "Transfer-Encoding: identity"),
    framed("TE with a prefix", "Transfer-Encoding: xchunked"),
    framed("TE with a suffix", "Transfer-Encoding: chunkedx"),
    framed("TE with a parameter", "Transfer-Encoding: chunked;q=0"),
    framed("TE in quotes", 'Transfer-Encoding: "chunked"'),
    framed("TE with a comma before it", "Transfer-Encoding: ,chunked"),
    framed("TE with a vertical tab", "Transfer-Encoding: \x0bchunked"),
    framed("TE with a no-break space", "Transfer-Encoding: \xa0chunked"),
    framed("TE on a folded line", "Transfer-Encoding:\r\n chunked"),
    framed("TE with a space before the colon", "Transfer-Encoding : chunked"),
    framed("TE with a tab before the colon", "Transfer-Encoding\t: chunked"),
    framed("TE hidden behind a CR", "X: a\rTransfer-Encoding: chunked"),
    framed("TE hidden behind a NUL", "X: a\0Transfer-Encoding: chunked"),
    framed("TE hidden behind a bare LF", "X: a\nTransfer-Encoding: chunked"),
    framed("TE empty", "Transfer-Encoding:"),
    framed("TE gzip", "Transfer-Encoding: gzip, chunked"),
    bad("TE on HTTP/1.0", POST.replace("1.1", "1.0") + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    framed("CL.CL, two values", "Content-Length: 5", "Content-Length: 0"),
    framed("CL.CL, the same twice", "Content-Length: 5", "Content-Length: 5"),
    framed("CL as a list", "Content-Length: 5, 5"),
    framed("CL with a plus", "Content-Length: +5"),
    framed("CL negative", "Content-Length: -1"),
    framed("CL hexadecimal", "Content-Length: 0x5"),
    framed("CL as a fraction", "Content-Length: 5.0"),
    framed("CL with an exponent", "Content-Length: 5e0"),
    framed("CL in Arabic digits", "Content-Length: \xd9\xa5"),
    framed("CL past 64 bits", "Content-Length: 18446744073709551621"),
    framed("CL with a space inside", "Content-Length: 0 5"),
    framed("CL with an underscore is no CL", "Content_Length: 5", "Content-Length: 5", "Content-Length:5"),
    Row("a body behind GET without a length is the next request", GET + "\r\nXX / HTTP/1.1\r\n\r\n", (200, 400)),
    Row("CL.0: the rest of a refused body is not a request",
        "POST /v1/bash/exec HTTP/1.1\r\nHost: {host}\r\nContent-Length: 300\r\n\r\n" + HIDDEN, (401,)),
    Row("a body for a path that does not exist is not a request", POST.replace("bash/exec", "nothing") + "Content-Length: 300\r\n\r\n" + HIDDEN,
        (404,)),
]

CHUNKS = [
    chunked("chunk size that is no number", "x\r\n"),
    chunked("chunk size negative", "-1\r\nx\r\n0\r\n\r\n"),
    chunked("chunk size with 0x", "0x2\r\n{}\r\n0\r\n\r\n".replace("{}", "ab")),
    chunked("chunk size past 64 bits", "10000000000000002\r\nab\r\n0\r\n\r\n"),
    chunked("chunk size with a space before it", " 2\r\nab\r\n0\r\n\r\n"),
    chunked("chunk size with an underscore", "1_0\r\nab\r\n0\r\n\r\n"),
    chunked("chunk size empty", "\r\nab\r\n0\r\n\r\n"),
    chunked("chunk that is longer than its size", "1\r\nab\r\n0\r\n\r\n"),
    chunked("chunk lines ended by LF", "2\nab\n0\n\n"),
    chunked("chunk data ended by LF", "2\r\nab\n0\r\n\r\n"),
    chunked("chunk data ended by CR", "2\r\nab\r0\r\n\r\n"),
    chunked("chunk extension with LF inside", "2;a\nb\r\nab\r\n0\r\n\r\n"),
    chunked("chunk extension without a name", "2;\r\nab\r\n0\r\n\r\n"),
    chunked("trailer with a bare LF", "0\r\nX: a\n\r\n"),
    chunked("trailer without a colon", "0\r\nGET /v1/sandbox HTTP/1.1\r\n\r\n"),
]

HEADS = [
    bad("folded header", GET + "X: a\r\n b\r\n\r\n"),
    bad("header without a name", GET + ": a\r\n\r\n"),
    bad("header without a colon", GET + "X\r\n\r\n"),
    bad("header name with a space", GET + "X Y: a\r\n\r\n"),
    bad("header name with a byte of Latin-1", GET + "X\xe9: a\r\n\r\n"),
    bad("first header begins with a space", "GET / HTTP/1.1\r\n Host: {host}\r\n\r\n"),
    bad("escape sequence in a value", GET + "X: \x1b[2J\r\n\r\n"),
    bad("NUL in a value", GET + "X: \0\r\n\r\n"),
    bad("head with bare LFs", "GET /v1/ping HTTP/1.1\nHost: {host}\n\n"),
    bad("no version", "GET /v1/ping\r\nHost: {host}\r\n\r\n"),
    bad("version 2.0", "GET /v1/ping HTTP/2.0\r\nHost: {host}\r\n\r\n"),
    bad("version 1.2", "GET /v1/ping HTTP/1.2\r\nHost: {host}\r\n\r\n"),
    bad("version in lower case", "GET /v1/ping http/1.1\r\nHost: {host}\r\n\r\n"),
    bad("preface of HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    bad("two spaces in the request line", "GET  /v1/ping HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    bad("tabs in the request line", "GET\t/v1/ping\tHTTP/1.1\r\nHost: {host}\r\n\r\n"),
    bad("method in lower case", "get /v1/ping HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    bad("method with a control character", "G\x01T /v1/ping HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    bad("method of 1,000 letters", "G" * 1000 + " /v1/ping HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    bad("TLS on a plain port", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
    bad("an SMTP greeting", "EHLO x\r\n\r\n"),
    bad("a redis command", "*1\r\n$4\r\nPING\r\n\r\n"),
    bad("two keys", GET + "X-AIO-API-Key: {key}\r\n\r\n"),
    bad("two Authorizations", GET + "Authorization: Bearer {key}\r\nAuthorization: Bearer x\r\n\r\n"),
    bad("two Origins", GET + "Origin: http://{host}\r\nOrigin: http://evil.example\r\n\r\n"),
    bad("unknown expectation", POST + "Expect: 200-ok\r\nContent-Length: 2\r\n\r\nab"),
    bad("two expectations", POST + "Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab"),
    once("two workspaces", GET + "X-Caisson-Workspace: a\r\nX-Caisson-Workspace: b\r\n\r\n", 400, False),
    once("workspace that is a path", GET + "X-Caisson-Workspace: ../default\r\n\r\n", 404, False),
    once("TRACE shows no header", GET.replace("GET", "TRACE") + "\r\n", 405, False),
    bad("CONNECT opens no tunnel", "CONNECT {host} HTTP/1.1\r\nHost: {host}\r\nX-AIO-API-Key: {key}\r\n\r\n"),
    once("method override is ignored", GET + "X-HTTP-Method-Override: DELETE\r\n\r\n", 200, False),
    once("address override is ignored", GET + "X-Original-URL: /v1/nothing\r\nX-Rewrite-URL: /v1/nothing\r\n\r\n", 200, False),
]

OVERSIZED = [
    bad("target past 8 KiB", "GET /" + "a" * 8192 + " HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    bad("head past 16 KiB", GET + "X: " + "a" * 16400 + "\r\n\r\n"),
    bad("head past 16 KiB without an end", GET + "X: " + "a" * 20000),
    bad("101 headers", GET + "X: a\r\n" * 101 + "\r\n"),
    bad("101 parameters", GET.replace("sandbox", "sandbox?" + "a&" * 101) + "\r\n"),
    once("body past its limit is not read", POST + "Content-Length: 999999999999\r\n\r\n" + HIDDEN, 413),
    once("chunk past its limit", POST + "Transfer-Encoding: chunked\r\n\r\n7fffffffffffff\r\n" + HIDDEN, 413),
    bad("host past 255 bytes", "GET /v1/ping HTTP/1.1\r\nHost: " + "a" * 256 + "\r\n\r\n"),
]

HOSTS = [
    bad("no Host", "GET /v1/ping HTTP/1.1\r\n\r\n"),
    bad("empty Host", "GET /v1/ping HTTP/1.1\r\nHost:\r\n\r\n"),
    bad("two Hosts", "GET /v1/ping HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n"),
    bad("two Hosts, the same", "GET /v1/ping HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n\r\n"),
    bad("Host with a path", "GET /v1/ping HTTP/1.1\r\nHost: {host}/x\r\n\r\n"),
    bad("Host with credentials", "GET /v1/ping HTTP/1.1\r\nHost: evil@{host}\r\n\r\n"),
    bad("Host as a list", "GET /v1/ping HTTP/1.1\r\nHost: {host}, evil.example\r\n\r\n"),
    bad("Host with a space", "GET /v1/ping HTTP/1.1\r\nHost: {host} evil.example\r\n\r\n"),
    bad("absolute target with another Host", "GET http://evil.example/v1/ping HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    bad("authority as the target", "GET {host} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
    once("foreign Origin with the key", GET + "Origin: http://evil.example\r\n\r\n", 403, False),
    once("Origin null with the key", GET + "Origin: null\r\n\r\n", 403, False),
    once("Origin that begins as the own", GET + "Origin: http://{host}.evil.example\r\n\r\n", 403, False),
    once("Origin with credentials that look as the own", GET + "Origin: http://{host}@evil.example\r\n\r\n", 403, False),
    once("rebound name: the page's own Origin is no key",
         "GET /v1/sandbox HTTP/1.1\r\nHost: evil.example\r\nOrigin: http://evil.example\r\n\r\n", 401, False),
]

PATHS = [
    path("two slashes first", "//v1/sandbox", 400), path("two slashes inside", "/v1//sandbox", 400), path("dot", "/v1/./sandbox", 400),
    path("dots", "/v1/../v1/sandbox", 400), path("encoded dots", "/v1/%2e%2e/v1/sandbox", 400), path("half-encoded dots", "/v1/.%2e/v1/sandbox", 400),
    path("dots with a semicolon", "/v1/..;/v1/sandbox", 404), path("encoded twice", "/v1/%252e%252e/v1/sandbox", 404),
    path("encoded slash", "/v1%2fsandbox", 404), path("encoded backslash", "/v1%5csandbox", 404), path("NUL", "/v1/sandbox%00", 400),
    path("NUL before a suffix", "/v1/sandbox%00.js", 400), path("encoded CRLF", "/v1/sandbox%0d%0aX:%20a", 400),
    path("overlong dot", "/v1/%c0%ae%c0%ae/sandbox", 400), path("surrogate", "/v1/%ed%a0%80", 400), path("half an escape", "/v1/sandbox%2", 400),
    path("%u escape", "/v1/%u002e%u002e/sandbox", 400), path("full-width dots", "/v1/%ef%bc%8e%ef%bc%8e/sandbox", 404),
    path("a fragment", "/v1/sandbox#x", 400), path("upper case", "/V1/SANDBOX", 404), path("a matrix parameter", "/v1/sandbox;a=b", 404),
    path("an encoded question mark", "/v1/sandbox%3fa=b", 404), path("CRLF in the query stays in the query", "/v1/sandbox?a=%0d%0aX:%20a", 200),
]

# A cache or a rule in front that takes a suffix for a static file must not be handed what needs a key.
KEYLESS = [
    keyless("suffix in the query", "/v1/sandbox?x=.js"), keyless("suffix in the query, css", "/v1/sandbox?a.css"),
    keyless("suffix as a segment", "/v1/sandbox/x.js"), keyless("suffix on the name", "/v1/sandbox.js"),
    keyless("suffix behind a semicolon", "/v1/sandbox;x.js"), keyless("suffix behind an encoded question mark", "/v1/sandbox%3fx.js"),
    keyless("suffix behind an encoded LF", "/v1/sandbox%0a.js", 400), keyless("a free path as the query", "/v1/sandbox?/v1/ping"),
    keyless("a free path as a parent", "/v1/ping/../sandbox", 400), keyless("a free path with a segment", "/v1/ping/sandbox"),
    keyless("a free path with an encoded slash", "/healthz%2f..%2fv1%2fsandbox"), keyless("empty key", "/v1/sandbox?api_key="),
    keyless("key as a list", "/v1/sandbox?api_key[]=a"), keyless("a wrong key before the right one", "/v1/sandbox?api_key=x&api_key={key}"),
    keyless("a path that does not exist", "/v1/no-such-thing"), keyless("the audit log", "/v1/audit"),
]

WEBSOCKETS = [
    once("upgrade without the key", WS.replace("X-AIO-API-Key: {key}\r\n", "") + "\r\n", 401, False),
    once("upgrade from a foreign page", WS + "Origin: http://evil.example\r\n\r\n", 403, False),
    once("upgrade of version 12", WS.replace("Version: 13", "Version: 12") + "\r\n", 426),
    once("upgrade without a key of its own", WS.replace("Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", "") + "\r\n", 426),
    once("upgrade to h2c", WS.replace("Upgrade: websocket", "Upgrade: h2c") + "\r\n", 426),
    once("upgrade by POST", WS.replace("GET", "POST") + "\r\n", 405, False),
    bad("upgrade on HTTP/1.0 with a chunked body", WS.replace("1.1", "1.0") + "Transfer-Encoding: chunked\r\n\r\n"),
    once("upgrade on HTTP/1.0", WS.replace("1.1", "1.0") + "\r\n", 426),
    once("upgrade with a body", WS + "Content-Length: 5\r\n\r\nhello", 426),
    once("upgrade with frames already behind it", WS + "\r\n\x81\x80\0\0\0\0", 426),
    bad("two Upgrades", WS + "Upgrade: h2c\r\n\r\n"),
    once("upgrade of a path that is none", WS.replace("/v1/shell/ws", "/v1/sandbox") + "\r\n", 200, False),
]

ROWS = [*SMUGGLING, *CHUNKS, *HEADS, *OVERSIZED, *HOSTS, *PATHS, *KEYLESS, *WEBSOCKETS]
