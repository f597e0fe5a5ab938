"""What is said of estimates is what the comparison with published times found, and nothing more."""

import math
import tomllib

import pytest

from sandbox.trust import PROVEN, Trust, held, ranking_words, trust, words
from sandbox.verdict import Judgement
from tests.bench.trust import HERE, Pair, by_task, kept, ranks, spearman, summed
from tests.prompts.samples import RIGHT


def test_the_products_figures_are_the_tables() -> None:
    (shown,) = held()
    made = summed(kept())
    figures = set(Trust.model_fields) - {"date", "commit"}
    assert shown.model_dump(include=figures) == pytest.approx(made.model_dump(include=figures), abs=0.002)
    assert shown.kernels >= 20


def test_every_pair_names_a_source_with_its_commit() -> None:
    sources = tomllib.loads((HERE / "trust.toml").read_text())["source"]
    assert {pair.source for pair in kept()} == {source["id"] for source in sources}
    assert all(len(source["commit"]) >= 7 and source["url"].startswith("https://") for source in sources)
    assert all(pair.published_us > 0 and (pair.estimate_us or pair.note) for pair in kept())


def test_rank_correlation_by_hand() -> None:
    assert ranks([3.0, 1.0, 3.0]).tolist() == [1.5, 0, 1.5]
    made = [Pair("a", str(i), (1, 1, 1), float(i), False, float(ours)) for i, ours in enumerate((2, 1, 3, 4, 5), 1)]
    assert spearman(made) == pytest.approx(0.9)
    assert list(by_task(made)) == ["a 1 x 1 x 1"] and by_task(made[:3]) == {}
    assert math.isclose(summed(made).worst_ratio, 2.0)


def said(estimated: Judgement, language: str) -> Judgement:
    return estimated.model_copy(
        update={
            "kernels": tuple(
                record.model_copy(update={"isa": record.isa.model_copy(update={"language": language})})
                for record in estimated.kernels
                if record.isa is not None
            )
        }
    )


def test_what_is_said_depends_on_what_is_known() -> None:
    known = trust("MI300X", "hip")
    assert known is not None
    triton, hip = (said(RIGHT.judgement, language) for language in ("triton", "hip"))
    assert f"{known.within:.2f} within one task" in words(hip)
    assert "never held against published" in words(triton) and "not proven" in ranking_words(triton)
    expected = "" if known.within_faster_half >= PROVEN else "not proven"
    assert expected in ranking_words(hip)
    on_paper = hip.model_copy(update={"machine": hip.machine.model_copy(update={"chip": "MI355X"})})
    assert "never held against published" in words(on_paper)
