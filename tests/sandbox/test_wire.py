"""The wire against a hostile other side: lengths, JSON, time and descriptors."""

import array
import os
import socket
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.guest import wire

pytestmark = pytest.mark.slow

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        yield ours, theirs


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def soon() -> float:
    return time.monotonic() + 0.2


def raw(head: bytes, payload: bytes = b"") -> bytes:
    return struct.pack("<II", len(head), len(payload)) + head + payload


def test_a_frame_comes_back_whole(pair: Pair) -> None:
    ours, theirs = pair
    payload = os.urandom(3 << 20)
    sender = threading.Thread(target=wire.send, args=(theirs, {"op": "load", "n": 1}, payload))
    sender.start()
    frame = wire.receive(ours, time.monotonic() + 10)
    sender.join()
    assert (frame.op, frame.header["n"], frame.payload, frame.fds) == ("load", 1, payload, ())


def test_descriptors_arrive_where_they_are_accepted(pair: Pair) -> None:
    ours, theirs = pair
    read, write = os.pipe()
    wire.send(theirs, {"op": "buffers"}, fds=[write])
    os.close(write)
    frame = wire.receive(ours, soon())
    os.write(frame.fds[0], b"x")
    os.close(frame.fds[0])
    assert os.read(read, 2) == b"x"
    assert os.read(read, 2) == b"", "no copy of the descriptor may be left open"
    os.close(read)


def test_descriptors_are_dropped_where_they_are_not(pair: Pair) -> None:
    ours, theirs = pair
    before = open_descriptors()
    read, write = os.pipe()
    wire.send(theirs, {"op": "ready"}, fds=[read, write] * 8)
    os.close(read)
    os.close(write)
    assert wire.receive(ours, soon(), accept_fds=False).fds == ()
    assert open_descriptors() == before


def test_descriptors_of_a_bad_frame_are_closed(pair: Pair) -> None:
    ours, theirs = pair
    before = open_descriptors()
    read, write = os.pipe()
    with os.fdopen(read), os.fdopen(write, "w"):
        theirs.sendmsg(
            [raw(b"[]")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [read, write]).tobytes())]
        )
        with pytest.raises(wire.WireError, match="not a JSON object"):
            wire.receive(ours, soon())
    assert open_descriptors() == before


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        (struct.pack("<II", wire.MAX_HEADER + 1, 0), "over the limit"),
        (struct.pack("<II", 2, wire.MAX_PAYLOAD + 1), "over the limit"),
        (struct.pack("<II", 0xFFFFFFFF, 0xFFFFFFFF), "over the limit"),
        (raw(b""), "not JSON"),
        (raw(b"\xff\xfe"), "not JSON"),
        (raw(b'{"op": NaN}'), "not JSON"),
        (raw(b'{"op": 1' + b"0" * 100_000 + b"}"), "not JSON"),
        (raw(b"[" * 500_000 + b"]" * 500_000), "not JSON"),
        (raw(b'"ready"'), "not a JSON object"),
        (raw(b"null"), "not a JSON object"),
    ],
)
def test_what_is_no_frame_is_an_error(pair: Pair, sent: bytes, message: str) -> None:
    ours, theirs = pair
    writer = threading.Thread(target=theirs.sendall, args=(sent,))
    writer.start()
    with pytest.raises(wire.WireError, match=message):
        wire.receive(ours, time.monotonic() + 10)
    writer.join()


def test_a_verb_that_is_no_text_is_no_verb(pair: Pair) -> None:
    ours, theirs = pair
    theirs.sendall(raw(b'{"op": {"op": "ready"}}'))
    assert wire.receive(ours, soon()).op == ""


@pytest.mark.parametrize("sent", [b"", b"\x02\x00", raw(b"{}")[:-1], struct.pack("<II", 2, 5) + b"{}ab"])
def test_silence_ends_in_time(pair: Pair, sent: bytes) -> None:
    ours, theirs = pair
    theirs.sendall(sent)
    start = time.monotonic()
    with pytest.raises(wire.WireLate):
        wire.receive(ours, soon())
    assert 0.15 < time.monotonic() - start < 1.0


def test_dripping_does_not_stretch_the_time(pair: Pair) -> None:
    ours, theirs = pair
    stop = threading.Event()

    def drip() -> None:
        theirs.sendall(struct.pack("<II", 1000, 0))
        while not stop.wait(0.02):
            theirs.sendall(b" ")

    dripper = threading.Thread(target=drip)
    dripper.start()
    start = time.monotonic()
    with pytest.raises(wire.WireLate):
        wire.receive(ours, soon())
    took_s = time.monotonic() - start
    stop.set()
    dripper.join()
    assert took_s < 1.0


def test_a_reader_that_does_not_read_ends_in_time(pair: Pair) -> None:
    ours, _ = pair
    with pytest.raises(wire.WireLate):
        wire.send(ours, {"op": "load"}, bytes(32 << 20), until_s=soon())


def test_a_closed_socket_is_an_error(pair: Pair) -> None:
    ours, theirs = pair
    theirs.sendall(raw(b"{}")[:5])
    theirs.close()
    with pytest.raises(wire.WireError, match="closed"):
        wire.receive(ours, soon())
    with pytest.raises(wire.WireError):
        wire.send(ours, {"op": "load"})


def test_an_outgoing_frame_is_bounded(pair: Pair) -> None:
    with pytest.raises(wire.WireError, match="over the limit"):
        wire.send(pair[0], {"op": "x" * (wire.MAX_HEADER + 1)})


@given(st.binary(max_size=64))
def test_any_bytes_end_in_a_frame_or_a_wire_error(data: bytes) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours:
        with theirs:
            theirs.sendall(data)
        try:
            frame = wire.receive(ours, time.monotonic() + 5, accept_fds=False)
        except wire.WireError:
            return
        assert isinstance(frame.header, dict)
