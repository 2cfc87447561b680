"""The `tempernet` command.

Exit codes: 0 done; 2 the command line or a setting is wrong; 3 the data cannot be used; 4 the
numbers cannot be trusted; 5 a run folder cannot be written, read or trusted; 6 stopped before the
end, and can be resumed; 1 a bug.
"""

from __future__ import annotations

import os
import sys
import traceback

from tempernet.devices import configure
from tempernet.errors import (
    ConfigError,
    DataError,
    NumericsError,
    Stopped,
    StoreError,
    TempernetError,
)
from tempernet.runs.stopping import EXIT_STOPPED

EXIT_CODES: dict[type[TempernetError], int] = {
    ConfigError: 2,
    DataError: 3,
    NumericsError: 4,
    StoreError: 5,
    Stopped: EXIT_STOPPED,
}


def main() -> None:
    """Run the command; one line on standard error and an exit code for what can go wrong."""
    debug = "--debug" in sys.argv
    if debug:
        sys.argv.remove("--debug")
    try:
        # Before JAX is imported, which the command does.
        configure()
        from tempernet.cli.command import make_app

        make_app()()
    except TempernetError as error:
        if debug:
            traceback.print_exc()
        print(f"tempernet: {error}", file=sys.stderr, flush=True)
        code = next(code for kind, code in EXIT_CODES.items() if isinstance(error, kind))
        if isinstance(error, Stopped):
            # A round may still be running on the devices; what is needed is on disk.
            sys.stdout.flush()
            os._exit(code)
        sys.exit(code)
