"""A whole evaluation from hand-made judgements: one agent with faults and failures, one directory, one without any."""

from __future__ import annotations

from dataset.attempt import Judged, Unusable
from evals.play import EvalSettings, Evaluation
from evals.score import Faulted, Sample
from evals.tally import Baselines, tally
from sandbox.verdict import Judgement, score_us
from tests.agent.places import wrong
from tests.evals.recorded_run import EMULATED, HOSTILE, MI300X, PROBLEM, measured


def sample(agent: str, what: str, judgement: Judgement) -> Sample:
    judged = Judged(judgement=judgement, score_us=score_us(PROBLEM, judgement))
    return Sample(agent=agent, problem=PROBLEM.name, what=what, attempts=3, outcome=judged)


SEARCH = (
    sample("search", "run-1", measured(60.0, MI300X)),
    sample("search", "run-2", measured(80.0, MI300X)),
    sample("search", "run-3", wrong(PROBLEM)),
    Sample(agent="search", problem=PROBLEM.name, what="run-4", attempts=3, outcome=Unusable(reason=HOSTILE)),
    Sample(agent="search", problem=PROBLEM.name, what="run-5", attempts=3, outcome=Faulted(reason="lost the checker")),
)
FILES = (sample("dir:files", f"{HOSTILE}.py", measured(40.0, MI300X, board_accepts=False)),)
BASELINES = Baselines(
    seed_name="seed kernel amd/fp8-mm/block_scaled", seed=measured(120.0, MI300X), reference=measured(240.0, MI300X)
)
EVALUATION = Evaluation(
    settings=EvalSettings(agents=("search", "dir:files"), problems=(PROBLEM.name,), samples=5, attempts=3),
    machines=(MI300X, EMULATED),
    samples=SEARCH + FILES,
    scores=(
        tally(PROBLEM, "search", SEARCH, BASELINES),
        tally(PROBLEM, "dir:files", FILES, BASELINES),
        tally(PROBLEM, "dir:empty", (), BASELINES),
    ),
    remarks=(f"dir:empty holds no submission for {HOSTILE}",),
)
