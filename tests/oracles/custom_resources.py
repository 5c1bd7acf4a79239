#!/usr/bin/env python3
"""Validates every manifest of a custom kind against its published definition, with unknown keys forbidden.

JobSets are also read and written back by kubeflow-trainer-api's models, which must not lose or change a key.
"""

from common import Check, built_in, documents, explained, published, strict

# Kinds whose specification is that of a pod, which `kubernetes` checks; no definition of theirs was ever published.
POD_SHAPED = {("kubeshare.nthu/v1", "SharePod")}
MODELS = {
    ("jobset.x-k8s.io/v1alpha2", "JobSet"): "JobsetV1alpha2JobSet",
    ("trainer.kubeflow.org/v1alpha1", "TrainingRuntime"): "TrainerV1alpha1TrainingRuntime",
}
# Kinds whose definition is not among the published ones here; `tests/tests/kinds.rs` checks their pods.
UNPUBLISHED = {("ray.io/v1", "RayJob"), ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet"), ("kubeflow.org/v2beta1", "MPIJob")}


def definitions():
    """(apiVersion, kind) -> validator, from the published custom resource definitions."""
    from jsonschema import Draft202012Validator

    out = {}
    directory = published("kubernetes-crds")
    for path in sorted(directory.glob("*.yaml")) if directory else []:
        for item in documents(path):
            group, kind = item["spec"]["group"], item["spec"]["names"]["kind"]
            for version in item["spec"]["versions"]:
                schema = strict(version["schema"]["openAPIV3Schema"])
                schema["required"] = sorted({"apiVersion", "kind", "metadata", *schema.get("required", [])})
                out[f"{group}/{version['name']}", kind] = Draft202012Validator(schema)
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


def main():
    check = Check("custom_resources", "objects")
    try:
        import jsonschema  # noqa: F401
        from kubeflow_trainer_api import models
    except ImportError as error:
        check.missing(error.name)
    known = definitions()
    if not known:
        check.note("the published definitions are absent; only the models are used")
    for path in check.find("kubernetes/*.yaml"):
        for manifest in documents(path):
            if built_in(manifest):
                continue
            key = manifest["apiVersion"], manifest["kind"]
            if key in POD_SHAPED:
                check.note(f"a {manifest['kind']} is checked as the pod it contains")
                continue
            problems = explained(known[key].iter_errors(manifest)) if key in known else []
            if key in MODELS:
                problems += round_trip(manifest, getattr(models, MODELS[key]))
            elif not known:
                check.note(f"{manifest['kind']} is not checked without its definition")
                continue
            elif key not in known and key in UNPUBLISHED:
                check.note(f"a {manifest['kind']} is not checked without its definition")
                continue
            elif key not in known:
                problems.append(f"there is no definition of {' '.join(key)}")
            check.record(path, problems)
    check.end()


main()
