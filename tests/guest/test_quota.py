"""A persistent workspace on a filesystem with project quotas: the kernel keeps the limit. The guest's own disk has none, so one is made."""

import subprocess

import pytest
from harness import inside

MIB = 1 << 20


@pytest.fixture
def disk(fresh, tmp_path):
    """A small ext4 that counts projects, for workspaces."""
    for module in ("loop", "quota_v2"):
        if subprocess.run(["modprobe", module], check=False, capture_output=True).returncode != 0:
            pytest.skip(f"this guest's image has no module {module}")
    image, folder = tmp_path / "image", tmp_path / "disk"
    image.write_bytes(b"")
    image.open("r+b").truncate(48 * MIB)
    subprocess.run(["mkfs.ext4", "-q", "-O", "quota,project", "-E", "quotatype=prjquota", image], check=True)
    folder.mkdir()
    subprocess.run(["mount", "-o", "loop,prjquota", image, folder], check=True)
    (folder / "workspaces").mkdir(mode=0o700)
    yield folder / "workspaces"
    fresh.stop()  # it holds the directory
    subprocess.run(["umount", folder], check=True)


def test_the_kernel_keeps_the_limit_of_a_home_on_disk(fresh, disk):
    fresh.start("--workspaces", disk)
    control = fresh.control()
    made = control.call("workspace_create", name="a", persistent=True, disk_bytes=4 * MIB)[0]["workspace"]
    assert made["disk"]["enforced_by"] == "project_quota" and made["disk"]["limit"] == 4 * MIB
    control.call("workspace_create", name="b", persistent=True, disk_bytes=4 * MIB)
    session, other = control.create("shell", workspace="a"), control.create("shell", workspace="b")
    ended, _, err = control.run(session, "dd", "if=/dev/zero", "of=/home/gem/big", "bs=1M", "count=6")
    assert ended["exit_code"] == 1 and ("No space left" in err or "quota exceeded" in err), err
    used = next(w for w in control.call("workspace_list")[0]["workspaces"] if w["name"] == "a")["disk"]
    assert 3 * MIB < used["bytes"] <= 4 * MIB
    control.output(other, "dd", "if=/dev/zero", "of=/home/gem/some", "bs=1M", "count=2", "status=none")
    # A session can neither leave its project nor end its inheritance (FS_IOC_FSSETXATTR).
    out = "import fcntl, struct\nfd = os.open('/home/gem', os.O_RDONLY)\nout = [tried(fcntl.ioctl, fd, 0x401c5820, struct.pack('IIIII8x', 0, 0, 0, 0, 0))]"
    assert inside(control, session, out)[0] in ("EPERM", "EINVAL", "EACCES", "ENOTTY")
    spent = inside(control, session, "os.unlink('/home/gem/big')\ndef fill():\n  for i in range(5000): os.mkdir(f'/home/gem/{i}')\nout = tried(fill)")
    assert spent in ("EDQUOT", "ENOSPC")
    assert "home-quota" not in {r["id"] for r in control.call("session_report", session=session)[0]["report"]["residual"]}
