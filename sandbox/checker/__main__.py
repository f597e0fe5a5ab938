"""``python -m sandbox.checker cpu|gpu [--chip NAME] [--isolation NAME]``: serves the socket on its standard input."""

from __future__ import annotations

import argparse
import os
import select
import socket
import threading
import time

from problems.spec import ProblemError
from sandbox.checker.server import Bar, cpu_bar, fault, gpu_bar, named, serve
from sandbox.guest import wire
from sandbox.isolation import choose
from sandbox.runner import RunnerError, Unsupported
from sandbox.verdict import Machine

_ORDERLY_S = 2.0


def main() -> None:
    """Set up, say ready with the machine, serve, and take every guest down at the end."""
    parser = argparse.ArgumentParser(prog="sandbox.checker")
    parser.add_argument("kind", choices=("cpu", "gpu"))
    parser.add_argument("--chip", default="MI300X")
    parser.add_argument("--isolation")
    parser.add_argument("--racecheck", action="store_true", help="on the CPU: check the order of HIP kernels' accesses")
    parser.add_argument("--machine", help="the machine as JSON, where it is known beforehand")
    arguments = parser.parse_args()
    sock = _socket()
    try:
        bar = _bar(arguments)
    except (RunnerError, ProblemError) as error:
        wire.send(sock, fault("unsupported" if isinstance(error, Unsupported) else "runner", str(error)))
        return
    _end_with(sock)
    wire.send(sock, {"op": "ready", "machine": bar.machine.model_dump(mode="json")})
    try:
        serve(sock, bar)
    finally:
        bar.close()


def _bar(arguments: argparse.Namespace) -> Bar:
    gpu = arguments.kind == "gpu"
    sandbox = named(arguments.isolation, lambda: choose(gpu))
    if not gpu:
        machine = Machine.model_validate_json(arguments.machine)
        return cpu_bar(machine, sandbox, arguments.chip, arguments.racecheck)
    from sandbox.checker.device import Device
    from sandbox.checker.machine import gpu_machine

    machine, chip = gpu_machine()
    return gpu_bar(machine, Device(machine.chip, chip), sandbox)


def _socket() -> socket.socket:
    sock = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return sock


def _end_with(sock: socket.socket) -> None:
    """End this process when the other side is gone, busy or not; the guests end with it."""

    def watch() -> None:
        poll = select.poll()
        poll.register(sock.fileno(), select.POLLRDHUP | select.POLLHUP)
        poll.poll()
        # An idle checker ends by itself, and its guests in good order; a busy one must not be waited for.
        time.sleep(_ORDERLY_S)
        os._exit(3)

    threading.Thread(target=watch, name="watch", daemon=True).start()


if __name__ == "__main__":
    main()
