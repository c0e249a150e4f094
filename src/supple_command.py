"""The command `supple`, as it begins: what it imports takes a second, in which Ctrl-C and SIGTERM must do no
harm.

It is no part of the package, since importing any part of that imports numba.
"""

from __future__ import annotations

import signal
import sys

INTERRUPTED, TERMINATED = 130, 143


def _terminate(*_: object) -> None:
    """End before anything has begun; commands themselves clean up, see `catch_sigterm`."""
    sys.stderr.write("Terminated.\n")
    sys.exit(TERMINATED)


def main() -> None:
    try:
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            signal.signal(signal.SIGTERM, _terminate)
        from supple.cli import main as run

        if signal.getsignal(signal.SIGTERM) is _terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        run()
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
