"""``python -m guest --mode emulate|capture|device --targets gfx942,gfx950``: one candidate over the socket on fd 3."""

from __future__ import annotations

import argparse
import os
import socket
import sys
import tempfile
from pathlib import Path

from . import SOCKET_FD

MODES = ("emulate", "capture", "device")


def main() -> None:
    """Prepare the mode, then serve until the checker hangs up."""
    parser = argparse.ArgumentParser(prog="guest")
    parser.add_argument("--mode", choices=MODES, required=True)
    parser.add_argument("--targets", default="gfx942", help="comma-separated; the first is the one launched")
    parser.add_argument("--held", action="store_true", help="touch no device before the checker's first frame")
    options = parser.parse_args()
    sock = socket.socket(fileno=SOCKET_FD)
    os.set_inheritable(SOCKET_FD, False)
    with tempfile.TemporaryDirectory(prefix="guest-", ignore_cleanup_errors=True) as workplace:
        _prepare_environment(Path(workplace))
        # Triton and torch read their environment when imported.
        from . import first_use, modes, serve, upstream, wire

        upstream.install()
        targets = tuple(options.targets.split(","))
        try:
            # Another candidate may be timed on the device while this process imports.
            _ = wire.receive(sock) if options.held else None
        except wire.WireError:
            os._exit(0)
        mode = modes.make_mode(options.mode, targets)
        first_use.pay(options.mode, targets)
        serve.Guest(mode, Path(workplace)).serve(sock)
    # Without finalising: the candidate's threads and exit hooks have no say, and Triton's leak report is noise.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _prepare_environment(workplace: Path) -> None:
    os.environ.setdefault("TRITON_CACHE_DIR", str(workplace / "triton"))
    # Its default changes with Triton 3.10; fused multiply-add is what the boards' Triton does.
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    os.environ.pop("TRITON_INTERPRET", None)
    os.environ.setdefault("HOME", str(workplace))


if __name__ == "__main__":
    main()
