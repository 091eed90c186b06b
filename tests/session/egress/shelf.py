"""What real clients fetch, as files of a web server with TLS: a page, a repository of git, a package for each of pip, npm and apt.
The certificates are made anew for each run."""

import contextlib
import functools
import hashlib
import http.server
import io
import json
import pathlib
import shutil
import ssl
import subprocess
import tarfile
import threading
import zipfile

NAME, TEXT = "web.test", "served\n"


def run(*argv, **arguments):
    subprocess.run([str(arg) for arg in argv], check=True, capture_output=True, timeout=120, **arguments)


def certificates(folder):
    """An authority and a certificate of it for the server: (the authority's file, the certificate with its key)."""
    authority, key, both = (folder / name for name in ("authority.pem", "authority.key", "server.pem"))
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=authority of a test",
        "-keyout", key, "-out", authority)  # fmt: skip
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", f"/CN={NAME}",
        "-addext", f"subjectAltName=DNS:{NAME}", "-addext", "basicConstraints=critical,CA:FALSE", "-CA", authority, "-CAkey", key,
        "-keyout", both.with_suffix(".key"), "-out", both)  # fmt: skip
    both.write_text(both.read_text() + both.with_suffix(".key").read_text())
    return authority, both


def wheel(folder):
    files = {
        "tiny.py": "",
        "tiny-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n",
        "tiny-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "tiny-1.0.dist-info/RECORD": "",
    }
    name = "tiny-1.0-py3-none-any.whl"
    (folder / "simple" / "tiny").mkdir(parents=True)
    with zipfile.ZipFile(folder / "simple" / "tiny" / name, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    (folder / "simple" / "tiny" / "index.html").write_text(f"<!DOCTYPE html><a href='{name}'>{name}</a>")


def npm_package(folder):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        text = json.dumps({"name": "tiny", "version": "1.0.0"}).encode()
        entry = tarfile.TarInfo("package/package.json")
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text))
    (folder / "npm").mkdir()
    (folder / "npm" / "tiny-1.0.0.tgz").write_bytes(data.getvalue())
    dist = {"tarball": f"https://{NAME}/npm/tiny-1.0.0.tgz", "shasum": hashlib.sha1(data.getvalue()).hexdigest()}
    version = {"name": "tiny", "version": "1.0.0", "dist": dist}
    (folder / "npm" / "tiny").write_text(json.dumps({"name": "tiny", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}))


def repository(folder):
    work = folder.parent / "work"
    run("git", "init", "-q", "-b", "main", work)
    (work / "file").write_text(TEXT)
    run("git", "-C", work, "add", "file")
    run("git", "-C", work, "-c", "user.name=a test", "-c", "user.email=test@example.org", "commit", "-q", "-m", "one")
    run("git", "clone", "-q", "--bare", work, folder / "tiny.git")
    run("git", "-C", folder / "tiny.git", "update-server-info")


def apt_repository(folder):
    package = folder.parent / "package"
    (package / "DEBIAN").mkdir(parents=True)
    (package / "DEBIAN" / "control").write_text(
        "Package: tiny\nVersion: 1.0\nArchitecture: all\nMaintainer: a test <test@example.org>\nDescription: nothing\n")
    (folder / "apt").mkdir()
    deb = folder / "apt" / "tiny_1.0_all.deb"
    run("dpkg-deb", "-b", package, deb)
    text = (package / "DEBIAN" / "control").read_text()
    index = f"{text}Filename: ./tiny_1.0_all.deb\nSize: {deb.stat().st_size}\nSHA256: {hashlib.sha256(deb.read_bytes()).hexdigest()}\n\n"
    (folder / "apt" / "Packages").write_text(index)
    sums = f" {hashlib.sha256(index.encode()).hexdigest()} {len(index)} Packages\n"
    (folder / "apt" / "Release").write_text(f"Suite: tiny\nCodename: tiny\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n{sums}")


class Handler(http.server.SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    """On a socket that listens already, in whatever namespace."""

    daemon_threads = True
    timeout = 0.5

    def __init__(self, listening, folder, context=None):
        super().__init__(listening.getsockname(), functools.partial(Handler, directory=str(folder)), bind_and_activate=False)
        self.socket.close()
        self.socket, self.context = listening, context
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        """Until whoever made the socket closes it. serve_forever() would then ask for it again and again, and never end."""
        with contextlib.suppress(OSError, ValueError):
            while self.socket.fileno() >= 0:
                self.handle_request()

    def finish_request(self, request, client_address):
        """In the connection's own thread: a client that never begins its handshake holds up nobody."""
        if self.context:
            request = self.context.wrap_socket(request, server_side=True)
        super().finish_request(request, client_address)

    def handle_error(self, *_):
        """Clients that end in the midst are part of what is tested."""


def stocked(folder):
    """The folder that is served, and the two files of certificates()."""
    web = folder / "web"
    web.mkdir()
    for name in ("hello", "hello.html"):
        (web / name).write_text(TEXT)
    for stock in (wheel, npm_package, repository, apt_repository):
        stock(web)
    authority, certificate = certificates(folder)
    shutil.copy(authority, web / "authority.pem")
    return web, authority, certificate


def served(world, folder, address):
    """At 80 and 443 of this address; the authority's file."""
    web, authority, certificate = stocked(pathlib.Path(folder))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    world.servers += [Server(world.listener(address, 80), web).socket, Server(world.listener(address, 443), web, context).socket]
    world.names.zone[NAME] = [address]
    return authority
