"""Python's module site runs this at the start of each interpreter of the image. In a session without network it makes pip say so in one
sentence, at once. By itself pip looks for its index six times, for a minute, and then says that there is no such package.

Nothing is forbidden by it: what pip finds in files, in wheels that are there already or at an index on the loopback it installs as ever.
It is here, and not around the program pip, because `python -m pip`, `%pip` and the pip of a virtual environment all pass here.
"""
import sys


def _runs_pip():
    """Whether this interpreter was started as `pip`, `pip3`, `python -m pip`, or by pip for what a build needs."""
    word = next((word for word in sys.orig_argv[1:] if not word.startswith("-")), "")
    name = word.rpartition("/")[2]
    return name.rstrip("0123456789.") == "pip" or name == "__pip-runner__.py"


def _has_a_route_out(socket):
    for family, address in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect((address, 9))  # of a datagram socket: looks up the route, and sends nothing
            return True
        except OSError:
            pass
    return False


def _explain_to_pip():
    import os
    import socket

    if _has_a_route_out(socket):
        return
    os.environ.setdefault("PIP_RETRIES", "0")
    os.environ.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
    look_up, said = socket.getaddrinfo, []

    def getaddrinfo(host, *args, **kwargs):
        try:
            return look_up(host, *args, **kwargs)
        except OSError:
            if not said:
                said.append(host)
                print(f"pip: this session has no network, so nothing can be fetched from {host!r}: upload wheels into the home and install "
                      "them by their path, or ask whoever runs this sandbox for the package in its image.", file=sys.stderr)
            raise

    socket.getaddrinfo = getaddrinfo


if _runs_pip():
    _explain_to_pip()
