"""Tests pulling from and pushing to a real registry, docker-registry, with a password and with TLS: jobc pulls what skopeo pushed,
and skopeo and podman read what jobc pushed.
"""

import json
import os

import pytest

from home import Home, assert_result
from registry import certificate, command, image, registry, self_signed

pytestmark = [pytest.mark.duration(4), pytest.mark.needs("docker-registry", "skopeo", "umoci", "htpasswd", "openssl", "oci-image-tool")]


@pytest.fixture(scope="module")
def layout(shared):
    return image(shared)


@pytest.fixture(scope="module")
def plain(shared, layout):
    """The address of a registry over plain HTTP, with an image in both formats that skopeo writes."""
    with registry(shared / "plain") as host:
        for form in ("oci", "v2s2"):
            command("skopeo", "copy", "--dest-tls-verify=false", "--format", form, f"oci:{layout}:1", f"docker://{host}/team/{form}:1")
        yield host


@pytest.fixture(scope="module")
def pushed(shared, plain):
    """A home that has pulled an image, and the name that it has pushed it to."""
    home, name = Home(shared / "pushing"), f"{plain}/other/app:2"
    assert_result(home.run("image", "pull", "--plain-http", f"{plain}/team/oci:1"))
    assert_result(home.run("image", "push", "--plain-http", f"{plain}/team/oci:1", name))
    return home, name


def assert_valid(name, layout):
    """oci-image-tool accepts an image."""
    assert_result(command("oci-image-tool", "validate", "--type", "image", "--ref", f"name={name}", layout, check=False))


@pytest.mark.parametrize("form", ["oci", "v2s2"])
def test_what_skopeo_pushed_is_pulled(home, plain, form):
    name = f"{plain}/team/{form}:1"
    assert_result(home.run("image", "pull", "--plain-http", name))
    if form == "oci":
        assert_valid(name, home.store)


def test_what_the_registry_has_is_not_pushed_again(plain, pushed):
    home, name = pushed
    assert_result(home.run("image", "push", "--plain-http", f"{plain}/team/oci:1", name), 0, "is here")


def test_skopeo_reads_what_was_pushed(directory, plain, pushed):
    ours, theirs = (command("skopeo", "inspect", "--raw", "--tls-verify=false", f"docker://{name}").stdout
                    for name in (pushed[1], f"{plain}/team/oci:1"))
    assert ours == theirs
    command("skopeo", "copy", "--src-tls-verify=false", f"docker://{pushed[1]}", f"oci:{directory}/back:1")
    assert_valid("1", directory / "back")


@pytest.mark.needs("podman")
def test_podman_pulls_and_loads_what_was_pushed(directory, pushed):
    storage = ["podman", "--root", directory / "podman", "--runroot", directory / "podman-run", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]
    assert_result(command(*storage, "pull", "--quiet", "--tls-verify=false", pushed[1], check=False))
    archive = directory / "archive.tar"
    command("skopeo", "copy", "--src-tls-verify=false", f"docker://{pushed[1]}", f"docker-archive:{archive}:load.example/app:1")
    assert_result(command(*storage, "load", "--quiet", "-i", archive, check=False))


def test_an_unknown_name_is_reported(home, plain):
    assert_result(home.run("image", "pull", "--plain-http", f"{plain}/team/none:1"), 1, "has no `")


def test_a_locked_digest_is_kept_when_the_tag_moves(home, plain, layout):
    name, lock = f"{plain}/team/app:1", home.directory / "jobc.lock"

    def push(number):
        command("umoci", "config", "--image", f"{layout}:1", "--config.label", f"number={number}")
        command("skopeo", "copy", "--dest-tls-verify=false", f"oci:{layout}:1", f"docker://{name}")
        return json.loads(command("skopeo", "inspect", "--tls-verify=false", f"docker://{name}").stdout)["Digest"]

    first = push(1)
    (home.directory / "job.yaml").write_text(json.dumps({"version": 1, "name": "app", "image": name, "roles": {"main": {"run": "true"}}}))
    assert_result(home.run("lock", "--plain-http"))
    assert f'"{name}": {first}\n' in lock.read_text()
    second = push(2)
    assert_result(home.run("lock", "--plain-http"))
    assert first in lock.read_text()
    assert_result(home.run("build", "--locked", "--target", "local"))
    assert f"{name}@{first}" in (home.directory / "out/app/local/plan.json").read_text()
    assert_result(home.run("image", "pull", "--plain-http", f"{name}@{first}"))
    assert_result(home.run("lock", "--plain-http", "--update", name))
    assert second in lock.read_text() and first != second


@pytest.fixture(scope="module")
def closed(shared, layout):
    """The directory and address of a registry with its own CA and a password."""
    place = shared / "closed"
    with registry(place, tls=certificate, password=True) as host:
        command("skopeo", "copy", "--dest-tls-verify=false", "--dest-creds", "me:secret", f"oci:{layout}:1", f"docker://{host}/team/app:1")
        yield place, host


@pytest.fixture
def trusting(home, closed):
    """A home that trusts the CA of that registry, and the name of its image."""
    place, host = closed
    home.registries({host: {"ca": [str(place / "ca.pem")]}})
    return home, host, f"{host}/team/app:1"


def log_in(home, host):
    authfile = home.directory / ".config/containers/auth.json"
    authfile.parent.mkdir(parents=True)
    command("skopeo", "login", "--tls-verify=false", "--authfile", authfile, "-u", "me", "-p", "secret", host)


def test_a_certificate_of_an_unknown_ca_is_rejected(home, closed):
    assert_result(home.run("image", "pull", f"{closed[1]}/team/app:1"), 3, "not signed by a trusted CA")
    assert_result(home.run("image", "pull", "--plain-http", f"{closed[1]}/team/app:1"), 3)


def test_a_missing_login_is_reported(trusting):
    home, host, name = trusting
    assert_result(home.run("image", "pull", name), 3, "requires a login", f"docker login {host}")


def test_a_login_by_skopeo_is_used_for_pull_and_push(trusting):
    home, host, name = trusting
    log_in(home, host)
    assert_result(home.run("image", "pull", name))
    assert_result(home.run("image", "push", name, f"{host}/new/app:3"))
    assert_result(command("skopeo", "inspect", "--tls-verify=false", "--creds", "me:secret", f"docker://{host}/new/app:3", check=False))


def test_a_ca_in_certs_d_is_trusted(home, closed):
    place, host = closed
    log_in(home, host)
    certs = home.directory / f".config/containers/certs.d/{host}"
    certs.mkdir(parents=True)
    (certs / "ca.crt").write_text((place / "ca.pem").read_text())
    assert_result(home.run("image", "pull", f"{host}/team/app:1"))


def test_a_certificate_for_another_name_is_rejected(home, closed):
    other = closed[1].replace("localhost", "127.0.0.1")
    home.registries({other: {"ca": [str(closed[0] / "ca.pem")]}})
    assert_result(home.run("image", "pull", f"{other}/team/app:1"), 3, "certificate")


def test_a_wrong_password_is_reported(trusting):
    home, host, name = trusting
    home.login(**{host.replace(":", "__"): {"auth": "bWU6d3Jvbmc="}})
    assert_result(home.run("image", "pull", name), 3, "denied permission to pull from `team/app` with the current login")


def test_a_credential_helper_has_the_password(trusting):
    home, host, name = trusting
    programs = home.directory / "bin"
    programs.mkdir()
    program = programs / "docker-credential-test"
    program.write_text('#!/bin/sh\nread -r server\n[ "$1 $server" = "get ' + host + '" ] || exit 1\n'
                       'echo \'{"Username":"me","Secret":"secret"}\'\n')
    program.chmod(0o755)
    (home.directory / ".docker").mkdir()
    (home.directory / ".docker/config.json").write_text(json.dumps({"auths": {host: {}}, "credsStore": "test"}))
    assert_result(home.run("image", "pull", name, PATH=f"{programs}:{os.environ['PATH']}"))
    assert_result(home.run("image", "pull", name), 3, "`docker-credential-test`", "cannot be started")


@pytest.fixture(scope="module")
def own(shared, layout):
    """The address of a registry with a certificate that it has signed itself, and that certificate."""
    with registry(shared / "valid", tls=self_signed) as host:
        command("skopeo", "copy", "--dest-tls-verify=false", f"oci:{layout}:1", f"docker://{host}/team/app:1")
        yield host, str(shared / "valid/server.pem")


def test_a_self_signed_certificate_is_trusted_only_as_ca(home, own):
    host, certificate_file = own
    name = f"{host}/team/app:1"
    assert_result(home.run("image", "pull", name), 3, "its certificate", "as `ca` in registries.yaml")
    home.registries({host: {"ca": [certificate_file]}})
    assert_result(home.run("image", "pull", name))
    assert_result(home.run("image", "push", name, f"{host}/new/app:3"))


def test_a_self_signed_certificate_for_another_name_is_rejected_unless_insecure(home, own):
    other = own[0].replace("localhost", "127.0.0.1")
    home.registries({other: {"ca": [own[1]]}})
    assert_result(home.run("image", "pull", f"{other}/team/app:1"), 3, "certificate")
    home.registries({other: {"insecure": True}})
    assert_result(home.run("image", "pull", f"{other}/team/app:1"), 0, "is not verified (`insecure: true`")


def test_another_self_signed_certificate_as_ca_is_not_enough(home, own):
    (home.directory / "other").mkdir()
    self_signed(home.directory / "other")
    home.registries({own[0]: {"ca": [str(home.directory / "other/server.pem")]}})
    assert_result(home.run("image", "pull", f"{own[0]}/team/app:1"), 3, "certificate")


def test_an_expired_self_signed_certificate_is_rejected(home):
    expired = home.directory / "expired"
    with registry(expired, tls=lambda place: self_signed(place, "20200101000000Z", "20200201000000Z")) as host:
        home.registries({host: {"ca": [str(expired / "server.pem")]}})
        assert_result(home.run("image", "pull", f"{host}/team/app:1"), 3, "certificate", "xpired")
