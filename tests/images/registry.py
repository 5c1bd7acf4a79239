#!/usr/bin/env python3
"""Tests pulling from and pushing to a real registry, docker-registry, with a password and with TLS: jobc pulls what skopeo pushed,
and skopeo and podman read what jobc pushed.
"""

import contextlib
import json
import os
import socket
import subprocess
import time
from pathlib import Path

from home import Home
from harness import Harness, scratch


def command(*words, check=True, **more):
    result = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False, **more)
    if check and result.returncode != 0:
        raise SystemExit(f"registry: `{' '.join(map(str, words))}` fails: {result.stdout}{result.stderr}")
    return result


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def registry(directory, tls=False, password=False):
    """Runs docker-registry on the loopback address, and returns its `HOST:PORT`. `tls` is a function that writes `server.pem` and
    `server.key` to a directory."""
    directory.mkdir()
    host = f"localhost:{free_port()}"
    settings = {"version": "0.1", "log": {"level": "error"}, "storage": {"filesystem": {"rootdirectory": str(directory / "data")}},
                "http": {"addr": host.replace("localhost", "127.0.0.1"), "secret": "x"}}
    if tls:
        tls(directory)
        settings["http"]["tls"] = {"certificate": str(directory / "server.pem"), "key": str(directory / "server.key")}
    if password:
        words = command("htpasswd", "-Bbn", "me", "secret").stdout
        (directory / "htpasswd").write_text(words)
        settings["auth"] = {"htpasswd": {"realm": "here", "path": str(directory / "htpasswd")}}
    (directory / "config.yml").write_text(json.dumps(settings))
    with open(directory / "log", "wb") as log:
        process = subprocess.Popen(["docker-registry", "serve", str(directory / "config.yml")], stdout=log, stderr=log)
    try:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", int(host.split(":")[1])), 1):
                break
            time.sleep(0.05)
        yield host
    finally:
        process.kill()
        process.wait()


def self_signed(directory, begin=None, end=None):
    """A certificate for `localhost` as `openssl req -x509` makes it: its own CA. It is valid today, or between two dates."""
    (directory / "db").write_text("")
    (directory / "serial").write_text("01\n")
    (directory / "ca.conf").write_text(
        f"[ca]\ndefault_ca = own\n[own]\ndatabase = {directory}/db\nserial = {directory}/serial\nnew_certs_dir = {directory}\n"
        "default_md = sha256\npolicy = any\nunique_subject = no\n[any]\ncommonName = supplied\n"
        "[own_extensions]\nbasicConstraints = critical, CA:TRUE\nsubjectAltName = DNS:localhost\n")
    command("openssl", "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
            "-keyout", directory / "server.key", "-out", directory / "server.csr")
    dates = ["-startdate", begin, "-enddate", end] if begin else ["-days", "2"]
    command("openssl", "ca", "-batch", "-notext", "-config", directory / "ca.conf", "-selfsign", "-keyfile", directory / "server.key", "-extensions",
            "own_extensions", *dates, "-in", directory / "server.csr", "-out", directory / "server.pem")


def certificate(directory):
    """A CA, `ca.pem`, and a certificate for `localhost` that it has signed."""
    command("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=ours",
            "-keyout", directory / "ca.key", "-out", directory / "ca.pem")
    command("openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=localhost",
            "-keyout", directory / "server.key", "-out", directory / "server.csr")
    (directory / "names").write_text("subjectAltName=DNS:localhost\n")
    command("openssl", "x509", "-req", "-in", directory / "server.csr", "-CA", directory / "ca.pem", "-CAkey", directory / "ca.key", "-CAcreateserial",
            "-days", "2", "-extfile", directory / "names", "-out", directory / "server.pem")


def image(directory):
    """An image of two layers in a layout, made by umoci."""
    layout, files = directory / "layout", directory / "files"
    files.mkdir()
    (files / "large").write_bytes(os.urandom(1_000_000))
    (files / "small").write_text("hello\n")
    (files / "link").symlink_to("small")
    command("umoci", "init", "--layout", layout)
    command("umoci", "new", "--image", f"{layout}:1")
    command("umoci", "insert", "--image", f"{layout}:1", files, "/data")
    command("umoci", "insert", "--image", f"{layout}:1", files / "small", "/etc/motd")
    command("umoci", "config", "--image", f"{layout}:1", "--config.cmd", "/bin/true", "--config.env", "A=b")
    return layout


def unexpected_result(result, code=0, *words):
    """The differences from the expected exit code and messages."""
    if result.returncode != code:
        yield f"exit code {result.returncode}, not {code}: {result.stdout}{result.stderr}"
    yield from (f"`{word}` is not in the output: {result.stderr}" for word in words if word not in result.stderr)




def validated(home, name):
    """Problems that oci-image-tool finds in an image of the store."""
    result = command("oci-image-tool", "validate", "--type", "image", "--ref", f"name={name}", home.store, check=False)
    if result.returncode != 0:
        yield f"oci-image-tool: {result.stdout}{result.stderr}"


def plain_http(harness, directory, layout):
    """Plain HTTP: both formats that skopeo writes; our push, read back by skopeo; blobs mounted from another repository."""
    home = Home(directory)
    with registry(directory / "plain") as host:
        for form in ("oci", "v2s2"):
            name = f"{host}/team/{form}:1"
            command("skopeo", "copy", "--dest-tls-verify=false", "--format", form, f"oci:{layout}:1", f"docker://{name}")
            pulled = home.run("image", "pull", "--plain-http", name)
            harness.check(f"pull what skopeo pushed as {form}", [*unexpected_result(pulled), *home.store_problems()])
            if form == "oci":
                harness.check("oci-image-tool accepts the store", validated(home, name))
        pushed_name = f"{host}/other/app:2"
        harness.check("push", unexpected_result(home.run("image", "push", "--plain-http", f"{host}/team/oci:1", pushed_name)))
        harness.check("push again", unexpected_result(home.run("image", "push", "--plain-http", f"{host}/team/oci:1", pushed_name), 0, "is here"))
        ours, theirs = (command("skopeo", "inspect", "--raw", "--tls-verify=false", f"docker://{name}").stdout
                        for name in (pushed_name, f"{host}/team/oci:1"))
        harness.check("skopeo reads the same manifest", [] if ours == theirs else [f"{ours} and {theirs}"])
        back = directory / "back"
        command("skopeo", "copy", "--src-tls-verify=false", f"docker://{pushed_name}", f"oci:{back}:1")
        result = command("oci-image-tool", "validate", "--type", "image", "--ref", "name=1", back, check=False)
        harness.check("what skopeo copied back is valid", unexpected_result(result))
        podman(harness, directory, pushed_name)
        harness.check("an unknown name", unexpected_result(home.run("image", "pull", "--plain-http", f"{host}/team/none:1"), 1, "has no `"))


def podman(harness, directory, name):
    """podman pulls the image, and loads it from an archive."""
    if not harness.tool("podman"):
        return
    storage = ["podman", "--root", directory / "podman", "--runroot", directory / "podman-run", "--storage-driver", "vfs", "--cgroup-manager", "cgroupfs"]
    harness.check("podman pulls what we pushed", unexpected_result(command(*storage, "pull", "--quiet", "--tls-verify=false", name, check=False)))
    archive = directory / "archive.tar"
    command("skopeo", "copy", "--src-tls-verify=false", f"docker://{name}", f"docker-archive:{archive}:load.example/app:1")
    harness.check("podman loads the archive of skopeo", unexpected_result(command(*storage, "load", "--quiet", "-i", archive, check=False)))


def lock_file(harness, directory, layout):
    """`jobc lock` resolves a name to a digest, which is kept when the tag moves."""
    home = Home(directory)
    with registry(directory / "locked") as host:
        name = f"{host}/team/app:1"

        def push(number):
            command("umoci", "config", "--image", f"{layout}:1", "--config.label", f"number={number}")
            command("skopeo", "copy", "--dest-tls-verify=false", f"oci:{layout}:1", f"docker://{name}")
            return json.loads(command("skopeo", "inspect", "--tls-verify=false", f"docker://{name}").stdout)["Digest"]

        first = push(1)
        (home.directory / "job.yaml").write_text(json.dumps({"version": 1, "name": "app", "image": name, "roles": {"main": {"run": "true"}}}))
        harness.check("lock", unexpected_result(home.run("lock", "--plain-http")))
        lock = home.directory / "jobc.lock"
        harness.check("the lock file has the registry's digest", [] if f'"{name}": {first}\n' in lock.read_text() else [lock.read_text()])
        second = push(2)
        harness.check("lock again", unexpected_result(home.run("lock", "--plain-http")))
        harness.check("the digest is kept", [] if first in lock.read_text() else [lock.read_text()])
        harness.check("build --locked", unexpected_result(home.run("build", "--locked", "--target", "local")))
        plan = (home.directory / "out/app/local/plan.json").read_text()
        harness.check("the plan has the digest", [] if f"{name}@{first}" in plan else [plan])
        harness.check("pull by digest", [*unexpected_result(home.run("image", "pull", "--plain-http", f"{name}@{first}")), *home.store_problems()])
        harness.check("lock --update", unexpected_result(home.run("lock", "--plain-http", "--update", name)))
        harness.check("the digest is updated", [] if second in lock.read_text() and first != second else [lock.read_text()])


def tls_and_password(harness, directory, layout):
    """TLS with our own CA, and a password."""
    home = Home(directory)
    place = directory / "closed"
    with registry(place, tls=certificate, password=True) as host:
        name = f"{host}/team/app:1"
        command("skopeo", "copy", "--dest-tls-verify=false", "--dest-creds", "me:secret", f"oci:{layout}:1", f"docker://{name}")
        harness.check("an unknown CA", unexpected_result(home.run("image", "pull", name), 3, "not signed by a trusted CA"))
        harness.check("plain HTTP with TLS", unexpected_result(home.run("image", "pull", "--plain-http", name), 3))
        home.registries({host: {"ca": [str(place / "ca.pem")]}})
        harness.check("without a password", unexpected_result(home.run("image", "pull", name), 3, "requires a login", f"docker login {host}"))
        authfile = home.directory / ".config/containers/auth.json"
        authfile.parent.mkdir(parents=True)
        command("skopeo", "login", "--tls-verify=false", "--authfile", authfile, "-u", "me", "-p", "secret", host)
        harness.check("logged in by skopeo", [*unexpected_result(home.run("image", "pull", name)), *home.store_problems()])
        harness.check("push with TLS and a password", unexpected_result(home.run("image", "push", name, f"{host}/new/app:3")))
        pushed = command("skopeo", "inspect", "--tls-verify=false", "--creds", "me:secret", f"docker://{host}/new/app:3", check=False)
        harness.check("skopeo reads it", unexpected_result(pushed))
        (home.directory / ".config/jobc/registries.yaml").unlink()
        certs = home.directory / f".config/containers/certs.d/{host}"
        certs.mkdir(parents=True)
        (certs / "ca.crt").write_text((place / "ca.pem").read_text())
        harness.check("a CA in certs.d", unexpected_result(home.run("image", "pull", name)))
        other = name.replace("localhost", "127.0.0.1")
        settings = {other.split("/")[0]: {"ca": [str(place / "ca.pem")]}}
        home.registries(settings)
        harness.check("a certificate for another name", unexpected_result(home.run("image", "pull", other), 3, "certificate"))
        authfile.unlink()
        home.login(**{host.replace(":", "__"): {"auth": "bWU6d3Jvbmc="}})
        harness.check("a wrong password", unexpected_result(home.run("image", "pull", name), 3, "denied permission to pull from `team/app` with the current login"))
        credential_helper(harness, home, host, name)


def self_signed_certificate(harness, directory, layout):
    """A registry with a certificate that it has signed itself."""
    home = Home(directory)
    valid, expired = directory / "valid", directory / "expired"
    with registry(valid, tls=self_signed) as host:
        name = f"{host}/team/app:1"
        certificate_file = str(valid / "server.pem")
        command("skopeo", "copy", "--dest-tls-verify=false", f"oci:{layout}:1", f"docker://{name}")
        def pull():
            return home.run("image", "pull", name)

        harness.check("a self-signed certificate that is not trusted", unexpected_result(pull(), 3, "its certificate", "as `ca` in registries.yaml"))
        home.registries({host: {"ca": [certificate_file]}})
        harness.check("a self-signed certificate as `ca`", [*unexpected_result(pull()), *home.store_problems()])
        harness.check("push to it", unexpected_result(home.run("image", "push", name, f"{host}/new/app:3")))
        other = name.replace("localhost", "127.0.0.1")
        home.registries({other.split("/")[0]: {"ca": [certificate_file]}})
        harness.check("a self-signed certificate for another name", unexpected_result(home.run("image", "pull", other), 3, "certificate"))
        home.registries({other.split("/")[0]: {"insecure": True}})
        harness.check("insecure", unexpected_result(home.run("image", "pull", other), 0, "is not verified (`insecure: true`"))
        home.registries({host: {"ca": [str(directory / "other/server.pem")]}})
        (directory / "other").mkdir()
        self_signed(directory / "other")
        harness.check("another self-signed certificate as `ca`", unexpected_result(pull(), 3, "certificate"))
    with registry(expired, tls=lambda place: self_signed(place, "20200101000000Z", "20200201000000Z")) as host:
        home.registries({host: {"ca": [str(expired / "server.pem")]}})
        harness.check("an expired self-signed certificate", unexpected_result(home.run("image", "pull", f"{host}/team/app:1"), 3, "certificate", "xpired"))


def credential_helper(harness, home, host, name):
    """A credential helper (`credsStore` of Docker's configuration) has the password."""
    programs = home.directory / "bin"
    programs.mkdir()
    program = programs / "docker-credential-test"
    program.write_text('#!/bin/sh\nread -r server\n[ "$1 $server" = "get ' + host + '" ] || exit 1\n'
                       'echo \'{"Username":"me","Secret":"secret"}\'\n')
    program.chmod(0o755)
    (home.directory / ".docker/config.json").write_text(json.dumps({"auths": {host: {}}, "credsStore": "test"}))
    path = f"{programs}:{os.environ['PATH']}"
    harness.check("a credential helper", unexpected_result(home.run("image", "pull", name, PATH=path)))
    harness.check("a missing credential helper", unexpected_result(home.run("image", "pull", name), 3, "`docker-credential-test`", "cannot be started"))


def main():
    harness = Harness("registry", __doc__)
    harness.parse()
    for tool in ("docker-registry", "skopeo", "umoci", "htpasswd", "openssl", "oci-image-tool"):
        harness.tool(tool)
    with scratch() as directory:
        layout = image(directory)
        for part in (plain_http, lock_file, tls_and_password, self_signed_certificate):
            if harness.wants(part.__name__):
                place = Path(directory, part.__name__)
                place.mkdir()
                part(harness, place, layout)
    harness.end()


if __name__ == "__main__":
    main()
