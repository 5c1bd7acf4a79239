"""Tests the networks of `RUN`: what a command reaches of the host's loopback and abstract sockets, and of another host, which is a
network namespace.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import threading
from pathlib import Path

import pytest

import needs
from home import assert_result
from remote import BASE, Builder, is_helper_of

pytestmark = [pytest.mark.duration(10), pytest.mark.accounts("root", slow=("range", "single")), pytest.mark.needs("root")]


def close_connections(listener):
    """Accepts connections and closes them, until the listener is closed."""
    with contextlib.suppress(OSError):
        while True:
            listener.accept()[0].close()


@contextlib.contextmanager
def two_hosts():
    """Two network namespaces with a cable between them: paths of both, and the address of the second."""
    names = [f"jobc-test-{os.getpid()}-{letter}" for letter in "ab"]
    ip = lambda *words: subprocess.run(["ip", *words], check=True)  # noqa: E731
    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", names[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", names[1])
        for name, address in zip(names, ("192.0.2.1", "192.0.2.2")):
            ip("-n", name, "address", "add", f"{address}/24", "dev", "cable")
            ip("-n", name, "link", "set", "cable", "up")
        ip("-n", names[0], "route", "add", "default", "via", "192.0.2.2")
        yield *(f"/run/netns/{name}" for name in names), "192.0.2.2"
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


@pytest.fixture(scope="module")
def module_builder(shared, account):
    directory = shared / (account.name if account else "root")
    directory.mkdir()
    return Builder(directory, account)


@pytest.fixture
def builder(module_builder):
    """A builder; no process of its networks is left."""
    yield module_builder
    assert not [path for path in Path("/proc").glob("[0-9]*/comm") if is_helper_of(path, module_builder)]


@pytest.fixture
def look():
    """A command that writes to /found what it reaches of this host, and to /interfaces what it has."""
    abstract, name = socket.socket(socket.AF_UNIX), f"jobc-test-{os.getpid()}"
    abstract.bind(f"\0{name}")
    abstract.listen()
    with socket.create_server(("127.0.0.1", 0)) as listener, abstract:
        threading.Thread(target=close_connections, args=(listener,), daemon=True).start()
        # busybox's nc exits with 0 if it connects. A name in /proc/net/unix is visible in the socket's network namespace only.
        yield (f"RUN {{flag}} nc -w 2 127.0.0.1 {listener.getsockname()[1]} </dev/null && echo loopback >>/found; "
               f"grep -q @{name} /proc/net/unix && echo abstract >>/found; ls /sys/class/net >/interfaces; touch /found\n")


@pytest.mark.parametrize("flag, words, expected", [
    ("", [], []),
    ("--network=default", [], []),
    ("--network=none", [], []),
    ("", ["--network", "none"], []),
    ("--network=host", ["--allow", "network.host"], ["loopback", "abstract"]),
    ("", ["--network", "host"], ["loopback", "abstract"]),
    ("--network=none", ["--network", "host"], []),
], ids=["nothing", "default", "none", "none_as_the_default", "host_if_allowed", "host_as_the_default", "none_in_a_build_on_the_host"])
def test_a_command_reaches_of_this_host_what_its_network_allows(builder, look, flag, words, expected):
    result = builder.run(BASE + look.format(flag=flag), "--no-cache", *words)
    assert_result(result)
    files = {path: content.decode().split() for path, (_, content) in builder.files(result).items() if path in ("found", "interfaces")}
    assert files["found"] == expected, files
    if flag == "--network=none" and not words:
        assert files["interfaces"] == ["lo"]


def test_the_hosts_network_must_be_allowed(builder, look):
    result = builder.run(BASE + look.format(flag="--network=host"))
    assert_result(result, 1, "`RUN --network=host` is not allowed", "--allow network.host", "Dockerfile:5")
    result = builder.run(BASE.removesuffix("FROM base\n") + "FROM base AS x\nONBUILD RUN --network=host true\nFROM x\nRUN true\n")
    assert_result(result, 1, "`RUN --network=host` is not allowed")


def test_commands_at_the_same_time_have_networks(builder):
    several = BASE + "".join(f"FROM base AS s{n}\nRUN ip -o -4 addr show eth0 | tr -s ' ' | cut -d' ' -f4 >/a{n}\n" for n in range(3))
    assert_result(builder.run(several + "FROM base\n" + "".join(f"COPY --from=s{n} /a{n} /\n" for n in range(3))))


@pytest.fixture(scope="module")
def hosts(module_builder):
    """The path of this host's network namespace, and the address of a web server of another host."""
    if not (shutil.which("pasta") or shutil.which("slirp4netns")):
        needs.missing("pasta")
    with two_hosts() as (here, there, address):
        pages = module_builder.directory / "pages"
        pages.mkdir()
        (pages / "index.html").write_text("of another host\n")
        server = subprocess.Popen(["nsenter", f"--net={there}", "/bin/busybox", "httpd", "-f", "-p", f"{address}:8000", "-h", pages])
        yield here, address
        server.kill()
        server.wait()


@pytest.mark.parametrize("flag, words, expected", [("", [], b"of another host\n"), ("--network=none", [], b""), ("", ["--network", "host"], b"of another host\n")],
                         ids=["default", "none", "host"])
def test_a_command_reaches_another_host_except_without_a_network(builder, hosts, monkeypatch, flag, words, expected):
    here, address = hosts
    # Distributions let every user open /dev/net/tun; on a minimal host it may be root's alone.
    device = 'mount -t tmpfs tmpfs /dev/net && mknod -m 666 /dev/net/tun c 10 200 && exec "$@"'
    monkeypatch.setattr(builder, "entering", ["nsenter", f"--net={here}", "unshare", "--mount", "--propagation", "private", "sh", "-c", device, "sh"])
    text = f"RUN {flag} (printf 'GET / HTTP/1.0\\r\\n\\r\\n'; sleep 2) | timeout 10 nc -w 5 {address} 8000 | tail -n 1 >/answer\n"
    result = builder.run(BASE + text, "--no-cache", *words)
    assert_result(result)
    assert builder.files(result)["answer"][1] == expected, result.stderr
