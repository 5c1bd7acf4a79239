"""docker-registry on loopback, certificates, and an image in a layout."""

import contextlib
import json
import os
import socket
import subprocess
import time


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
