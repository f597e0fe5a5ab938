"""The card of an export: ``README.md`` with the configurations in its header, and the figures it is drawn from."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dataset.rows import Row

REPOSITORY = "REPOSITORY"
"""Stands in the card for the repository's name, which `publish` knows."""
REMOVAL_CONTACT = "REMOVAL_CONTACT"
"""Stands in the card for whom to write to, which the publisher sets."""

_HUB_LICENCES = {"apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "cc-by-4.0", "cc0-1.0", "mpl-2.0", "unlicense"}
_MEANING = {
    "attempts": "one candidate: source, lineage, verdict, score, cost, machine, licence",
    "cases": "one case an attempt was checked on, with its error figures and the seed the judge drew",
    "timings": "one benchmark case of an attempt, with every raw sample, or its estimate",
    "kernels": "one kernel for one target: registers, spills, LDS, occupancy, instruction mix",
    "runs": "one run of the agent: settings, seed, why it ended",
    "blobs": "one prompt or reply, named by its hash",
}
_COUNTED = ("verdicts", "problems", "models", "machines", "licences", "taints", "sources", "commits")


@dataclass
class Census:
    """Counts over the rows of ``attempts``, kept while they are written."""

    by: dict[str, Counter[Any]] = field(default_factory=lambda: {name: Counter() for name in _COUNTED})
    accepted: int = 0
    runs: set[str] = field(default_factory=set)
    ids: set[str] = field(default_factory=set)
    parents: Counter[str] = field(default_factory=Counter)

    def count(self, row: Row) -> None:
        """Take one row of ``attempts`` into account."""
        self.by["verdicts"][row["verdict"]] += 1
        self.by["problems"][row["problem"]] += 1
        self.by["models"][row.get("model") or "none (tuned or seed kernel)"] += 1
        machine = (row["time_kind"], row.get("chip") or "none", row.get("machine_kind") or "not judged")
        self.by["machines"][machine] += 1
        self.by["licences"][row["licence"]] += 1
        self.by["taints"].update(set(row["taint"]))
        self.by["sources"].update({(source["what"], source["licence"]) for source in row["derived_from"]})
        self.by["commits"][row["kernelwright_commit"]] += 1
        self.accepted += row["accepted"]
        self.runs.add(row["run_id"])
        self.ids.add(row["attempt_id"])
        self.parents.update(row["parents"])

    @property
    def orphans(self) -> int:
        """Parents named that are not in the export."""
        return len(self.parents.keys() - self.ids)

    @property
    def licence(self) -> str:
        """The Hub's name of the licence that every row has, or ``other``: the rows then say."""
        names = {licence.lower() for licence in self.by["licences"]}
        return names.pop() if len(names) == 1 and names <= _HUB_LICENCES else "other"


def render(census: Census, rows: dict[str, int], redactions: int) -> str:
    """The card's text; `rows` counts the rows of each table, `redactions` the places that were masked."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, keep_trailing_newline=True
    )
    # Most frequent first, names in order among equals: the same rows always give the same card.
    ordered = {
        name: sorted(((_cell(key), count) for key, count in counter.items()), key=lambda pair: (-pair[1], pair[0]))
        for name, counter in census.by.items()
    }
    return environment.get_template("card.md.j2").render(
        **{**ordered, "commits": sorted(census.by["commits"])},
        rows=rows,
        runs=census.runs,
        accepted=census.accepted,
        orphans=census.orphans,
        card_licence=census.licence,
        meaning=_MEANING,
        redactions=redactions,
    )


def _cell(key: Any) -> Any:
    """A table cell: no bar or line break of a name may break the card's tables."""
    return tuple(map(_cell, key)) if isinstance(key, tuple) else str(key).replace("|", "\\|").replace("\n", " ")
