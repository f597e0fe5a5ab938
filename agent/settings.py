"""The settings of a run: one value, stored whole in its first record, so that a resume needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from agent.limits import Limits
from agent.model import API_KEY_ENV, Model, OpenAIModel, Price, ScriptedModel, key_from
from problems.spec import Frozen
from sandbox.runner import DEADLINE_S, Mode

BASE_URL = "https://api.openai.com/v1"


class RunSettings(Frozen):
    """What a run is asked to do. No secrets: `api_key_env` names the variable that holds the key."""

    problem: str
    strategy: Literal["search", "refine"] = "search"
    runner: str = "cpu"
    """``cpu``, ``gpu`` or ``fake``; the caller opens it."""
    chip: str | None = None
    """Chip that is measured, or compiled and estimated for; None for the problem's first."""
    mode: Mode = Mode.BENCHMARK
    seed: int = 0
    deadline_s: float = Field(default=DEADLINE_S, gt=0)
    attempts: int = Field(default=64, ge=1)
    wall_s: float | None = Field(default=None, gt=0)
    """Working time over all sessions, in seconds."""
    tokens: int | None = Field(default=None, gt=0)
    usd: float | None = Field(default=None, gt=0)
    target_us: float | None = Field(default=None, gt=0)
    """Stop once the best score is at or below this."""
    base_url: str = BASE_URL
    model: str | None = None
    api_key_env: str = API_KEY_ENV
    model_timeout_s: float = Field(default=600.0, gt=0)
    input_usd_per_mtok: float | None = Field(default=None, ge=0)
    output_usd_per_mtok: float | None = Field(default=None, ge=0)
    script: str | None = None
    """File of recorded replies, used instead of an endpoint."""
    licence: str = "Apache-2.0"
    """SPDX identifier for what the run writes."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if (self.input_usd_per_mtok is None) != (self.output_usd_per_mtok is None):
            raise ValueError("give both prices, for input and for output tokens, or neither")
        if self.usd is not None and self.input_usd_per_mtok is None:
            raise ValueError("a budget in US dollars needs the model's prices for input and output tokens")
        if self.strategy == "refine" and not (self.model or self.script):
            raise ValueError("the strategy refine needs a model (--model), or a script of recorded replies (--script)")
        return self

    @property
    def limits(self) -> Limits:
        """The run's budgets and target."""
        return Limits(self.attempts, self.wall_s, self.tokens, self.usd, self.target_us)

    def record(self) -> dict[str, str | int | float | bool | None]:
        """The settings as the run's first record keeps them."""
        return self.model_dump(mode="json")


def open_model(settings: RunSettings, environment: Mapping[str, str]) -> Model | None:
    """The model a run asks, or None where its strategy needs none; `ModelError` for a missing key or script."""
    if settings.strategy == "search":
        return None
    if settings.script is not None:
        return ScriptedModel(Path(settings.script))
    prices = settings.input_usd_per_mtok, settings.output_usd_per_mtok
    price = Price(prices[0], prices[1]) if prices[0] is not None and prices[1] is not None else None
    key = key_from(environment, settings.base_url, settings.api_key_env)
    return OpenAIModel(settings.base_url, settings.model or "", key, price, settings.model_timeout_s)
