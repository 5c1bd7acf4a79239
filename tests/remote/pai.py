"""A stand-in for the rest-server of OpenPAI 1.8 behind its web portal, on loopback, for its controller and for the log manager.

It has the routes of pai `src/rest-server/src/routes/v2`, answers as its `docs/swagger.yaml` says, checks configurations as far as
these tests need it, and hides secrets by the same regular expression. A test says what tasks do (`Script`), which requests fail
(`fail`), and which release it is (`old`: without tags, events and attempts).
"""

import base64
import hashlib
import json
import re
import threading
import time
import uuid
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

ROLE = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_]*$")
FINAL = ("SUCCEEDED", "FAILED", "STOPPED")
PHRASES = {0: "Succeeded", 255: "PAIRuntimeUnknownFailed", -1200: "UserContainerDockerOOMKilled", -210: "StopFrameworkRequested",
           -220: "FrameworkAttemptCompletion"}
REASONS = {-1200: "User Container killed by docker due to it exceeded the request memory"}


def millis():
    return int(time.time() * 1000)


def token(user, **claims):
    """A token as a server signs it; nobody checks the signature here."""
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")
    return f"{part({'alg': 'HS256'})}.{part({'username': user, 'iat': 1, **claims})}.{uuid.uuid4().hex}"


class ApiError(Exception):
    def __init__(self, http, code, message, headers=()):
        super().__init__(message)
        self.http, self.headers, self.body = http, dict(headers), {"code": code, "message": message}


class Cut(Exception):
    """The connection is closed in the middle of an answer."""


class Script:
    """What each task of a job does: it prints lines, each after a pause, and ends with the last of `codes`. Every earlier code is an
    attempt of the whole job that failed. `late` keeps the job waiting for so long. A negative code is one of the controller."""

    def __init__(self, lines=(), codes=(0,), pause=0.0, late=0.0):
        self.lines, self.codes, self.pause, self.late = list(lines), list(codes), pause, late


class Job:
    def __init__(self, user, config, text):
        self.user, self.name, self.config = user, config["name"], config
        masked = re.sub(r"(?m)(^secrets:)[\s\S]*?(^\w)", r'\1 "******"' + "\n" + r"\2", text + "\nZ", count=1)
        self.text, self.secrets = masked[:-2], config.get("secrets", {})
        self.state, self.execution, self.code, self.tags = "WAITING", "START", None, []
        self.submitted, self.launched, self.completed = millis(), None, None
        self.attempts, self.stopped, self.events = [], threading.Event(), []
        self.trigger = None

    @property
    def framework(self):
        return f"{self.user}~{self.name}"

    def begin(self):
        """Begins an attempt of the job."""
        roles = {}
        for name, role in self.config["taskRoles"].items():
            roles[re.sub(r"[^a-z0-9]", "", name.lower())] = [
                {"index": index, "state": "WAITING", "pod": str(uuid.uuid4()), "code": None, "ip": None}
                for index in range(role.get("instances", 1))]
        self.attempts.append(roles)
        return roles


class Pai:
    """The state of a cluster."""

    def __init__(self):
        self.lock = threading.RLock()
        self.jobs, self.files, self.requests, self.faults, self.scripts = {}, {}, [], [], {}
        self.default, self.on_request, self.old, self.extra_check = Script(["hello"]), None, False, None
        self.tokens = {token("alice"): "alice"}
        self.users = {"alice": {"username": "alice", "admin": False, "virtualCluster": ["default", "research"]}}
        gpus = {"cpu": 64, "memory": 262144, "gpu": 16}
        self.clusters = {"default": {"capacity": 50, "resourcesUsed": {}, "resourcesTotal": gpus},
                         "research": {"capacity": 25, "resourcesUsed": {}, "resourcesTotal": dict(gpus, gpu=8)},
                         "private": {"capacity": 25, "resourcesUsed": {}, "resourcesTotal": gpus}}
        self.storages = ["confignfs"]
        self.log_token, self.limit = "t0", 1 << 24
        self.http = Server(("127.0.0.1", 0), Handler)
        self.http.pai = self
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @property
    def portal(self):
        return f"http://127.0.0.1:{self.http.server_port}"

    @property
    def token(self):
        return next(iter(self.tokens))

    def close(self):
        for job in self.jobs.values():
            job.stopped.set()
        self.http.shutdown()
        self.http.server_close()

    # What a test arranges

    def fail(self, method, path, times=1, code=502, cut=False, after=False, headers=(), body=None):
        """The next so many requests that match fail. With `after` the request is carried out, and its answer is lost."""
        self.faults.append({"method": method, "path": re.compile(path), "times": times, "code": code, "cut": cut, "after": after,
                            "headers": headers, "body": body})

    def count(self, method, path):
        pattern = re.compile(path)
        return sum(1 for known, at in list(self.requests) if known == method and pattern.search(at))

    # The controller

    def run(self, job, script):
        for number, code in enumerate(script.codes):
            with self.lock:
                roles = job.begin()
                job.state = "WAITING"
            if job.stopped.wait(script.late):
                break
            tasks = [(role, task) for role, list_ in roles.items() for task in list_]
            with self.lock:
                job.state, job.launched = "RUNNING", job.launched or millis()
                for _, task in tasks:
                    task.update(state="RUNNING", ip="10.0.0.1")
            for line in script.lines:
                if job.stopped.wait(script.pause):
                    break
                for _, task in tasks:
                    self.write(task["pod"], line.replace("@", str(task["index"])).replace("#", str(number)) + "\n")
            if job.stopped.is_set():
                break
            with self.lock:
                shown = code if code <= 0 else 255
                for _, task in tasks:
                    task.update(state="SUCCEEDED" if code == 0 else "FAILED", code=shown, own=code)
                job.trigger = (tasks[0][0], tasks[0][1]["index"]) if code else None
                job.code, job.own = shown, code
        with self.lock:
            if job.stopped.is_set():
                job.state, job.code = "STOPPED", -210
                for _, list_ in (job.attempts[-1] if job.attempts else {}).items():
                    for task in list_:
                        task.update(state="STOPPED", code=-220)
            else:
                job.state = "SUCCEEDED" if job.code == 0 else "FAILED"
            job.completed = millis()

    def write(self, pod, text):
        """Writes output of a task; a full file is put aside, and one older file is kept."""
        with self.lock:
            files = self.files.setdefault(pod, {"all": b""})
            files["all"] += text.encode()
            if len(files["all"]) >= self.limit:
                files["all.1"], files["all"] = files["all"], b""


class Server(ThreadingHTTPServer):
    daemon_threads, request_queue_size = True, 128

    def handle_error(self, request, client_address):
        pass


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_GET(self):
        self.answer()

    do_POST = do_PUT = do_DELETE = do_GET

    def answer(self):
        pai = self.pai = self.server.pai
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length).decode() if length else ""
        url = urlsplit(self.path)
        self.query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        pai.requests.append((self.command, self.path))
        number = len(pai.requests)
        if pai.on_request:
            pai.on_request(number, "before")
        try:
            fault = self.fault()
            if fault and not fault["after"]:
                self.break_off(fault)
            with pai.lock:
                result = self.route(unquote(url.path))
            if pai.on_request:
                pai.on_request(number, "after")
            if fault:
                self.break_off(fault)
            self.send(*result)
        except ApiError as error:
            self.send(error.http, error.body, headers=error.headers)
        except (Cut, BrokenPipeError, ConnectionError):
            self.close_connection = True

    def fault(self):
        for fault in self.pai.faults:
            if fault["times"] > 0 and fault["method"] == self.command and fault["path"].search(self.path):
                fault["times"] -= 1
                return fault
        return None

    def break_off(self, fault):
        if fault["cut"]:
            raise Cut
        if fault["body"] is not None:
            self.send(fault["code"], fault["body"].encode(), headers={"Content-Type": "text/html", **dict(fault["headers"])})
            raise Cut
        raise ApiError(fault["code"], "UnknownError", "the stand-in is busy", fault["headers"])

    def send(self, code, value=None, headers=()):
        headers = dict(headers)
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(code)
        self.send_header("Content-Type", headers.pop("Content-Type", "application/json; charset=utf-8"))
        self.send_header("Content-Length", str(len(body)))
        for name, text in headers.items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(body)

    # Routes

    def route(self, path):
        if path.startswith("/log-manager/"):
            return self.log(path)
        if not path.startswith("/rest-server/api/"):
            return 200, b"<!doctype html><title>OpenPAI</title>", {"Content-Type": "text/html"}
        words = path.removeprefix("/rest-server/api/").split("/")
        if words == ["v2", "info"]:
            return 200, {"name": "PAI RESTful API", "version": "v1.8.0", "launcherType": "k8s", "authnMethod": "basic"}
        user = self.pai.tokens.get(self.headers.get("Authorization", "").removeprefix("Bearer "))
        if user is None:
            raise ApiError(401, "UnauthorizedUserError", "Your token is invalid.")
        method = (self.command, *words[:2])
        if method == ("GET", "v2", "virtual-clusters"):
            return 200, self.pai.clusters
        if method == ("GET", "v2", "users") and len(words) == 3 and not self.pai.old:
            return 200, self.pai.users[words[2]]
        if method == ("GET", "v2", "storages") and not self.pai.old:
            return 200, {"storages": [{"name": name, "share": True, "volumeName": name} for name in self.pai.storages]}
        if method == ("GET", "v2", "jobs") and len(words) == 2:
            return 200, self.list()
        if method == ("POST", "v2", "jobs"):
            return self.submit(user)
        if words[:2] == ["v2", "jobs"] and len(words) > 2:
            return self.job(user, words[2], words[3:])
        raise ApiError(404, "NoApiError", f"API {path} is not found.")

    def list(self):
        jobs = sorted(self.pai.jobs.values(), key=lambda job: -job.submitted)
        query = self.query
        if "username" in query:
            jobs = [job for job in jobs if job.user in query["username"].split(",")]
        if "keyword" in query and not self.pai.old:
            jobs = [job for job in jobs if query["keyword"] in job.name or query["keyword"] in job.user]
        if not self.pai.old:
            offset = int(query.get("offset", 0))
            jobs = jobs[offset:offset + int(query.get("limit", 5000))]
        return [self.summary(job) for job in jobs]

    def summary(self, job):
        value = {"debugId": hashlib.md5(job.framework.encode()).hexdigest(), "name": job.name, "username": job.user, "state": job.state,
                 "subState": "AttemptRunning", "executionType": job.execution, "retries": max(0, len(job.attempts) - 1),
                 "retryDelayTime": None, "submissionTime": job.submitted, "createdTime": job.submitted, "launchedTime": job.launched,
                 "completedTime": job.completed, "appExitCode": job.code, "virtualCluster": self.cluster(job.config),
                 "totalTaskNumber": sum(role.get("instances", 1) for role in job.config["taskRoles"].values()),
                 "totalTaskRoleNumber": len(job.config["taskRoles"])}
        return value if self.pai.old else {**value, "tags": list(job.tags)}

    @staticmethod
    def cluster(config):
        return config.get("defaults", {}).get("virtualCluster", "default")

    def submit(self, user):
        if not self.headers.get("Content-Type", "").startswith("text/"):
            raise ApiError(400, "InvalidProtocolError", "the body was not read")
        config = yaml.safe_load(self.body)
        errors = self.mistakes(config)
        if errors:
            raise ApiError(400, "InvalidProtocolError", json.dumps(errors))
        if self.pai.extra_check:
            self.pai.extra_check(config)
        if f"{user}~{config['name']}" in self.pai.jobs:
            raise ApiError(409, "ConflictJobError", f"Job {user}~{config['name']} already exists.")
        if self.cluster(config) not in self.pai.users[user]["virtualCluster"]:
            raise ApiError(403, "ForbiddenUserError", f"User {user} is not allowed to do operation in {self.cluster(config)}")
        for storage in config.get("extras", {}).get("storages", []):
            if storage["name"] not in self.pai.storages:
                raise ApiError(404, "NoStorageError", f"Storage {storage['name']} is not found.")
        job = Job(user, config, self.body)
        self.pai.jobs[job.framework] = job
        script = self.pai.scripts.get(job.name, self.pai.default)
        threading.Thread(target=self.pai.run, args=(job, script), daemon=True).start()
        return 202, {"status": 202, "message": f"Update job {job.name} for user {user} successfully."}

    @staticmethod
    def mistakes(config):
        """The mistakes that the schema finds, as ajv reports them (pai, `src/rest-server/src/config/v2/protocol.js`)."""
        found = []

        def need(condition, path, message):
            if not condition:
                found.append({"keyword": "type", "dataPath": path, "schemaPath": "#", "params": {}, "message": message})
        need(config.get("protocolVersion") in (2, "2"), ".protocolVersion", "should be equal to one of the allowed values")
        need(re.fullmatch(r"[a-zA-Z0-9_-]{1,255}", config.get("name", "")), ".name", "should match pattern \"^[a-zA-Z0-9_-]+$\"")
        known = {"protocolVersion", "name", "type", "version", "contributor", "description", "prerequisites", "parameters", "secrets",
                 "jobRetryCount", "taskRoles", "deployments", "defaults", "extras"}
        need(set(config) <= known, "", "should NOT have additional properties")
        for name, role in config.get("taskRoles", {}).items():
            at = f".taskRoles['{name}']"
            need(ROLE.match(name), ".taskRoles", "should NOT have additional properties")
            for key in ("cpu", "memoryMB", "gpu"):
                need(isinstance(role["resourcePerInstance"].get(key), int), f"{at}.resourcePerInstance.{key}", "should be integer")
            need(role.get("commands"), f"{at}.commands", "should NOT have fewer than 1 items")
        return found

    def job(self, user, framework, rest):
        job = self.pai.jobs.get(framework)
        if job is None:
            raise ApiError(404, "NoJobError", f"Job {framework} is not found.")
        if self.command == "GET" and not rest:
            return 200, self.detail(job, len(job.attempts) - 1)
        if self.command == "GET" and rest == ["config"]:
            return 200, job.text.encode(), {"Content-Type": "text/yaml; charset=utf-8"}
        if self.command == "PUT" and rest == ["executionType"]:
            value = json.loads(self.body)["value"]
            if value not in ("START", "STOP"):
                raise ApiError(400, "InvalidParametersError", "value")
            job.execution = value
            if job.state not in FINAL:
                job.state = "STOPPING"
                job.stopped.set()
            return 202, {"status": 202, "message": f"Execute job {framework} successfully."}
        if not self.pai.old:
            if self.command == "PUT" and rest == ["tag"]:
                value = json.loads(self.body)["value"]
                if "," in value or len(value) > 64:
                    raise ApiError(400, "InvalidParametersError", "value")
                if value not in job.tags:
                    job.tags.append(value)
                return 200, {"status": 200, "message": f"Add tag {value} for job {framework} successfully."}
            if self.command == "GET" and rest == ["events"]:
                return 200, {"totalCount": len(job.events), "data": list(reversed(job.events))}
            if self.command == "GET" and rest[:1] == ["attempts"]:
                return self.attempt(job, int(rest[1]), rest[2:])
        raise ApiError(404, "NoApiError", f"API {self.path} is not found.")

    def attempt(self, job, number, rest):
        if not 0 <= number < len(job.attempts):
            raise ApiError(404, "NoJobError", f"JobAttemptId {number} is not found in {job.framework}.")
        if not rest:
            return 200, self.detail(job, number)
        if len(rest) == 7 and rest[0] == "taskRoles" and rest[2] == "taskIndex" and rest[4] == "attempts" and rest[6] == "logs":
            task = job.attempts[number][rest[1]][int(rest[3])]
            files = self.pai.files.get(task["pod"])
            if task["ip"] is None or files is None or rest[5] != "0":
                raise ApiError(404, "NoTaskLogError", "Log of task is not found.")
            query = f"username={job.user}&framework-name=x&pod-uid={task['pod']}&taskrole={rest[1]}&token={self.pai.log_token}"
            return 200, {"locations": [{"name": name, "uri": f"/log-manager/10.0.0.1:9103/api/v1/logs/user-{name}?{query}"}
                                       for name in files]}
        raise ApiError(404, "NoApiError", f"API {self.path} is not found.")

    def detail(self, job, number):
        value = self.summary(job)
        roles = {}
        for role, tasks in (job.attempts[number] if job.attempts else {}).items():
            roles[role] = {"taskRoleStatus": {"name": role}, "taskStatuses": [self.task(job, number, role, task) for task in tasks]}
        status = {key: value[key] for key in ("state", "subState", "executionType", "retries", "retryDelayTime", "submissionTime",
                                              "createdTime", "launchedTime", "completedTime", "virtualCluster")}
        own = getattr(job, "own", None)
        runtime = {"exitCode": 255, "originUserExitCode": own, "errorLogs": {"user": "starting\nRuntimeError: no data\n"}}
        has_failed = job.state == "FAILED"
        status |= {"username": job.user, "attemptId": max(0, number), "attemptState": job.state, "appExitCode": job.code,
                   "appExitSpec": self.spec(job.code), "appExitDiagnostics": "PodPattern matched" if has_failed else None,
                   "appExitMessages": {"container": None, "runtime": runtime if has_failed and own > 0 else None, "launcher": None},
                   "appExitTriggerMessage": None, "appExitTriggerTaskRoleName": job.trigger and job.trigger[0],
                   "appExitTriggerTaskIndex": job.trigger and job.trigger[1], "appLaunchedTime": job.launched}
        detail = {"debugId": value["debugId"], "name": job.name, "jobStatus": status, "taskRoles": roles}
        return detail if self.pai.old else {**detail, "tags": list(job.tags)}

    @staticmethod
    def spec(code):
        if code is None:
            return None
        return {"code": code, "phrase": PHRASES.get(code, "Unknown"), "reason": REASONS.get(code), "solution": ["look"]}

    def task(self, job, number, role, task):
        log = f"/api/v2/jobs/{job.framework}/attempts/{number}/taskRoles/{role}/taskIndex/{task['index']}/attempts/0/logs"
        if self.pai.old:
            log = f"http://10.0.0.1:9103/log-manager/tail/{job.user}/{job.name}/{role}/{task['pod']}/"
        value = {"taskIndex": task["index"], "taskState": task["state"], "containerId": task["pod"], "containerIp": task["ip"],
                 "containerNodeName": task["ip"] and "worker-1", "containerPorts": {}, "containerGpus": None, "containerLog": log,
                 "containerExitCode": task["code"], "containerExitSpec": self.spec(task["code"]), "containerExitDiagnostics":
                 f"matched:\noriginUserExitCode: {task['own']}\n" if task.get("own", 0) > 0 else None}
        return value if self.pai.old else {**value, "attemptId": 0, "attemptState": task["state"], "retries": 0}

    def log(self, path):
        """The log manager: whole files, and ranges of bytes, as nginx serves them."""
        if self.headers.get("Authorization"):
            return 400, b"the token of the user was sent", {"Content-Type": "text/plain"}
        if self.query.get("token") != self.pai.log_token:
            return 403, b"", {"Content-Type": "text/plain"}
        files = self.pai.files.get(self.query["pod-uid"], {})
        name = path.rsplit("/", 1)[1].removeprefix("user-")
        if name not in files:
            return 404, b"", {"Content-Type": "text/plain"}
        data = files[name]
        kind = {"Content-Type": "text/plain"}
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if not wanted:
            return 200, data, kind
        start = int(wanted[1])
        if start >= len(data):
            return 416, b"", {**kind, "Content-Range": f"bytes */{len(data)}"}
        return 206, data[start:], {**kind, "Content-Range": f"bytes {start}-{len(data) - 1}/{len(data)}"}


def event(role, index, kind, reason, message):
    """An event as the database has it."""
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return {"uid": str(uuid.uuid4()), "frameworkName": "x", "podUid": None, "taskroleName": role, "taskName": None, "taskIndex": index,
            "type": kind, "reason": reason, "message": message, "firstTimestamp": now, "lastTimestamp": now, "count": 1,
            "sourceComponent": None, "sourceHost": None}


__all__ = ["Pai", "Script", "event", "token"]
