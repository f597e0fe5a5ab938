import json
import socket
from pathlib import Path

import pytest
from pydantic import ValidationError

from agent.model import (
    EmptyReply,
    MissingKey,
    ModelError,
    ModelTimedOut,
    OpenAIModel,
    Price,
    Refused,
    ScriptedModel,
    ScriptEnded,
    Unreachable,
    key_from,
)
from agent.settings import RunSettings, open_model
from tests.agent.endpoint import Answer, Endpoint, completion, serve
from tests.agent.places import script


def model(endpoint: Endpoint | str, waits: list[float] | None = None, **more: object) -> OpenAIModel:
    url = endpoint if isinstance(endpoint, str) else endpoint.url
    taken = waits if waits is not None else []
    return OpenAIModel(url, "m", "sk-secret-1234", wait=taken.append, **{"timeout_s": 5.0, **more})


def test_a_reply_with_its_tokens_and_price() -> None:
    with serve(lambda number: Answer(text="hello")) as endpoint:
        reply = model(endpoint, price=Price(input_usd=2.0, output_usd=10.0)).complete("a prompt", 1)
        assert (reply.text, reply.input_tokens, reply.output_tokens) == ("hello", 120, 30)
        assert reply.cost_usd == pytest.approx(540e-6)
        assert endpoint.prompts() == ["a prompt"] and endpoint.asked[0]["model"] == "m"
        assert endpoint.authorisations == ["Bearer sk-secret-1234"]


def test_an_unknown_price_is_no_price() -> None:
    with serve(lambda number: Answer(text="hello")) as endpoint:
        assert model(endpoint).complete("p", 1).cost_usd is None


def test_missing_usage_is_zero_tokens_and_empty_text_is_a_reply() -> None:
    body = {**completion(""), "usage": None}
    with serve(lambda number: Answer(body=body)) as endpoint:
        reply = model(endpoint).complete("p", 1)
        assert (reply.text, reply.input_tokens, reply.output_tokens) == ("", 0, 0)


def test_a_busy_endpoint_is_asked_again_and_its_wish_is_kept() -> None:
    answers = {1: Answer(429, headers={"retry-after": "3"}, body={}), 2: Answer(503, body={})}
    waits: list[float] = []
    with serve(lambda number: answers.get(number, Answer(text="at last"))) as endpoint:
        assert model(endpoint, waits).complete("p", 1).text == "at last"
        assert len(endpoint.asked) == 3
    assert 3.0 <= waits[0] <= 3.75 and 1.0 <= waits[1] <= 1.25


def test_retries_are_bounded() -> None:
    with serve(lambda number: Answer(429, body={"error": {"message": "slow down"}})) as endpoint:
        with pytest.raises(Refused, match=r"429: .*slow down.* after 3 tries: resume the run later"):
            model(endpoint, retries=2).complete("p", 1)
        assert len(endpoint.asked) == 3


def test_an_endpoint_that_trickles_is_cut_off() -> None:
    with serve(lambda number: Answer(text="one byte at a time", trickle_s=0.02)) as endpoint:
        with pytest.raises(ModelTimedOut, match=r"within 0.3 s"):
            model(endpoint, timeout_s=0.3).complete("p", 1)
        assert len(endpoint.asked) == 1


def test_a_slow_endpoint_times_out_and_is_not_asked_twice() -> None:
    with serve(lambda number: Answer(text="late", delay_s=0.6)) as endpoint:
        with pytest.raises(ModelTimedOut, match=r"within 0.2 s and may have charged"):
            model(endpoint, timeout_s=0.2).complete("p", 1)
        assert len(endpoint.asked) == 1


@pytest.mark.parametrize(("status", "cure"), [(401, "check the key"), (404, "--model"), (400, "message says why")])
def test_a_refusal_is_final_and_names_the_cure(status: int, cure: str) -> None:
    body = {"error": {"message": "bad sk-secret-1234 thing"}}
    with serve(lambda number: Answer(status, body=body)) as endpoint:
        with pytest.raises(Refused, match=cure) as caught:
            model(endpoint).complete("p", 1)
        assert len(endpoint.asked) == 1
    assert "sk-secret-1234" not in str(caught.value)


@pytest.mark.parametrize("body", [{**completion("x"), "choices": []}, {"hello": 1}])
def test_an_answer_without_a_message(body: dict[str, object]) -> None:
    with serve(lambda number: Answer(body=body)) as endpoint, pytest.raises(EmptyReply, match="without a message"):
        model(endpoint).complete("p", 1)


def test_an_unreachable_endpoint() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    waits: list[float] = []
    with pytest.raises(Unreachable, match=r"cannot reach .* after 3 tries: check --base-url"):
        model(url, waits, retries=2).complete("p", 1)
    assert len(waits) == 2


def test_half_a_surrogate_pair_is_replaced() -> None:
    with serve(lambda number: Answer(text="a\ud800b")) as endpoint:
        assert model(endpoint).complete("p", 1).text == "a?b"


def test_a_password_in_the_address_is_not_recorded() -> None:
    assert OpenAIModel("http://user:pass@host:8000/v1", "m", "k").base_url == "http://host:8000/v1"


def test_a_key_comes_from_the_environment() -> None:
    remote = "https://api.example.com/v1"
    assert key_from({"OPENAI_API_KEY": " k "}, remote) == "k"
    assert key_from({"MINE": "k2", "OPENAI_API_KEY": "k"}, remote, "MINE") == "k2"
    assert key_from({}, "http://localhost:8000/v1")
    with pytest.raises(MissingKey, match=r"set OPENAI_API_KEY, or .*--api-key-env; --strategy search needs no model"):
        key_from({"OPENAI_API_KEY": ""}, remote)


def test_a_script_answers_by_number(tmp_path: Path) -> None:
    played = ScriptedModel(script(tmp_path, ["one", "two"]))
    assert [played.complete("p", number).text for number in (2, 1)] == ["two", "one"]
    assert played.complete("p", 1).input_tokens == 100
    with pytest.raises(ScriptEnded, match=r"holds 2 replies and reply 3 was asked for"):
        played.complete("p", 3)


@pytest.mark.parametrize("content", ["{", "[]", '{"answer": "x"}', '{"reply": "x", "input_tokens": "many"}'])
def test_a_broken_script_names_the_line(tmp_path: Path, content: str) -> None:
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps({"reply": "fine"}) + "\n" + content)
    with pytest.raises(ModelError, match="line 2: not a recorded reply"):
        ScriptedModel(path)


def test_a_missing_script(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot read the script"):
        ScriptedModel(tmp_path / "none.jsonl")


def test_settings_open_the_model_they_name(tmp_path: Path) -> None:
    assert open_model(RunSettings(problem="x"), {}) is None
    path = script(tmp_path, ["one"])
    assert isinstance(open_model(RunSettings(problem="x", strategy="refine", script=str(path)), {}), ScriptedModel)
    real = open_model(RunSettings(problem="x", strategy="refine", model="big"), {"OPENAI_API_KEY": "k"})
    assert isinstance(real, OpenAIModel) and real.name == "big"
    with pytest.raises(MissingKey):
        open_model(RunSettings(problem="x", strategy="refine", model="big"), {})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"strategy": "refine"}, "needs a model"),
        ({"usd": 1.0}, "needs the model's prices"),
        ({"input_usd_per_mtok": 1.0}, "give both prices"),
        ({"attempts": 0}, "greater than or equal to 1"),
        ({"deadline_s": 0}, "greater than 0"),
    ],
)
def test_settings_that_do_not_agree(given: dict[str, object], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        RunSettings.model_validate({"problem": "x", **given})
