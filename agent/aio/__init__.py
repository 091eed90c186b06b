"""aio: the AIO Sandbox API from a command line. It needs Python 3.9 or newer and nothing else."""
