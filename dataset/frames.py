"""One record as one line of a journal: ``<length> <crc32> <json>`` and a newline.

The length is the JSON's, in bytes, decimal; the checksum is CRC-32 of the JSON, eight hex digits. The JSON holds no raw
newline, so a file can still be read with line tools. A *torn* line is what an interrupted append leaves: the beginning
of one frame at the end of the file, perhaps followed by zeros. Everything else that does not fit is damage.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO
from zlib import crc32

from dataset.attempt import RecordError

_BEGINNING = re.compile(rb"(\d{0,12}|(\d{1,12}) [0-9a-f]{0,8}|(\d{1,12}) [0-9a-f]{8} (.*))", re.DOTALL)


def pack(body: bytes) -> bytes:
    """The line that holds `body`."""
    return b"%d %08x %b\n" % (len(body), crc32(body), body)


def size(body: bytes) -> int:
    """Bytes of the line that holds `body`."""
    return len(str(len(body))) + len(body) + 11


def unpack(line: bytes) -> bytes | None:
    """The body of a whole line, or None where the line is not a valid frame."""
    head, _, rest = line.partition(b" ")
    body = rest[9:-1]
    whole = head.isdigit() and len(body) == int(head) and rest[-1:] == b"\n" and rest[8:9] == b" "
    return body if whole and rest[:8] == b"%08x" % crc32(body) else None


def is_torn(line: bytes) -> bool:
    """Whether the file's last line is the beginning of a frame, as an interrupted append leaves it."""
    beginning = _BEGINNING.fullmatch(line.rstrip(b"\0"))
    if line.endswith(b"\n") or beginning is None:
        return False
    length, body = beginning[3], beginning[4]
    return length is None or len(body) <= int(length)


def scan(file: BinaryIO, path: Path) -> Iterator[tuple[int, bytes]]:
    """Offset (bytes) and body of every whole frame, from the file's position 0 on; a torn tail is left out.

    `RecordError` at the first damaged frame.
    """
    offset = 0
    for line in file:
        body = unpack(line)
        if body is None:
            if is_torn(line):
                return
            raise damage(path, offset)
        yield offset, body
        offset += len(line)


def damage(path: Path, offset: int) -> RecordError:
    """The error for a frame that is neither whole nor torn."""
    return RecordError(
        f"{path} is damaged at byte {offset}: the record there does not match its length and checksum. Restore the "
        f"file from a copy, or give up what follows: cp '{path}' '{path}.damaged' && truncate -s {offset} '{path}'"
    )
