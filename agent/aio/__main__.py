import sys

from aio.main import main

sys.exit(main(sys.argv[1:]))
