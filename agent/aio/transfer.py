"""Bodies of any size, in pieces, both ways."""
from __future__ import annotations

import http.client
import secrets

from .client import PIECE, Client, refusal
from .failure import LOCAL, SERVER, Failure
from .progress import Progress
from .text import visible

SECONDS = 300.0  # without a byte


def download(client: Client, path: str, query: dict, target, name: str, seconds=SECONDS):
    """Into `target`, which the caller has opened and commits; the answer's headers."""
    response = client.send("GET", path, None, {"Accept": "*/*"}, query, seconds, True)
    if response.status != 200:
        raise failed(client, response, f"GET {path}")
    if response.getheader("content-type", "").startswith("application/json") and not response.getheader("content-disposition"):
        client.understood(response, f"GET {path}")
        raise Failure(SERVER, f"GET {path}: the answer has no content")
    with Progress(name, response.length) as progress:
        while True:
            try:
                piece = response.read(PIECE)
            except (OSError, http.client.HTTPException) as why:
                client.close()
                raise client.lost(why) from None
            if not piece:
                break
            target.write(piece)
            progress.add(len(piece))
    if response.length:
        client.close()
        raise Failure(SERVER, f"{visible(name)}: the answer ended {response.length} bytes too early: the file changed, or could not be read on")
    return response.headers


def failed(client: Client, response, what: str) -> Failure:
    try:
        client.understood(response, what)
    except Failure as why:
        return why
    return refusal(response, None, what)


def form(fields: dict, filename: str, boundary: str) -> tuple:
    """What stands before and after the file's bytes. The name of the part is ours; what others chose stands in bodies of parts, where
    only the boundary, which nobody can guess, means something."""
    head = b"".join(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode("utf-8", "surrogateescape")
                    for name, value in fields.items() if value is not None)
    head += (f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{filename}"\r\n'
             "Content-Type: application/octet-stream\r\n\r\n").encode()
    return head, f"\r\n--{boundary}--\r\n".encode()


def upload(client: Client, path: str, fields: dict, file, size, name: str, filename="upload") -> dict:
    """A form with these fields and the file; the whole answer. A server that refuses says so before all has been sent."""
    boundary = secrets.token_hex(24)
    head, tail = form(fields, filename, boundary)
    connection = client.connected(SECONDS)
    try:
        connection.putrequest("POST", client.target(path), skip_accept_encoding=True)
        for header, value in client.headers({"Content-Type": f"multipart/form-data; boundary={boundary}"}).items():
            connection.putheader(header, value)
        if size is None:
            connection.putheader("Transfer-Encoding", "chunked")
        else:
            connection.putheader("Content-Length", str(len(head) + size + len(tail)))
        connection.endheaders()
        try:
            send(connection, head, tail, file, size, name)
        except (BrokenPipeError, ConnectionResetError):
            pass  # it does not want the rest; it may have said why
        return client.understood(connection.getresponse(), f"POST {path}")
    except (OSError, http.client.HTTPException) as why:
        client.close()
        raise client.lost(why) from None
    except BaseException:
        client.close()
        raise


def send(connection, head: bytes, tail: bytes, file, size, name: str):
    def put(piece: bytes):
        connection.send(b"%x\r\n%b\r\n" % (len(piece), piece) if size is None else piece)

    put(head)
    left = size
    with Progress(name, size) as progress:
        while left is None or left > 0:
            try:
                piece = file.read(PIECE if left is None else min(PIECE, left))
            except OSError as why:
                raise Failure(LOCAL, f"{visible(name)}: {why.strerror}") from None
            if not piece:
                break
            put(piece)
            progress.add(len(piece))
            left = None if left is None else left - len(piece)
    if left:
        raise Failure(LOCAL, f"{visible(name)}: it became shorter while it was read")
    put(tail)
    if size is None:
        connection.send(b"0\r\n\r\n")
