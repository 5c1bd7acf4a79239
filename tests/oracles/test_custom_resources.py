"""Validates every manifest of a custom kind against its published definition, with unknown keys forbidden.

JobSets are also read and written back by kubeflow-trainer-api's models, which must not lose or change a key.
"""

import functools

import needs
from documents import built_in, documents, explained, published, strict

ARTIFACTS = "kubernetes/*.yaml"
# Kinds whose specification is that of a pod, which `kubernetes` checks; no definition of theirs was ever published.
POD_SHAPED = {("kubeshare.nthu/v1", "SharePod")}
MODELS = {
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): "JobsetV1alpha2JobSet",
    ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"): "TrainerV1alpha1TrainingRuntime",
}
# Kinds whose definition is not among the published ones here; `tests/tests/kinds.rs` checks their pods.
UNPUBLISHED = {("ray.io/v1", "RayJob"), ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"), ("kubeflow.org/v2beta1", "MPIJob")}


@functools.cache
def definitions():
    """(apiVersion, kind) -> validator, from the published custom resource definitions."""
    out, jsonschema = {}, needs.package("jsonschema")
    directory = published("kubernetes-crds")
    for path in sorted(directory.glob("*.yaml")) if directory else []:
        for item in documents(path):
            group, kind = item["spec"]["group"], item["spec"]["names"]["kind"]
            for version in item["spec"]["versions"]:
                schema = strict(version["schema"]["openAPIV3Schema"])
                schema["required"] = sorted({"apiVersion", "kind", "metadata", *schema.get("required", [])})
                out[f"{group}/{version['name']}", kind] = jsonschema.Draft202012Validator(schema)
    return out


def round_trip(manifest, model):
    """What the model rejects, loses or changes when it reads and writes the manifest."""
    from pydantic import ValidationError

    try:
        back = model.from_dict(manifest).to_dict()
    except (ValidationError, ValueError) as error:
        return [f"the model rejects it: {error}"]
    return list(differences(manifest, back, ""))


def differences(ours, theirs, place):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in ours:
            if key not in theirs:
                yield f"{place}/{key}: unknown in the model"
            else:
                yield from differences(ours[key], theirs[key], f"{place}/{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (one, other) in enumerate(zip(ours, theirs)):
            yield from differences(one, other, f"{place}/{number}")
    elif ours != theirs:
        yield f"{place}: {ours!r} is written back as {theirs!r}"


def applies(path):
    return any(not built_in(manifest) for manifest in documents(path))


def test_custom_resources_follow_their_definitions(artifact, note):
    models = needs.package("kubeflow_trainer_api.models", "kubeflow-trainer-api")
    problems = []
    for manifest in documents(artifact):
        key = manifest["apiVersion"], manifest["kind"]
        if built_in(manifest):
            continue
        if key in POD_SHAPED:
            note(f"a {manifest['kind']} is checked as the pod it contains")
        elif key in definitions():
            problems += explained(definitions()[key].iter_errors(manifest))
        elif definitions() and key not in UNPUBLISHED and key not in MODELS:
            problems.append(f"there is no definition of {' '.join(key)}")
        elif key not in MODELS:
            note(f"a {manifest['kind']} is not checked without its definition")
        if key in MODELS:
            problems += round_trip(manifest, getattr(models, MODELS[key]))
    assert not problems, "\n".join(problems)
