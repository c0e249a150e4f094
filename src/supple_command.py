"""The command `supple`, as it begins: what it imports takes a second, in which Ctrl-C must do no harm.

It is no part of the package, since importing any part of that imports numba.
"""

from __future__ import annotations

import sys

INTERRUPTED = 130


def main() -> None:
    try:
        from supple.cli import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
