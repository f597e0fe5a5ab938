"""A small OpenAI-compatible server on this machine: counts calls, and answers each from a function."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """What to send back; `delay_s` comes first."""

    status: int = 200
    text: str = ""
    delay_s: float = 0.0
    trickle_s: float = 0.0
    """Time between two bytes of the body; 0 sends it whole."""
    headers: dict[str, str] = field(default_factory=dict)
    body: object | None = None
    """Sent instead of a chat completion that says `text`."""


@dataclass
class Endpoint:
    """The server's address, and what it was asked: the decoded bodies, in order of arrival."""

    url: str
    asked: list[dict[str, Any]]
    authorisations: list[str | None]

    def prompts(self) -> list[str]:
        return [body["messages"][0]["content"] for body in self.asked]


def completion(text: str) -> dict[str, object]:
    message = {"role": "assistant", "content": text}
    return {
        "id": "1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150},
    }  # fmt: skip


@contextmanager
def serve(answer: Callable[[int], Answer]) -> Iterator[Endpoint]:
    """Serve on a free port; `answer` gets the number of the call, from 1."""
    endpoint, lock = Endpoint("", [], []), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with lock:
                endpoint.asked.append(body)
                endpoint.authorisations.append(self.headers["authorization"])
                number = len(endpoint.asked)
            said = answer(number)
            time.sleep(said.delay_s)
            content = said.body if said.body is not None else completion(said.text)
            data = json.dumps(content).encode()
            try:
                self.send_response(said.status)
                for name, value in {"content-type": "application/json", **said.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                for part in (data[i : i + 1] for i in range(len(data))) if said.trickle_s else (data,):
                    self.wfile.write(part)
                    self.wfile.flush()
                    time.sleep(said.trickle_s)
            except OSError:
                self.close_connection = True  # the client was killed or gave up

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    endpoint.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
