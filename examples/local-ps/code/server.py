"""A parameter server: keeps its part of the weights, and moves it by the gradients that workers send.

A message is a line of JSON. `null` asks for the weights; a list is a gradient, and is answered with the weights it led to.
"""

import json
import os
import signal
import socketserver
import sys
import threading

RATE = 0.05
PARTS = int(os.environ["JOBC_INSTANCES"])
PART = int(os.environ["JOBC_INDEX"])
FEATURES = 8

weights = [0.0] * len(range(PART, FEATURES, PARTS))
lock = threading.Lock()


class Worker(socketserver.StreamRequestHandler):
    def handle(self):
        updates = 0
        for line in self.rfile:
            gradient = json.loads(line)
            with lock:
                for i, g in enumerate(gradient or []):
                    weights[i] -= RATE * g
                answer = json.dumps(weights)
            updates += gradient is not None
            self.wfile.write(answer.encode() + b"\n")
        if updates:
            print(f"{updates} gradients from {self.client_address[0]}")


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True


# The first process of a container has no default action for it: without this the server would be killed.
signal.signal(signal.SIGTERM, lambda *_: sys.exit())
port = int(os.environ["JOBC_PORT_WEIGHTS"])
with Server(("", port), Worker) as server:
    print(f"part {PART} of {PARTS}: {len(weights)} of {FEATURES} weights on port {port}")
    server.serve_forever()
