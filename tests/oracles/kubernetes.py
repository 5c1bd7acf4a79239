#!/usr/bin/env python3
"""Validates every manifest of a built-in kind against the schemas of its release, with kubernetes-validate in strict mode.

The pods inside are also held against the API server's rules that a schema cannot state (`kubernetes_rules`). Custom
resources are checked by `custom_resources`; the jobs inside them are checked here.
"""

import copy

from common import Check, built_in, documents
from kubernetes_rules import broken_rules

RELEASE = "1.36"
# API versions of older releases that a case requests.
OF_RELEASE = {"resource.k8s.io/v1alpha3": "1.31", "resource.k8s.io/v1beta1": "1.32", "resource.k8s.io/v1beta2": "1.33",
              "scheduling.k8s.io/v1alpha1": "1.35", "scheduling.k8s.io/v1beta1": "1.37"}


def main():
    check = Check("kubernetes", "objects")
    try:
        import kubernetes_validate
    except ImportError:
        check.missing("kubernetes-validate")
    for path in check.find("kubernetes/*.yaml"):
        for manifest in documents(path):
            for item in objects(manifest):
                # Only Kubernetes 1.35 has this field of a pod.
                release = "1.35" if "workloadRef" in str(item) else OF_RELEASE.get(item["apiVersion"], RELEASE)
                try:
                    kubernetes_validate.validate(item, release, strict=True)
                    problems = list(broken_rules(item))
                except kubernetes_validate.ValidationError as error:
                    place = "/" + "/".join(str(part) for part in error.absolute_path)
                    problems = [f"{place}: {error.message[:300]}"]
                except kubernetes_validate.SchemaNotFoundError:
                    problems = [f"release {release} has no {item['apiVersion']} {item['kind']}"]
                check.record(path, problems)
    check.end()


def objects(manifest):
    """The manifest itself if its kind is built in, or the jobs of a JobSet and the pod of a SharePod."""
    if built_in(manifest):
        yield manifest
    if manifest["kind"] == "SharePod":
        yield {**manifest, "apiVersion": "v1", "kind": "Pod"}
    jobset = manifest["spec"] if manifest["kind"] == "JobSet" else {}
    if manifest["kind"] == "TrainingRuntime":
        jobset = manifest["spec"]["template"]["spec"]
    for job in jobset.get("replicatedJobs", []):
        yield job_of(manifest["metadata"]["name"], job)


def job_of(jobset, job):
    """The first Job that the controller creates from a replicated job, with the webhook's defaults."""
    metadata = {"name": f"{jobset}-{job['name']}-0", **job["template"].get("metadata", {})}
    spec = copy.deepcopy(job["template"]["spec"])
    spec.setdefault("completionMode", "Indexed")
    spec["template"]["spec"].setdefault("restartPolicy", "OnFailure")
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


main()
