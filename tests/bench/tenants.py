"""tenants.py BASE [NUMBER]: workspaces made, used and deleted one after the other, in T3 and in T0, beside plain useradd, su and userdel of the
same machine; then whether every count is back where it was."""

import os
import pathlib
import subprocess
import sys
import tempfile
import time
import types

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "session"), str(TESTS / "escape")]
import places  # noqa: E402
from harness import Launcher, eventually  # noqa: E402
from sight import first_child  # noqa: E402
from test_leaks import close_all, counts, resident_kib, steady  # noqa: E402

BASE, NUMBER = pathlib.Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1000
PARTS = 10
COMMAND = 'echo mine >"$HOME/file" && cat "$HOME/file"'
# A machine's own tenants: /etc and /home are copies that end with it.
PLAIN = """
set -e
mount -t tmpfs none /mnt && cp -a /etc /mnt/etc && mount --bind /mnt/etc /etc && mount -t tmpfs none /home && mount -t tmpfs none /var/mail
for i in $(seq "$1"); do
  useradd -m -s /bin/sh "tenant$i"
  su "tenant$i" -c "$2" >/dev/null
  userdel -r "tenant$i" 2>/dev/null
done
"""


def plain(number):
    subprocess.run(["unshare", "--mount", "--", "sh", "-c", PLAIN, "sh", str(number), COMMAND], check=True, timeout=600)


class Tier:
    def __init__(self, tier):
        self.tier = tier
        folder = pathlib.Path(tempfile.mkdtemp(dir=BASE))
        folder.chmod(0o755)
        self.launcher = Launcher(folder)
        # In mounts of its own, as in a container; in T0 the home is where its path says.
        wrapper = places.wrapper(tier, self.launcher.home) or ["unshare", "--mount", "--"]
        self.launcher.start("--agent", "/usr/bin/true", *(("--home", "/home/gem") if tier == "T0" else ()), wrapper=wrapper)
        self.control = self.launcher.control()
        assert self.control.hello["tier"] == tier, self.control.hello["tier"]
        # Beyond T3 what was started is the container, and the launcher its first process.
        self.process = self.launcher if tier == "T3" else types.SimpleNamespace(pid=first_child(self.launcher.pid))
        self.keep = {int(f) for f in os.listdir("/proc/self/fd")}
        self.made = 0
        self.use(20)  # what is made once is no leak
        self.settle()
        self.before = self.seen()

    def settle(self):
        close_all(self.keep)
        eventually(lambda: steady(self.process), what="the counts stay as they are")

    def use(self, number):
        for _ in range(number):
            self.made += 1
            name = f"tenant{self.made}"
            self.control.call("workspace_create", name=name)
            session = self.control.create("shell", workspace=name)
            assert self.control.output(session, "/bin/sh", "-c", COMMAND) == "mine\n"
            self.control.call("workspace_destroy", workspace=name)
            self.control.events.clear()

    def seen(self):
        terminals = int(pathlib.Path("/proc/sys/kernel/pty/nr").read_text())
        homes = pathlib.Path(f"/proc/{self.launcher.pid}/root/home/workspaces")
        return {**counts(self.process), "terminals": terminals, "homes": len(list(homes.glob("*"))) if homes.is_dir() else 0,
                "keys": len(pathlib.Path("/proc/keys").read_text().splitlines())}  # fmt: skip

    def finish(self):
        kib = resident_kib(self.process)
        try:
            eventually(lambda: self.seen() == self.before)
        except AssertionError:
            pass
        after = self.seen()
        moved = {k: (self.before[k], after[k]) for k in after if after[k] != self.before[k]}
        print(f"{self.tier}: counts after {self.made} workspaces: {'all as before' if not moved else moved}; launcher {kib} KiB")
        self.launcher.stop()


def main():
    tiers = [Tier("T3"), Tier("T0")]
    took = {"plain": [], "T3": [], "T0": []}
    for _ in range(PARTS):
        for name, use in (("plain", plain), *((one.tier, one.use) for one in tiers)):
            count = NUMBER // PARTS
            begin = time.monotonic()
            use(count)
            took[name].append((time.monotonic() - begin) / count * 1e3)
    for name, values in took.items():
        median = sorted(values)[len(values) // 2]
        words = "useradd, su, userdel" if name == "plain" else "workspace, session, command, end"
        print(f"{name:6} {words:34} median {median:7.1f} ms each, {1e3 / median:6.1f} a second   {median / sorted(took['plain'])[PARTS // 2]:5.2f} of plain")
    for one in tiers:
        one.finish()


main()
