# SPDX-License-Identifier: BSD-3-Clause
"""peers: HTTP servers that a proxy asks or tells, as well-behaved as a test wants them."""
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Peer:
    """Serves `text` at /metrics; keeps what is posted. `status` for all answers; with `hang` set nobody gets one."""

    def __init__(self, text=""):
        self.text = text
        self.status = 200
        self.content_type = "text/plain; version=0.0.4"
        self.pages = {}  # other paths
        self.asked = []
        self.posted = []
        self.hang = False
        self.is_stopped = False
        self.released = threading.Event()
        self.server = None
        self.port = 0
        self.start()

    def start(self):
        peer = self
        self.is_stopped = False

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, text):
                data = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", peer.content_type)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self):
                if peer.is_stopped:  # a connection from before
                    self.close_connection = True
                    return
                peer.asked.append(self.path)
                if peer.hang:
                    peer.released.wait()
                    return
                if self.path == "/metrics":
                    self.answer(peer.status, peer.text)
                elif self.path in peer.pages:
                    self.answer(peer.status, peer.pages[self.path])
                else:
                    self.answer(404, "no such page")

            def do_POST(self):
                peer.posted.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.answer(peer.status, "")

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False  # those that hang wait for `released`

        self.server = Server(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def address(self):
        return f"127.0.0.1:{self.port}"

    def stop(self):
        """Nobody listens any more, until start()."""
        self.is_stopped = True
        self.server.shutdown()
        self.server.server_close()

    def close(self):
        self.released.set()
        self.stop()
