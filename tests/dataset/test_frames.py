from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataset.attempt import RecordError
from dataset.frames import is_torn, pack, scan, size, unpack

BODY = st.binary(max_size=40).map(lambda body: body.replace(b"\n", b"") + b"}")
PATH = Path("journal.jsonl")


@given(BODY)
def test_a_body_comes_back_from_its_line(body: bytes) -> None:
    line = pack(body)
    assert unpack(line) == body and len(line) == size(body) and not is_torn(line)
    assert all(unpack(line[:cut]) is None and is_torn(line[:cut]) for cut in range(len(line)))


@pytest.mark.slow
@settings(max_examples=400)
@given(st.lists(BODY, max_size=5), st.data())
def test_an_edited_file_gives_no_record_that_was_not_written(bodies: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(map(pack, bodies))
    start = data.draw(st.integers(0, len(whole)))
    end = data.draw(st.integers(start, min(len(whole), start + 8)))
    edited = whole[:start] + data.draw(st.binary(max_size=8)) + whole[end:]
    found: list[bytes] = []
    try:
        found.extend(body for _, body in scan(io.BytesIO(edited), PATH))
    except RecordError as error:
        assert "is damaged at byte" in str(error)
    assert all(body in bodies for body in found)
