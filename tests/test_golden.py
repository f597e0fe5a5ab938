from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.golden import goldens


@pytest.mark.parametrize(("path", "make"), [pytest.param(*golden, id=golden[0].name) for golden in goldens()])
def test_a_golden_file_is_what_the_code_makes(path: Path, make: Callable[[], str]) -> None:
    assert path.read_text() == make(), f"{path.name} has changed: make golden, and read the diff"
