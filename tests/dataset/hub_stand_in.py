"""A small Hugging Face Hub for data sets on 127.0.0.1: what `create_repo`, `upload_folder` and `load_dataset` ask for.

It wants the token `TOKEN` for everything that writes, and lets nobody write to the owner `CLOSED_OWNER`.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

TOKEN = "hf_standin"
CLOSED_OWNER = "closed"
_REPO = r"(?P<repo>[^/]+/[^/]+)"


@dataclass
class Repository:
    """The files of the one branch, ``main``."""

    private: bool
    files: dict[str, bytes] = field(default_factory=dict)
    commits: list[str] = field(default_factory=lambda: ["0" * 40])


class HubStandIn:
    """The running stand-in: its `url`, every request as ``METHOD /path``, the repositories and the LFS store."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.lfs: dict[str, bytes] = {}
        self.requests: list[str] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (_Request,), {"hub": self}))
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Request(BaseHTTPRequestHandler):
    hub: HubStandIn
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        return

    def answer(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        kind = "application/octet-stream" if isinstance(content, bytes) else "application/json"
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def refuse(self, status: int, code: str) -> None:
        self.answer(status, {"error": code}, {"X-Error-Code": code, "X-Error-Message": code})

    def read_body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def route(self) -> None:
        path, body = unquote(urlsplit(self.path).path), self.read_body()
        self.hub.requests.append(f"{self.command} {path}")
        if self.command == "PUT" and (lfs := re.fullmatch(r"/lfs/(\w+)", path)):
            self.hub.lfs[lfs[1]] = body
            return self.answer(200, {})
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self.refuse(401, "Unauthorized")
        for pattern, method in _ROUTES:
            if match := re.fullmatch(pattern, path):
                found = match.groupdict()
                repository = self.hub.repositories.get(found.pop("repo", "") or "")
                if repository is None and "repo" in match.groupdict():
                    return self.refuse(404, "RepoNotFound")
                arguments = {"body": body, "repository": repository, **found}
                return method(self, **arguments)
        return self.refuse(404, "EntryNotFound")

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = route

    def whoami(self, **_: Any) -> None:
        self.answer(200, {"type": "user", "name": "me", "orgs": [], "auth": {"accessToken": {"role": "write"}}})

    def validate_card(self, **_: Any) -> None:
        self.answer(200, {"errors": [], "warnings": []})

    def create(self, body: bytes, **_: Any) -> None:
        asked = json.loads(body)
        owner = asked.get("organization") or "me"
        name = f"{owner}/{asked['name']}"
        if owner == CLOSED_OWNER:
            return self.refuse(403, "Forbidden")
        # Newer clients say `visibility`, older ones `private`.
        private = asked.get("visibility") == "private" or bool(asked.get("private"))
        status = 409 if name in self.hub.repositories else 200
        self.hub.repositories.setdefault(name, Repository(private))
        return self.answer(status, {"url": f"{self.hub.url}/datasets/{name}", "name": name, "id": name})

    def lfs_batch(self, body: bytes, **_: Any) -> None:
        objects = []
        for asked in json.loads(body)["objects"]:
            upload = {"upload": {"href": f"{self.hub.url}/lfs/{asked['oid']}", "header": {}}}
            actions = {} if asked["oid"] in self.hub.lfs else {"actions": upload}
            objects.append({"oid": asked["oid"], "size": asked["size"], **actions})
        self.answer(200, {"transfer": "basic", "objects": objects})

    def preupload(self, body: bytes, **_: Any) -> None:
        files = [
            {"path": file["path"], "uploadMode": "lfs" if file["path"].endswith(".parquet") else "regular"}
            | {"shouldIgnore": False, "oid": None}
            for file in json.loads(body)["files"]
        ]
        self.answer(200, {"files": files})

    def commit(self, body: bytes, repository: Repository, **_: Any) -> None:
        for line in body.splitlines():
            step = json.loads(line)
            value = step["value"]
            match step["key"]:
                case "file":
                    repository.files[value["path"]] = base64.b64decode(value["content"])
                case "lfsFile":
                    repository.files[value["path"]] = self.hub.lfs[value["oid"]]
                case "deletedFile":
                    del repository.files[value["path"]]
        sha = hashlib.sha1(body + repository.commits[-1].encode()).hexdigest()
        repository.commits.append(sha)
        url = f"{self.hub.url}{self.path.removeprefix('/api').rpartition('/')[0]}/{sha}"
        self.answer(200, {"success": True, "commitOid": sha, "commitUrl": url})

    def info(self, repository: Repository, **_: Any) -> None:
        siblings = [{"rfilename": path, "size": len(content)} for path, content in repository.files.items()]
        content = {"_id": "1", "id": "me/it", "sha": repository.commits[-1], "private": repository.private}
        self.answer(200, {**content, "gated": False, "disabled": False, "tags": [], "siblings": siblings})

    def tree(self, repository: Repository, folder: str | None, **_: Any) -> None:
        query = parse_qs(urlsplit(self.path).query)
        recursive = query.get("recursive", ["false"])[0].lower() == "true"
        prefix = f"{folder.strip('/')}/" if folder and folder.strip("/") else ""
        entries: dict[str, dict[str, Any]] = {}
        for path, content in repository.files.items():
            if not path.startswith(prefix):
                continue
            parts = path[len(prefix) :].split("/")
            for depth in range(1, len(parts) if recursive else min(len(parts), 2)):
                parent = prefix + "/".join(parts[:depth])
                entries[parent] = {"type": "directory", "oid": "0" * 40, "size": 0, "path": parent}
            if recursive or len(parts) == 1:
                entries[path] = _entry(path, content)
        if prefix and not entries:
            return self.refuse(404, "EntryNotFound")
        return self.answer(200, list(entries.values()))

    def paths_info(self, repository: Repository, body: bytes, **_: Any) -> None:
        try:
            asked = json.loads(body)["paths"]
        except ValueError:
            asked = parse_qs(body.decode()).get("paths", [])
        found = [_entry(path, repository.files[path]) for path in asked if path in repository.files]
        folders = {path for path in asked if any(name.startswith(f"{path}/") for name in repository.files)}
        self.answer(200, found + [{"type": "directory", "oid": "0" * 40, "size": 0, "path": path} for path in folders])

    def resolve(self, repository: Repository, path: str, **_: Any) -> None:
        content = repository.files.get(path)
        if content is None:
            return self.refuse(404, "EntryNotFound")
        headers = {"ETag": f'"{_git_id(content)}"', "X-Repo-Commit": repository.commits[-1], "Accept-Ranges": "bytes"}
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if asked is None:
            return self.answer(200, content, headers)
        start, end = int(asked[1]), int(asked[2] or len(content) - 1)
        return self.answer(
            206, content[start : end + 1], {**headers, "Content-Range": f"bytes {start}-{end}/{len(content)}"}
        )


_ROUTES = [
    (r"/api/whoami-v2", _Request.whoami),
    (r"/api/validate-yaml", _Request.validate_card),
    (r"/api/repos/create", _Request.create),
    (rf"/datasets/{_REPO}\.git/info/lfs/objects/batch", _Request.lfs_batch),
    (rf"/api/datasets/{_REPO}/preupload/[^/]+", _Request.preupload),
    (rf"/api/datasets/{_REPO}/commit/[^/]+", _Request.commit),
    (rf"/api/datasets/{_REPO}(?:/revision/[^/]+)?", _Request.info),
    (rf"/api/datasets/{_REPO}/tree/[^/]+(?P<folder>/.*)?", _Request.tree),
    (rf"/api/datasets/{_REPO}/paths-info/[^/]+", _Request.paths_info),
    (rf"/datasets/{_REPO}/resolve/[^/]+/(?P<path>.+)", _Request.resolve),
]


def _git_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _entry(path: str, content: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "oid": _git_id(content), "size": len(content), "path": path}
    if path.endswith(".parquet"):
        entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 134}
    return entry
