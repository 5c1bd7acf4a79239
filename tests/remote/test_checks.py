"""Tests what `jobc submit` asks a stand-in cluster before it creates anything: releases, quotas, limits, queues, claims, classes, nodes."""

from cluster import Cluster

GPUS = """\
version: 1
name: gpus
image: busybox
roles:
  train:
    instances: 2
    resources: {cpu: 4, memory: 8Gi, gpu: 8}
    run: python train.py
"""
TARGETS = """\
version: 1
targets:
  lab:
    backends: [kubernetes]
    kubernetes: {{namespace: ml, kubeconfig: {kubeconfig}{more}}}
"""
CLAIM = """\
version: 1
name: claim
image: busybox
data:
  corpus: {source: "pvc:corpus", mount: /data}
roles:
  main: {instances: 2, run: echo hello}
"""
STORED = """\
version: 1
name: stored
image: busybox
secrets:
  token: {store: {name: tokens, key: hub}}
roles:
  main:
    env: {TOKEN: "${{ secrets.token }}"}
    run: echo hello
"""


def job(place, text=GPUS, more=""):
    place.write("gpus.yaml", text)
    place.write("targets.yaml", TARGETS.format(kubeconfig=place.kubeconfig.name, more=more))


def said(place, code, *words):
    _, errors = place.run("submit", "gpus.yaml", "--dry-run", code=code)
    for word in words:
        assert word in errors, f"`{word}` is not in: {errors}"
    assert not place.cluster.all("jobs"), "something was created"
    return errors


def test_the_release_is_compared(place):
    job(place, more=', release: "1.35"')
    place.cluster.release = "v1.33.4-gke.100"
    said(place, 0, "warning: the cluster has Kubernetes 1.33, and the job was built for 1.35", 'write `release: "1.33"`',
         " --> the setting `kubernetes.release` of the target")
    place.cluster.release = "v1.26.9+k3s1"
    said(place, 1, "error: the cluster has Kubernetes 1.26, and jobc needs 1.27 or newer")
    place.cluster.release = "v1.37.0"
    assert "Kubernetes" not in said(place, 0), "a newer cluster is fine"
    place.cluster.drops = ("completions",)
    said(place, 0, "warning: the cluster drops `spec.completions` of Job", "its feature gate is off")


def test_quotas_are_compared(place):
    job(place)
    def quota(hard, used):
        status = {"hard": {"requests.nvidia.com/gpu": hard}, "used": {"requests.nvidia.com/gpu": used}}
        place.cluster.put("v1", "resourcequotas", "ml", {"metadata": {"name": "team"}, "spec": {"hard": status["hard"]}, "status": status})
    quota("4", "0")
    said(place, 1, "error: a pod asks for 8 `requests.nvidia.com/gpu`, and the quota `team` allows 4 in all", " --> gpus.yaml:7:")
    quota("16", "12")
    said(place, 0, "warning: the pods ask for 16 `requests.nvidia.com/gpu`, and of 16 in the quota `team` 12 are used: the job waits")
    quota("16", "0")
    assert "quota" not in said(place, 0), "it fits"
    place.cluster.put("v1", "resourcequotas", "ml", {"metadata": {"name": "objects"}, "spec": {}, "status": {
        "hard": {"count/jobs.batch": "7"}, "used": {"count/jobs.batch": "7"}}})
    said(place, 1, "error: the quota `objects` allows 7 `count/jobs.batch`, of which 7 are used, and the job needs 1")


def test_a_quota_that_is_used_up_meanwhile_is_a_problem_of_the_job(place):
    why = "exceeded quota: team, requested: count/jobs.batch=1, used: count/jobs.batch=9, limited: count/jobs.batch=9"
    place.cluster.fail("POST", "/jobs[?]", code=403, message=f'jobs.batch "one" is forbidden: {why}')
    _, errors = place.run("submit", "one.yaml", code=1)
    assert "error: the cluster rejects Job" in errors and why in errors and " --> one.yaml:2:7" in errors, errors
    assert "jobc targets role" not in errors, errors


def test_limits_are_compared(place):
    job(place)
    place.cluster.put("v1", "limitranges", "ml", {"metadata": {"name": "small"}, "spec": {"limits": [
        {"type": "Container", "max": {"memory": "4Gi"}}]}})
    said(place, 1, "error: a container uses up to 8Gi `memory`, and the limit range `small` allows 4Gi", " --> gpus.yaml:7:")


def test_queues_are_compared(place):
    job(place, more=", queue: {kueue: team}")
    kueue = "kueue.x-k8s.io/v1beta2"
    place.cluster.put(kueue, "localqueues", "ml", {"metadata": {"name": "vision"}, "spec": {"clusterQueue": "all"}})
    said(place, 1, "error: there is no Kueue queue `team` in the namespace", "the namespace has `vision`",
         " --> the setting `kubernetes.queue")
    place.cluster.put(kueue, "localqueues", "ml", {"metadata": {"name": "team"}, "spec": {"clusterQueue": "all"}})
    said(place, 1, "leads to the ClusterQueue `all`, which does not exist")
    def cluster_queue(gpus, selector):
        amounts = [{"name": name, "nominalQuota": quota} for name, quota in (("cpu", 64), ("memory", "1Ti"), ("nvidia.com/gpu", gpus))]
        place.cluster.put(kueue, "clusterqueues", None, {"metadata": {"name": "all"}, "spec": {
            "namespaceSelector": selector, "resourceGroups": [{"flavors": [{"name": "default", "resources": amounts}]}]}})
    cluster_queue(8, {})
    said(place, 1, "error: the job asks for 16 `nvidia.com/gpu` at once, and the ClusterQueue `all` allows 8: it is never admitted",
         " --> gpus.yaml:7:")
    cluster_queue(16, {"matchLabels": {"team": "speech"}})
    said(place, 1, "the ClusterQueue `all` does not admit jobs of the namespace `ml`")
    cluster_queue(16, {})
    said(place, 0)


def test_claims_are_looked_at(place):
    job(place, CLAIM)
    def claim(phase, *modes):
        place.cluster.put("v1", "persistentvolumeclaims", "ml", {
            "metadata": {"name": "corpus"}, "spec": {"accessModes": modes, "storageClassName": "fast"}, "status": {"phase": phase}})
    said(place, 1, "error: there is no PersistentVolumeClaim `corpus`", " --> gpus.yaml:5:")
    claim("Bound", "ReadWriteOnce")
    said(place, 0, "warning: the PersistentVolumeClaim `corpus` can be mounted on one node (`ReadWriteOnce`), and 2 pods mount it")
    place.cluster.put("storage.k8s.io/v1", "storageclasses", None, {"metadata": {"name": "fast"}, "volumeBindingMode": "Immediate"})
    claim("Pending", "ReadWriteMany")
    said(place, 0, "warning: the PersistentVolumeClaim `corpus` is not bound to a volume")
    claim("Bound", "ReadWriteMany")
    assert "corpus" not in said(place, 0), "it is usable"


def test_names_and_keys_exist(place):
    job(place, STORED, ", priority_class: hihg, runtime_class: nvidia")
    place.cluster.put("scheduling.k8s.io/v1", "priorityclasses", None, {"metadata": {"name": "high"}})
    errors = said(place, 1, "error: the cluster has no PriorityClass `hihg`", "the cluster has `high`",
                  "error: the cluster has no RuntimeClass `nvidia`", " --> the setting `kubernetes.priority_class` of the target")
    assert "there is no Secret `tokens` in the namespace `ml`" in errors and " --> gpus.yaml:" in errors, errors
    place.cluster.put("v1", "secrets", "ml", {"metadata": {"name": "tokens"}, "data": {"other": "c2VjcmV0"}})
    errors = said(place, 1, "error: the Secret `tokens` has no key `hub`", "it has `other`")
    assert "c2VjcmV0" not in errors, errors


def test_nodes_are_looked_at(place):
    job(place, more=", node_selector: {pool: gpu}")
    def node(name, pool, gpus):
        allocatable = {"cpu": "64", "memory": "512Gi", "nvidia.com/gpu": str(gpus)}
        place.cluster.put("v1", "nodes", None, {"metadata": {"name": name, "labels": {"pool": pool}}, "status": {"allocatable": allocatable}})
    node("a", "cpu", 0)
    said(place, 0, "warning: no node of the cluster has the labels `pool=gpu`", " --> the setting `kubernetes.node_selector")
    node("b", "gpu", 4)
    said(place, 0, "warning: a pod asks for 8 `nvidia.com/gpu`, and the largest node that it may run on has 4", " --> gpus.yaml:7:")
    node("c", "gpu", 8)
    assert "node" not in said(place, 0), "a node fits"
    place.cluster.denied = {"GET nodes"}
    errors = said(place, 0, "not checked, because you lack the rights: `nodes`; `jobc targets role` prints them")
    assert "no node" not in errors, "without the right it is not looked at"


def test_a_missing_right_is_noted_once(place):
    job(place, STORED, ", priority_class: high")
    place.cluster.denied = {f"GET {name}" for name in ("resourcequotas", "limitranges", "priorityclasses", "secrets", "namespaces")} | {"POST pods"}
    errors = said(place, 0, "not checked, because you lack the rights: `dry run of pods`, `limitranges`, `namespaces`, `priorityclasses`, "
                  "`resourcequotas`, `secrets`; `jobc targets role` prints them")
    assert errors.count("not checked") == 1, errors


def test_a_policy_for_pods_is_met_before_the_job_exists(place):
    """The pod of the dry run is one of a controller, with the labels and annotations of the template."""
    job(place)
    place.cluster.policy = "ValidatingAdmissionPolicy 'team' with binding 'all' denied request: a pod needs the label team"
    said(place, 0, f"warning: the pods may be rejected: {place.cluster.policy}", " --> gpus.yaml:8:")
    pod, = place.cluster.judged
    owner, = pod["metadata"]["ownerReferences"]
    assert owner["controller"] and owner["kind"] == "Job" and pod["metadata"]["labels"]["jobc.dev/role"] == "train", pod["metadata"]


def test_one_review_lists_the_rights(place):
    """A submission of two instances takes 13 requests, of which 3 create the job: each is a round trip, and servers limit their rate."""
    place.submit()
    requests = [f"{method} {path.split('?')[0]}" for method, path in place.cluster.requests]
    assert sum("selfsubject" in request for request in requests) == 1, requests
    assert len(requests) == 13, requests


def test_rights_that_no_rule_lists_are_asked_for(place):
    """As with an authorizer that cannot list what it allows."""
    place.cluster.unlisted = True
    job(place)
    said(place, 0)
    assert place.cluster.count("POST", "selfsubjectaccessreviews") > 1, "each right"
    place.cluster.denied = {"create jobs"}
    said(place, 1, "you may not create `jobs.batch` in the namespace `ml`")


def test_what_is_free_is_shown(place):
    """Nodes by their GPUs, with what the pods of all namespaces have of them; Kueue's queue with what its quota leaves."""
    for name, gpus in (("a", 8), ("b", 8), ("c", 0)):
        allocatable = {"cpu": "64", "memory": "512Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
        labels = {"nvidia.com/gpu.product": "NVIDIA-H100"} if gpus else {}
        place.cluster.put("v1", "nodes", None, {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}})
    requests = {"cpu": "8", "nvidia.com/gpu": "3"}
    place.cluster.put("v1", "namespaces", None, {"metadata": {"name": "other"}})
    place.cluster.put("v1", "pods", "other", {"metadata": {"name": "x"}, "status": {"phase": "Running"}, "spec": {
        "nodeName": "a", "containers": [{"resources": {"requests": requests}}]}})
    version, flavors = "kueue.x-k8s.io/v1beta2", [{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "12"}]}]
    place.cluster.put(version, "localqueues", "ml", {"metadata": {"name": "gpu"}, "spec": {"clusterQueue": "all"}})
    place.cluster.put(version, "clusterqueues", None, {
        "metadata": {"name": "all"}, "spec": {"resourceGroups": [{"flavors": flavors}]},
        "status": {"pendingWorkloads": 4, "flavorsReservation": [{"name": "h100", "resources": [{"name": "nvidia.com/gpu", "total": "10"}]}]}})
    out, _ = place.run("targets", "free", "lab")
    rows = [line.split() for line in out.splitlines()]
    assert rows[1] == "lab nodes NVIDIA-H100 1 of 2 13 of 16 120 of 128 -".split(), out
    assert rows[2] == "lab nodes without GPUs 1 of 1 - 64 of 64 -".split(), out
    assert rows[3] == "lab queue gpu - 2 of 12 - 4".split(), out
    found = place.json("targets", "free", "lab")
    assert [(row["target"], row.get("gpus")) for row in found] == [("lab", {"free": 13, "total": 16}), ("lab", None), ("lab", {"free": 2, "total": 12})], found
    # Without the right to see other namespaces, only the totals are known.
    place.cluster.denied = {"GET pods"}
    out, errors = place.run("targets", "free", "lab")
    assert "? of 16" in out and "`pods of all namespaces`" in errors, out + errors
    out, errors = place.run("targets", "free")
    assert "? of 16" in out and "target `far`" in errors, out + errors


def test_the_first_target_with_room_is_chosen(place):
    """`--target lab,cloud`; with room nowhere, the job waits at the first."""
    cloud = Cluster(place.directory, "cloud")
    try:
        targets = TARGETS.format(kubeconfig=place.kubeconfig.name, more="")
        place.write("gpus.yaml", GPUS)
        place.write("targets.yaml", targets + targets.split("targets:\n")[1].replace("lab:", "cloud:").replace(
            place.kubeconfig.name, cloud.kubeconfig().name))

        def nodes(cluster, count):
            cluster.put("v1", "nodes", None, {"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "64", "memory": "1Ti", "nvidia.com/gpu": count}}})
        for here, there, chosen, words in (("8", "16", "cloud", "`cloud` has room for the job now"), ("16", "16", "lab", "`lab` has room"),
                                           ("8", "8", "lab", "no target has room for the job now; it waits at `lab`")):
            nodes(place.cluster, here)
            nodes(cloud, there)
            out, errors = place.run("submit", "gpus.yaml", "--target", "lab,cloud", "--new")
            assert out.startswith(f"{chosen}/gpus-") and words in errors, (here, there, out, errors)
    finally:
        cloud.close()
    nodes(place.cluster, "8")
    out, errors = place.run("submit", "gpus.yaml", "--target", "cloud,lab", "--new")
    assert out.startswith("lab/gpus-") and "target `cloud`" in errors, (out, errors)
