"""How checker and guest talk: framed JSON headers, raw bytes and file descriptors over one UNIX stream socket.

A frame is two little-endian u32 (header length, payload length), the header as a JSON object, the payload. File
descriptors ride on the first byte of the frame that needs them. No pickles. Every length is bounded before it is read.
A side that waits for the untrusted one gives a moment (`until_s`) by which the whole frame must be there, so that
bytes that drip in cannot stretch it, and takes no descriptors.

The checker speaks, the guest answers each frame with one frame (a burst with two):

=========  ===================================================  ====================================================
op         checker sends                                        guest answers
=========  ===================================================  ====================================================
(ready)    nothing: the guest speaks first, once, when warm     ``{"op": "ready", "versions": {...}}``
prepare    to a device guest, before that: touch the device     none, but ``{"op": "imported"}`` before it is asked
stock      payload: what ``cache`` answered in another guest     ``{"op": "stocked", "files": n}``
           of the candidate that is loaded next
load       payload: the candidate's source, UTF-8               ``{"op": "loaded"}`` or ``failed``
buffers    ``items: [{"id": 0, "bytes": n, "kind": "host"}]``,  ``{"op": "mapped"}``
           one descriptor each; replaces earlier buffers
call       ``data``: tree of the input tuple; ``result``: id    ``{"op": "returned", "tree": tree, "event_us": x}``
           of the buffer for what it returns; ``head_start``:   or ``raised``; where timed, ``exposed``: bool and
           cycles, 0: not timed; ``join``: bool; ``board``      ``late_us``
empty      ``data``; ``copied``: bytes of the result that an    as for ``call``; ``event_us`` is how long the head
           answered call copied, 0 for none; ``head_start``     start took
burst      ``data``: tree of call 0's inputs, each call's       ``{"op": "queued", "tree": tree}``, a list of every
           ``apart`` bytes further on; ``count``; ``result``,   call's, then, all done, ``{"op": "returned"}``
           ``gate``: ids; or ``count``, ``gate``, ``copied``
profile    ``data``: tree of the input tuple                    ``{"op": "profiled"}``, payload: JSON, see `profile`
kernels    ``after``: launches already fetched                  ``{"op": "kernels"}``, payload: JSON, see `capture`
cache      nothing                                              ``{"op": "cache"}``, payload: the kernels compiled
                                                                since ``load``, see `cache`
=========  ===================================================  ====================================================

``failed`` and ``raised`` carry ``log``, a traceback cut to `MAX_LOG` characters. ``event_us`` is null unless timed,
``exposed`` says that the head start was over before all was launched, ``late_us`` how long the whole device was waited
for after the last event, by the guest's host clock; an empty call says that too, and ``pair_us``.
``board`` (``{"clock": "host"|"event", "flush": bool, "clone": bool}``): time it as a board does instead.
``join``: wait for the whole device, whatever streams the candidate used. An ``empty`` call does all that a timed call
does and runs no kernel. A ``burst`` is queued on the device behind a wait for the gate's first 32-bit word to be 1; the
checker opens it when the calls are said to be queued, or after a while. Without ``data`` its kernels do nothing.

A buffer's ``kind`` is ``host`` (a memfd, to be mapped shared; a device guest stages it onto its device), ``cpu`` (the
same, not staged: a gate, and tensors that are to be on the host) or ``cuda`` (a VMM allocation of ``bytes`` bytes, a
multiple of its granularity, exported as a POSIX file descriptor).

A tree is JSON: ``{"t": "tuple"|"list", "items": [...]}``, ``{"t": "dict", "items": {...}}``, ``{"t": "value", "value":
int|float|str|bool|null}``, or a tensor ``{"t": "tensor", "dtype": "float16", "shape": [..], "stride": [..],
"buffer": id, "offset": bytes}``. A tensor whose ``buffer`` is null has no memory: the guest makes it on the meta device
(capture). The guest answers with trees whose tensors lie in the result buffer, or in an input buffer where it returned
that very tensor; a tensor too large for the result buffer, or of a kind that cannot be copied there, is answered with
``buffer`` null, anything that is no tree as ``{"t": "other", "type": "its type"}``.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MAX_HEADER = 1 << 20
MAX_PAYLOAD = 128 << 20
MAX_LOG = 16_384
MAX_FDS = 64
_LENGTHS = struct.Struct("<II")


class WireError(Exception):
    """The other side closed the socket, or sent something that is not a frame."""


class WireGone(WireError):
    """The other side closed the socket."""


class WireLate(WireError):
    """The whole frame was not there (or not taken) by the moment given."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: a JSON object, raw bytes, and the descriptors that came with it (owned by the receiver)."""

    header: dict[str, Any]
    payload: bytes = b""
    fds: tuple[int, ...] = ()

    @property
    def op(self) -> str:
        """The header's verb, or an empty string where it names none."""
        op = self.header.get("op")
        return op if isinstance(op, str) else ""


def send(
    sock: socket.socket,
    header: dict[str, Any],
    payload: bytes = b"",
    fds: Sequence[int] = (),
    until_s: float | None = None,
) -> None:
    """Send one frame by `until_s` (`time.monotonic`); `WireGone` or `WireLate` where nobody reads it."""
    head = json.dumps(header, separators=(",", ":")).encode()
    if len(head) > MAX_HEADER or len(payload) > MAX_PAYLOAD:
        raise WireError(f"frame of {len(head)} + {len(payload)} bytes is over the limit")
    frame = _LENGTHS.pack(len(head), len(payload)) + head
    try:
        _bound(sock, until_s)
        sent = socket.send_fds(sock, [frame], list(fds)) if fds else 0
        sock.sendall(frame[sent:])
        _bound(sock, until_s)
        sock.sendall(payload)
    except TimeoutError as error:
        raise WireLate("the other side does not read") from error
    except OSError as error:
        raise WireGone(f"cannot send: {error}") from error


def receive(sock: socket.socket, until_s: float | None = None, accept_fds: bool = True) -> Frame:
    """Receive one whole frame by `until_s` (`time.monotonic`).

    Raises `WireLate` at that moment, `WireGone` on a closed socket, `WireError` on a bad length or a header that is
    not a JSON object. Without `accept_fds` the kernel drops whatever descriptors came along.
    """
    lengths, fds = _exactly(sock, _LENGTHS.size, until_s, accept_fds)
    try:
        head_length, payload_length = _LENGTHS.unpack(lengths)
        if head_length > MAX_HEADER or payload_length > MAX_PAYLOAD:
            raise WireError(f"frame of {head_length} + {payload_length} bytes is over the limit")
        head, more = _exactly(sock, head_length, until_s, accept_fds)
        fds += more
        payload, _ = _exactly(sock, payload_length, until_s, accept_fds=False)
        return Frame(_header(head), payload, fds)
    except WireError:
        for fd in fds:
            os.close(fd)
        raise


def _header(head: bytes) -> dict[str, Any]:
    try:
        header = json.loads(head, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise WireError("header is not JSON") from error
    if not isinstance(header, dict):
        raise WireError("header is not a JSON object")
    return header


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _bound(sock: socket.socket, until_s: float | None) -> None:
    if until_s is None:
        sock.settimeout(None)
        return
    left_s = until_s - time.monotonic()
    if left_s <= 0:
        raise WireLate("the moment has passed")
    sock.settimeout(left_s)


def _exactly(
    sock: socket.socket, length: int, until_s: float | None, accept_fds: bool
) -> tuple[bytes, tuple[int, ...]]:
    parts, fds = bytearray(), array.array("i")
    ancillary_bytes = socket.CMSG_LEN(MAX_FDS * fds.itemsize) if accept_fds else 0
    while len(parts) < length:
        try:
            _bound(sock, until_s)
            data, ancillary, _, _ = sock.recvmsg(min(length - len(parts), 1 << 20), ancillary_bytes)
        except TimeoutError as error:
            raise WireLate(f"{len(parts)} of {length} bytes came in time") from error
        except OSError as error:
            raise WireGone(f"cannot receive: {error}") from error
        for level, kind, content in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
        if not data:
            raise WireGone("closed by the other side")
        parts += data
    return bytes(parts), tuple(fds)
