"""A guest's evidence is read exactly as written, or refused."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.evidence import MAX_PAYLOAD, EvidenceError, parse
from tests.sandbox.recorded import evidence, payload

SMALL: dict[str, Any] = {
    "kernels": [
        {
            "name": "k",
            "target": "gfx942",
            "hash": "abc",
            "ttir": "module {}",
            "amdgcn": "",
            "metadata": {"num_warps": 4, "num_stages": 2, "shared": 1024, "warp_size": 64, "waves_per_eu": 2},
            "signature": {"x": "*fp16"},
            "constants": {"BLOCK": "64"},
            "error": None,
        }
    ],
    "launches": [{"kernel": 0, "grid": [3, 1, 1], "args": {"n": 7, "even": True}, "call": 0, "tuning": False}],
}


def changed(path: str, value: Any) -> bytes:
    root = copy.deepcopy(SMALL)
    *steps, last = [int(step) if step.isdigit() else step for step in path.split("/")]
    at: Any = root
    for step in steps:
        at = at[step]
    at[last] = value
    return json.dumps(root).encode()


def test_reads_what_was_recorded() -> None:
    found = parse(json.dumps(SMALL).encode())
    kernel, launch = found.kernels[0], found.launches[0]
    assert (kernel.name, kernel.num_warps, kernel.shared_bytes) == ("k", 4, 1024)
    assert kernel.options == {"waves_per_eu": "2"}
    assert (launch.grid, launch.args, launch.tuning) == ((3, 1, 1), {"n": 7, "even": 1}, False)


def test_reads_a_real_recording() -> None:
    found = evidence()
    assert len(found.kernels) == len(found.launches) == 10
    assert found.kernels[4].shared_bytes == 32_768
    assert found.launches[4].args == {"M": 1024, "N": 1536, "K": 7168}


def test_a_failed_build_needs_no_metadata() -> None:
    root = copy.deepcopy(SMALL)
    root["kernels"][0] |= {"metadata": {}, "error": "OutOfResources: shared memory"}
    assert parse(json.dumps(root).encode()).kernels[0].error == "OutOfResources: shared memory"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("kernels", {}),
        ("kernels", [SMALL["kernels"][0]] * 1025),
        ("kernels/0/name", None),
        ("kernels/0/name", "k" * 513),
        ("kernels/0/target", "../../etc"),
        ("kernels/0/ttir", 3),
        ("kernels/0/metadata", {}),
        ("kernels/0/metadata/num_warps", 0),
        ("kernels/0/metadata/num_warps", 1 << 20),
        ("kernels/0/metadata/num_warps", True),
        ("kernels/0/metadata/shared", -1),
        ("kernels/0/metadata/shared", 1.5),
        ("kernels/0/constants/BLOCK", [1]),
        ("kernels/0/signature", []),
        ("kernels/0/error", 1),
        ("launches/0/kernel", 1),
        ("launches/0/kernel", -1),
        ("launches/0/grid", [1, 1]),
        ("launches/0/grid", [1, -1, 1]),
        ("launches/0/grid", [1 << 40, 1, 1]),
        ("launches/0/grid", ["1", 1, 1]),
        ("launches/0/args/n", "7"),
        ("launches/0/args/n", float("nan")),
        ("launches/0/args/n", float("inf")),
        ("launches/0/args/n", 1 << 64),
        ("launches/0/args/n", [1]),
        ("launches/0/args", {str(i): i for i in range(257)}),
        ("launches/0/call", -2),
        ("launches/0/tuning", 0),
    ],
)
def test_refuses_what_is_off(path: str, value: Any) -> None:
    parse(json.dumps(SMALL).encode())
    with pytest.raises(EvidenceError):
        parse(changed(path, value))


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b"{", b"\xff\xfe", b"[" * 100_000, b"9" * 5000])
def test_refuses_what_is_not_the_format(text: bytes) -> None:
    with pytest.raises(EvidenceError):
        parse(text)


def test_refuses_too_much() -> None:
    with pytest.raises(EvidenceError, match="over"):
        parse(bytes(MAX_PAYLOAD + 1))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PATHS = st.sampled_from(
    [f"kernels/0/{name}" for name in SMALL["kernels"][0]] + [f"launches/0/{name}" for name in SMALL["launches"][0]]
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(PATHS, JSON)
def test_any_change_is_read_or_refused(path: str, value: Any) -> None:
    try:
        found = parse(changed(path, value))
    except EvidenceError:
        return
    assert len(found.kernels) == len(found.launches) == 1


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3000), st.binary(max_size=8))
def test_damage_is_read_or_refused(at: int, noise: bytes) -> None:
    whole = payload("gfx950")[:4000]
    try:
        parse(whole[:at] + noise + whole[at:])
    except EvidenceError:
        return
    raise AssertionError("a cut payload was read")
