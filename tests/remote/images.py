#!/usr/bin/env python3
"""Tests the images of `jobc submit`: what is built and pushed, what goes over the wire, what is refused, and interruptions."""

import os
import signal
import subprocess
import time

from fixture import expect, run_cases, until
from harness import Harness
from registry import Registry

CODE_BYTES = 1 << 20
JOB = """\
version: 1
name: built
image:
  from: {base}
  copy: [{{from: code, to: /workspace}}]
roles:
  main:
    run: python /workspace/train.py
"""
MATRIX = JOB + "matrix: {{lr: [1, 2, 3]}}\n"
TARGETS = """\
version: 1
targets:
  lab:
    backends: [kubernetes]
    registry: {host}/ml
    kubernetes: {{namespace: ml, kubeconfig: {kubeconfig}}}
"""


def prepared(place, password=None, job=JOB):
    """A registry with a base image, and a job that is built on it."""
    registry = Registry(password)
    place.registry(registry)
    place.write("targets.yaml", TARGETS.format(host=registry.host, kubeconfig=place.kubeconfig.name))
    (place.directory / "code").mkdir(exist_ok=True)
    (place.directory / "code/train.py").write_bytes(os.urandom(CODE_BYTES))
    place.write("built.yaml", job.format(base=registry.base()))
    return registry


def edit(place):
    """Changes the code, which does not compress."""
    (place.directory / "code/train.py").write_bytes(os.urandom(CODE_BYTES))


def image_of(place, name):
    job, = [job for job in place.cluster.all("jobs") if job["metadata"]["name"] == name.split("/")[1]]
    return job["spec"]["template"]["spec"]["containers"][0]["image"]


def only_what_is_missing_is_sent(place):
    registry = prepared(place)
    out, errors = place.run("submit", "built.yaml")
    first = out.strip()
    image = image_of(place, first)
    expect(image.startswith(f"{registry.host}/ml/built-main@sha256:"), image)
    manifest, _, layers = registry.image(image)
    expect(len(layers) == 2 and len(layers[1]) > CODE_BYTES, [len(layer) for layer in layers])
    expect("pushed" in errors, errors)
    # The layer of the base is taken from its own repository.
    expect(registry.count("POST", "[?]mount=sha256.*&from=base") >= 1, registry.requests)
    expect(registry.received < CODE_BYTES * 1.1, registry.received)
    tag = image.split("sha256:")[1][:12]
    expect(registry.tags["ml/built-main", tag] == image.split("@")[1], registry.tags)
    # The same again sends nothing.
    registry.forget()
    expect(place.submit("built.yaml") == first and registry.received == 0, registry.received)
    expect(len(registry.requests) <= 2, registry.requests)
    # Of other code, its layer and the configuration are sent.
    edit(place)
    registry.forget()
    second = place.submit("built.yaml")
    expect(second != first and len(place.cluster.all("jobs")) == 2, second)
    expect(registry.count("PUT", "/blobs/uploads/") == 2 and registry.count("PUT", "/manifests/") == 1, registry.requests)
    expect(CODE_BYTES < registry.received < CODE_BYTES * 1.1, registry.received)
    expect(image_of(place, first) == image and image_of(place, second) != image, "the first image is kept")
    registry.close()


def a_job_without_builds_is_untouched(place):
    registry = prepared(place)
    place.submit("one.yaml")
    expect(not registry.requests and not (place.directory / "images").exists(), registry.requests)
    registry.close()


def a_matrix_shares_an_image(place):
    registry = prepared(place, job=MATRIX)
    handles = place.submit("built.yaml").split()
    images = {image_of(place, handle) for handle in handles}
    expect(len(handles) == 3 and len(images) == 1, images)
    expect(registry.count("PUT", "/manifests/") == 1, registry.requests)
    registry.close()


def images_can_be_pushed_by_hand(place):
    registry = prepared(place)
    _, errors = place.run("submit", "built.yaml", "--no-build", code=1)
    expect("is not in the registry" in errors and "jobc image push" in errors and " --> built.yaml:4:" in errors, errors)
    expect(not place.cluster.all("jobs"), "nothing without the image")
    name = errors.split("jobc image push ")[1].split("`")[0]
    place.submit("built.yaml")
    local = name.split("/")[-1]
    place.run("image", "push", local, name)
    registry.forget()
    handle = place.submit("built.yaml", "--no-build")
    expect("@sha256:" in image_of(place, handle) and registry.received == 0, image_of(place, handle))
    expect(len(place.cluster.all("jobs")) == 1, "the same image is the same job")
    registry.close()


def a_dry_run_builds_nothing(place):
    registry = prepared(place)
    _, errors = place.run("submit", "built.yaml", "--dry-run")
    expect("would be built and sent" in errors and "accepts the job" in errors, errors)
    expect(not registry.requests and not place.cluster.all("jobs"), registry.requests)
    registry.close()


def the_cluster_is_asked_before_a_build(place):
    registry = prepared(place)
    place.cluster.denied = {"create jobs"}
    _, errors = place.run("submit", "built.yaml", code=1)
    expect("you may not create `jobs.batch`" in errors and not registry.requests, errors)
    registry.close()


def refusals_of_the_registry_are_explained(place):
    registry = prepared(place)
    uploads, manifests = "/blobs/uploads/", "/ml/.*/manifests/"
    for method, path, code, words in [
        ("POST", uploads, 403, "does not allow it"),
        ("PUT", uploads, 413, "is too large for it"),
        ("PUT", manifests, 404, "404 Not Found"),
    ]:
        edit(place)
        registry.fail(method, path, code)
        _, errors = place.run("submit", "built.yaml", code=3)
        expect(words in errors and "cannot push it" in errors and " --> built.yaml:4:" in errors, errors)
    expect(not place.cluster.all("jobs"), "nothing without its image")
    edit(place)
    registry.fail("POST", uploads, 429, retry_after=2)
    since = time.monotonic()
    place.submit("built.yaml")
    expect(time.monotonic() - since >= 2, "Retry-After was not waited for")
    edit(place)
    registry.fail("POST", uploads, 429, times=4, retry_after=600)
    _, errors = place.run("submit", "built.yaml", code=3)
    expect("429 Too Many Requests" in errors and "it requests a retry after 600 s" in errors, errors)
    registry.close()
    _, errors = place.run("submit", "built.yaml", code=3)
    expect("cannot reach the registry" in errors and " --> built.yaml:4:" in errors, errors)


def a_registry_with_a_login(place):
    registry = prepared(place, "me:secret")
    _, errors = place.run("submit", "built.yaml", code=3)
    expect("requires a login" in errors and f"docker login {registry.host}" in errors, errors)
    place.login(registry.host, "me:wrong")
    _, errors = place.run("submit", "built.yaml", code=3)
    expect("denied permission" in errors, errors)
    place.login(registry.host, "me:secret")
    place.submit("built.yaml")
    registry.close()


def an_interruption_leaves_nothing_half(place):
    registry = prepared(place)
    registry.delay = 30.0
    process = place.start("submit", "built.yaml")
    until(lambda: registry.count("PUT", "/blobs/uploads/"), "an upload")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=10)
    expect(process.returncode == 130, (process.returncode, errors))
    expect(not place.cluster.all("jobs") and not registry.tags.get(("ml/built-main", "1")), "something was created")
    place.run("image", "verify")
    registry.delay = 0.0
    handle = place.submit("built.yaml")
    registry.image(image_of(place, handle))
    registry.close()


def a_full_disk_is_said(place):
    if os.geteuid() != 0:
        return []
    registry = prepared(place)
    (place.directory / "images").mkdir()
    script = 'mount -t tmpfs -o size=600k jobc "$1/images" && shift && exec "$@"'
    result = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", place.directory, place.program, "submit", "built.yaml"],
                            cwd=place.directory, env=place.environment(), capture_output=True, text=True, timeout=60, check=False)
    expect(result.returncode == 3 and "no space left in the image store" in result.stderr, (result.returncode, result.stderr))
    expect(not place.cluster.all("jobs"), "something was created")
    registry.close()
    return []


if __name__ == "__main__":
    run_cases(Harness("images", __doc__), [
        only_what_is_missing_is_sent, a_job_without_builds_is_untouched, a_matrix_shares_an_image, images_can_be_pushed_by_hand,
        a_dry_run_builds_nothing, the_cluster_is_asked_before_a_build, refusals_of_the_registry_are_explained, a_registry_with_a_login,
        an_interruption_leaves_nothing_half, a_full_disk_is_said,
    ])
