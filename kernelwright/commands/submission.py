"""Reading a submission file that a command was given."""

from __future__ import annotations

from pathlib import Path

from kernelwright.status import UsageError
from sandbox.candidate import Candidate, Language, language_of
from sandbox.runner import Unsupported

_LANGUAGES: dict[str, Language] = {".py": "triton", ".hip": "hip", ".cpp": "hip", ".cu": "cuda", ".cuh": "cuda"}
MAX_BYTES = 1_000_000
"""GPU MODE refuses a larger file."""


def read_submission(path: Path) -> Candidate:
    """The file as a candidate. `UsageError` where it cannot be read, `Unsupported` where it is no submission's form."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}; give the path of a submission file") from error
    language = _LANGUAGES.get(path.suffix)
    if language is None:
        raise Unsupported(f"{path} is not a submission: its name must end in {', '.join(_LANGUAGES)}")
    if language == "hip":
        raise Unsupported(f"{path} is hip source: make a submission of it with kernelwright pack {path} --binding FILE")
    if language != "triton":
        raise Unsupported(f"{path} is {language} source, which no runner here judges; give a Python file")
    if len(data) > MAX_BYTES:
        raise Unsupported(f"{path} holds {len(data)} bytes; a submission has at most {MAX_BYTES}")
    try:
        source = data.decode()
    except UnicodeDecodeError as error:
        raise Unsupported(f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8") from error
    return Candidate(source=source, language=language_of(source))
