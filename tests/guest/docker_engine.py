"""A real Docker engine in the guest, and containers of one image: a minimal Debian with the tested binaries and policies."""

import json
import pathlib
import shutil
import subprocess

from harness import API_KEY, BUILD, ROOT, Control, eventually

BASE = pathlib.Path("/opt/base.tar")  # put there when the guest's images were made: tests/guest/base-image
IMAGE = "caisson"


def docker(*argv, check=True):
    done = subprocess.run(["docker", *map(str, argv)], capture_output=True, text=True, timeout=600, check=False)
    assert not check or done.returncode == 0, f"docker {argv}: {done.stdout}{done.stderr}"
    return done


class Engine:
    """dockerd without networks (no test needs one), its containers in cgroups below the root as on any host."""

    def __init__(self, folder):
        self.log = folder / "dockerd.log"
        self.start()

    def start(self):
        with open(self.log, "wb") as log:
            argv = ["dockerd", "--bridge=none", "--iptables=false"]
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait(self):
        """It gives its containerd fifteen seconds, which an emulated machine on a busy host does not keep: then it is started again."""
        answers = lambda: docker("info", check=False).returncode == 0  # noqa: E731
        for _ in range(5):
            eventually(lambda: self.process.poll() is not None or answers(), 400, "dockerd answers")
            if self.process.poll() is None:
                return self
            assert "timeout waiting for containerd" in self.log.read_text(), self.log.read_text()
            self.start()
        raise AssertionError(self.log.read_text())

    def stop(self):
        self.process.terminate()
        self.process.wait(180)


def make_image(folder):
    """The binaries and policies of image/Dockerfile's last stage, on top of the base tree."""
    tree = folder / "tree"
    (tree / "usr/lib/caisson").mkdir(parents=True)
    (tree / "usr/bin").mkdir()
    (tree / "etc/caisson").mkdir(parents=True)
    for program in [*BUILD.glob("launcher/caisson-*"), BUILD / "agent/caisson-agent", BUILD / "agent/caisson-courier"]:
        shutil.copy2(program, tree / "usr/lib/caisson")
    shutil.copy2(BUILD / "launcher/caisson", tree / "usr/bin")
    tools = tree / "usr/lib/caisson/tools"
    shutil.copytree(BUILD / "launcher/tools", tools)
    shutil.copytree(ROOT / "policies", tree / "etc/caisson/policies")
    subprocess.run(["chmod", "-R", "a+rX,go-w", tree], check=True)
    whole = folder / "image.tar"
    shutil.copy(BASE, whole)
    # Nothing twice in one tar file: Docker refuses it. The base has the two folders named caisson.
    programs = [p.relative_to(tree) for p in tree.glob("usr/**/*") if p.is_file() and p.parent != tools]
    folders = ["etc/caisson/policies", "usr/lib/caisson/tools"]
    append = ["tar", "-C", tree, "--owner=0", "--group=0", "--numeric-owner", "-rf", whole, *folders, *programs]
    subprocess.run(append, check=True, timeout=400)
    docker("import", "--change", 'ENTRYPOINT ["/usr/lib/caisson/caisson-launcher"]', whole, IMAGE)
    whole.unlink()


class Container:
    """A started container: what its launcher said and found, the API in its network, sessions at its control socket."""

    def __init__(self, name, flags):
        self.name = name
        docker("run", "-d", "--name", name, "-e", f"SANDBOX_API_KEY={API_KEY}", *flags, IMAGE)
        self.pid = docker("inspect", "-f", "{{.State.Pid}}", name).stdout.strip()
        # Not by asking Docker again and again: its command line takes seconds of an emulated processor.
        gone = lambda: not pathlib.Path("/proc", self.pid, "root").exists()  # noqa: E731
        eventually(lambda: gone() or self.http("/readyz").returncode == 0, 400, f"{name} answers")
        assert not gone(), self.logs()
        self.probe = json.loads(docker("exec", name, "caisson", "probe", "--json").stdout)

    def http(self, path, body=None):
        """curl in the container's network, which has no way out or in."""
        argv = ["nsenter", "-t", self.pid, "-n", "curl", "-sf", "-H", f"X-AIO-API-Key: {API_KEY}", f"http://127.0.0.1:8080{path}"]
        if body is not None:
            argv += ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
        return subprocess.run(argv, capture_output=True, text=True, timeout=180, check=False)

    def bash(self, command):
        done = self.http("/v1/bash/exec", {"command": command})
        assert done.returncode == 0, (done, self.logs())
        return json.loads(done.stdout)["data"]

    def control(self):
        return Control(f"/proc/{self.pid}/root/run/caisson/control.sock")

    def logs(self):
        done = docker("logs", self.name)
        return done.stdout + done.stderr

    def remove(self):
        docker("rm", "-f", self.name)
