"""A network between a process and its database that can be cut (connections end) or silent (nothing passes)."""

import socket
import threading


class Wire:
    def __init__(self, target):
        self.target, self.open, self.pairs, self.lock = target, threading.Event(), [], threading.Lock()
        self.is_cut = False
        self.open.set()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.join, args=(near,), daemon=True).start()

    def join(self, near):
        self.open.wait()
        try:
            if self.is_cut:
                raise OSError("cut")
            far = socket.create_connection(("127.0.0.1", self.target), timeout=5)
            far.settimeout(None)
        except OSError:
            near.close()
            return
        with self.lock:
            self.pairs.append((near, far))
        for pair in ((near, far), (far, near)):
            threading.Thread(target=self.pump, args=pair, daemon=True).start()

    def pump(self, source, sink):
        try:
            while data := source.recv(65536):
                self.open.wait()
                sink.sendall(data)
        except OSError:
            pass
        for one in (source, sink):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def silence(self):
        self.open.clear()

    def cut(self):
        """Ends all connections and refuses new ones."""
        self.is_cut = True
        self.open.set()
        with self.lock:
            pairs, self.pairs = self.pairs, []
        for one in (end for pair in pairs for end in pair):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def mend(self):
        self.is_cut = False
        self.open.set()
