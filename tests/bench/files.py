"""files.py URL KEY HOME: what the file API costs. Reads of 4 KiB one after the other; then, in turn, a download of 1 GiB and the same file
through `cat` and a pipe, both read by this program in the same pieces, so that both meet the same machine."""
import http.client
import os
import subprocess
import sys
import time
import urllib.parse

READS, SIZE, ROUNDS, PIECE = 500, 1 << 30, 3, 1 << 20
url, key, home = sys.argv[1], sys.argv[2], sys.argv[3]
server = urllib.parse.urlsplit(url).netloc


def held(value, target, least=False):
    return f"target {target:.2f}   {'held' if (value >= target if least else value <= target) else 'MISSED'}"


def post(connection, path, body):
    connection.request("POST", path, body, {"X-AIO-API-Key": key, "Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == 200
    return answer.read()


def read_us(connection):
    begin = time.monotonic()
    assert b'"success":true' in post(connection, "/v1/file/read", '{"file":"small"}')
    return (time.monotonic() - begin) * 1e6


def download_seconds():
    begin, size, buffer = time.monotonic(), 0, bytearray(PIECE)
    connection = http.client.HTTPConnection(server)
    connection.request("GET", "/v1/file/download?path=large", headers={"X-AIO-API-Key": key})
    answer = connection.getresponse()
    while n := answer.readinto(buffer):
        size += n
    assert answer.status == 200 and size == SIZE
    return time.monotonic() - begin


def cat_seconds():
    begin, size, buffer = time.monotonic(), 0, bytearray(PIECE)
    with subprocess.Popen(["cat", os.path.join(home, "large")], stdout=subprocess.PIPE, bufsize=0) as cat:
        while n := cat.stdout.readinto(buffer):
            size += n
    assert size == SIZE
    return time.monotonic() - begin


connection = http.client.HTTPConnection(server)
post(connection, "/v1/file/write", '{"file":"small","content":"%s"}' % ("x" * 4096))
post(connection, "/v1/bash/exec", '{"command":"head -c %d /dev/urandom > large","timeout":120}' % SIZE)
reads = sorted(read_us(connection) for _ in range(READS))
median = reads[READS // 2]
print(f"read of 4 KiB   median {median:7.0f} us   p99 {reads[READS * 99 // 100]:7.0f} us   {held(median / 1000, 0.5)} ms")
times = [(download_seconds(), cat_seconds()) for _ in range(ROUNDS)]
download, cat = sorted(t[0] for t in times)[ROUNDS // 2], sorted(t[1] for t in times)[ROUNDS // 2]
print(f"1 GiB           download {SIZE / download / 1e6:7.0f} MB/s   cat and a pipe {SIZE / cat / 1e6:7.0f} MB/s   "
      f"download / cat {cat / download:.2f}   {held(cat / download, 0.5, least=True)}")
