from __future__ import annotations

import json

import pytest

from dataset.leaks import find, mask

# Made up, in pieces, so that no scanner of repositories takes this file for a leak.
SECRETS = {
    "private_key": "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow\n-----END RSA " + "PRIVATE KEY-----",
    "hugging_face_token": "hf_" + "aB3" * 11,
    "model_key": "sk-" + "proj-a1B2" * 5,
    "aws_key_id": "AKIA" + "A1" * 8,
    "aws_secret_key": "aws_secret_access_key=" + "a1/B" * 10,
    "github_token": "ghp_" + "a1" * 18,
    "google_key": "AIza" + "aB3-_" * 7,
    "slack_token": "xoxb-" + "1234567890-abc",
    "json_web_token": "eyJ" + "a" * 12 + ".eyJ" + "b" * 12 + "." + "c" * 12,
    "bearer_token": "Bearer " + "a1" * 12,
    "assigned_key": 'api_key = "' + "q" * 16 + '"',
    "url_password": "https://alice:" + "hunter22@example.org/x",
    "home_path": "/home/alice",
}


@pytest.mark.parametrize(("kind", "secret"), SECRETS.items())
@pytest.mark.parametrize("text", ["{}", "before {} after", "x=({}),\n"])
def test_each_kind_is_found_and_masked(kind: str, secret: str, text: str) -> None:
    row = {"code": text.format(secret), "nested": [{"deep": [text.format(secret)]}], "n": 3, "redacted": []}
    assert {(leak.kind, leak.column) for leak in find(row)} == {(kind, "code"), (kind, "nested")}
    masked = mask(row)
    assert list(find(masked)) == [] and masked["redacted"] == ["code", "nested"] and masked["n"] == 3
    assert f"[redacted: {kind}]" in masked["code"] and secret not in masked["nested"][0]["deep"][0]


@pytest.mark.parametrize(
    "path", ["/root/kernels", "/Users/alice/x.py", "C:\\Users\\alice\\x.py", 'File "/home/a.b-c/x.py"']
)
def test_home_paths(path: str) -> None:
    assert [leak.kind for leak in find({"log": path})] == ["home_path"]


@pytest.mark.parametrize(
    "text",
    [
        "tl.load(x_ptr + offs, mask=offs < n)",
        "/usr/lib/python3.11/site-packages/triton/compiler.py",
        "task-0123456789012345678901234567890",
        "sk-learn-like-names-without-figures",
        "https://example.org:8000/home/page",
        "the /rootless/ folder and at/home/x",
        "api_key = os.environ['OPENAI_API_KEY']",
        "hf_hub_download and hf_transfer",
        "ab" * 32,
        "Bearer of the torch",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    row = {"code": text}
    assert list(find(row)) == [] and mask(row) == row


def test_masked_json_is_still_json() -> None:
    settings = json.dumps({"api_key": "q" * 16, "note": 'password="' + "w" * 16 + '"', "path": "/home/alice/runs"})
    masked = json.loads(mask({"settings_json": settings})["settings_json"])
    assert masked["api_key"] == "[redacted: assigned_key]" and "www" not in masked["note"]
    assert masked["path"] == "[redacted: home_path]/runs"
