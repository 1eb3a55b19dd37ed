"""What the network does to a server under trial: a relay in front of a node, and clients that drip."""

import contextlib
import http.client
import json
import socket
import threading
import time
import urllib.error
import urllib.request

PIECE = 1 << 16


class Relay:
    """A TCP relay in front of a node. `mode` is pass, refuse, silent or drip, and holds for open connections too."""

    def __init__(self, target, mode="pass"):
        self.target, self.mode, self.accepted = target, mode, 0
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            self.accepted += 1
            if self.mode == "refuse":
                client.close()
                continue
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        with contextlib.suppress(OSError), client, socket.create_connection(self.target) as node:
            threading.Thread(target=self.copy, args=(client, node), daemon=True).start()
            self.copy(node, client, drips=True)

    def copy(self, source, sink, drips=False):
        with contextlib.suppress(OSError):
            while piece := source.recv(PIECE):
                while self.mode == "silent":
                    time.sleep(0.1)
                if self.mode == "refuse":
                    break
                if self.mode == "drip" and drips:
                    for at in range(len(piece)):
                        sink.sendall(piece[at : at + 1])
                        time.sleep(1)
                else:
                    sink.sendall(piece)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def connect(port, receive_buffer=None):
    client = socket.socket()
    if receive_buffer:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    client.connect(("127.0.0.1", port))
    return client


def drip_reading(port, path, key, seconds):
    """Reads a byte a second of an answer for so long."""
    with contextlib.suppress(OSError), connect(port, 1) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: {key}\r\n\r\n".encode())
        for _ in range(seconds):
            time.sleep(1)
            if not client.recv(1):
                return


def drip_writing(port, text, at_once, most):
    """Writes a byte a second after the first `at_once` ones; seconds until the server has answered or closed."""
    began = time.monotonic()
    with contextlib.suppress(OSError), connect(port) as client:
        client.sendall(text[:at_once])
        client.settimeout(1)
        for at in range(at_once, at_once + most):
            client.sendall(text[at : at + 1] or b"x")
            with contextlib.suppress(TimeoutError):
                client.recv(1)
                break
    return time.monotonic() - began


def ask(port, path, key):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"x-api-key": key})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def lines(port, path, key):
    """The lines of a stream that are not blank; ends where the connection is cut, too."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        connection.request("GET", path, headers={"x-api-key": key})
        answer = connection.getresponse()
        while line := answer.readline():
            if line.endswith(b"\n") and line.strip():
                yield json.loads(line)
