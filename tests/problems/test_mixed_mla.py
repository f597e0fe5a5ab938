"""Mixed-precision MLA decoding: what is made and computed, which precisions pass, which wrong answers do not."""

import math
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from problems.fp4.reference import FP4, SCALE, scaled, unpacked
from problems.load import ROOT, content_sha256
from problems.sources import PACKAGE, shared
from sandbox.harness import judge_sha256
from tests.problems.fp4 import Data, case_module, draw, drawn, layout, problem, reference, same, worst

MLA = "amd/mixed-mla"
SMALL = {"batchsize": 2, "qseqlen": 1, "kvseqlen": 50}
LONG = (("batchsize", 2), ("qseqlen", 1), ("kvseqlen", 1024))
FILLS = case_module(MLA).FILLS


def test_layouts() -> None:
    data = draw(MLA, {"batchsize": 3, "qseqlen": 1, "kvseqlen": 70})
    assert list(data[1]) == ["bf16", "fp8", "mxfp4"]
    assert layout(data) == [
        (torch.bfloat16, (3, 16, 576), (9216, 576, 1)),
        (torch.bfloat16, (210, 1, 576), (576, 576, 1)),
        (torch.float8_e4m3fn, (210, 1, 576), (576, 576, 1)),
        (torch.float32, (1,), (1,)),
        (FP4, (210, 1, 288), (288, 288, 1)),
        (SCALE, (210, 18), (18, 1)),
        (torch.int32, (4,), (1,)),
        (torch.int32, (4,), (1,)),
    ]
    assert data[3].tolist() == [0, 70, 140, 210] and data[4]["sm_scale"] == 1 / 24


@pytest.mark.slow
@pytest.mark.parametrize("fill", FILLS)
def test_every_fill(fill: str) -> None:
    module = reference(MLA)
    data, again, other = (draw(MLA, SMALL, fill, seed) for seed in (3, 3, 4))
    assert same(data, again) and not same(data[:2], other[:2])
    shapes = module.make_inputs(SMALL, fill, None, "meta")
    assert layout(data) == layout(shapes) and [part.shape for part in module.exact(shapes)] == [(2, 16, 512)] * 2
    result, _ = module.exact(data)
    assert torch.isfinite(result).all() and result.any() and same(data, again)
    wide, (fp8, scale), (codes, scales) = (data[1][name] for name in ("bf16", "fp8", "mxfp4"))
    assert bool(((fp8.float() * scale - wide.float()).abs() <= wide.float().abs() / 12 + scale / 256).all())
    fp4 = scaled(unpacked(codes), scales.view(-1, 1, 18))
    assert bool(((fp4 - wide.double()).abs() <= (0.0 if fill != "published" else 0.8)).all())


@pytest.mark.parametrize("fill", FILLS)
def test_exact_by_its_definition(fill: str) -> None:
    data = draw(MLA, SMALL, fill)
    result, terms = reference(MLA).exact(data)
    for sequence, head, column in [(0, 0, 0), (1, 15, 511)]:
        q = data[0][sequence, head].tolist()
        rows = data[1]["bf16"][data[3][sequence] : data[3][sequence + 1], 0].tolist()
        scores = [math.fsum(x * y for x, y in zip(q, row, strict=True)) / 24 for row in rows]
        weights = [math.exp(score - max(scores)) for score in scores]
        parts = [weight / math.fsum(weights) * row[column] for weight, row in zip(weights, rows, strict=True)]
        assert float(result[sequence, head, column]) == pytest.approx(math.fsum(parts), rel=1e-9, abs=1e-12)
        assert float(terms[sequence, head, column]) == pytest.approx(math.hypot(*parts), rel=1e-9)


def attention(
    q: torch.Tensor, kv: torch.Tensor, sequences: int, scale: float = 1 / 24, used: slice = slice(None)
) -> torch.Tensor:
    """By batched products in float64, on the rows `used` of every sequence."""
    keys = kv.double().view(sequences, -1, 576)[:, used]
    p = torch.softmax(q.double().view(sequences, -1, 576) @ keys.mT * scale, dim=-1)
    return (p @ keys[..., :512]).view(-1, 16, 512)


def cache(data: Data) -> torch.Tensor:
    kept: torch.Tensor = data[1]["bf16"]
    return kept


def of(data: Data, used: slice = slice(None), scale: float = 1 / 24) -> torch.Tensor:
    return attention(data[0], cache(data), data[4]["batch_size"], scale, used)


def fp8_cache(data: Data) -> torch.Tensor:
    values, scale = data[1]["fp8"]
    return values.double() * scale.double()


def fp4_cache(data: Data) -> torch.Tensor:
    codes, scale = data[1]["mxfp4"]
    return scaled(unpacked(codes), scale.view(-1, 1, 18))


def by_fp8(data: Data, kv: torch.Tensor) -> torch.Tensor:
    """As AITER has it: q in fp8 too."""
    q, scale = reference(MLA)._fp8(data[0])
    return attention(q.double() * scale.double(), kv, data[4]["batch_size"])


def without_maximum(data: Data) -> torch.Tensor:
    keys = cache(data).float().view(data[4]["batch_size"], -1, 576)
    p = torch.exp(data[0].float() @ keys.mT / 24)
    return (p @ keys[..., :512] / p.sum(-1, keepdim=True)).view(-1, 16, 512)


RIGHT: dict[str, Callable[[Data], torch.Tensor]] = {
    "bf16": of,
    "q and cache fp8": lambda data: by_fp8(data, fp8_cache(data)),
    "cache fp8": lambda data: attention(data[0], fp8_cache(data), data[4]["batch_size"]),
    "cache MXFP4": lambda data: attention(data[0], fp4_cache(data), data[4]["batch_size"]),
    "q fp8, cache MXFP4": lambda data: by_fp8(data, fp4_cache(data)),
    "the board's": lambda data: reference(MLA).board_expected(data).double(),
}


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("how", RIGHT)
def test_every_precision_that_is_handed_over_passes(how: str, fill: str) -> None:
    data = drawn(MLA, LONG, fill)
    assert worst(MLA, data, RIGHT[how](data)) <= 0.75


def mean_of_v(data: Data) -> torch.Tensor:
    values = cache(data).double().view(data[4]["batch_size"], -1, 576)[..., :512]
    return values.mean(1, keepdim=True).expand(-1, 16, -1)


def nan_tail(answer: torch.Tensor) -> torch.Tensor:
    answer[-1, -1, -1] = torch.nan
    return answer


def nibbles_swapped(data: Data) -> torch.Tensor:
    codes, scale = data[1]["mxfp4"]
    bytes_ = codes.view(torch.uint8)
    values = scaled(unpacked(((bytes_ >> 4) | (bytes_ << 4)).view(FP4)), scale.view(-1, 1, 18))
    return attention(data[0], values, data[4]["batch_size"])


def without_rope(data: Data) -> torch.Tensor:
    q = data[0].clone()
    q[..., 512:] = 0
    return attention(q, cache(data), data[4]["batch_size"])


def one_scale_low(data: Data) -> torch.Tensor:
    return attention(data[0], fp4_cache(data) / 2, data[4]["batch_size"])


WRONG: dict[str, tuple[str, Callable[[Data], torch.Tensor]]] = {
    "zeros": ("published", lambda data: torch.zeros((2, 16, 512))),
    "q over 24, no cache read": ("published", lambda data: data[0][..., :512].double() / 24),
    "half of the cache": ("published", lambda data: of(data, slice(0, 512))),
    "every other row": ("published", lambda data: of(data, slice(0, None, 2))),
    "mean of v": ("published", mean_of_v),
    "first row of v": ("published", lambda data: of(data, slice(0, 1))),
    "other sequence": ("published", lambda data: of(data).roll(1, 0)),
    "heads swapped": ("published", lambda data: of(data).roll(1, 1)),
    "not scaled": ("published", lambda data: of(data, scale=1.0)),
    "nibbles swapped": ("published", nibbles_swapped),
    "scale one step low": ("published", one_scale_low),
    "NaN tail": ("published", lambda data: nan_tail(of(data))),
    "without the rope part": ("rope", without_rope),
    "last row lost": ("ends", lambda data: of(data, slice(0, -1))),
    "last 16 rows lost": ("ends", lambda data: of(data, slice(0, -16))),
    "first row lost": ("ends", lambda data: of(data, slice(1, None))),
    "softmax overflows": ("high", without_maximum),
    "softmax underflows": ("low", without_maximum),
}


@pytest.mark.parametrize("how", WRONG)
def test_wrong_answers_are_refused(how: str) -> None:
    fill, wrong = WRONG[how]
    data = drawn(MLA, LONG, fill)
    assert worst(MLA, data, wrong(data)) > 1.5


def test_the_boards_rule_does_not_bind() -> None:
    """Zeros are within 0.1 of nearly all of a long cache's answers, and 5 % may miss."""
    data = draw(MLA, {"batchsize": 1, "qseqlen": 1, "kvseqlen": 8192})
    theirs = reference(MLA).board_expected(data).float()
    assert float((theirs.abs() > 0.1 + 0.1 * theirs.abs()).double().mean()) < 0.05
    assert worst(MLA, data, torch.zeros_like(theirs)) > 3


def test_cases() -> None:
    assert (len(problem(MLA).tests), len(problem(MLA).benchmarks)) == (4, 8)
    assert {baseline.kind for baseline in problem(MLA).baselines} == {"vendor", "human"}
    for seed in range(50):
        for size in ("small", "full"):
            for case in case_module(MLA).hidden(random.Random(seed), size):
                assert case_module(MLA).fits(case.params) and case.fill in reference(MLA)._FILLS


def test_the_hashes_cover_what_the_reference_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what that imports: fp4/reference.py imports formats.py."""
    here, other = ROOT / MLA, ROOT / "amd/fp8-mm"
    assert [path.relative_to(PACKAGE).as_posix() for path in shared(here)] == ["formats.py", "fp4/reference.py"]
    assert shared(other) == ()
    for file in ("formats.py", "fp4/reference.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        shutil.copy(PACKAGE / file, tmp_path / file)
    before = [judge_sha256(here), judge_sha256(other), content_sha256(problem(MLA), ROOT)]
    (tmp_path / "formats.py").write_text((PACKAGE / "formats.py").read_text() + "# changed")
    for module in ("problems.sources", "problems.load", "sandbox.harness"):
        monkeypatch.setattr(sys.modules[module], "PACKAGE", tmp_path)
    after = [judge_sha256(here), judge_sha256(other), content_sha256(problem(MLA), ROOT)]
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, True, False]
