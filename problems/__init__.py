"""What must be computed: one folder a problem, its spec as data, its reference as the only torch code.

Public names: `Problem`, `Case`, `Tolerance`, `BoardCheck`, `BoardTiming`, `Baseline`, `ProblemError`, `Chip`,
`load`, `names`, `work`, `hidden_cases`, `chip`.
"""

from problems.chips import Chip, chip
from problems.load import hidden_cases, load, names, work
from problems.spec import Baseline, BoardCheck, BoardTiming, Case, Problem, ProblemError, Tolerance, Work

__all__ = [
    "Baseline",
    "BoardCheck",
    "BoardTiming",
    "Case",
    "Chip",
    "Problem",
    "ProblemError",
    "Tolerance",
    "Work",
    "chip",
    "hidden_cases",
    "load",
    "names",
    "work",
]
