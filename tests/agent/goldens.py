"""Two runs replayed on recorded verdicts: what each decides is what it decided before."""

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from agent.model import ScriptedModel
from agent.run import start
from agent.settings import RunSettings
from dataset.journal import read
from dataset.projection import project
from tests.agent.places import CountingRunner, knobs, replies, script, seed_folder

HERE = Path(__file__).parent / "golden"
ATTEMPTS = {"search": 10, "refine": 24}
"""Of `search` only what is drawn before the estimator begins: its later choices may hang on a last bit of numpy's
logarithms, which differ between processors. That these repeat on one machine is tested apart."""


def replay(strategy: str) -> str:
    with tempfile.TemporaryDirectory() as made:
        root = Path(made)
        settings = RunSettings.model_validate(
            {"problem": "amd/fp8-mm", "runner": "fake", "strategy": strategy, "script": "script.jsonl", "seed": 7}
            | {"attempts": ATTEMPTS[strategy]}
        )
        model = ScriptedModel(script(root, replies(30)))
        seeds = seed_folder(root, knobs(5, 4))
        result = start(settings, root / "runs", CountingRunner(), model, seed_kernels=seeds)
        return "".join(f"{line}\n" for line in project(read(result.folder)))


def golden(strategy: str) -> tuple[Path, Callable[[], str]]:
    return HERE / f"{strategy}.jsonl", partial(replay, strategy)


GOLDENS = [golden("search"), golden("refine")]
