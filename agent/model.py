"""Language models behind one protocol. The only module that imports `openai`.

::

    ModelError              a reply could not be had; the run stops and can be resumed
    ├── MissingKey          no key in the environment
    ├── Unreachable         no connection to the endpoint
    ├── ModelTimedOut       the endpoint did not answer in time; the call may have been charged
    ├── Refused             the endpoint said no: wrong key, unknown model, spent quota, too long a prompt
    ├── EmptyReply          an answer without a message in it
    └── ScriptEnded         a recorded script has no further reply
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import openai

API_KEY_ENV = "OPENAI_API_KEY"
RETRIES, FIRST_WAIT_S, LONGEST_WAIT_S = 4, 0.5, 30.0


class ModelError(Exception):
    """A reply could not be had. The message names the cure."""


class MissingKey(ModelError):
    """No key in the environment."""


class Unreachable(ModelError):
    """No connection to the endpoint."""


class ModelTimedOut(ModelError):
    """The endpoint did not answer in time; the call may have been charged."""


class Refused(ModelError):
    """The endpoint said no."""


class EmptyReply(ModelError):
    """The endpoint answered without a message."""


class ScriptEnded(ModelError):
    """A recorded script has no further reply."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model said, and what it cost: tokens as the endpoint counted them, 0 where it did not say."""

    text: str
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    latency_s: float


class Model(Protocol):
    """A source of replies. `name` and `base_url` go into the record of each call."""

    name: str
    base_url: str

    def complete(self, prompt: str, number: int) -> Reply:
        """The reply to `prompt`, the run's `number`-th bought reply, from 1. Raises `ModelError`."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input_usd: float
    output_usd: float

    def cost_usd(self, input_tokens: int, output_tokens: int) -> float:
        """What so many tokens cost."""
        return (input_tokens * self.input_usd + output_tokens * self.output_usd) / 1e6


def key_from(environment: Mapping[str, str], base_url: str, variable: str = API_KEY_ENV) -> str:
    """The key in `variable`; a server on this machine needs none. `MissingKey` where another one has none."""
    key = environment.get(variable, "").strip()
    if key:
        return key
    if urlsplit(base_url).hostname in {"localhost", "127.0.0.1", "::1"}:
        return "none"
    raise MissingKey(
        f"no key for {base_url}: set {variable}, or name the variable that holds it with --api-key-env; "
        "--strategy search needs no model"
    )


class OpenAIModel:
    """Any OpenAI-compatible endpoint. The key is held for the client alone: it is in no record, log or message."""

    def __init__(
        self, base_url: str, name: str, key: str, price: Price | None = None, timeout_s: float = 600.0,
        retries: int = RETRIES, wait: Callable[[float], None] = time.sleep,
    ) -> None:  # fmt: skip
        if not name:
            raise Refused("no model named: give one with --model")
        self.name, self.base_url = name, _without_password(base_url)
        self._price, self._timeout_s, self._retries, self._wait = price, timeout_s, retries, wait
        # Its own retries are off: they would also repeat a call that timed out, which may have been charged.
        self._client = openai.OpenAI(base_url=base_url, api_key=key, timeout=timeout_s, max_retries=0)

    def complete(self, prompt: str, number: int) -> Reply:
        """One chat completion; a busy or failing endpoint is asked again, a call that timed out is not."""
        started_s = time.monotonic()
        answer = self._answer(prompt)
        message = answer.choices[0].message if getattr(answer, "choices", None) else None
        if message is None:
            raise EmptyReply(f"{self.base_url} answered without a message: check that it serves chat completions")
        # A JSON answer can hold half of a surrogate pair, which has no UTF-8 form and could not be recorded.
        text = (message.content or "").encode("utf-8", "replace").decode()
        used_in, used_out = _usage(answer)
        cost = self._price.cost_usd(used_in, used_out) if self._price else None
        return Reply(text, used_in, used_out, cost, time.monotonic() - started_s)

    def _answer(self, prompt: str) -> Any:
        for attempt in range(self._retries + 1):
            try:
                return self._call(prompt)
            except openai.APITimeoutError as error:
                raise self._timed_out() from error
            except openai.APIConnectionError as error:
                failure: openai.APIError = error
            except openai.APIStatusError as error:
                if error.status_code != 429 and error.status_code < 500:
                    raise self._refused(error) from error
                failure = error
            except openai.APIResponseValidationError as error:
                raise EmptyReply(f"{self.base_url} did not answer in the form of a chat completion") from error
            if attempt < self._retries:
                self._wait(_wait_s(attempt, failure))
        raise self._gave_up(failure) from failure

    def _call(self, prompt: str) -> Any:
        """One call, in a thread of its own: the client's timeout is per read, and a trickle of bytes never meets it."""
        answer: Future[Any] = Future()

        def call() -> None:
            try:
                messages: list[Any] = [{"role": "user", "content": prompt}]
                answer.set_result(self._client.chat.completions.create(model=self.name, messages=messages))
            except Exception as error:  # noqa: BLE001 - raised again below, where it is told apart
                answer.set_exception(error)

        threading.Thread(target=call, name="model call", daemon=True).start()
        try:
            return answer.result(self._timeout_s)
        except FutureTimeout as error:
            raise self._timed_out() from error

    def _timed_out(self) -> ModelTimedOut:
        return ModelTimedOut(
            f"{self.base_url} did not answer within {self._timeout_s:g} s and may have charged the call: resume the "
            "run when it answers again, or allow more time with --model-timeout-s"
        )

    def _refused(self, error: openai.APIStatusError) -> Refused:
        cures = {401: "check the key", 403: "check the key's rights", 404: "check --base-url and --model"}
        cure = cures.get(error.status_code, "the endpoint's message says why")
        return Refused(f"{self.base_url} refused the call ({error.status_code}: {self._said(error)}): {cure}")

    def _gave_up(self, error: openai.APIError) -> ModelError:
        tries = f"after {self._retries + 1} tries"
        if isinstance(error, openai.APIStatusError):
            said = f"{error.status_code}: {self._said(error)}"
            return Refused(f"{self.base_url} is busy or failing ({said}) {tries}: resume the run later")
        return Unreachable(f"cannot reach {self.base_url} {tries}: check --base-url, and that the server runs")

    def _said(self, error: openai.APIStatusError) -> str:
        # Some endpoints repeat the key they refuse.
        return " ".join(str(error.message).replace(self._client.api_key, "(key)").split())[:300]


class ScriptedModel:
    """Replays recorded replies: reply n of the script answers the run's n-th call, also after a resume.

    A script is a file of JSON lines, each ``{"reply": "...", "input_tokens": 812, "output_tokens": 345}``; the token
    counts may be left out.
    """

    def __init__(self, path: Path, name: str = "scripted") -> None:
        self.name, self.base_url = name, f"script:{path.name}"
        self._replies = _script(path)

    def complete(self, prompt: str, number: int) -> Reply:
        """Reply `number` of the script; `ScriptEnded` past its end."""
        if number > len(self._replies):
            raise ScriptEnded(
                f"{self.base_url} holds {len(self._replies)} replies and reply {number} was asked for: "
                "lengthen the script, or lower --attempts"
            )
        return self._replies[number - 1]


def _script(path: Path) -> tuple[Reply, ...]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"cannot read the script {path}: {error}; give a file of JSON lines") from error
    return tuple(_recorded(path, number, line) for number, line in enumerate(lines, 1) if line.strip())


def _recorded(path: Path, number: int, line: str) -> Reply:
    try:
        entry = json.loads(line)
        tokens = int(entry.get("input_tokens", 0)), int(entry.get("output_tokens", 0))
        return Reply(str(entry["reply"]), *tokens, None, 0.0)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ModelError(f'{path}, line {number}: not a recorded reply; write {{"reply": "..."}}') from error


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _usage(answer: Any) -> tuple[int, int]:
    usage = getattr(answer, "usage", None)
    return int(getattr(usage, "prompt_tokens", 0) or 0), int(getattr(usage, "completion_tokens", 0) or 0)


def _wait_s(attempt: int, error: openai.APIError) -> float:
    """What the endpoint asks for, else twice as long each time; with jitter, so that clients do not return together."""
    asked = error.response.headers.get("retry-after", "") if isinstance(error, openai.APIStatusError) else ""
    try:
        least_s = float(asked)
    except ValueError:
        least_s = FIRST_WAIT_S * 2**attempt
    return float(min(LONGEST_WAIT_S, max(0.0, least_s)) * random.uniform(1.0, 1.25))
