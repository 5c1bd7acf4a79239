"""The server side of `exec` and `portforward` over WebSocket, as API servers since Kubernetes 1.30 and 1.31 speak them.

A part of the stand-ins: servers of these releases are not installed here, and no test could have one break off a connection.

`exec` has a channel per stream: `v5.channel.k8s.io`, or `v4` without a way to close one alone. `portforward` carries SPDY/3.1: each
connection is a stream of data and one of errors. A handler is a `BaseHTTPRequestHandler` whose request has `Upgrade: websocket`; its
thread serves the connection. What a command is, and where a port leads, says the caller.
"""

import base64
import fcntl
import hashlib
import json
import os
import pty
import select
import signal
import socket
import struct
import termios
import time
import zlib
from urllib.parse import parse_qs, urlsplit

GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
SPDY = "SPDY/3.1+portforward.k8s.io"
SYN_STREAM, SYN_REPLY, RST_STREAM, SPDY_PING, GOAWAY = 1, 2, 3, 6, 7
FIN = 1
# A zlib stream with the dictionary of SPDY/3, by its Adler-32 (section 2.6.10.1).
DICTIONARY_HEAD = bytes.fromhex("78bbe3c6a7c2")


class Broken(Exception):
    """The client broke the protocol, or went away."""


class WebSocket:
    """A connection after its handshake. `fragments` divides what is sent into so many frames."""

    def __init__(self, handler, served):
        offered = [word.strip() for word in handler.headers.get("Sec-WebSocket-Protocol", "").split(",")]
        self.protocol = next((protocol for protocol in offered if protocol in served), None)
        self.socket, self.fragments, self.buffer, self.closed, self.pongs = handler.connection, 1, b"", False, 0
        if self.protocol:
            key = handler.headers["Sec-WebSocket-Key"]
            accept = base64.b64encode(hashlib.sha1((key + GUID).encode()).digest()).decode()
            self.socket.sendall(f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                                f"Sec-WebSocket-Accept: {accept}\r\nSec-WebSocket-Protocol: {self.protocol}\r\n\r\n".encode())
        handler.close_connection = True

    def fileno(self):
        return self.socket.fileno()

    def frame(self, opcode, data, last=True):
        size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack(">H", len(data)) if len(data) < 1 << 16 else \
            b"\x7f" + struct.pack(">Q", len(data))
        self.socket.sendall(bytes([opcode | (0x80 if last else 0)]) + size + data)

    def send(self, data):
        step = max(1, -(-len(data) // self.fragments))
        parts = [data[at:at + step] for at in range(0, len(data), step)] or [b""]
        for number, part in enumerate(parts):
            self.frame(BINARY if number == 0 else 0, part, number == len(parts) - 1)
            if self.fragments > 1:
                # Control frames may come between.
                self.frame(PING, b"?")

    def close(self, code=1000):
        if not self.closed:
            self.closed = True
            self.frame(CLOSE, struct.pack(">H", code))

    def pending(self):
        return len(self.buffer) > 0 or getattr(self.socket, "pending", lambda: 0)() > 0

    def receive(self):
        """The next whole frame as opcode and data; None if it is not complete yet."""
        while True:
            found = self.take()
            if found or not (self.pending_socket() or self.readable(0)):
                return found
            data = self.socket.recv(1 << 16)
            if not data:
                raise Broken("the client went away")
            self.buffer += data

    def pending_socket(self):
        return getattr(self.socket, "pending", lambda: 0)() > 0

    def readable(self, timeout):
        return bool(select.select([self.socket], [], [], timeout)[0])

    def take(self):
        data = self.buffer
        if len(data) < 2:
            return None
        if not data[1] & 0x80:
            raise Broken("a client must mask")
        if not data[0] & 0x80 or data[0] & 0x70:
            raise Broken("divided messages are not expected")
        size, at = data[1] & 0x7f, 2
        if size >= 126:
            form, length = (">H", 2) if size == 126 else (">Q", 8)
            if len(data) < 2 + length:
                return None
            size, at = struct.unpack(form, data[2:2 + length])[0], 2 + length
        if len(data) < at + 4 + size:
            return None
        mask = data[at:at + 4] * (size // 4 + 1)
        body = data[at + 4:at + 4 + size]
        self.buffer = data[at + 4 + size:]
        if size:
            body = (int.from_bytes(body, "big") ^ int.from_bytes(mask[:size], "big")).to_bytes(size, "big")
        return data[0] & 0xf, body

    def messages(self):
        """What has arrived: data only. Raises Broken at the end."""
        found = []
        while frame := self.receive():
            opcode, data = frame
            if opcode == CLOSE:
                if not self.closed:
                    self.closed = True
                    self.frame(CLOSE, data)
                raise Broken("closed")
            if opcode == PING:
                self.frame(PONG, data)
            elif opcode == PONG:
                self.pongs += 1
            else:
                found.append(data)
        return found


def serve_exec(handler, start, served=("v5.channel.k8s.io", "v4.channel.k8s.io"), fragments=1, sizes=None):
    """Serves one command. `start(command, stdin, stdout, stderr)` starts it with these file descriptors and returns a Popen; sizes of
    its terminal are appended to `sizes`."""
    query = parse_qs(urlsplit(handler.path).query)
    wants = {name: query.get(name, ["false"])[0] == "true" for name in ("stdin", "stdout", "stderr", "tty")}
    channel = WebSocket(handler, served)
    if channel.protocol is None:
        return False
    channel.fragments = fragments
    try:
        run_command(channel, query["command"], wants, start, sizes if sizes is not None else [])
    except (Broken, OSError):
        pass
    return True


def run_command(channel, command, wants, start, sizes):
    own, theirs = [], []
    if wants["tty"]:
        master, slave = pty.openpty()
        own, theirs = [master], [slave, slave, slave]
        stdin, outputs = master, {master: 1}
    else:
        pipes = [os.pipe(), os.pipe(), os.pipe()]
        theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
        own = [pipes[0][1], pipes[1][0], pipes[2][0]]
        stdin, outputs = own[0], {own[1]: 1, own[2]: 2}
    try:
        try:
            process = start(command, *theirs)
        finally:
            for descriptor in set(theirs):
                os.close(descriptor)
    except (FileNotFoundError, PermissionError) as error:
        word = "executable file not found in $PATH" if isinstance(error, FileNotFoundError) else "permission denied"
        text = f'failed to exec in container: exec: "{command[0]}": {word}: unknown'
        channel.send(b"\x03" + json.dumps({"status": "Failure", "message": text, "reason": "InternalError", "code": 500}).encode())
        channel.close()
        return
    own, waiting, is_closing = set(own), bytearray(), False
    os.set_blocking(stdin, False)
    if not wants["stdin"] and not wants["tty"]:
        is_closing = True
    try:
        while outputs or process.poll() is None:
            if is_closing and not waiting and stdin in own and not wants["tty"]:
                os.close(stdin)
                own.discard(stdin)
            # A command that does not read holds back its client.
            sources = [*outputs] + ([channel] if len(waiting) < 1 << 20 else [])
            ready, writable = ([], []) if channel.pending() else \
                select.select(sources, [stdin] if waiting and stdin in own else [], [], 0.2)[:2]
            for data in channel.messages() if channel in ready or channel.pending() else []:
                number, body = data[0], data[1:]
                if number == 0:
                    waiting += body
                elif number == 255 and channel.protocol.startswith("v5") and body == b"\0":
                    is_closing = True
                    waiting += b"\x04" if wants["tty"] else b""
                elif number == 4:
                    size = json.loads(body)
                    sizes.append((size["Width"], size["Height"]))
                    fcntl.ioctl(stdin, termios.TIOCSWINSZ, struct.pack("HHHH", size["Height"], size["Width"], 0, 0))
            if stdin in own and waiting and (stdin in writable or channel.pending()):
                try:
                    del waiting[:os.write(stdin, waiting)]
                except BlockingIOError:
                    pass
                except OSError:
                    waiting.clear()
            for descriptor in [descriptor for descriptor in list(outputs) if descriptor in ready]:
                try:
                    data = os.read(descriptor, 1 << 15)
                except OSError:
                    data = b""
                if data:
                    channel.send(bytes([outputs[descriptor]]) + data)
                else:
                    del outputs[descriptor]
            if wants["tty"] and process.poll() is not None and not select.select(list(outputs), [], [], 0)[0]:
                break
        code = process.wait()
        status = {"metadata": {}, "status": "Success"} if code == 0 else {
            "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode", "message": f"command terminated with exit code {code}",
            "details": {"causes": [{"reason": "ExitCode", "message": str(code if code > 0 else 128 - code)}]}}
        channel.send(b"\x03" + json.dumps(status).encode())
        channel.close()
        deadline = time.monotonic() + 2
        while channel.readable(max(0, deadline - time.monotonic())):
            channel.messages()
    finally:
        for descriptor in own:
            os.close(descriptor)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()


class Stream:
    """A stream of SPDY, and the connection that it leads to."""

    def __init__(self, headers):
        self.headers, self.socket, self.ended = headers, None, False


def serve_port_forward(handler, connect, fragments=1, delay=0.0):
    """Serves the connections of one client; `connect(port)` returns a socket or raises OSError. `delay` holds replies back."""
    channel = WebSocket(handler, (SPDY,))
    if channel.protocol is None:
        return False
    channel.fragments = fragments
    try:
        Tunnel(channel, connect, delay).run()
    except (Broken, OSError):
        pass
    return True


class Tunnel:
    def __init__(self, channel, connect, delay):
        self.channel, self.connect, self.delay = channel, connect, delay
        self.buffer, self.streams, self.inflate, self.last = b"", {}, None, -1

    def run(self):
        try:
            while True:
                sockets = {stream.socket: number for number, stream in self.streams.items() if stream.socket and not stream.ended}
                ready = [] if self.channel.pending() else select.select([self.channel, *sockets], [], [], 1)[0]
                if self.channel in ready or self.channel.pending():
                    for data in self.channel.messages():
                        self.buffer += data
                    while self.frame():
                        pass
                for found in [found for found in ready if found in sockets]:
                    self.forward(sockets[found], found)
        finally:
            for stream in self.streams.values():
                if stream.socket:
                    stream.socket.close()

    def forward(self, number, found):
        try:
            data = found.recv(1 << 14)
        except OSError:
            data = b""
        self.data(number, data, fin=not data)
        if not data:
            self.streams[number].ended = True

    def data(self, number, data, fin=False):
        self.channel.send(struct.pack(">IB", number, FIN if fin else 0) + len(data).to_bytes(3, "big") + data)

    def control(self, kind, body, flags=0):
        self.channel.send(struct.pack(">HHB", 0x8003, kind, flags) + len(body).to_bytes(3, "big") + body)

    def frame(self):
        if len(self.buffer) < 8:
            return False
        head, flags, size = struct.unpack(">I", self.buffer[:4])[0], self.buffer[4], int.from_bytes(self.buffer[5:8], "big")
        if len(self.buffer) < 8 + size:
            return False
        body, self.buffer = self.buffer[8:8 + size], self.buffer[8 + size:]
        if head & 0x80000000:
            if head >> 16 != 0x8003:
                raise Broken("not SPDY/3")
            self.on_control(head & 0xffff, flags, body)
        else:
            self.on_data(head, flags, body)
        return True

    def headers(self, block):
        if self.inflate is None:
            if block[:6] != DICTIONARY_HEAD:
                raise Broken("no dictionary")
            self.inflate, block = zlib.decompressobj(-15), block[6:]
        text = self.inflate.decompress(block)
        count, at, found = struct.unpack(">I", text[:4])[0], 4, {}
        for _ in range(count):
            pair = []
            for _ in range(2):
                size = struct.unpack(">I", text[at:at + 4])[0]
                pair.append(text[at + 4:at + 4 + size].decode())
                at += 4 + size
            if pair[0] != pair[0].lower():
                raise Broken("names of headers must be in lower case")
            found[pair[0]] = pair[1]
        if at != len(text):
            raise Broken("the block has another size than its headers")
        return found

    def on_control(self, kind, flags, body):
        if kind == SYN_STREAM:
            number = struct.unpack(">I", body[:4])[0]
            if number % 2 == 0 or number <= self.last:
                raise Broken("invalid stream id")
            self.last = number
            stream = self.streams[number] = Stream(self.headers(body[10:]))
            time.sleep(self.delay)
            self.control(SYN_REPLY, struct.pack(">I", number))
            if stream.headers["streamtype"] == "data":
                self.open(number, stream)
        elif kind == RST_STREAM:
            stream = self.streams.pop(struct.unpack(">I", body[:4])[0], None)
            if stream and stream.socket:
                stream.socket.close()
        elif kind == SPDY_PING:
            self.control(SPDY_PING, body)
        elif kind == GOAWAY:
            raise Broken("the client says goodbye")

    def open(self, number, stream):
        request = stream.headers["requestid"]
        errors = next(other for other, known in self.streams.items()
                      if known.headers["requestid"] == request and known.headers["streamtype"] == "error")
        try:
            stream.socket = self.connect(int(stream.headers["port"]))
        except OSError as error:
            self.data(errors, f"error forwarding port {stream.headers['port']}: {error}".encode(), fin=True)
            self.data(number, b"", fin=True)

    def on_data(self, number, flags, body):
        stream = self.streams.get(number)
        if stream is None or stream.socket is None:
            return
        try:
            stream.socket.sendall(body)
            if flags & FIN:
                stream.socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.control(RST_STREAM, struct.pack(">II", number, 5))
