"""Pushing an export to the Hugging Face Hub, or to a stand-in named by ``HF_ENDPOINT``."""

from __future__ import annotations

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import huggingface_hub
from huggingface_hub import HfApi, constants, errors

from dataset.attempt import RecordError
from dataset.card import REMOVAL_CONTACT, REPOSITORY
from dataset.disk import record_error
from dataset.export import ExportSummary, manifest

_REPO_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_CARD = "README.md"
_PUBLIC_ENDPOINT = "https://huggingface.co"


class PublishError(RecordError):
    """The Hub cannot be reached or refuses: token, rights, name. Nothing of the export is changed."""


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """One file that is, or would be, in the repository."""

    path: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Publication:
    """What was published, or, of a dry run, what would be."""

    repo_id: str
    url: str
    private: bool
    dry_run: bool
    files: tuple[PublishedFile, ...]
    rows: dict[str, int]
    """Rows of each table."""
    licence: str
    contact: str
    """Whom the card says to write to for a removal."""


def publish(
    export_dir: Path, repo_id: str, *, dry_run: bool = False, private: bool = False, contact: str | None = None
) -> Publication:
    """Push the export in `export_dir` to the data set repository `repo_id` (``ORG/NAME``), in one commit.

    Parquet files of an earlier version that this one lacks are deleted there. A repository that is made here is private
    if asked, else as its owner's default says. The token comes from ``HF_TOKEN`` or from ``hf auth login``. Whom to
    write to for a removal is `contact`, or the repository's discussions. A dry run touches no network, needs no token.
    Raises `PublishError`, and `RecordError` where `export_dir` is not a whole export.
    """
    _check_name(repo_id)
    held = manifest(export_dir)
    if not held.rows.get("attempts"):
        raise RecordError(f"{export_dir} holds no attempts: there is nothing to publish")
    url = f"{constants.ENDPOINT}/datasets/{repo_id}"
    contact = contact or f"{url}/discussions"
    with tempfile.TemporaryDirectory(prefix="kernelwright-publish-") as scratch:
        staged = _stage(held, Path(scratch), repo_id, contact)
        if not dry_run:
            _push(Path(scratch), repo_id, private)
    return Publication(repo_id, url, private, dry_run, staged, held.rows, held.licence, contact)


def _check_name(repo_id: str) -> None:
    good = _REPO_ID.fullmatch(repo_id) and ".." not in repo_id and "--" not in repo_id
    if not good or len(repo_id) > 96 or repo_id.endswith((".git", "-", ".")):
        raise PublishError(
            f"{repo_id!r} is not the name of a repository: give ORG/NAME, of letters, digits, '-', '_' and '.', "
            "at most 96 characters, without '--' and '..'"
        )


def _stage(held: ExportSummary, scratch: Path, repo_id: str, contact: str) -> tuple[PublishedFile, ...]:
    """Lay the files out as the repository will have them: the card filled in, the tables as links."""
    folder = held.out_dir.resolve()
    try:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            target = scratch / path.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.name == _CARD:
                target.write_text(path.read_text().replace(REPOSITORY, repo_id).replace(REMOVAL_CONTACT, contact))
            else:
                target.symlink_to(path)
        files = sorted(path for path in scratch.rglob("*") if path.is_file())
        return tuple(PublishedFile(str(path.relative_to(scratch)), path.stat().st_size) for path in files)
    except OSError as error:
        raise record_error("prepare", folder, error) from error


def _push(folder: Path, repo_id: str, private: bool) -> None:
    if huggingface_hub.get_token() is None:
        raise PublishError(
            "no Hugging Face token: set HF_TOKEN to one with write access "
            f"({constants.ENDPOINT}/settings/tokens), or log in with: hf auth login"
        )
    if constants.ENDPOINT != _PUBLIC_ENDPOINT:
        # Xet, the default way up, asks services that a mirror or a stand-in does not have.
        constants.HF_HUB_DISABLE_XET = True
    api = HfApi()
    try:
        api.create_repo(repo_id, repo_type="dataset", private=private or None, exist_ok=True)
        if private and not api.dataset_info(repo_id).private:
            raise PublishError(f"{repo_id} exists and is public: make it private there, or publish without --private")
        api.upload_folder(
            repo_id=repo_id,
            repo_type="dataset",
            folder_path=folder,
            commit_message="Publish attempts",
            delete_patterns="*.parquet",
        )
    except errors.HfHubHTTPError as error:
        raise _refusal(error, repo_id) from error
    except (errors.HTTPError, OSError) as error:  # type: ignore[attr-defined]
        raise PublishError(
            f"cannot reach {constants.ENDPOINT}: {error}. Check the network, or HF_ENDPOINT and HF_HUB_OFFLINE"
        ) from error


def _refusal(error: errors.HfHubHTTPError, repo_id: str) -> PublishError:
    status = error.response.status_code
    match status:
        case 401:
            cure = "the token is not valid: set HF_TOKEN to a current one"
        case 403:
            owner = repo_id.partition("/")[0]
            cure = f"the token may not write there: it needs write access to {owner}"
        case 404:
            cure = "no such owner or repository, or the token may not see it"
        case 429:
            cure = "too many requests: try again later"
        case _ if status >= 500:
            cure = "the Hub failed: try again later"
        case _:
            cure = error.server_message or "the request was refused"
    return PublishError(f"{constants.ENDPOINT} refused to publish {repo_id} (HTTP {status}): {cure}")
