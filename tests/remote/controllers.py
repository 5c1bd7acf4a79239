"""Controllers of Job and JobSet for the control plane of `apiserver.py`, as far as these tests need them.

A stand-in: those of Kubernetes 1.20 know neither indexes nor suspension. These make the pods of an object that is not suspended, start the roles of a
JobSet when those they depend on allow it, repeat failed indexes and whole sets, and set the conditions of newer releases.
"""

import sys
import threading
import time

from api import Refused

POLL_SECONDS = 0.1


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Controllers:
    """They follow all Jobs and JobSets, and have a thread for each."""

    def __init__(self, api):
        self.api, self.lock, self.threads = api, threading.Lock(), {}
        api.follow("/apis/batch/v1/jobs", self.changed("Job", "/apis/batch/v1", "jobs"))
        api.follow("/apis/jobset.x-k8s.io/v1alpha2/jobsets", self.changed("JobSet", "/apis/jobset.x-k8s.io/v1alpha2", "jobsets"))

    def changed(self, kind, root, plural):
        def handle(change, value):
            metadata = value["metadata"]
            with self.lock:
                if change == "DELETED" or value["spec"].get("suspend") or metadata["uid"] in self.threads:
                    return
                path = f"{root}/namespaces/{metadata['namespace']}/{plural}/{metadata['name']}"
                run = Run(self.api, kind, path, value)
                self.threads[metadata["uid"]] = run
                threading.Thread(target=run.run, daemon=True).start()
        return handle


class Role:
    """The pods of a Job, or of a replicated job of a JobSet."""

    def __init__(self, name, spec, depends_on=()):
        self.name, self.spec, self.depends_on = name, spec, list(depends_on)
        self.size = spec.get("completions") or 1
        self.width = spec.get("parallelism") or self.size
        self.created, self.failures, self.succeeded, self.failed = {}, {}, set(), set()
        self.active, self.ready, self.start = 0, 0, time.monotonic()

    def is_late(self):
        return time.monotonic() > self.start + self.spec.get("activeDeadlineSeconds", float("inf"))

    def is_done(self):
        return len(self.succeeded | self.failed) == self.size or (self.failed and not self.spec.get("maxFailedIndexes") and
                                                                  "backoffLimitPerIndex" not in self.spec)

    def has_succeeded(self):
        rules = (self.spec.get("successPolicy") or {}).get("rules", [])
        for rule in rules:
            wanted = expand_indexes(rule.get("succeededIndexes")) or set(range(self.size))
            if len(wanted & self.succeeded) >= rule.get("succeededCount", len(wanted)):
                return True
        return len(self.succeeded) == self.size

    def allows(self, condition):
        return self.has_succeeded() if condition == "Complete" else self.ready + len(self.succeeded) >= self.size


def expand_indexes(text):
    """`0,2-4` as a set."""
    result = set()
    for part in filter(None, (text or "").split(",")):
        first, _, last = part.partition("-")
        result |= set(range(int(first), int(last or first) + 1))
    return result


class Run:
    """One object that is not suspended, to its end."""

    def __init__(self, api, kind, path, value):
        self.api, self.kind, self.path, self.value = api, kind, path, value
        self.name, self.namespace, self.uid = value["metadata"]["name"], value["metadata"]["namespace"], value["metadata"]["uid"]
        self.restarts, self.started = 0, now()

    def roles(self):
        if self.kind == "Job":
            return [Role(None, self.value["spec"])]
        return [Role(role["name"], role["template"]["spec"], role.get("dependsOn") or []) for role in self.value["spec"]["replicatedJobs"]]

    def run(self):
        try:
            while True:
                condition = self.attempt(self.roles())
                if condition != "restart":
                    break
                self.restarts += 1
                self.delete_pods()
            if condition:
                self.status(condition=condition)
        except (Refused, OSError) as error:
            if not self.api.ended.is_set():
                print(f"controller of {self.path}: {error}", file=sys.stderr)

    def attempt(self, roles):
        """Makes and follows pods until the object has ended; its condition, `restart`, or None if it is gone."""
        while True:
            current = self.api.get(self.path)
            if current is None or current["metadata"]["uid"] != self.uid:
                return None
            if current["spec"].get("suspend"):
                self.delete_pods(running_only=True)
                time.sleep(POLL_SECONDS)
                continue
            for role in roles:
                self.observe(role)
            for role in roles:
                if all(next(other for other in roles if other.name == need["name"]).allows(need["status"]) for need in role.depends_on):
                    self.fill(role)
            self.status(roles)
            late = [role for role in roles if role.is_late()]
            if late:
                self.delete_pods(running_only=True)
                reason = "FailedJobs" if self.kind == "JobSet" else "DeadlineExceeded"
                return {"type": "Failed", "status": "True", "reason": reason, "message": "Job was active longer than specified deadline"}
            failed = [role for role in roles if role.failed and not role.has_succeeded() and role.is_done()]
            if failed:
                policy = self.value["spec"].get("failurePolicy") or {}
                if self.kind == "JobSet" and self.restarts < policy.get("maxRestarts", 0):
                    return "restart"
                return self.failure(failed[0])
            rules = self.value["spec"].get("successPolicy") or {} if self.kind == "JobSet" else {}
            targets = rules.get("targetReplicatedJobs") or [role.name for role in roles]
            ended = [role.has_succeeded() for role in roles if role.name in targets]
            if any(ended) if rules.get("operator") == "Any" else all(ended):
                self.delete_running(roles)
                return {"type": "Complete" if self.kind == "Job" else "Completed", "status": "True", "reason": "AllJobsCompleted", "message": "it has completed"}
            time.sleep(POLL_SECONDS)

    def failure(self, role):
        reason = "FailedJobs" if self.kind == "JobSet" else "BackoffLimitExceeded"
        self.delete_pods(running_only=True)
        where = f" in {role.name}" if role.name else ""
        return {"type": "Failed", "status": "True", "reason": reason, "message": f"indexes {sorted(role.failed)} have failed{where}"}

    def selector(self, role):
        name = f"jobc.test/attempt={self.uid}-{self.restarts}"
        return f"{name},jobset.sigs.k8s.io/replicatedjob-name={role.name}" if role.name else name

    def pods(self, role):
        return self.api.call("GET", f"/api/v1/namespaces/{self.namespace}/pods?labelSelector={self.selector(role)}")["items"]

    def observe(self, role):
        role.active, role.ready, failures = 0, 0, {}
        role.live = set()
        for pod in self.pods(role):
            index = int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])
            phase = pod["status"].get("phase")
            if phase == "Succeeded":
                role.succeeded.add(index)
            elif phase == "Failed":
                failures[index] = failures.get(index, 0) + 1
            else:
                role.live.add(index)
                role.active += 1
                role.ready += any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", []))
        limit = role.spec.get("backoffLimitPerIndex", role.spec.get("backoffLimit", 6))
        total = sum(failures.values())
        for index, count in failures.items():
            spent = count if "backoffLimitPerIndex" in role.spec else total
            if spent > limit and index not in role.succeeded:
                role.failed.add(index)
        role.failures = failures

    def fill(self, role):
        for index in range(role.size):
            if role.active >= role.width or (role.failed and "backoffLimitPerIndex" not in role.spec):
                return
            if index in role.live | role.succeeded | role.failed:
                continue
            self.create(role, index)
            role.live.add(index)
            role.active += 1

    def create(self, role, index):
        template = role.spec["template"]
        child = self.name if role.name is None else f"{self.name}-{role.name}-0"
        metadata = template.get("metadata") or {}
        labels = dict(metadata.get("labels") or {}) | {
            "batch.kubernetes.io/job-name": child, "batch.kubernetes.io/job-completion-index": str(index), "jobc.test/attempt": f"{self.uid}-{self.restarts}"}
        annotations = dict(metadata.get("annotations") or {}) | {"batch.kubernetes.io/job-completion-index": str(index)}
        spec = dict(template["spec"], hostname=f"{child}-{index}")
        if role.name is not None:
            labels |= {"jobset.sigs.k8s.io/jobset-name": self.name, "jobset.sigs.k8s.io/replicatedjob-name": role.name,
                       "jobset.sigs.k8s.io/job-index": "0", "jobset.sigs.k8s.io/restart-attempt": str(self.restarts)}
            network = self.value["spec"].get("network") or {}
            spec.setdefault("subdomain", network.get("subdomain") or self.name)
        owner = {"apiVersion": self.value["apiVersion"], "kind": self.kind, "name": self.name, "uid": self.uid, "controller": True}
        self.api.call("POST", f"/api/v1/namespaces/{self.namespace}/pods", {
            "metadata": {"generateName": f"{child}-{index}-", "labels": labels, "annotations": annotations, "ownerReferences": [owner]}, "spec": spec})

    def delete_running(self, roles):
        self.delete_pods(running_only=True)

    def delete_pods(self, running_only=False):
        selector = f"jobc.test/attempt={self.uid}-{self.restarts - (0 if running_only else 1)}"
        for pod in self.api.call("GET", f"/api/v1/namespaces/{self.namespace}/pods?labelSelector={selector}")["items"]:
            if not running_only or pod["status"].get("phase") not in ("Succeeded", "Failed"):
                try:
                    self.api.call("DELETE", f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}")
                except Refused as error:
                    if error.code != 404:
                        raise

    counts = None

    def status(self, roles=(), condition=None):
        if condition:
            condition = {**condition, "lastTransitionTime": now(), "lastProbeTime": now()}
            if self.kind == "JobSet":
                condition.pop("lastProbeTime")
            status = {"conditions": [condition]}
            if self.kind == "Job" and condition["type"] == "Complete":
                status["completionTime"] = now()
            self.api.merge(f"{self.path}/status", {"status": status})
            return
        if self.kind == "Job":
            role, = roles
            counts = {"active": role.active, "ready": role.ready, "succeeded": len(role.succeeded), "failed": sum(role.failures.values()),
                      "startTime": self.started}
        else:
            counts = {"restarts": self.restarts, "replicatedJobsStatus": [
                {"name": role.name, "active": int(role.active > 0), "ready": int(role.active > 0 and role.ready == role.active),
                 "succeeded": int(role.has_succeeded()), "failed": int(bool(role.failed)), "suspended": 0} for role in roles]}
        if counts != self.counts:
            self.counts = counts
            self.api.merge(f"{self.path}/status", {"status": counts})
