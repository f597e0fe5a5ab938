"""The evidence fixtures, and small changes to them."""

import gzip
from functools import cache
from pathlib import Path

from sandbox.evidence import Evidence, parse

DATA = Path(__file__).parent / "data"


def payload(target: str) -> bytes:
    return gzip.decompress((DATA / f"evidence_{target}.json.gz").read_bytes())


@cache
def evidence(target: str = "gfx942") -> Evidence:
    return parse(payload(target))
