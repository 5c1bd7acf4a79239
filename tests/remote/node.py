"""A node for the control plane of `apiserver.py`: a kubelet's work, as far as these tests need it.

A stand-in: a kubelet needs a container runtime and images, which these tests do not download.

It carries out the containers of pods with bubblewrap, each pod in a network namespace of its own, and serves their output to the API
server. Images are not pulled: every container has the host's /usr, read-only, and the programs in `programs`, which stand in for those
that images bring. Claims are directories. It needs root, for the network.
"""

import base64
import ctypes
import fcntl
import http.server
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import termios
import threading
import time
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import websocket
from api import Refused

NAME = "node-1"
PATH = "/programs:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
GPU_COUNT = 64
CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)
# The kubelet's names of what `exec` attaches, and the API's.
STREAMS = {"input": "stdin", "output": "stdout", "error": "stderr", "tty": "tty"}


def now():
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Node:
    """A node. `programs` is a directory that is first in the PATH of each container."""

    def __init__(self, plane, programs):
        self.api, self.directory, self.programs = plane.admin, plane.directory / "node", programs
        self.directory.mkdir()
        self.pods, self.lock, self.count, self.ended = {}, threading.Lock(), 0, False
        self.hub = f"jobc-{os.getpid()}"
        self.hosts = self.directory / "hosts"
        self.hosts.write_text("127.0.0.1 localhost\n")
        ip("netns", "add", self.hub)
        ip("-n", self.hub, "link", "add", "pods", "type", "bridge")
        ip("-n", self.hub, "address", "add", "10.88.0.1/16", "dev", "pods")
        ip("-n", self.hub, "link", "set", "pods", "up")
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads, self.http.node = True, self
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(plane.directory / "crt", plane.directory / "key")
        self.http.socket = context.wrap_socket(self.http.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.http.serve_forever, daemon=True).start()
        self.register()
        self.api.follow("/api/v1/pods", self.changed, fieldSelector=f"spec.nodeName={NAME}")

    def register(self):
        amounts = {"cpu": "4000", "memory": "64Ti", "pods": "1000", "ephemeral-storage": "64Ti", "nvidia.com/gpu": str(GPU_COUNT),
                   "nvidia.com/mig-1g.10gb": str(GPU_COUNT)}
        labels = {"kubernetes.io/hostname": NAME, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "pool": "training",
                  "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920",
                  "nvidia.com/cuda.runtime.major": "13", "nvidia.com/cuda.runtime.minor": "0"}
        self.api.call("POST", "/api/v1/nodes", {"metadata": {"name": NAME, "labels": labels}})
        self.api.merge(f"/api/v1/nodes/{NAME}/status", {"status": {
            "capacity": amounts, "allocatable": amounts, "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": self.http.server_port}},
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now(), "lastTransitionTime": now()}]}})
        self.api.merge(f"/api/v1/nodes/{NAME}", {"spec": {"taints": None}})

    def changed(self, kind, value):
        uid = value["metadata"]["uid"]
        with self.lock:
            pod = self.pods.get(uid)
            if pod is None and kind != "DELETED" and not self.ended and value["status"].get("phase") not in ("Succeeded", "Failed"):
                self.count += 1
                pod = self.pods[uid] = Pod(self, value, self.count)
                threading.Thread(target=pod.run, daemon=True).start()
        if pod and (kind == "DELETED" or value["metadata"].get("deletionTimestamp")):
            grace = 0 if kind == "DELETED" else value["metadata"].get("deletionGracePeriodSeconds", 30)
            pod.stop(grace)

    def name_pod(self, pod):
        """Adds the names of a pod to the hosts of all pods, in place, since the file is mounted."""
        spec, metadata = pod.value["spec"], pod.value["metadata"]
        names = [spec.get("hostname", metadata["name"])]
        if spec.get("subdomain"):
            long = f"{names[0]}.{spec['subdomain']}"
            names = [long, f"{long}.{metadata['namespace']}.svc", f"{long}.{metadata['namespace']}.svc.cluster.local", *names]
        with self.lock, open(self.hosts, "a") as hosts:
            hosts.write(f"{pod.address} {' '.join(names)}\n")

    def find(self, namespace, name):
        with self.lock:
            pods = [pod for pod in self.pods.values() if (pod.namespace, pod.name) == (namespace, name)]
        return pods[-1] if pods else None

    def claim(self, name):
        """The directory that stands in for a PersistentVolumeClaim."""
        path = self.directory / "claims" / name
        path.mkdir(parents=True, exist_ok=True)
        return path

    def close(self):
        with self.lock:
            self.ended = True
            pods = list(self.pods.values())
        for pod in pods:
            pod.kill()
        for pod in pods:
            pod.done.wait(10)
        self.http.shutdown()
        self.http.server_close()
        ip("netns", "delete", self.hub)


class Output:
    """What a container wrote: lines with their times."""

    def __init__(self):
        self.lines, self.condition, self.ended = [], threading.Condition(), False

    def read(self, stream):
        for line in stream:
            with self.condition:
                stamp = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%f") + "001Z"
                self.lines.append((stamp, line.rstrip(b"\n")))
                self.condition.notify_all()
        with self.condition:
            self.ended = True
            self.condition.notify_all()


class Pod:
    """A pod, and the processes of its containers."""

    def __init__(self, node, value, number):
        self.node, self.value, self.number = node, value, number
        self.namespace, self.name = value["metadata"]["namespace"], value["metadata"]["name"]
        self.path = f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"
        self.directory = node.directory / f"pod-{number}"
        self.network, self.address = f"{node.hub}-{number}", f"10.88.{number // 250 + 1}.{number % 250 + 1}"
        self.states, self.outputs, self.children = {}, {}, {}
        self.stopping, self.done, self.lock = threading.Event(), threading.Event(), threading.RLock()

    def run(self):
        try:
            self.carry_out()
        except (Refused, OSError, subprocess.SubprocessError, KeyError) as error:
            self.report("Failed", reason="Error", message=str(error))
        finally:
            self.tear_down()
            self.done.set()

    def carry_out(self):
        spec = self.value["spec"]
        self.directory.mkdir()
        link = f"v{self.number}"
        ip("netns", "add", self.network)
        ip("-n", self.network, "link", "add", "eth0", "type", "veth", "peer", "name", link, "netns", self.node.hub)
        ip("-n", self.node.hub, "link", "set", link, "master", "pods", "up")
        ip("-n", self.network, "address", "add", f"{self.address}/16", "dev", "eth0")
        ip("-n", self.network, "link", "set", "eth0", "up")
        ip("-n", self.network, "link", "set", "lo", "up")
        self.node.name_pod(self)
        for container in [*spec.get("initContainers", []), *spec["containers"]]:
            self.states[container["name"]] = {"waiting": {"reason": "ContainerCreating"}}
        self.report("Pending")
        volumes = {volume["name"]: self.volume(volume) for volume in spec.get("volumes", [])}
        for container in spec.get("initContainers", []):
            process = self.start(container, volumes)
            if self.wait(container, process) != 0:
                return self.report("Failed")
        processes = [(container, self.start(container, volumes)) for container in spec["containers"] if not self.stopping.is_set()]
        self.report("Running")
        deadline = spec.get("activeDeadlineSeconds")
        if deadline:
            timer = threading.Timer(deadline, self.stop, [0, "DeadlineExceeded"])
            timer.daemon = True
            timer.start()
        codes = [self.wait(container, process) for container, process in processes]
        return self.report("Failed" if any(codes) or not codes else "Succeeded")

    # Volumes

    def wanted(self, kind, name, optional):
        """A ConfigMap or Secret: a pod waits for it, unless it is optional."""
        while not self.stopping.is_set():
            found = self.node.api.get(f"/api/v1/namespaces/{self.namespace}/{kind}/{name}")
            if found or optional:
                values = {key: value.encode() for key, value in ((found or {}).get("data") or {}).items()}
                if kind == "secrets":
                    values = {key: base64.b64decode(value) for key, value in values.items()}
                return values | {key: base64.b64decode(value) for key, value in ((found or {}).get("binaryData") or {}).items()}
            time.sleep(0.1)
        return {}

    def volume(self, volume):
        path = self.directory / "volumes" / volume["name"]
        path.mkdir(parents=True)
        if "persistentVolumeClaim" in volume:
            return self.node.claim(volume["persistentVolumeClaim"]["claimName"])
        sources = volume.get("projected", {}).get("sources", []) or [volume]
        for source in sources:
            for kind, key in (("configMap", "configmaps"), ("secret", "secrets")):
                if kind in source:
                    part = source[kind]
                    values = self.wanted(key, part.get("name") or part.get("secretName"), part.get("optional"))
                    default = part.get("defaultMode", 0o644)
                    items = part.get("items") or [{"key": name, "path": name} for name in values]
                    for item in items:
                        target = path / item["path"]
                        target.parent.mkdir(parents=True, exist_ok=True)
                        target.write_bytes(values.get(item["key"], b""))
                        target.chmod(item.get("mode", default))
        return path

    # Containers

    def field(self, path):
        metadata = self.value["metadata"]
        found = re.fullmatch(r"metadata\.(labels|annotations)\['(.*)'\]", path)
        if found:
            return metadata.get(found[1], {}).get(found[2], "")
        return {"metadata.name": self.name, "metadata.namespace": self.namespace, "metadata.uid": metadata["uid"], "status.podIP": self.address,
                "status.hostIP": "127.0.0.1", "spec.nodeName": NAME}.get(path, "")

    def environment(self, container):
        result = {"PATH": PATH, "HOSTNAME": self.value["spec"].get("hostname", self.name), "HOME": "/root"}
        for source in container.get("envFrom", []):
            for kind, key in (("configMapRef", "configmaps"), ("secretRef", "secrets")):
                if kind in source:
                    values = self.wanted(key, source[kind]["name"], source[kind].get("optional"))
                    result |= {source.get("prefix", "") + name: value.decode() for name, value in values.items()}
        for variable in container.get("env", []):
            source = variable.get("valueFrom", {})
            if "fieldRef" in source:
                result[variable["name"]] = self.field(source["fieldRef"]["fieldPath"])
            elif "secretKeyRef" in source or "configMapKeyRef" in source:
                kind, reference = ("secrets", source["secretKeyRef"]) if "secretKeyRef" in source else ("configmaps", source["configMapKeyRef"])
                result[variable["name"]] = self.wanted(kind, reference["name"], reference.get("optional")).get(reference["key"], b"").decode()
            else:
                result[variable["name"]] = expand(variable.get("value", ""), result)
        return result

    def command(self, container, volumes):
        spec = self.value["spec"]
        words = ["bwrap", "--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--as-pid-1", "--hostname",
                 spec.get("hostname", self.name)[:63], "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/sbin", "/sbin",
                 "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--ro-bind", "/etc/alternatives", "/etc/alternatives",
                 "--ro-bind", str(self.node.programs), "/programs", "--tmpfs", "/tmp", "--dir", "/root", "--dir", "/workspace", "--proc", "/proc",
                 "--dev", "/dev", "--ro-bind", str(self.node.hosts), "/etc/hosts", "--ro-bind", "/etc/passwd", "/etc/passwd"]
        for mount in sorted(container.get("volumeMounts", []), key=lambda mount: mount["mountPath"]):
            source = Path(volumes[mount["name"]]) / mount.get("subPath", "")
            if not source.exists():
                source.mkdir(parents=True)
            words += ["--ro-bind" if mount.get("readOnly") else "--bind", str(source), mount["mountPath"]]
        environment = self.environment(container)
        words.append("--clearenv")
        for name, value in environment.items():
            words += ["--setenv", name, value]
        words += ["--chdir", container.get("workingDir", "/"), "--info-fd", "{fd}", "--"]
        arguments = [expand(word, environment) for word in container.get("command", []) + container.get("args", [])]
        return ["ip", "netns", "exec", self.network, *words, *(arguments or ["image-command"])]

    def start(self, container, volumes):
        reader, writer = os.pipe()
        words = [word.replace("{fd}", str(writer)) if word == "{fd}" else word for word in self.command(container, volumes)]
        with self.lock:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, pass_fds=[writer])
            os.close(writer)
            with os.fdopen(reader) as info:
                text = info.read()
            self.children[container["name"]] = json.loads(text)["child-pid"] if text else process.pid
        output = self.outputs[container["name"]] = Output()
        threading.Thread(target=output.read, args=(process.stdout,), daemon=True).start()
        self.states[container["name"]] = {"running": {"startedAt": now()}}
        if self.stopping.is_set():
            self.kill()
        return process

    def wait(self, container, process):
        code = process.wait()
        with self.lock:
            self.children.pop(container["name"], None)
        with self.outputs[container["name"]].condition:
            self.outputs[container["name"]].condition.wait_for(lambda: self.outputs[container["name"]].ended, 5)
        code = 128 - code if code < 0 else code
        self.states[container["name"]] = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": now(),
                                                         "startedAt": now()}}
        return code

    def start_command(self, name, command, stdin, stdout, stderr):
        """Starts a command in a running container, with its environment."""
        def take_terminal():
            if os.isatty(stdin):
                fcntl.ioctl(stdin, termios.TIOCSCTTY, 0)
        with self.lock:
            child = self.children[name]
        variables = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        environment = dict(variable.split(b"=", 1) for variable in variables if b"=" in variable)
        words = ["nsenter", f"--target={child}", "--all", "--root", "--wd", "--", *command]
        return subprocess.Popen(words, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True, preexec_fn=take_terminal,
                                env=environment)

    def connect(self, port):
        """A connection to a port in the network namespace of the pod, which a thread of its own enters."""
        found = []

        def enter():
            try:
                with open(f"/run/netns/{self.network}") as namespace:
                    if LIBC.setns(namespace.fileno(), CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), "setns")
                found.append(socket.create_connection(("127.0.0.1", port), timeout=10))
            except OSError as error:
                found.append(error)
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join(15)
        if not found or isinstance(found[0], OSError):
            raise found[0] if found else TimeoutError("timed out")
        return found[0]

    def signal(self, number):
        with self.lock:
            for child in self.children.values():
                try:
                    os.kill(child, number)
                except ProcessLookupError:
                    pass

    def kill(self):
        self.stopping.set()
        self.signal(signal.SIGKILL)

    def stop(self, grace, reason=None):
        """Ends the pod: SIGTERM, and SIGKILL after the grace period."""
        if reason:
            self.reason = reason
        if self.stopping.is_set() or not grace:
            self.kill()
            return
        self.stopping.set()
        self.signal(signal.SIGTERM)
        timer = threading.Timer(grace, self.kill)
        timer.daemon = True
        timer.start()

    reason = None

    def report(self, phase, reason=None, message=None):
        spec = self.value["spec"]

        def statuses(containers):
            return [{"name": each["name"], "state": self.states.get(each["name"], {}), "image": each["image"], "imageID": "", "restartCount": 0,
                     "ready": "running" in self.states.get(each["name"], {})} for each in containers]
        ready = "True" if phase == "Running" else "False"
        status = {"phase": phase, "podIP": self.address, "hostIP": "127.0.0.1", "startTime": now(), "reason": reason or self.reason, "message": message,
                  "containerStatuses": statuses(spec["containers"]), "initContainerStatuses": statuses(spec.get("initContainers", [])),
                  "conditions": [{"type": kind, "status": ready, "lastTransitionTime": now()} for kind in ("Ready", "ContainersReady")]}
        try:
            self.node.api.merge(f"{self.path}/status", {"metadata": {"uid": self.value["metadata"]["uid"]}, "status": status})
        except Refused as error:
            if error.code != 409:
                raise

    def tear_down(self):
        subprocess.run(["ip", "netns", "delete", self.network], capture_output=True)
        shutil.rmtree(self.directory, ignore_errors=True)
        if self.stopping.is_set() and self.reason is None:
            try:
                self.node.api.call("DELETE", self.path, {"gracePeriodSeconds": 0, "preconditions": {"uid": self.value["metadata"]["uid"]}})
            except (Refused, OSError):
                pass


def expand(text, environment):
    """Replaces `$(NAME)` as the kubelet does."""
    return re.sub(r"\$\$|\$\(([^)]*)\)", lambda found: "$" if found[0] == "$$" else environment.get(found[1], found[0]), text)


class Handler(http.server.BaseHTTPRequestHandler):
    """The kubelet's API: what the API server asks it for."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_GET(self):
        url = urlsplit(self.path)
        query = {key: values[-1] for key, values in parse_qs(url.query).items()}
        words = url.path.strip("/").split("/")
        pod = self.server.node.find(*words[1:3]) if len(words) >= 3 else None
        if pod and self.headers.get("Upgrade", "").lower() == "websocket":
            self.upgrade(pod, words, parse_qs(url.query))
            return
        output = pod.outputs.get(words[3]) if pod and len(words) == 4 else None
        if words[0] != "containerLogs" or output is None:
            self.send_error(404 if words[0] != "containerLogs" else 400)
            return
        self.send_logs(output, query)

    def upgrade(self, pod, words, query):
        """`exec` and `portForward` as the kubelet has them: the API server passes the WebSocket through."""
        if words[0] == "exec" and len(words) == 4 and words[3] in pod.children:
            wanted = {STREAMS[name]: "true" for name in query if name in STREAMS}
            self.path = "/exec?" + urlencode([*wanted.items(), *(("command", word) for word in query["command"])])
            served = websocket.serve_exec(self, lambda *streams: pod.start_command(words[3], *streams))
        elif words[0] == "portForward" and pod.children:
            served = websocket.serve_port_forward(self, pod.connect)
        else:
            self.send_error(404)
            return
        if not served:
            self.send_error(400, "no protocol in common")

    def do_POST(self):
        self.do_GET()

    def send_logs(self, output, query):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        since, follow, at = query.get("sinceTime", "")[:19], query.get("follow") == "true", 0
        try:
            while True:
                with output.condition:
                    lines, at = output.lines[at:], len(output.lines)
                    ended = output.ended
                    if not lines and not ended and follow:
                        output.condition.wait(1)
                        continue
                if at == len(lines) and "tailLines" in query:
                    lines = lines[-int(query["tailLines"]):] if int(query["tailLines"]) else []
                for stamp, text in lines:
                    if stamp[:19] >= since:
                        data = (f"{stamp} ".encode() if query.get("timestamps") == "true" else b"") + text + b"\n"
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
                if not follow or (ended and not lines):
                    break
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
