"""`memoryd up`, and PID 1 of a container."""

import sys

from workers.supervisor.run import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
