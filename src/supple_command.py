"""Entry point of the command `supple`, which handles Ctrl-C and SIGTERM during the first second of imports.

The module lies outside of the package, since importing any part of the package imports numba.
"""

from __future__ import annotations

import signal
import sys

INTERRUPTED, TERMINATED = 130, 143


def _terminate(*_: object) -> None:
    """Exit before the command starts; commands clean up after themselves, see `catch_sigterm`."""
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
