"""Validates every manifest of a built-in kind against the schemas of its release, with kubernetes-validate in strict mode.

The pods inside are also checked against the API server's rules that a schema cannot state (`kubernetes_rules`). Custom
resources are checked by `test_custom_resources`; the jobs inside them are checked here.
"""

import copy

import needs
import pytest
from documents import built_in, documents
from kubernetes_rules import broken_rules

ARTIFACTS = "kubernetes/*.yaml"
RELEASE = "1.36"
# API versions of older releases that a case requests.
OF_RELEASE = {"resource.k8s.io/v1alpha3": "1.31", "resource.k8s.io/v1beta1": "1.32", "resource.k8s.io/v1beta2": "1.33",
              "scheduling.k8s.io/v1alpha1": "1.35", "scheduling.k8s.io/v1beta1": "1.37"}


def objects(path):
    """The manifests whose kind is built in, the jobs of a JobSet and the pod of a SharePod."""
    for manifest in documents(path):
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


def applies(path):
    return any(objects(path))


def test_objects_of_built_in_kinds_are_valid(artifact):
    kubernetes_validate = needs.package("kubernetes_validate", "kubernetes-validate")
    for item in objects(artifact):
        # Only Kubernetes 1.35 has this field of a pod.
        release = "1.35" if "workloadRef" in str(item) else OF_RELEASE.get(item["apiVersion"], RELEASE)
        try:
            kubernetes_validate.validate(item, release, strict=True)
        except kubernetes_validate.ValidationError as error:
            pytest.fail(f"/{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}")
        except kubernetes_validate.SchemaNotFoundError:
            pytest.fail(f"release {release} has no {item['apiVersion']} {item['kind']}")
        broken = list(broken_rules(item))
        assert not broken, "\n".join(broken)
