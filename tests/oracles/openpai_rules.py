"""Rules of OpenPAI's rest-server, web portal and scheduler that are not in the published schema.

Restated from microsoft/pai: `rest-server/src/config/v2/{protocol,hived}.js`, `middlewares/v2/protocol.js` and the
portal's `protocol-schema.js`.
"""

import re

NAME = re.compile(r"[a-zA-Z0-9_-]{1,255}")
# A job imported from OpenPAI keeps its names, and the portal's rule is stricter than the server's.
ROLE = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]{0,62}")
LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
REFERENCE = re.compile(r"<%\s*\$(\w+)([^%]*?)%>")

KEYS = set("protocolVersion name type version contributor description prerequisites parameters secrets jobRetryCount "
           "taskRoles deployments defaults extras".split())
ROLE_KEYS = set("protocolVersion instances completion taskRetryCount prerequisites dockerImage data output script "
                "extraContainerOptions resourcePerInstance commands".split())
IMAGE_KEYS = set("protocolVersion name type version contributor description auth uri".split())
HIVED_KEYS = {"skuType", "skuNum", "pinnedCellId", "affinityGroupName"}


def broken_rules(job):
    """One line for each rule the job breaks; a job that is not a mapping breaks only that rule."""
    if not isinstance(job, dict) or not isinstance(job.get("taskRoles"), dict):
        yield "not a mapping with taskRoles"
        return
    yield from unknown(job, KEYS, "")
    for key in ("protocolVersion", "name", "type", "taskRoles"):
        if key not in job:
            yield f"/{key}: is required"
    if not NAME.fullmatch(str(job.get("name", ""))):
        yield "/name: must be 1 to 255 letters, digits, `_` and `-`"
    if not isinstance(job.get("version", ""), str):
        yield "/version: must be text"
    named = {}
    yield from prerequisites(job.get("prerequisites", []), named)
    if not job["taskRoles"]:
        yield "/taskRoles: at least one role"
    converted = [re.sub(r"[^a-z0-9]", "", role.lower()) for role in job["taskRoles"]]
    if len(set(converted)) < len(converted):
        yield "/taskRoles: two roles have the same name once a server has converted them"
    for name, role in job["taskRoles"].items():
        yield from task_role(name, role, named)
    yield from deployments(job)
    yield from extras(job)
    yield from references(job)


def unknown(mapping, known, place):
    for key in sorted(set(mapping) - known):
        yield f"{place}/{key}: unknown key"


def whole(mapping, key, least, place):
    value = mapping.get(key, least)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        yield f"{place}/{key}: must be a whole number, at least {least}"


def prerequisites(items, named):
    for number, item in enumerate(items):
        place, kind = f"/prerequisites/{number}", item.get("type", "")
        if not NAME.fullmatch(str(item.get("name", ""))):
            yield f"{place}/name: is required, of letters, digits, `_` and `-`"
        if item.get("name") in named.setdefault(kind, {}):
            yield f"{place}: a second {kind} named `{item['name']}`"
        named[kind][item.get("name")] = item
        if kind == "dockerimage":
            yield from unknown(item, IMAGE_KEYS, place)
            password = item.get("auth", {}).get("password")
            if password is not None and not re.fullmatch(r"<%\s*\$secrets\.[\w-]+\s*%>", password):
                yield f"{place}/auth/password: must be a reference to a secret"
        if "uri" not in item and "plugin" not in item:
            yield f"{place}/uri: is required"


def task_role(name, role, named):
    place = f"/taskRoles/{name}"
    if not ROLE.fullmatch(name):
        yield f"{place}: the server takes letters, digits and `_`, no digit first, at most 63"
    yield from unknown(role, ROLE_KEYS, place)
    for key in ("dockerImage", "resourcePerInstance", "commands"):
        if key not in role:
            yield f"{place}/{key}: is required"
    for field in ("dockerImage", "data", "output", "script"):
        if field in role and role[field] not in named.get(field.lower(), {}):
            yield f"{place}/{field}: no {field.lower()} prerequisite is named `{role[field]}`"
    for item in role.get("prerequisites", []):
        if not any(item in items for items in named.values()):
            yield f"{place}/prerequisites: nothing is named `{item}`"
    commands = role.get("commands", [])
    if not commands or not all(isinstance(command, str) for command in commands):
        yield f"{place}/commands: at least one, each text"
    yield from whole(role, "instances", 1, place)
    yield from whole(role, "taskRetryCount", 0, place)
    yield from completion(role.get("completion", {}), role.get("instances", 1), place)
    yield from resources(role, place)


def completion(thresholds, instances, place):
    yield from unknown(thresholds, {"minFailedInstances", "minSucceededInstances"}, f"{place}/completion")
    for key, value in thresholds.items():
        if not isinstance(value, int) or value != -1 and not 1 <= value <= instances:
            yield f"{place}/completion/{key}: must be -1 or from 1 to the number of instances"


def resources(role, place):
    wanted = role.get("resourcePerInstance", {})
    place += "/resourcePerInstance"
    yield from unknown(wanted, {"cpu", "memoryMB", "gpu", "ports"}, place)
    for key, least in (("cpu", 1), ("memoryMB", 1), ("gpu", 0)):
        if key not in wanted:
            yield f"{place}/{key}: is required"
        yield from whole(wanted, key, least, place)
    if "ports" in wanted and not wanted["ports"]:
        yield f"{place}/ports: leave an empty map out"
    for label in wanted.get("ports", {}):
        if not LABEL.fullmatch(label):
            yield f"{place}/ports/{label}: must be letters, digits and `_`"
        yield from whole(wanted["ports"], label, 1, f"{place}/ports")
    options = role.get("extraContainerOptions", {})
    yield from unknown(options, {"shmMB", "infiniband"}, f"{place}/../extraContainerOptions")
    yield from whole(options, "shmMB", 1, f"{place}/../extraContainerOptions")


def deployments(job):
    names = [deployment.get("name") for deployment in job.get("deployments", [])]
    if len(set(names)) < len(names):
        yield "/deployments: two have the same name"
    chosen = job.get("defaults", {}).get("deployment")
    if chosen is not None and chosen not in names:
        yield f"/defaults/deployment: no deployment is named `{chosen}`"
    for deployment in job.get("deployments", []):
        for role in sorted(set(deployment.get("taskRoles", {})) - set(job["taskRoles"])):
            yield f"/deployments/{deployment.get('name')}/taskRoles/{role}: no such role"


def extras(job):
    hived = job.get("extras", {}).get("hivedScheduler", {})
    if hived.get("jobPriorityClass", "prod") not in ("prod", "test", "oppo"):
        yield "/extras/hivedScheduler/jobPriorityClass: prod, test or oppo"
    if hived and not hived.get("taskRoles"):
        yield "/extras/hivedScheduler/taskRoles: at least one role"
    for role, config in hived.get("taskRoles", {}).items():
        place = f"/extras/hivedScheduler/taskRoles/{role}"
        if role not in job["taskRoles"]:
            yield f"{place}: no such role"
        yield from unknown(config, HIVED_KEYS, place)
        for key, value in config.items():
            if value is None:
                yield f"{place}/{key}: null is rejected by the published schema"
    for number, plugin in enumerate(job.get("extras", {}).get("com.microsoft.pai.runtimeplugin", [])):
        place = f"/extras/com.microsoft.pai.runtimeplugin/{number}"
        if "plugin" not in plugin:
            yield f"{place}/plugin: is required"
        for role in sorted(set(plugin.get("taskroles", [])) - set(job["taskRoles"])):
            yield f"{place}/taskroles: no role is named `{role}`"


def references(job):
    """An undefined name is left unchanged in the command, which nothing else reports."""
    for role, content in job["taskRoles"].items():
        text = "\n".join(command for command in content.get("commands", []) if isinstance(command, str))
        for scope, path in REFERENCE.findall(text):
            first = path.strip().lstrip(".").split(".")[0].split("[")[0]
            if scope in ("parameters", "secrets") and first not in job.get(scope, {}):
                yield f"/taskRoles/{role}/commands: `${scope}.{first}` is not defined"
            if scope in ("data", "output", "script") and scope not in content:
                yield f"/taskRoles/{role}/commands: `${scope}` is used, but the role names no {scope}"
