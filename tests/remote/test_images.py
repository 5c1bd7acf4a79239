"""Tests the images of `jobc submit`: what is built and pushed, what goes over the wire, what is refused, and interruptions."""

import signal
import subprocess
import time

import needs
import pytest
from place import CODE_BYTES, until

pytestmark = pytest.mark.duration(20)


@pytest.fixture(autouse=True)
def job(place, registry):
    """A job `built.yaml` whose image is built on one of the registry and pushed there."""
    place.build_on(registry)


def test_only_what_is_missing_is_sent(place, registry):
    out, errors = place.run("submit", "built.yaml")
    first = out.strip()
    image = place.image_of(first)
    assert image.startswith(f"{registry.host}/ml/built-main@sha256:"), image
    manifest, _, layers = registry.image(image)
    assert len(layers) == 2 and len(layers[1]) > CODE_BYTES, [len(layer) for layer in layers]
    assert "pushed" in errors, errors
    # The layer of the base is taken from its own repository.
    assert registry.count("POST", "[?]mount=sha256.*&from=base") >= 1, registry.requests
    assert registry.received < CODE_BYTES * 1.1, registry.received
    tag = image.split("sha256:")[1][:12]
    assert registry.tags["ml/built-main", tag] == image.split("@")[1], registry.tags
    # The same again sends nothing.
    registry.forget()
    assert place.submit("built.yaml") == first and registry.received == 0, registry.received
    assert len(registry.requests) <= 2, registry.requests
    # Of other code, its layer and the configuration are sent.
    place.edit()
    registry.forget()
    second = place.submit("built.yaml")
    assert second != first and len(place.cluster.all("jobs")) == 2, second
    assert registry.count("PUT", "/blobs/uploads/") == 2 and registry.count("PUT", "/manifests/") == 1, registry.requests
    assert CODE_BYTES < registry.received < CODE_BYTES * 1.1, registry.received
    assert place.image_of(first) == image and place.image_of(second) != image, "the first image is kept"


def test_a_job_without_builds_is_untouched(place, registry):
    place.submit("one.yaml")
    assert not registry.requests and not (place.directory / "images").exists(), registry.requests


def test_a_matrix_shares_an_image(place, registry):
    place.write("built.yaml", (place.directory / "built.yaml").read_text() + "matrix: {lr: [1, 2, 3]}\n")
    handles = place.submit("built.yaml").split()
    images = {place.image_of(handle) for handle in handles}
    assert len(handles) == 3 and len(images) == 1, images
    assert registry.count("PUT", "/manifests/") == 1, registry.requests


def test_images_can_be_pushed_by_hand(place, registry):
    _, errors = place.run("submit", "built.yaml", "--no-build", code=1)
    assert "is not in the registry" in errors and "jobc image push" in errors and " --> built.yaml:4:" in errors, errors
    assert not place.cluster.all("jobs"), "nothing without the image"
    name = errors.split("jobc image push ")[1].split("`")[0]
    place.submit("built.yaml")
    local = name.split("/")[-1]
    place.run("image", "push", local, name)
    registry.forget()
    handle = place.submit("built.yaml", "--no-build")
    assert "@sha256:" in place.image_of(handle) and registry.received == 0, place.image_of(handle)
    assert len(place.cluster.all("jobs")) == 1, "the same image is the same job"


def test_a_dry_run_builds_nothing(place, registry):
    _, errors = place.run("submit", "built.yaml", "--dry-run")
    assert "would be built and sent" in errors and "accepts the job" in errors, errors
    assert not registry.requests and not place.cluster.all("jobs"), registry.requests


def test_the_cluster_is_asked_before_a_build(place, registry):
    place.cluster.denied = {"create jobs"}
    _, errors = place.run("submit", "built.yaml", code=1)
    assert "you may not create `jobs.batch`" in errors and not registry.requests, errors


def test_refusals_of_the_registry_are_explained(place, registry):
    uploads, manifests = "/blobs/uploads/", "/ml/.*/manifests/"
    for method, path, code, words in [
        ("POST", uploads, 403, "does not allow it"),
        ("PUT", uploads, 413, "is too large for it"),
        ("PUT", manifests, 404, "404 Not Found"),
    ]:
        place.edit()
        registry.fail(method, path, code)
        _, errors = place.run("submit", "built.yaml", code=3)
        assert words in errors and "cannot push it" in errors and " --> built.yaml:4:" in errors, errors
    assert not place.cluster.all("jobs"), "nothing without its image"
    place.edit()
    registry.fail("POST", uploads, 429, retry_after=2)
    since = time.monotonic()
    place.submit("built.yaml")
    assert time.monotonic() - since >= 2, "Retry-After was not waited for"
    place.edit()
    registry.fail("POST", uploads, 429, times=4, retry_after=600)
    _, errors = place.run("submit", "built.yaml", code=3)
    assert "429 Too Many Requests" in errors and "it requests a retry after 600 s" in errors, errors
    registry.close()
    _, errors = place.run("submit", "built.yaml", code=3)
    assert "cannot reach the registry" in errors and " --> built.yaml:4:" in errors, errors


def test_a_registry_with_a_login(place, registry):
    registry.password = "me:secret"
    _, errors = place.run("submit", "built.yaml", code=3)
    assert "requires a login" in errors and f"docker login {registry.host}" in errors, errors
    place.login(registry.host, "me:wrong")
    _, errors = place.run("submit", "built.yaml", code=3)
    assert "denied permission" in errors, errors
    place.login(registry.host, "me:secret")
    place.submit("built.yaml")


def test_an_interruption_leaves_nothing_half(place, registry):
    registry.delay = 30.0
    process = place.start("submit", "built.yaml")
    until(lambda: registry.count("PUT", "/blobs/uploads/"), "an upload")
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 130, (process.returncode, errors)
    assert not place.cluster.all("jobs") and not registry.tags.get(("ml/built-main", "1")), "something was created"
    place.run("image", "verify")
    registry.delay = 0.0
    handle = place.submit("built.yaml")
    registry.image(place.image_of(handle))


def test_a_full_disk_is_said(place):
    needs.root()
    (place.directory / "images").mkdir()
    script = 'mount -t tmpfs -o size=600k jobc "$1/images" && shift && exec "$@"'
    result = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", place.directory, place.program, "submit", "built.yaml"],
                            cwd=place.directory, env=place.environment(), capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 3 and "no space left in the image store" in result.stderr, (result.returncode, result.stderr)
    assert not place.cluster.all("jobs"), "something was created"
