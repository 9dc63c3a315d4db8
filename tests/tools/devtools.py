"""What the tests of web pages need of browsers: WebSockets (RFC 6455), and a headless Chromium that is driven by its
DevTools protocol. Python's standard library alone."""
import base64
import json
import os
import pathlib
import re
import secrets
import socket
import struct
import subprocess
import tempfile
import time
import urllib.parse

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Refused(Exception):
    """The server's answer to a handshake was not 101."""

    def __init__(self, status):
        super().__init__(f"HTTP status {status}")
        self.status = status


class WebSocket:
    """A client's end of a connection; messages come as str or bytes."""

    def __init__(self, url, headers=None, timeout=20):
        parts = urllib.parse.urlsplit(url)
        self.socket = socket.create_connection((parts.hostname, parts.port), timeout)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.file = self.socket.makefile("rb")
        fields = {"Host": parts.netloc, "Upgrade": "websocket", "Connection": "Upgrade",
                  "Sec-WebSocket-Key": base64.b64encode(secrets.token_bytes(16)).decode(),
                  "Sec-WebSocket-Version": "13", **(headers or {})}
        lines = [f"GET {parts.path} HTTP/1.1", *(f"{k}: {v}" for k, v in fields.items() if v is not None)]
        self.socket.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        status = int(self.file.readline().split()[1])
        while self.file.readline().strip():
            pass
        if status != 101:
            self.close()
            raise Refused(status)

    def close(self):
        self.file.close()
        self.socket.close()

    def send(self, message, kind=TEXT):
        data = message.encode() if isinstance(message, str) else message
        size = len(data)
        if size < 126:
            head = struct.pack(">BB", 0x80 | kind, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack(">BBH", 0x80 | kind, 0x80 | 126, size)
        else:
            head = struct.pack(">BBQ", 0x80 | kind, 0x80 | 127, size)
        mask = secrets.token_bytes(4)
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
        self.socket.sendall(head + mask + masked)

    def receive(self):
        """The next message; EOFError at the end of the connection."""
        whole, kind = b"", TEXT
        while True:
            first, second = self._read(2)
            size = second & 0x7F
            if size > 125:
                size, = struct.unpack(">H" if size == 126 else ">Q", self._read(2 if size == 126 else 8))
            data = self._read(size)
            opcode = first & 0x0F
            if opcode == CLOSE:
                raise EOFError("closed")
            if opcode == PING:
                self.send(data, PONG)
            if opcode in (CLOSE, PING, PONG):
                continue
            kind = opcode or kind
            whole += data
            if first & 0x80:
                return whole.decode() if kind == TEXT else whole

    def _read(self, size):
        data = self.file.read(size)
        if len(data) < size:
            raise EOFError("the connection ended")
        return data


class Chromium:
    """A headless browser with one page; leaves nothing behind."""

    def __init__(self, width=1440, height=900):
        self.folder = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        self.errors = pathlib.Path(self.folder.name, "errors")  # no pipe: nobody would go on reading it
        with self.errors.open("w") as errors:
            self.process = self._start(width, height, errors)
        self.count = 0
        self.events = []
        self.connection = None
        try:
            self.connection = WebSocket(self._address(), timeout=60)
            self.session = None
            targets = self.call("Target.getTargets")["targetInfos"]
            page = next(t["targetId"] for t in targets if t["type"] == "page")
            self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
            self.call("Runtime.enable")
            self.call("Log.enable")
            self.call("Page.enable")
            self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                      mobile=False)
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.connection:
            self.connection.close()
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def _start(self, width, height, errors):
        return subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--remote-debugging-port=0",
             f"--window-size={width},{height}", f"--user-data-dir={self.folder.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)

    def _address(self, patience=60):
        """What the browser listens on, once it has said so."""
        begin = time.monotonic()
        while self.process.poll() is None and time.monotonic() - begin < patience:
            if found := re.search(r"listening on (ws://\S+)\n", self.errors.read_text(errors="replace")):
                return found[1]
            time.sleep(0.05)
        raise RuntimeError("chromium does not start: " + self.errors.read_text(errors="replace"))

    def call(self, method, **parameters):
        """A command's result; events that come meanwhile are kept in `events`."""
        self.count += 1
        message = {"id": self.count, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.connection.send(json.dumps(message))
        while True:
            answer = json.loads(self.connection.receive())
            if answer.get("id") == self.count:
                break
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def evaluate(self, script):
        """The value of a JavaScript expression in the page; promises are waited for."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def screenshot(self, path, quality=None):
        kind = {"format": "jpeg", "quality": quality} if quality else {"format": "png"}
        picture = base64.b64decode(self.call("Page.captureScreenshot", **kind)["data"])
        with open(path, "wb") as file:
            file.write(picture)

    def problems(self):
        """Exceptions of the page, errors in its console, and what its security policy has blocked."""
        self.call("Runtime.evaluate", expression="0")  # what has happened has come
        return [e["params"] for e in self.events if e.get("method") == "Runtime.exceptionThrown"
                or e.get("method") == "Log.entryAdded" and e["params"]["entry"]["level"] == "error"]
