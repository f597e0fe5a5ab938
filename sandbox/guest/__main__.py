"""``python -m guest --mode emulate|capture|ahead|device --targets gfx942,..``: one candidate, the socket on fd 3."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import tempfile
from pathlib import Path

from . import SOCKET_FD

MODES = ("emulate", "capture", "ahead", "device")


def main() -> None:
    """Prepare the mode, then serve until the checker hangs up."""
    parser = argparse.ArgumentParser(prog="guest")
    parser.add_argument("--mode", choices=MODES, required=True)
    parser.add_argument("--targets", default="gfx942", help="comma-separated; the first is the one launched")
    parser.add_argument("--held", action="store_true", help="touch no device before the checker's first frame")
    parser.add_argument("--racecheck", action="store_true", help="look for what nothing orders in emulated HIP kernels")
    parser.add_argument("--ranks", action="store_true", help="be the parent of several ranks: see `ranks`")
    parser.add_argument(
        "--figures", type=json.loads, help="what a captured chip says of itself, as JSON; see `figures`"
    )
    options = parser.parse_args()
    sock = socket.socket(fileno=SOCKET_FD)
    os.set_inheritable(SOCKET_FD, False)
    with tempfile.TemporaryDirectory(prefix="guest-", ignore_cleanup_errors=True) as workplace:
        _prepare_environment(Path(workplace), options.racecheck)
        # Triton and torch read their environment when imported.
        from . import first_use, modes, serve, upstream, wire

        upstream.install()
        targets = tuple(options.targets.split(","))
        if options.ranks:
            _serve_rank(sock, options.mode, targets, Path(workplace))
        try:
            # Another candidate may be timed on the device while this process imports.
            if options.held:
                wire.send(sock, {"op": "imported"})
                wire.receive(sock)
        except wire.WireError:
            os._exit(0)
        mode = modes.make_mode(options.mode, targets, options.figures)
        first_use.pay(options.mode, targets)
        serve.Guest(mode, Path(workplace)).serve(sock)
    # Without finalising: the candidate's threads and exit hooks have no say, and Triton's leak report is noise.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _serve_rank(sock: socket.socket, name: str, targets: tuple[str, ...], workplace: Path) -> None:
    """Fork the ranks that the checker asks for, serve as one of them, and end."""
    from . import first_use, ranks

    # What a device is forked with is lost to it; everything else is set up once for all ranks.
    shared = None if name == "device" else ranks.make_rank_mode(name, targets, 0)
    if shared is not None:
        first_use.pay(name, targets)
    rank = ranks.branch(sock)
    mode = shared or ranks.make_rank_mode(name, targets, rank)
    if shared is None:
        first_use.pay(name, targets)
    own = workplace / str(rank)
    own.mkdir()
    ranks.RankGuest(mode, own).serve(socket.socket(fileno=SOCKET_FD))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _prepare_environment(workplace: Path, racecheck: bool) -> None:
    if racecheck:
        os.environ["KERNELWRIGHT_RACECHECK"] = "1"
    os.environ.setdefault("TRITON_CACHE_DIR", str(workplace / "triton"))
    # Its default changes with Triton 3.10; fused multiply-add is what the boards' Triton does.
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    os.environ.pop("TRITON_INTERPRET", None)
    os.environ.setdefault("HOME", str(workplace))


if __name__ == "__main__":
    main()
