"""Tests the way to a cluster: proxies of the environment and of the kubeconfig, and several clusters of which one is down or slow."""

import json
import select
import socket
import socketserver
import threading
import time

import pytest
from cluster import Cluster

pytestmark = pytest.mark.duration(30)
# A name that nothing resolves: only the proxy knows where it is.
NAME = "cluster.invalid"


class Proxy:
    """An HTTP proxy on loopback that opens tunnels (CONNECT, RFC 9110, section 9.3.6), for a password if it has one.

    A real one, such as Squid, would need a configuration and a log to be read for what is counted here: tunnels and refusals.
    """

    def __init__(self, cluster):
        self.port, self.password, self.tunnels, self.refused = cluster.http.server_port, None, [], 0
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                method, target, _ = self.rfile.readline().decode().split(" ", 2)
                headers = iter(lambda: self.rfile.readline().decode().strip(), "")
                headers = dict(line.lower().split(": ", 1) for line in headers)
                if outer.password and headers.get("proxy-authorization") != outer.password.lower():
                    outer.refused += 1
                    self.wfile.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                    return
                if method != "CONNECT":
                    self.wfile.write(b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n")
                    return
                outer.tunnels.append(target)
                with socket.create_connection(("127.0.0.1", outer.port)) as server:
                    self.wfile.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    outer.relay(self.connection, server)

        self.server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @staticmethod
    def relay(client, server):
        while True:
            for ready in select.select([client, server], [], [])[0]:
                try:
                    data = ready.recv(1 << 16)
                except ConnectionError:
                    return
                if not data:
                    return
                (server if ready is client else client).sendall(data)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def proxy(place):
    proxy = Proxy(place.cluster)
    yield proxy
    proxy.close()


def behind_a_name(place, **cluster):
    """Has the kubeconfig name a server that only a proxy finds; its certificate is that of the stand-in."""
    config = json.loads(place.kubeconfig.read_text())
    config["clusters"][0]["cluster"] |= {"server": f"https://{NAME}:6443", "tls-server-name": "127.0.0.1"} | cluster
    place.kubeconfig.write_text(json.dumps(config))


def test_a_proxy_of_the_environment_opens_a_tunnel(place, proxy):
    behind_a_name(place)
    out, _ = place.run("submit", "one.yaml", env={"HTTPS_PROXY": f"http://{proxy.address}"})
    assert out.startswith("lab/one-") and set(proxy.tunnels) == {f"{NAME}:6443"}, proxy.tunnels
    place.run("wait", out.strip(), env={"https_proxy": f"http://{proxy.address}"})


def test_no_proxy_leaves_clusters_out(place, proxy):
    environment = {"HTTPS_PROXY": f"http://{proxy.address}", "NO_PROXY": f".{NAME.split('.')[1]},10.0.0.0/8"}
    behind_a_name(place)
    _, errors = place.run("ps", "--target", "lab", code=3, env=environment)
    assert not proxy.tunnels and NAME in errors, (proxy.tunnels, errors)
    # This host is never reached through a proxy.
    place.cluster.kubeconfig()
    place.run("ps", "--target", "lab", env={"HTTPS_PROXY": f"http://{proxy.address}"})
    assert not proxy.tunnels, proxy.tunnels


def test_the_kubeconfig_names_a_proxy_first(place, proxy):
    proxy.password = "Basic bWU6c2VjcmV0"
    behind_a_name(place, **{"proxy-url": f"http://me:secret@{proxy.address}"})
    handle = place.run("submit", "one.yaml", env={"HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": NAME})[0].strip()
    place.run("logs", "-f", handle)
    assert proxy.tunnels and not proxy.refused, (proxy.tunnels, proxy.refused)
    behind_a_name(place, **{"proxy-url": f"http://{proxy.address}"})
    _, errors = place.run("ps", "--target", "lab", code=3)
    assert proxy.refused and "check the network, the proxy" in errors, errors


def test_a_cluster_that_is_down_or_slow_does_not_hide_another(place):
    handle = place.submit("one.yaml")
    far = Cluster(place.directory, "far")
    try:
        far.kubeconfig()
        far.stall = threading.Event()
        since = time.monotonic()
        out, errors = place.run("ps", "-A", "--all")
        seconds = time.monotonic() - since
        assert handle in out and "target `far`: it has not answered after" in errors, out + errors
        assert seconds < 20, f"{seconds:.0f} s"
        far.stall.set()
        far.stall = None
        out, errors = place.run("ps", "-A", "--all")
        assert handle in out and not errors, errors
    finally:
        far.close()
    out, errors = place.run("ps", "-A", "--all")
    assert handle in out and "target `far`" in errors, out + errors
    rows = json.loads(place.run("ps", "-A", "--all", "--format", "json")[0])
    assert [row["handle"] for row in rows] == [handle], rows
