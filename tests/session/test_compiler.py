"""A caisson-policies that lies: what it makes of a request is not believed."""

import struct
import subprocess

import pytest
from harness import Refused, c_compiler

# Answers as the true one, but that in the mode in `lie` each of the first bytes is replaced by the second.
LIAR = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static char answer[16 << 20], mode[64], from[64], to[64];
int main(int argc, char **argv) {
  int ends[2], status = 0;
  FILE *lie = fopen(FOLDER "/lie", "r");
  size_t size = 0, n, length = 0;
  if (pipe(ends) != 0) return 1;
  if (fork() == 0) {
    dup2(ends[1], 1);
    execv(FOLDER "/true", argv);
    _exit(1);
  }
  close(ends[1]);
  while ((n = read(ends[0], answer + size, sizeof answer - size)) > 0) size += n;
  wait(&status);
  if (lie != NULL && argc == 2) {
    if (fread(mode, 1, sizeof mode, lie) != sizeof mode) return 1;
    length = fread(from, 1, sizeof from, lie) == sizeof from && fread(to, 1, sizeof to, lie) == sizeof to ? atoi(mode + 32) : 0;
  }
  if (length != 0 && strcmp(mode, argv[1]) == 0)
    for (char *at = answer; (at = memmem(at, answer + size - at, from, length)) != NULL; at += length) memcpy(at, to, length);
  return write(1, answer, size) != (ssize_t)size || status != 0;
}
"""

SMALL, LARGE = 123456789, 5 << 30  # bytes of a file: as the request has it, and more than the domain allows
# mode, what it says, what it says instead, what that is refused for
LIES = {
    "a limit of the policy": ("--narrow", struct.pack("<Q", SMALL), struct.pack("<Q", LARGE), "policy/limits/file_size_bytes"),
    "a grant of the policy": ("--narrow", b"/usr/bin", b"/etc/ssl", "policy/grants"),
    "a limit of the plan's policy": ("--plan", struct.pack("<Q", SMALL), struct.pack("<Q", LARGE), "policy/limits/file_size_bytes"),
    "a kernel's limit": ("--plan", struct.pack("<QQ", SMALL, SMALL), struct.pack("<QQ", SMALL, LARGE), "limits"),
    "a name that is in the image": ("--plan", b"/proc/self/fd/0", b"/proc/self/fd/9", "links"),
    "what is not stopped": ("--plan", b"file-locks", b"file-lockz", "residual"),
}


@pytest.fixture
def liar(fresh, tmp_path):
    """A launcher with a compiler that lies once it is told what."""
    programs = fresh.own_programs(tmp_path / "programs")
    (programs / "caisson-policies").rename(programs / "true")
    source = f'#define FOLDER "{programs}"\n{LIAR}'
    argv = [c_compiler(), "-w", "-x", "c", "-o", programs / "caisson-policies", "-"]
    subprocess.run(argv, input=source.encode(), check=True, timeout=60)
    control = fresh.start("--agent", "/usr/bin/true").control()

    def lie(mode, true, false):
        (programs / "new").write_bytes(b"".join((mode.encode().ljust(32, b"\0"), str(len(true)).encode().ljust(32, b"\0"), true.ljust(64, b"\0"), false.ljust(64, b"\0"))))
        (programs / "new").rename(programs / "lie")

    return control, lie


NARROW = {"limits": {"file_size_bytes": SMALL}, "grants": [{"path": "/usr", "execute": True}, {"path": "/usr/bin", "execute": True}]}


@pytest.mark.parametrize("what", LIES)
def test_a_session_that_is_wider_than_its_domain_is_refused(fresh, liar, what):
    control, lie = liar
    mode, true, false, field = LIES[what]
    lie(mode, true, false)
    with pytest.raises(Refused) as refused:
        control.create("bash", narrow=NARROW)
    wanted = f"compiler's answer is wider than the domain: {field}"
    assert refused.value.error["code"] == "permission_denied" and refused.value.error["what"] == wanted
    assert [r["what"] for r in fresh.records() if r["event"] == "request_refused"] == [wanted]
    lie("", b"", b"")
    assert control.output(control.create("bash", narrow=NARROW), "sh", "-c", "ulimit -f").strip() == str(SMALL // 512)


def test_a_source_that_was_not_opened_is_refused(liar):
    control, lie = liar
    lie("--plan", b"/usr/bin", b"/etc/ssl")
    with pytest.raises(Refused) as refused:
        control.create("bash", narrow=NARROW)
    assert "has a source that was not opened: '/etc/ssl'" in refused.value.error["what"]


@pytest.mark.parametrize("mode", ["--narrow", "--plan"])
@pytest.mark.parametrize("arguments", [{"narrow": NARROW}, {"isolation": "private"}], ids=["narrowed", "private"])
def test_the_same_request_is_compiled_once(liar, mode, arguments):
    """What was answered is kept: a later lie is not heard."""
    control, lie = liar
    control.create("bash", **arguments)
    lie(mode, b"caisson frozen", b"caisson thawed")
    assert control.create("bash", **arguments)
    with pytest.raises(Refused):
        control.create("bash", narrow={"limits": {"execs": 3}})


def test_without_a_compiler_a_narrowed_session_does_not_start(fresh, liar):
    control, lie = liar
    lie("--plan", b"caisson frozen", b"caisson thawed")
    with pytest.raises(Refused) as refused:
        control.create("bash", narrow=NARROW)
    assert refused.value.error["what"] == "caisson-policies: the answer is from another version"
    assert control.output(control.create(), "echo", "on") == "on\n"
