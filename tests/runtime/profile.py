"""The default seccomp profile of Docker in the format of the specification: about 350 allowed syscalls."""

import json
import platform
from pathlib import Path

# From Debian's golang-github-containers-common, which podman depends on: Docker's profile with its conditions.
SOURCE = Path("/usr/share/containers/seccomp.json")
ARCHITECTURES = {"x86_64": ("amd64", "SCMP_ARCH_X86_64"), "aarch64": ("arm64", "SCMP_ARCH_AARCH64")}


def docker(capabilities):
    """The profile for a container with these capabilities, on this host's architecture."""
    written = json.loads(SOURCE.read_text())
    short, arch = ARCHITECTURES[platform.machine()]
    others = next((m["subArchitectures"] for m in written["archMap"] if m["architecture"] == arch), [])
    calls = []
    for rule in written["syscalls"]:
        includes, excludes = rule.get("includes") or {}, rule.get("excludes") or {}
        if includes.get("caps") and not set(includes["caps"]) <= set(capabilities):
            continue
        if includes.get("arches") and short not in includes["arches"]:
            continue
        if set(excludes.get("caps") or ()) & set(capabilities) or short in (excludes.get("arches") or ()):
            continue
        kept = {key: rule[key] for key in ("names", "action", "args", "errnoRet") if rule.get(key)}
        calls.append(kept)
    profile = {"defaultAction": written["defaultAction"], "architectures": [arch, *(others or [])], "syscalls": calls}
    if "defaultErrnoRet" in written:
        profile["defaultErrnoRet"] = written["defaultErrnoRet"]
    return profile
