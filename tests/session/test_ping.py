"""image/ping, which sessions call in place of one that needs ICMP: reaches what answers, and says of the rest why not."""

import pathlib
import subprocess

import pytest

PING = pathlib.Path(__file__).resolve().parents[2] / "image" / "ping"
UP, DOWN = "ip link set lo up && ", ""


def ping(*arguments, before=UP):
    """In a network namespace of its own, where there is a loopback and nothing else."""
    return subprocess.run(["unshare", "-n", "sh", "-c", before + 'exec "$@"', "sh", PING, *arguments], capture_output=True, text=True,
                          check=False, timeout=60)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost", "127.0.0.53"])
def test_the_loopback_answers(host):
    done = ping("-c", "2", "-i", "0", host)
    assert done.returncode == 0 and done.stdout.count("answer from") == 2, done
    assert "2 packets transmitted, 2 received, 0% packet loss" in done.stdout


def test_options_that_people_type_are_taken():
    done = ping("-q", "-n", "-4", "-c1", "-W1", "-w5", "localhost")
    assert done.returncode == 0 and "answer from" not in done.stdout and "1 received" in done.stdout, done


@pytest.mark.parametrize("host, before", [("192.0.2.1", UP), ("127.0.0.1", DOWN), ("2001:db8::1", UP)])
def test_where_nothing_can_be_sent_it_says_why(host, before):
    done = ping("-c", "1", host, before=before)
    assert done.returncode == 2 and done.stderr == "ping: Network is unreachable\n", done


SILENT = """import os, socket, sys
quiet = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
quiet.bind(("127.0.0.1", 33434))
quiet.set_inheritable(True)
os.execv(sys.argv[1], sys.argv[1:])"""


def test_what_does_not_answer_is_lost():
    done = ping("-c", "2", "-i", "0", "-W", "0.01", "127.0.0.1", before=f"{UP} set -- python3 -c '{SILENT}' \"$@\" && ")
    assert done.returncode == 1 and "2 packets transmitted, 0 received, 100% packet loss" in done.stdout, done


def test_a_name_that_is_none_is_an_error():
    done = ping("-c", "1", "no-such-host.invalid")
    assert done.returncode == 2 and done.stderr.startswith("ping: ") and "Traceback" not in done.stderr, done
