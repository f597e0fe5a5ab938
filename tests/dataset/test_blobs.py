from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataset.attempt import RecordError
from dataset.blobs import Blobs


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=st.binary() | st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_put_comes_back_under_its_hash(tmp_path: Path, content: bytes | str) -> None:
    data = content.encode() if isinstance(content, str) else content
    blobs = Blobs(tmp_path)
    sha256 = blobs.put(content)
    assert sha256 == hashlib.sha256(data).hexdigest() == Blobs(tmp_path).put(data)
    assert Blobs(tmp_path).get(sha256) == data
    assert blobs.path(sha256) == tmp_path / "blobs" / sha256[:2] / sha256


def test_putting_again_writes_no_second_file(tmp_path: Path) -> None:
    blobs = Blobs(tmp_path)
    path = blobs.path(blobs.put("a"))
    before = path.stat().st_mtime_ns
    assert blobs.put("a") == Blobs(tmp_path).put("a") == path.name
    assert path.stat().st_mtime_ns == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_damaged_blob_is_found_and_healed_by_putting_it_again(tmp_path: Path) -> None:
    sha256 = Blobs(tmp_path).put("good")
    Blobs(tmp_path).path(sha256).write_text("goo")
    with pytest.raises(RecordError, match="is damaged: its content does not have that hash"):
        Blobs(tmp_path).get(sha256)
    Blobs(tmp_path).put("good")
    assert Blobs(tmp_path).text(sha256) == "good"


def test_missing_and_undecodable_blobs_are_errors(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=r"cannot read the blob .*no such file"):
        Blobs(tmp_path).get("ab" * 32)
    binary = Blobs(tmp_path).put(b"\xff")
    with pytest.raises(RecordError, match="is not text"):
        Blobs(tmp_path).text(binary)
    with pytest.raises(RecordError, match="lone surrogate"):
        Blobs(tmp_path).put("\udc80")
