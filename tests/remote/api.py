"""A client of an API server, for what the tests put beside it: controllers, a node, and the checks of a test."""

import http.client
import json
import ssl
import threading
import time
from urllib.parse import urlencode, urlsplit

RETRY_SECONDS = 0.2


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code = code


class Api:
    """Requests with a token; each has a connection of its own."""

    def __init__(self, url, authority, token):
        self.address, self.token = urlsplit(url).netloc, token
        self.context = ssl.create_default_context(cafile=authority)
        self.ended = threading.Event()

    def open(self, method, path, body=None, content="application/json", seconds=30):
        connection = http.client.HTTPSConnection(self.address, context=self.context, timeout=seconds)
        headers = {"Authorization": f"Bearer {self.token}", "Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = content
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        return connection, connection.getresponse()

    def call(self, method, path, body=None, content="application/json"):
        connection, answer = self.open(method, path, body, content)
        try:
            data = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise Refused(answer.status, data.decode(errors="replace")[:2000])
        return json.loads(data) if data else None

    def get(self, path):
        """An object, or None."""
        try:
            return self.call("GET", path)
        except Refused as error:
            if error.code == 404:
                return None
            raise

    def merge(self, path, patch):
        """Applies a merge patch; nothing if the object is gone."""
        try:
            return self.call("PATCH", path, patch, "application/merge-patch+json")
        except Refused as error:
            if error.code == 404:
                return None
            raise

    def follow(self, path, handler, **query):
        """Calls `handler(kind, object)` for all objects of a list and their changes, in a thread, until the client ends."""
        threading.Thread(target=self.watch_forever, args=(path, handler, query), daemon=True).start()

    def watch_forever(self, path, handler, query):
        while not self.ended.is_set():
            try:
                found = self.call("GET", f"{path}?{urlencode(query)}")
                for value in found["items"]:
                    handler("ADDED", value)
                self.watch(path, handler, {**query, "watch": 1, "resourceVersion": found["metadata"]["resourceVersion"]})
            except (Refused, OSError, http.client.HTTPException, ValueError):
                time.sleep(RETRY_SECONDS)

    def watch(self, path, handler, query):
        connection, answer = self.open("GET", f"{path}?{urlencode(query)}", seconds=300)
        try:
            if answer.status != 200:
                return
            for line in answer:
                change = json.loads(line)
                if change["type"] == "ERROR" or self.ended.is_set():
                    return
                handler(change["type"], change["object"])
        finally:
            connection.close()
