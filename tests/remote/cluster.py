"""A stand-in for the API server of a Kubernetes cluster, on loopback with TLS, and for its Job and JobSet controllers.

A real server (`test_server`) can neither be told to fail, to lose an answer, to forget the past or to be slow, nor hold 10,000 pods
in seconds, and Debian has that of Kubernetes 1.20, without the fields and kinds of today.

It serves discovery, objects in namespaces (create, apply, merge patch, dry run, delete, lists in pages, watches), access reviews and
the output of pods. A test says what pods do (`Script`), which requests fail (`fail`), and which objects are rejected (`reject`). It
knows nothing of the schemas of objects.
"""

import base64
import copy
import fcntl
import json
import os
import re
import socket
import ssl
import subprocess
import termios
import threading
import time
import uuid
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import websocket

KINDS = {
    "v1": {"configmaps": "ConfigMap", "services": "Service", "secrets": "Secret", "pods": "Pod", "events": "Event",
           "persistentvolumeclaims": "PersistentVolumeClaim", "serviceaccounts": "ServiceAccount", "namespaces": "Namespace",
           "resourcequotas": "ResourceQuota", "limitranges": "LimitRange", "nodes": "Node"},
    "batch/v1": {"jobs": "Job"},
    "jobset.x-k8s.io/v1alpha2": {"jobsets": "JobSet"},
    "metrics.k8s.io/v1beta1": {"pods": "PodMetrics"},
    "kueue.x-k8s.io/v1beta2": {"localqueues": "LocalQueue", "clusterqueues": "ClusterQueue", "workloads": "Workload"},
    "scheduling.k8s.io/v1": {"priorityclasses": "PriorityClass"},
    "node.k8s.io/v1": {"runtimeclasses": "RuntimeClass"},
    "storage.k8s.io/v1": {"storageclasses": "StorageClass"},
}
CLUSTER_WIDE = ("namespaces", "nodes", "clusterqueues", "priorityclasses", "runtimeclasses", "storageclasses")
PATH = re.compile(r"/(?:api|apis)/(?P<version>v1|[^/]+/[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
                  r"/(?P<plural>[a-z]+)(?:/(?P<name>[^/]+)(?:/(?P<part>[a-z]+))?)?")


# A label selector: parts that are separated by commas, and a part: `a=b`, `a in (b,c)`, `a notin (b,c)`, `a`.
SELECTOR = re.compile(r"(?:[^,(]|[(][^)]*[)])+")
SELECTED = re.compile(r"([^= ]+)(=| in | notin )?(.*)")


def now():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class ApiError(Exception):
    def __init__(self, code, reason, message, causes=(), retry_after=None):
        super().__init__(message)
        self.code, self.retry_after = code, retry_after
        self.status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason, "code": code,
                       "details": {"causes": [{"field": field, "message": text, "reason": "FieldValueInvalid"} for field, text in causes]}}


class Cut(Exception):
    """The connection is closed in the middle of an answer."""


class Script:
    """What each pod of a job does: it prints lines, each after a pause, and ends. `late` keeps it pending for so long, and `lasting` running
    after its lines.
    """

    def __init__(self, lines=(), exit_code=0, pause=0.0, late=0.0, deadline=False, waiting=None, lasting=0.0):
        self.lines, self.exit_code, self.pause, self.late, self.deadline = list(lines), exit_code, pause, late, deadline
        self.waiting, self.lasting = waiting, lasting


class Cluster:
    """The state of a cluster."""

    def __init__(self, directory, name="lab", served=KINDS):
        self.directory, self.name, self.served = directory, name, served
        self.lock = threading.Condition()
        self.objects, self.history, self.version, self.oldest = {}, [], 0, 0
        self.selections, self.texts = {}, {}
        self.output, self.scripts, self.default = {}, {}, Script(["hello"])
        self.faults, self.requests, self.rejections, self.denied = [], [], [], set()
        self.tokens, self.on_request, self.log_cut, self.rotates, self.restricted = {"good"}, None, None, False, False
        # Seconds that pods run on after they were deleted; whether the list of a user's rights lacks those that no rule of RBAC gives.
        self.lingering, self.unlisted = 0, False
        # What a policy says of every pod, and the pods that it saw.
        self.policy, self.judged = "", []
        self.ended, self.release, self.drops, self.queue = False, "v1.36.0-stand-in", (), []
        # Of `exec` and `portforward`: what is served, and what was seen.
        self.programs, self.exec_protocols = directory / "programs", ("v5.channel.k8s.io", "v4.channel.k8s.io")
        self.fragments, self.sizes, self.tunnels = 1, [], []
        # Requests under way, and the most that there were; while `stall` is not set, no request is answered.
        self.concurrent, self.most_concurrent, self.stall = 0, 0, None
        certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=kubernetes", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                       check=True, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.certificate = certificate
        self.http = Server(("127.0.0.1", 0), Handler)
        self.http.cluster, self.http.context = self, context
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.put("v1", "namespaces", None, {"metadata": {"name": "ml"}})

    @property
    def url(self):
        return f"https://127.0.0.1:{self.http.server_port}"

    def close(self):
        with self.lock:
            self.ended = True
            self.lock.notify_all()
        self.http.shutdown()
        self.http.server_close()

    def kubeconfig(self, user=None, name=None):
        """Writes a kubeconfig for this cluster."""
        path = self.directory / (name or f"{self.name}.kubeconfig")
        authority = base64.b64encode(self.certificate.read_bytes()).decode()
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": self.name,
            "clusters": [{"name": self.name, "cluster": {"server": self.url, "certificate-authority-data": authority}}],
            "users": [{"name": "me", "user": user or {"token": "good"}}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": "me", "namespace": "ml"}}],
        }))
        return path

    # What a test arranges

    def fail(self, method, path, times=1, code=429, retry_after=None, cut=False, after=False,
             message="the stand-in is busy"):
        """The next so many requests that match fail. With `after` the request is carried out, and its answer is lost."""
        self.faults.append({"method": method, "path": re.compile(path), "times": times, "code": code, "retry_after": retry_after,
                            "cut": cut, "after": after, "message": message})

    def reject(self, kind, field, message):
        """The dry run and the creation of objects of a kind fail at a field."""
        self.rejections.append((kind, field, message))

    def all(self, plural, namespace="ml"):
        with self.lock:
            return [copy.deepcopy(value) for (_, known, place, _), value in self.objects.items() if known == plural and place == namespace]

    def count(self, method, path):
        pattern = re.compile(path)
        return sum(1 for known, at in list(self.requests) if known == method and pattern.search(at))

    def put(self, version, plural, namespace, value):
        """Creates or replaces an object."""
        with self.lock:
            name = value["metadata"]["name"]
            key = (version, plural, namespace, name)
            value.setdefault("apiVersion", version)
            value.setdefault("kind", KINDS[version][plural])
            self.version += 1
            metadata = value["metadata"]
            metadata.setdefault("uid", str(uuid.uuid4()))
            metadata.setdefault("creationTimestamp", now())
            if namespace:
                metadata["namespace"] = namespace
            metadata["resourceVersion"] = str(self.version)
            kind = "MODIFIED" if key in self.objects else "ADDED"
            self.objects[key] = value
            self.history.append((self.version, kind, key, copy.deepcopy(value)))
            self.lock.notify_all()
            return value

    def fill(self, version, plural, namespace, values):
        """Creates many objects at once, which no watch reports."""
        with self.lock:
            self.version += 1
            for value in values:
                value["metadata"] |= {"namespace": namespace, "resourceVersion": str(self.version)}
                value["metadata"].setdefault("creationTimestamp", now())
                self.objects[version, plural, namespace, value["metadata"]["name"]] = value

    def selected(self, key, query, matches):
        """The keys of the objects that a query selects, in order."""
        name = (key[:3], query)
        known = self.selections.get(name)
        if known is None or known[0] != self.version:
            chosen = sorted(other for other, value in self.objects.items() if matches(key, other, value))
            known = self.selections[name] = self.version, chosen
        return known[1]

    def serialized(self, key):
        """An object as an item of a list, which has neither kind nor version."""
        value = self.objects[key]
        version = value["metadata"]["resourceVersion"]
        known = self.texts.get(key)
        if known is None or known[0] != version:
            text = json.dumps({name: part for name, part in value.items() if name not in ("kind", "apiVersion")}).encode()
            known = self.texts[key] = version, text
        return known[1]

    def drop(self, key):
        """Deletes an object with all that it owns."""
        with self.lock:
            value = self.objects.pop(key, None)
            if value is None:
                return
            self.version += 1
            value["metadata"]["resourceVersion"] = str(self.version)
            self.history.append((self.version, "DELETED", key, copy.deepcopy(value)))
            self.lock.notify_all()
            uid = value["metadata"]["uid"]
            for other, object_ in list(self.objects.items()):
                owners = object_["metadata"].get("ownerReferences", [])
                left = [owner for owner in owners if owner["uid"] != uid]
                if len(left) < len(owners):
                    object_["metadata"]["ownerReferences"] = left
                    if not left:
                        self.end(other)

    def end(self, key):
        """Deletes an object; a pod runs on for a while."""
        if self.lingering and key[1] == "pods":
            self.objects[key]["metadata"] |= {"deletionTimestamp": now(), "deletionGracePeriodSeconds": 1}
            self.put(*key[:3], self.objects[key])
            threading.Timer(self.lingering, self.drop, [key]).start()
        else:
            self.drop(key)

    def forget(self):
        """The server forgets the past: watches from before get 410."""
        with self.lock:
            self.version += 1
            self.oldest = self.version
            self.history.clear()

    # The controllers

    def suspend(self, key):
        """Deletes the pods of a job that is held back while it runs."""
        with self.lock:
            value = self.objects[key]
            if not value["spec"].get("suspend") or not value.get("status", {}).get("startTime"):
                return
            owned = [other for other, object_ in self.objects.items() if other[1] == "pods"
                     and any(owner["uid"] == value["metadata"]["uid"] for owner in object_["metadata"].get("ownerReferences", []))]
            for other in owned:
                self.end(other)
            value["status"] = {}
            self.put(*key[:3], value)

    def start(self, key):
        """Runs the pods of a job that is not suspended, once."""
        with self.lock:
            value = self.objects.get(key)
            if value is None or value["spec"].get("suspend") or value.get("status", {}).get("startTime"):
                return
            value["status"] = {"startTime": now()}
            self.put(*key[:3], value)
        script = self.scripts.get(value["metadata"].get("labels", {}).get("jobc.dev/job"), self.default)
        threading.Thread(target=self.run, args=(key, script), daemon=True).start()

    def run(self, key, script):
        job = self.objects[key]
        roles = [(None, job["spec"])] if key[1] == "jobs" else \
            [(role["name"], role["template"]["spec"]) for role in job["spec"]["replicatedJobs"]]
        pods = []
        for role, spec in roles:
            for index in range(spec.get("completions", 1)):
                pods.append(self.pod(job, role, spec, index))
        self.status(key, {"active": len(pods), "ready": 0})
        time.sleep(script.late)
        if script.waiting:
            for pod in pods:
                self.state(pod, "Pending", {"waiting": {"reason": script.waiting[0], "message": script.waiting[1]}})
            return
        for pod in pods:
            self.state(pod, "Running", {"running": {"startedAt": now()}})
        self.status(key, {"active": len(pods), "ready": len(pods)})
        for line in script.lines:
            time.sleep(script.pause)
            for pod in pods:
                self.print(pod, line.replace("@", str(pod.get("index", 0))))
        time.sleep(script.lasting)
        failed = script.exit_code != 0 or script.deadline
        for pod in pods:
            self.state(pod, "Failed" if failed else "Succeeded",
                       {"terminated": {"exitCode": script.exit_code, "reason": "Error" if failed else "Completed"}})
        reason = "DeadlineExceeded" if script.deadline else "BackoffLimitExceeded" if key[1] == "jobs" else "FailedJobs"
        done = "Complete" if key[1] == "jobs" else "Completed"
        condition = {"type": "Failed" if failed else done, "status": "True", "reason": reason if failed else "",
                     "message": "the stand-in says so" if failed else "", "lastTransitionTime": now()}
        counts = {"failed": len(pods)} if failed else {"succeeded": len(pods)}
        self.status(key, {**counts, "conditions": [condition]})

    def pod(self, job, role, spec, index):
        name = job["metadata"]["name"] + (f"-{role}-0" if role else "") + f"-{index}"
        labels = dict(spec["template"].get("metadata", {}).get("labels", {}))
        own = {"batch.kubernetes.io/job-name": job["metadata"]["name"]} if role is None else \
            {"jobset.sigs.k8s.io/jobset-name": job["metadata"]["name"], "jobset.sigs.k8s.io/replicatedjob-name": role}
        labels |= own | {"batch.kubernetes.io/job-completion-index": str(index)}
        owner = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
        value = self.put("v1", "pods", job["metadata"]["namespace"], {
            "metadata": {"name": f"{name}-{uuid.uuid4().hex[:5]}", "labels": labels, "ownerReferences": [owner]},
            "spec": {"nodeName": "node-1", **spec["template"]["spec"]}, "status": {"phase": "Pending"},
        })
        return {"name": value["metadata"]["name"], "namespace": job["metadata"]["namespace"], "index": index}

    def state(self, pod, phase, state):
        with self.lock:
            value = self.objects.get(("v1", "pods", pod["namespace"], pod["name"]))
            if value is not None:
                value["status"] = {"phase": phase, "containerStatuses": [{"name": "main", "state": state}]}
                self.put("v1", "pods", pod["namespace"], value)

    def print(self, pod, line, at=None):
        with self.lock:
            stamp = at or datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f") + "001Z"
            self.output.setdefault(pod["name"], []).append((stamp, line))
            self.lock.notify_all()

    def status(self, key, status):
        with self.lock:
            value = self.objects.get(key)
            if value is not None:
                if key[1] == "jobsets":
                    roles = value["spec"]["replicatedJobs"]
                    status = {name: item for name, item in status.items() if name == "conditions"} | {
                        "replicatedJobsStatus": [{"name": role["name"], "active": int("active" in status), "failed": int("failed" in status),
                                                  "succeeded": int("succeeded" in status)} for role in roles]}
                value["status"] = {"startTime": value.get("status", {}).get("startTime", now()), **status}
                self.put(*key[:3], value)


class Server(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 128

    def finish_request(self, request, client_address):
        # The handshake belongs to the connection's own thread.
        try:
            wrapped = self.context.wrap_socket(request, server_side=True)
        except (OSError, ssl.SSLError):
            return
        try:
            super().finish_request(wrapped, client_address)
        finally:
            try:
                wrapped.close()
            except OSError:
                pass

    def handle_error(self, request, client_address):
        pass


class Handler(BaseHTTPRequestHandler):
    # As servers do: otherwise each answer waits 40 ms for an acknowledgement between its headers and its body.
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True

    def log_message(self, *words):
        pass

    def do_GET(self):
        self.answer()

    do_POST = do_PATCH = do_DELETE = do_GET

    @property
    def cluster(self):
        return self.server.cluster

    def answer(self):
        cluster = self.cluster
        length = int(self.headers.get("Content-Length") or 0)
        self.body = json.loads(self.rfile.read(length)) if length else None
        url = urlsplit(self.path)
        self.query = {key: values[-1] for key, values in parse_qs(url.query, keep_blank_values=True).items()}
        cluster.requests.append((self.command, self.path))
        if cluster.stall:
            cluster.stall.wait(60)
        with cluster.lock:
            cluster.concurrent += 1
            cluster.most_concurrent = max(cluster.most_concurrent, cluster.concurrent)
        try:
            self.answer_now(url)
        finally:
            with cluster.lock:
                cluster.concurrent -= 1

    def answer_now(self, url):
        cluster = self.cluster
        if cluster.on_request:
            cluster.on_request(len(cluster.requests), "before")
        try:
            token = self.headers.get("Authorization", "").removeprefix("Bearer ")
            if token not in cluster.tokens:
                raise ApiError(401, "Unauthorized", "Unauthorized")
            fault = self.fault()
            if fault and not fault["after"]:
                self.break_off(fault)
            result = self.route(unquote(url.path))
            if cluster.on_request:
                cluster.on_request(len(cluster.requests), "after")
            if fault:
                self.break_off(fault)
            if result is not None:
                self.send(200, result)
        except ApiError as error:
            self.send(error.code, error.status, error.retry_after)
        except (Cut, BrokenPipeError, ConnectionError, ssl.SSLError):
            self.close_connection = True

    def fault(self):
        for fault in self.cluster.faults:
            if fault["times"] > 0 and fault["method"] == self.command and fault["path"].search(self.path):
                fault["times"] -= 1
                return fault
        return None

    def break_off(self, fault):
        if fault["cut"]:
            raise Cut
        raise ApiError(fault["code"], "", fault["message"], retry_after=fault["retry_after"])

    def send(self, code, value, retry_after=None):
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if retry_after is not None:
            self.send_header("Retry-After", str(retry_after))
        self.end_headers()
        self.wfile.write(body)

    def route(self, path):
        cluster = self.cluster
        if path == "/version":
            return {"gitVersion": cluster.release}
        if path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
            attributes = self.body["spec"]["resourceAttributes"]
            what = f"{attributes['verb']} {attributes['resource']}"
            return {**self.body, "status": {"allowed": what not in cluster.denied}}
        if path == "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews":
            plurals = {plural for plurals in KINDS.values() for plural in plurals} | {"pods/log", "pods/exec", "pods/portforward"}
            plurals |= {"trainjobs", "trainingruntimes", "rayjobs", "mpijobs", "leaderworkersets", "podgroups"}
            rules = [{"verbs": [verb], "apiGroups": ["*"], "resources": [plural for plural in sorted(plurals) if f"{verb} {plural}" not in cluster.denied]}
                     for verb in ("get", "list", "watch", "create", "patch", "delete")]
            return {**self.body, "status": {"resourceRules": [] if cluster.unlisted else rules, "nonResourceRules": [], "incomplete": cluster.unlisted}}
        if path.endswith("/pendingworkloads"):
            at, limit = int(self.query.get("offset", 0)), int(self.query["limit"])
            names = list(enumerate(cluster.queue))[at:at + limit]
            return {"items": [{"metadata": {"name": name}, "positionInLocalQueue": number, "positionInClusterQueue": number}
                              for number, name in names]}
        version = path.removeprefix("/apis/").removeprefix("/api/")
        if version in cluster.served:
            return {"kind": "APIResourceList", "resources": [
                {"name": plural, "kind": kind, "namespaced": plural not in CLUSTER_WIDE} for plural, kind in cluster.served[version].items()]}
        found = PATH.fullmatch(path)
        if not found or found["version"] not in cluster.served or found["plural"] not in cluster.served[found["version"]]:
            raise ApiError(404, "NotFound", "the server could not find the requested resource")
        if f"{self.command} {found['plural']}" in cluster.denied:
            verb = {"GET": "get", "POST": "create", "PATCH": "patch", "DELETE": "delete"}[self.command]
            raise ApiError(403, "Forbidden", f"{found['plural']} is forbidden: User \"me\" cannot {verb} resource \"{found['plural']}\" in "
                           f'API group "" in the namespace "ml"')
        key = (found["version"], found["plural"], found["namespace"], found["name"])
        if found["part"] == "log":
            return self.logs(key)
        if found["part"] in ("exec", "portforward"):
            if f"GET pods/{found['part']}" in cluster.denied:
                raise ApiError(403, "Forbidden", f"pods/{found['part']} is forbidden: User \"me\" cannot do this")
            return self.upgrade(found["part"], key)
        if self.command == "GET":
            if found["name"]:
                return self.existing(key)
            return self.watch(key) if "watch" in self.query else self.list(key)
        if self.command == "POST":
            return self.create(key)
        if self.command == "PATCH":
            return self.patch(key)
        return self.delete(key)

    def upgrade(self, part, key):
        """A command is started on this host, and a port is one of this host."""
        pod = self.existing(key)
        if not any("running" in status["state"] for status in pod["status"].get("containerStatuses", [])):
            raise ApiError(500, "InternalError", "container not found (\"main\")")
        cluster = self.cluster
        if part == "exec":
            cluster.programs.mkdir(exist_ok=True)
            served = websocket.serve_exec(self, self.start_command, cluster.exec_protocols, cluster.fragments, cluster.sizes)
        else:
            cluster.tunnels.append(self.connection)
            served = websocket.serve_port_forward(self, lambda port: socket.create_connection(("127.0.0.1", port)), cluster.fragments, 0.02)
        if not served:
            raise ApiError(400, "BadRequest", "Upgrade request required")
        return None

    def start_command(self, command, stdin, stdout, stderr):
        def take_terminal():
            if os.isatty(stdin):
                fcntl.ioctl(stdin, termios.TIOCSCTTY, 0)
        return subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, cwd=self.cluster.programs, start_new_session=True,
                                preexec_fn=take_terminal)

    def existing(self, key):
        with self.cluster.lock:
            value = self.cluster.objects.get(key)
            if value is None:
                raise ApiError(404, "NotFound", f'{key[1]} "{key[3]}" not found')
            return copy.deepcopy(value)

    def matches(self, key, other, value):
        if other[:2] != key[:2] or key[2] not in (None, other[2]):
            return False
        labels = value["metadata"].get("labels", {})
        for part in SELECTOR.findall(self.query.get("labelSelector", "")):
            name, operator, values = SELECTED.fullmatch(part).groups()
            wanted = values.strip("()").split(",") if values else []
            if (labels.get(name) in wanted) != (operator.strip() in ("=", "in")) if operator else name not in labels:
                return False
        for part in filter(None, self.query.get("fieldSelector", "").split(",")):
            name, _, wanted = part.partition("=")
            at = value
            for word in name.rstrip("!").split("."):
                at = at.get(word, {})
            if (at == wanted) == name.endswith("!"):
                return False
        return True

    def list(self, key):
        cluster = self.cluster
        with cluster.lock:
            chosen = cluster.selected(key, (self.query.get("labelSelector"), self.query.get("fieldSelector")), self.matches)
            start, limit = int(self.query.get("continue", 0)), int(self.query.get("limit", 0)) or len(chosen) or 1
            metadata = {"resourceVersion": str(cluster.version)}
            if start + limit < len(chosen):
                metadata["continue"] = str(start + limit)
            items = b",".join(cluster.serialized(other) for other in chosen[start:start + limit])
        return b'{"kind":"List","metadata":%s,"items":[%s]}' % (json.dumps(metadata).encode(), items)

    def start_stream(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def watch(self, key):
        cluster = self.cluster
        at = int(self.query["resourceVersion"])
        if at < cluster.oldest:
            raise ApiError(410, "Expired", "too old resource version")
        self.start_stream()
        deadline = time.monotonic() + int(self.query.get("timeoutSeconds", 290))
        while time.monotonic() < deadline:
            with cluster.lock:
                if at < cluster.oldest:
                    error = ApiError(410, "Expired", "too old resource version").status
                    self.chunk(json.dumps({"type": "ERROR", "object": error}).encode() + b"\n")
                    break
                news = [(version, kind, value) for version, kind, other, value in cluster.history
                        if version > at and self.matches(key, other, value)]
                if not news:
                    if cluster.ended:
                        break
                    cluster.lock.wait(0.5)
            for version, kind, value in news:
                at = version
                self.chunk(json.dumps({"type": kind, "object": value}).encode() + b"\n")
        self.chunk(b"")
        return None

    def create(self, key):
        value = copy.deepcopy(self.body)
        name = value["metadata"].get("name") or value["metadata"]["generateName"] + uuid.uuid4().hex[:5]
        value["metadata"]["name"] = name
        key = (*key[:3], name)
        self.judge(value)
        with self.cluster.lock:
            if key in self.cluster.objects:
                raise ApiError(409, "AlreadyExists", f'{key[1]} "{name}" already exists')
            if "dryRun" in self.query:
                return value
            set_defaults(value)
            value = copy.deepcopy(self.cluster.put(*key[:3], value))
        self.control(key)
        return value

    def judge(self, value):
        if value["kind"] == "Pod" and self.cluster.restricted:
            raise ApiError(403, "Forbidden", 'pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true')
        if value["kind"] == "Pod" and self.cluster.policy:
            self.cluster.judged.append(value)
            raise ApiError(422, "Invalid", f'pods "x" is forbidden: {self.cluster.policy}')
        causes = [(field, message) for kind, field, message in self.cluster.rejections if kind == value["kind"]]
        if causes:
            raise ApiError(422, "Invalid", f"{value['kind']} is invalid", causes)

    def patch(self, key):
        apply = "apply-patch" in self.headers["Content-Type"]
        if apply:
            self.judge(self.body)
        with self.cluster.lock:
            old = self.cluster.objects.get(key)
            if old is None and not apply:
                raise ApiError(404, "NotFound", f'{key[1]} "{key[3]}" not found')
            wanted = self.body.get("metadata", {}).get("uid")
            if old is not None and wanted and wanted != old["metadata"]["uid"]:
                raise ApiError(409, "Conflict", "the uid in the precondition does not match")
            if apply and old is not None and differs(old, self.body):
                raise ApiError(409, "Conflict", 'Apply failed with 1 conflict: conflict with "jobc": fieldRef')
            value = merged(old or {}, self.body)
            if "strategic" in self.headers["Content-Type"]:
                # The key of the list of owners is their uid.
                owners = {owner["uid"]: owner for part in (old, self.body) for owner in part["metadata"].get("ownerReferences", [])}
                value["metadata"]["ownerReferences"] = list(owners.values())
            if "dryRun" in self.query:
                return {**value, "spec": {name: part for name, part in value.get("spec", {}).items() if name not in self.cluster.drops}} \
                    if "spec" in value else value
            value = copy.deepcopy(self.cluster.put(*key[:3], value))
        self.control(key)
        return value

    def control(self, key):
        if key[1] in ("jobs", "jobsets"):
            self.cluster.suspend(key)
            self.cluster.start(key)

    def delete(self, key):
        value = self.existing(key)
        wanted = (self.body or {}).get("preconditions", {}).get("uid")
        if wanted and wanted != value["metadata"]["uid"]:
            raise ApiError(409, "Conflict", "the uid in the precondition does not match")
        if key[1] == "pods":
            self.cluster.drop(key) if self.body.get("gracePeriodSeconds") == 0 else self.cluster.end(key)
            return value
        if (self.body or {}).get("propagationPolicy") != "Background":
            raise ApiError(400, "BadRequest", "pods would be left behind")
        self.cluster.drop(key)
        return {"kind": "Status", "status": "Success"}

    def logs(self, key):
        cluster = self.cluster
        pod = self.existing(key[:3] + (key[3],))
        if not any("terminated" in status["state"] or "running" in status["state"] for status in pod["status"].get("containerStatuses", [])):
            raise ApiError(400, "BadRequest", "container is waiting to start")
        self.start_stream()
        since = self.query.get("sinceTime", "")[:19]
        name, sent, at = key[3], 0, 0
        while True:
            with cluster.lock:
                lines = cluster.output.get(name, [])[at:]
                at += len(lines)
                value = cluster.objects.get(key)
                done = value is None or "terminated" in value["status"]["containerStatuses"][0]["state"]
                if not lines and not done and self.query.get("follow") == "true" and not cluster.ended:
                    cluster.lock.wait(0.5)
                    continue
            if "tailLines" in self.query:
                lines = lines[-int(self.query["tailLines"]):]
            for stamp, text in lines:
                # As the server: whole seconds.
                if stamp[:19] < since:
                    continue
                if cluster.log_cut and sent >= cluster.log_cut and self.query.get("follow") == "true":
                    # In the middle of a line.
                    self.wfile.write(b"20\r\n" + f"{stamp} {text}"[:12].encode())
                    self.wfile.flush()
                    if cluster.rotates:
                        with cluster.lock:
                            cluster.output[name] = cluster.output[name][sent:]
                    raise Cut
                self.chunk(f"{stamp} {text}\n".encode())
                sent += 1
            if self.query.get("follow") != "true" or (done and not lines):
                break
        self.chunk(b"")
        return None


def fields(value):
    """The selectors of fields of pods below a value, in their order."""
    if isinstance(value, list):
        return [found for item in value for found in fields(item)]
    if not isinstance(value, dict):
        return []
    return [found for key, item in value.items() for found in ([item] if key == "fieldRef" else fields(item))]


def set_defaults(value):
    """As newer servers do."""
    for field in fields(value):
        field.setdefault("apiVersion", "v1")


def differs(old, applied):
    """Whether an apply changes what the creation of the object has set: such a selector is compared as a whole."""
    return bool(fields(applied)) and fields(old) != fields(applied)


def merged(old, new):
    """A JSON merge patch."""
    if not isinstance(new, dict) or not isinstance(old, dict):
        return copy.deepcopy(new)
    result = copy.deepcopy(old)
    for key, value in new.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value) if key in result else copy.deepcopy(value)
    return result
