"""image/sudo, which sessions call when they are used to it: it passes commands through and explains what it cannot give."""

import os
import pathlib
import subprocess
import tempfile

import pytest

SUDO = pathlib.Path(__file__).resolve().parents[2] / "image" / "sudo"


@pytest.fixture
def sudo():
    """sudo(*arguments, user=...): what it did, as that user, with stand-ins for the programs that change the system."""
    place = tempfile.TemporaryDirectory()  # pytest's own are for root alone
    os.chmod(place.name, 0o755)
    for name in ("apt-get", "apt", "dpkg"):
        program = pathlib.Path(place.name, name)
        program.write_text('#!/bin/sh\necho "ran ${0##*/} $*"\n')
        program.chmod(0o755)

    def run(*arguments, user=1000):
        env = {"PATH": f"{place.name}:/usr/bin:/bin", "HOME": "/tmp", "SHELL": "/bin/bash", "KEPT": "kept"}
        return subprocess.run(["/bin/sh", "-c", SUDO.read_text(), "sudo", *arguments], env=env, cwd="/", user=user, group=user,
                              extra_groups=[], capture_output=True, text=True, check=False, timeout=60)

    with place:
        yield run


@pytest.mark.parametrize("arguments, printed", [
    (["echo", "-n", "a  b"], "a  b"),
    (["-E", "-n", "-H", "--", "printenv", "KEPT"], "kept\n"),
    (["-nE", "printenv", "KEPT"], "kept\n"),
    (["--preserve-env=KEPT", "--non-interactive", "printenv", "KEPT"], "kept\n"),
    (["NEW=a b", "KEPT=", "sh", "-c", 'echo "$NEW-$KEPT-"'], "a b--\n"),
    (["-u", "root", "id", "-u"], "1000\n"),
    (["-ugem", "id", "-u"], "1000\n"),
    (["--user=root", "-g", "root", "id", "-u"], "1000\n"),
    (["-D", "/usr", "pwd"], "/usr\n"),
    (["-i", "pwd"], "/tmp\n"),
    (["-s", "echo", "two  words"], "two  words\n"),
    (["apt-get", "--version"], "ran apt-get --version\n"),
    (["dpkg", "-l"], "ran dpkg -l\n"),
])
def test_passes_through_what_needs_no_root(sudo, arguments, printed):
    done = sudo(*arguments)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


@pytest.mark.parametrize("arguments", [
    ["apt-get", "install", "-y", "cowsay"], ["-E", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "install", "cowsay"],
    ["apt", "update"], ["dpkg", "-i", "./a.deb"], ["/usr/bin/apt-get", "remove", "less"],
])
def test_names_the_policy_field_that_lets_packages_of_the_system_be_installed(sudo, arguments):
    done = sudo(*arguments)
    assert (done.returncode, done.stdout) == (1, "")
    assert '"system_packages": true' in done.stderr and done.stderr.count("\n") == 1, done.stderr


def test_runs_apt_get_where_the_session_is_root(sudo):
    assert sudo("-E", "apt-get", "install", "-y", "cowsay", user=0).stdout == "ran apt-get install -y cowsay\n"


@pytest.mark.parametrize("option", ["-v", "-k", "-K", "--validate"])
def test_has_no_password_to_ask_or_forget(sudo, option):
    assert (sudo(option).returncode, sudo(option).stderr) == (0, "")


def test_lists_what_it_is(sudo):
    assert "without a password" in sudo("-l").stdout
    assert sudo("-k", "echo", "ran").stdout == "ran\n"


@pytest.mark.parametrize("arguments, said", [
    (["-u", "postgres", "id"], "no user 'postgres'"),
    (["no-such-program"], "no-such-program: command not found"),
    (["--", "-x"], "command not found"),
    (["-Q", "id"], "unknown option '-Q'"),
    (["-u"], "-u needs a value"),
    ([], "usage: sudo"),
])
def test_what_it_cannot_do_is_an_error(sudo, arguments, said):
    done = sudo(*arguments)
    assert done.returncode == 1 and said in done.stderr, done


def test_hands_on_the_exit_code(sudo):
    assert sudo("sh", "-c", "exit 7").returncode == 7


def test_is_a_program_and_not_set_user_id():
    assert os.stat(SUDO).st_mode & 0o7777 == 0o755
