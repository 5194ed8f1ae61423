"""A client of a NATS server: ``nats.py PORT create|publish|check [NUMBER ...]``.

``create`` makes a stream and stores the messages in it. ``publish`` stores messages, and prints a
line when the server has answered. ``check`` fails unless the stream has each message that a line
has acknowledged.
"""

import json
import os
import socket
import sys
from base64 import b64decode
from pathlib import Path

STREAM = {"name": "orders", "subjects": ["orders.*"], "storage": "file"}


def body(number):
    return number.encode() * 1000


def main(port, mode, *numbers):
    connection = socket.create_connection(("127.0.0.1", int(port)))
    received = connection.makefile("rb")
    connection.sendall(b'CONNECT {"verbose":false}\r\nSUB answer 1\r\n')

    def request(subject, data, about):
        connection.sendall(b"PUB %s answer %d\r\n%s\r\n" % (subject.encode(), len(data), data))
        while not (line := received.readline()).startswith(b"MSG"):
            assert line, "the server has closed the connection"
        answer = json.loads(received.read(int(line.split()[-1]) + len("\r\n")))
        assert "error" not in answer, f"{about}: {answer['error']['description']}"
        return answer

    if mode == "create":
        request("$JS.API.STREAM.CREATE.orders", json.dumps(STREAM).encode(), "stream")
    if mode == "check":
        lines = Path(os.environ["POWERCUT_ACKS"]).read_text("utf-8").splitlines()
        numbers = [line.removeprefix("stored ") for line in lines if line.startswith("stored ")]
    for number in numbers:
        if mode == "check":
            wanted = json.dumps({"last_by_subj": f"orders.{number}"}).encode()
            found = request("$JS.API.STREAM.MSG.GET.orders", wanted, f"message {number}")
            stored = b64decode(found["message"]["data"])
            assert stored == body(number), f"message {number} has other bytes"
        else:
            request(f"orders.{number}", body(number), f"message {number}")
            print(f"stored {number}", flush=True)


main(*sys.argv[1:])
