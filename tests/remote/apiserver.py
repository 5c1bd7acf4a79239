"""Kubernetes' own API server, controllers and scheduler (1.20, `server/install`), on loopback: nothing of them is a stand-in."""

import json
import os
import signal
import socket
import subprocess
import time

from api import Api, Refused
from harness import REPOSITORY

PROGRAMS = REPOSITORY / ".oracles/kubernetes"
START_SECONDS = 90
# The Job controller of 1.20 knows neither indexes nor suspension: `controllers.py` does its work.
CONTROLLERS = "garbagecollector,namespace,resourcequota,serviceaccount,endpoint"
ADMIN, USER = "admin-token", "user-token"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def is_installed():
    return (PROGRAMS / "complete").exists()


class ControlPlane:
    """A control plane with an administrator, and the user `me`, who has no rights until a test gives some."""

    def __init__(self, directory):
        self.directory, self.processes = directory, []
        directory.mkdir()
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    def start(self):
        etcd, peer, secure = free_ports(3)
        at = self.directory
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=kubernetes", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", at / "key", "-out", at / "crt"],
                       check=True, capture_output=True)
        subprocess.run(["openssl", "genrsa", "-out", at / "sa", "2048"], check=True, capture_output=True)
        (at / "tokens").write_text(f"{ADMIN},admin,1,system:masters\n{USER},me,2\n")
        self.run("etcd", f"--data-dir={at / 'etcd'}", f"--listen-client-urls=http://127.0.0.1:{etcd}",
                 f"--advertise-client-urls=http://127.0.0.1:{etcd}", f"--listen-peer-urls=http://127.0.0.1:{peer}",
                 f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}", f"--initial-cluster=default=http://127.0.0.1:{peer}")
        self.url = f"https://127.0.0.1:{secure}"
        # JSON in etcd: the added fields of Job have no number in the binary form.
        self.run("kube-apiserver", f"--etcd-servers=http://127.0.0.1:{etcd}", "--bind-address=127.0.0.1", "--advertise-address=192.0.2.1",
                 f"--secure-port={secure}",
                 f"--tls-cert-file={at / 'crt'}", f"--tls-private-key-file={at / 'key'}", f"--token-auth-file={at / 'tokens'}",
                 "--authorization-mode=RBAC", "--service-account-issuer=https://kubernetes", f"--service-account-key-file={at / 'sa'}",
                 f"--service-account-signing-key-file={at / 'sa'}", "--service-cluster-ip-range=10.0.0.0/24",
                 "--endpoint-reconciler-type=none", "--disable-admission-plugins=ServiceAccount", "--allow-privileged",
                 "--storage-media-type=application/json", "--kubelet-preferred-address-types=InternalIP",
                 f"--cert-dir={at / 'certs'}", "--enable-priority-and-fairness=false")
        self.admin = Api(self.url, at / "crt", ADMIN)
        self.kubeconfig = self.write_kubeconfig("user", USER)
        self.admin_kubeconfig = self.write_kubeconfig("admin", ADMIN)
        self.wait()
        self.run("kube-controller-manager", f"--kubeconfig={self.admin_kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1",
                 f"--secure-port={free_ports(1)[0]}", "--port=0", f"--controllers={CONTROLLERS}", f"--cert-dir={at / 'certs'}",
                 "--kube-api-content-type=application/json")
        self.run("kube-scheduler", f"--kubeconfig={self.admin_kubeconfig}", "--leader-elect=false", "--bind-address=127.0.0.1",
                 f"--secure-port={free_ports(1)[0]}", "--port=0")

    def run(self, program, *arguments):
        with open(self.directory / f"{program}.log", "wb") as log:
            self.processes.append(subprocess.Popen([PROGRAMS / "bin" / program, *arguments], stdin=subprocess.DEVNULL, stdout=log,
                                                   stderr=log, cwd=self.directory, env={"PATH": os.environ["PATH"]}))

    def wait(self):
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                if self.admin.get("/api/v1/namespaces/default"):
                    return
            except (OSError, Refused):
                pass
            if time.monotonic() > deadline or any(process.poll() is not None for process in self.processes):
                logs = [path.read_text(errors="replace")[-1500:] for path in self.directory.glob("*.log")]
                raise AssertionError("the API server does not start: " + "\n".join(logs))
            time.sleep(0.2)

    def write_kubeconfig(self, name, token):
        path = self.directory / f"{name}.kubeconfig"
        path.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "lab",
            "clusters": [{"name": "lab", "cluster": {"server": self.url, "certificate-authority": str(self.directory / "crt")}}],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": name, "namespace": "ml"}}],
        }))
        return path

    def kubectl(self, *words, input=None):
        """Runs kubectl as the administrator; returns its output."""
        result = subprocess.run([PROGRAMS / "bin/kubectl", f"--kubeconfig={self.admin_kubeconfig}", *map(str, words)], input=input,
                                capture_output=True, text=True, timeout=60)
        if result.returncode:
            raise AssertionError(f"kubectl {' '.join(map(str, words))}: {result.stderr}")
        return result.stdout

    def close(self):
        if hasattr(self, "admin"):
            self.admin.ended.set()
        for process in reversed(self.processes):
            process.send_signal(signal.SIGKILL)
        for process in self.processes:
            process.wait()
