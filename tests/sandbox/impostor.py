"""A guest that lies: speaks the wire protocol without torch, and misbehaves as its first argument says.

Started by `test_checker_guest` in place of the real guest: ``impostor.py BEHAVIOUR``. It knows the problem of those
tests: vectoradd's third input is where the result goes.
"""

import mmap
import os
import socket
import sys
import time

from guest import wire

behaviour = sys.argv[1]
sock = socket.socket(fileno=3)
buffers: dict[int, mmap.mmap] = {}
calls: list[int] = []


def halves(data: bytes) -> list[float]:
    import struct

    return list(struct.unpack(f"<{len(data) // 2}e", data))


def honest(tree: dict) -> dict:
    import struct

    nodes = tree["items"]
    count = nodes[0]["shape"][0] * nodes[0]["shape"][1]
    a, b = (halves(buffers[0][node["offset"] : node["offset"] + 2 * count]) for node in nodes[:2])
    packed = struct.pack(f"<{count}e", *(x + y for x, y in zip(a, b, strict=True)))
    buffers[0][nodes[2]["offset"] : nodes[2]["offset"] + 2 * count] = packed
    return nodes[2]


def returned(tree: object, **more: object) -> None:
    wire.send(sock, {"op": "returned", "tree": tree, "event_us": None} | more)


def serve() -> None:
    if behaviour == "never ready":
        sys.exit(3)
    wire.send(sock, {"op": "ready", "versions": {"torch": 1}} if behaviour != "not ready" else {"op": "no"})
    while True:
        frame = wire.receive(sock)
        match frame.op:
            case "load":
                load()
            case "buffers":
                for item, fd in zip(frame.header["items"], frame.fds, strict=True):
                    buffers[item["id"]] = mmap.mmap(fd, item["bytes"])
                wire.send(sock, {"op": "mapped"})
            case "call":
                call(frame.header["data"], bool(frame.header["head_start"]) or "board" in frame.header)
            case "empty":
                wire.send(sock, {"op": "returned", "tree": {"t": "value", "value": None}, "event_us": 100.0})
            case "kernels":
                wire.send(sock, {"op": "kernels"}, b"x")


def load() -> None:
    match behaviour:
        case "refuses":
            wire.send(sock, {"op": "failed", "kind": "build", "log": "Traceback\nImportError: no such module\n"})
        case "exits at load":
            os._exit(0)
        case "endless log":
            wire.send(sock, {"op": "failed", "log": "x" * 900_000})
        case "log of another kind":
            wire.send(sock, {"op": "failed", "log": [{"deep": 1}]})
        case _:
            wire.send(sock, {"op": "loaded"})


def call(data: dict, timed: bool) -> None:
    node = data["items"][2]
    match behaviour:
        case "honest":
            returned(honest(data))
        case "lazy":
            returned(node)
        case "returns an input":
            returned(data["items"][0])
        case "spoils an input":
            right = honest(data)
            buffers[0][data["items"][1]["offset"]] ^= 1
            returned(right)
        case "times itself":
            returned(honest(data), event_us=5.0 if timed else None)
        case str() if behaviour.startswith("takes "):
            # What it takes is for the test's clock to say: on a busy machine no real one would hold still.
            returned(honest(data), event_us=float(behaviour.split()[3]) if timed else None)
        case "claims no time":
            returned(honest(data), event_us=0.0)
        case "claims less than none":
            returned(honest(data), event_us=-5.0)
        case "claims more than all":
            returned(honest(data), event_us=1e9)
        case "claims in words":
            returned(honest(data), event_us="5.0")
        case "works on early calls only":
            calls.append(1)
            returned(honest(data) if len(calls) < 9 else node, event_us=5.0)
        case "wrong dtype":
            returned({**node, "dtype": "float32"})
        case "wrong shape":
            returned({**node, "shape": [1, 1]})
        case "outside":
            returned({**node, "offset": len(buffers[0])})
        case "other buffer":
            returned({**node, "buffer": 5})
        case "no tree":
            returned("PASS")
        case "raises":
            wire.send(sock, {"op": "raised", "kind": "run", "log": "Traceback\nValueError: no\n"})
        case "raises half a letter":
            wire.send(sock, {"op": "raised", "kind": "run", "log": "ValueError: \ud800\n"})
        case "endless time":
            wire.send(sock, {"op": "returned", "tree": {"t": "other", "type": "\udfff"}, "event_us": 10**400})
        case "does not compile":
            wire.send(sock, {"op": "raised", "kind": "build", "log": "CompilationError: at 1:1\n"})
        case "another verb":
            wire.send(sock, {"op": "judgement", "verdict": "passed"})
        case "garbage":
            sock.sendall(b"\xff" * 4096)
        case "too long":
            sock.sendall(b"\xff\xff\xff\x7f" * 2)
        case "deep":
            head = b'{"op":"returned","tree":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
            sock.sendall(len(head).to_bytes(4, "little") + bytes(4) + head)
        case "drips":
            sock.sendall((100_000).to_bytes(4, "little") + bytes(4))
            while True:
                sock.sendall(b" ")
                time.sleep(0.02)
        case "silent":
            time.sleep(600)
        case "exits":
            print("last words", flush=True)
            os._exit(0)
        case "hangs up":
            sock.close()
            time.sleep(600)
        case "sends descriptors":
            wire.send(sock, {"op": "returned", "tree": honest(data), "event_us": 1}, fds=[0] * 16)


serve()
