"""Rules of the API server that are not in its schemas, restated from k8s.io/kubernetes pkg/apis/*/validation."""

import re

DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
DNS_1035 = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
DNS_SUBDOMAIN = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
PORT_NAME = re.compile(r"(?=.{1,15}$)(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
ENVIRONMENT = re.compile(r"[\x20-\x3c\x3e-\x7e]+")


def broken_rules(manifest):
    """One line for each rule that an object of a built-in kind breaks."""
    yield from nulls(manifest, "")
    kind, name = manifest["kind"], manifest["metadata"].get("name", "")
    form = DNS_1035 if kind == "Service" else DNS_SUBDOMAIN
    if not form.fullmatch(name):
        yield f"/metadata/name: `{name}` is not a valid name for a {kind}"
    yield from labels(manifest["metadata"], "/metadata")
    if kind == "Job":
        yield from job(manifest["spec"], name)
    elif kind == "Pod":
        yield from pod(manifest["spec"], "/spec")


def nulls(value, place):
    """A null means "delete this" to `kubectl apply`."""
    if value is None:
        yield f"{place}: is null"
    elif isinstance(value, (dict, list)):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from nulls(inner, f"{place}/{key}")


def labels(metadata, place):
    for key, value in metadata.get("labels", {}).items():
        if not isinstance(value, str) or not LABEL_VALUE.fullmatch(value):
            yield f"{place}/labels/{key}: `{value}` is not a label value"


def job(spec, name):
    indexed = spec.get("completionMode") == "Indexed"
    restart = spec["template"]["spec"].get("restartPolicy")
    if restart not in ("Never", "OnFailure"):
        yield f"/spec/template/spec/restartPolicy: a Job's pods restart Never or OnFailure, not {restart}"
    if indexed and "completions" not in spec and "parallelism" in spec:
        yield "/spec: an Indexed job needs completions"
    if indexed and len(f"{name}-{spec.get('completions', 1) - 1}") > 63:
        yield "/metadata/name: the hostname of the last index is longer than 63 characters"
    for key in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
        if key in spec and not indexed:
            yield f"/spec/{key}: only an Indexed job has it"
    if "backoffLimitPerIndex" in spec and restart != "Never":
        yield "/spec/backoffLimitPerIndex: needs restartPolicy Never"
    yield from failure_policy(spec, restart)
    yield from labels(spec["template"].get("metadata", {}), "/spec/template/metadata")
    yield from pod(spec["template"]["spec"], "/spec/template/spec")


def failure_policy(spec, restart):
    rules = spec.get("podFailurePolicy", {}).get("rules", [])
    if rules and restart != "Never":
        yield "/spec/podFailurePolicy: needs restartPolicy Never"
    if rules and spec.get("podReplacementPolicy", "Failed") != "Failed":
        yield "/spec/podReplacementPolicy: only Failed goes with a podFailurePolicy"
    for number, rule in enumerate(rules):
        place = f"/spec/podFailurePolicy/rules/{number}"
        codes = rule.get("onExitCodes", {}).get("values", [])
        if codes != sorted(set(codes)):
            yield f"{place}: exit codes must be sorted and different"
        if 0 in codes and rule["onExitCodes"]["operator"] == "In":
            yield f"{place}: exit code 0 is not a failure"
        if ("onExitCodes" in rule) == bool(rule.get("onPodConditions")):
            yield f"{place}: exactly one of onExitCodes and onPodConditions"


def pod(spec, place):
    volumes = [volume["name"] for volume in spec.get("volumes", [])]
    yield from unique(volumes, f"{place}/volumes")
    everyone = spec.get("initContainers", []) + spec["containers"]
    yield from unique([container["name"] for container in everyone], f"{place}/containers")
    for name in volumes + [container["name"] for container in everyone]:
        if not DNS_LABEL.fullmatch(name):
            yield f"{place}: `{name}` is not a DNS label"
    for key in ("subdomain", "hostname"):
        if key in spec and not DNS_LABEL.fullmatch(spec[key]):
            yield f"{place}/{key}: `{spec[key]}` is not a DNS label"
    for container in everyone:
        yield from one_container(container, volumes, f"{place}/containers/{container['name']}")
    yield from claims(spec, everyone, place)


def claims(spec, containers, place):
    """The claims of containers must be claims of the pod, each from exactly one object."""
    names = [claim["name"] for claim in spec.get("resourceClaims", [])]
    yield from unique(names, f"{place}/resourceClaims")
    for claim in spec.get("resourceClaims", []):
        if ("resourceClaimName" in claim) == ("resourceClaimTemplateName" in claim):
            yield f"{place}/resourceClaims/{claim['name']}: exactly one of resourceClaimName and resourceClaimTemplateName"
    for container in containers:
        for claim in container.get("resources", {}).get("claims", []):
            if claim["name"] not in names:
                yield f"{place}/containers/{container['name']}/resources/claims: `{claim['name']}` is not a claim of the pod"


def one_container(container, volumes, place):
    if not container.get("image"):
        yield f"{place}: has no image"
    mounts = container.get("volumeMounts", [])
    yield from unique([mount["mountPath"] for mount in mounts], f"{place}/volumeMounts")
    for mount in mounts:
        if mount["name"] not in volumes:
            yield f"{place}/volumeMounts: `{mount['name']}` is not a volume of the pod"
        if ":" in mount["mountPath"]:
            yield f"{place}/volumeMounts: `{mount['mountPath']}` contains a colon"
    ports = container.get("ports", [])
    yield from unique([port["name"] for port in ports if "name" in port], f"{place}/ports")
    for port in ports:
        if "name" in port and not PORT_NAME.fullmatch(port["name"]):
            yield f"{place}/ports: `{port['name']}` is not a port name (at most 15 characters)"
    for variable in container.get("env", []):
        if not ENVIRONMENT.fullmatch(variable["name"]):
            yield f"{place}/env: `{variable['name']}` is not a variable name"
        if "value" in variable and "valueFrom" in variable:
            yield f"{place}/env/{variable['name']}: both value and valueFrom"
    yield from amounts(container.get("resources", {}), place)


def amounts(resources, place):
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    for name in sorted({*limits, *requests}):
        extended = "/" in name or name.startswith("hugepages-")
        if extended and name in requests and requests[name] != limits.get(name):
            yield f"{place}/resources/requests/{name}: must be its limit"
        if "/" in name and not re.fullmatch(r"[0-9]+", str(limits.get(name, "0"))):
            yield f"{place}/resources/limits/{name}: must be whole"


def unique(names, place):
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"{place}: `{name}` occurs more than once"
