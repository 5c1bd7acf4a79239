#!/usr/bin/env python3
"""Tests the verification of signatures: made by OpenSSL, put into docker-registry as cosign stores them (sigstore/cosign,
specs/SIGNATURE_SPEC.md and BUNDLE_SPEC.md), and what the policy of a target requires.
"""

import base64
import json
import subprocess
import urllib.request
from pathlib import Path

from fake_registry import CONFIG, MANIFEST, FakeRegistry, Image, digest
from home import Home
from harness import Harness, scratch
from registry import command, image, registry, unexpected_result

PAYLOAD = "application/vnd.dev.cosign.simplesigning.v1+json"
BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
STATEMENT = "application/vnd.in-toto+json"
SIGN = "https://sigstore.dev/cosign/sign/v1"


class Key:
    """A key pair: `NAME.key` and `NAME.pub`."""

    def __init__(self, directory, name, kind="p256"):
        self.kind, self.private, self.public = kind, directory / f"{name}.key", directory / f"{name}.pub"
        options = {"p256": ["EC", "-pkeyopt", "ec_paramgen_curve:P-256"], "rsa": ["RSA", "-pkeyopt", "rsa_keygen_bits:2048"],
                   "ed25519": ["ED25519"]}[kind]
        command("openssl", "genpkey", "-out", self.private, "-algorithm", *options)
        command("openssl", "pkey", "-in", self.private, "-pubout", "-out", self.public)

    def sign(self, message):
        """A signature in base64."""
        file = self.private.with_suffix(".message")
        file.write_bytes(message)
        words = ["pkeyutl", "-sign", "-rawin", "-in", file, "-inkey", self.private] if self.kind == "ed25519" else \
            ["dgst", "-sha256", "-sign", self.private, file]
        made = subprocess.run(["openssl", *map(str, words)], capture_output=True, check=True)
        return base64.b64encode(made.stdout).decode()


class Repository:
    """A repository of a registry over plain HTTP."""

    def __init__(self, host, name):
        self.host, self.name = host, f"{host}/{name}"
        self.address = f"http://{host}/v2/{name}"

    def request(self, method, address, content=None, media_type="application/octet-stream"):
        request = urllib.request.Request(address, content, {"Content-Type": media_type}, method=method)
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.headers

    def blob(self, content, media_type, **annotations):
        """Uploads a blob; its descriptor."""
        place = self.request("POST", f"{self.address}/blobs/uploads/")["Location"]
        self.request("PUT", f"{place}{'&' if '?' in place else '?'}digest={digest(content)}", content)
        return Image.descriptor(content, media_type, **({"annotations": annotations} if annotations else {}))

    def manifest(self, tag, layers, **more):
        config = self.blob(b"{}", CONFIG)
        body = json.dumps({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers, **more}).encode()
        self.request("PUT", f"{self.address}/manifests/{tag}", body, MANIFEST)
        return Image.descriptor(body, MANIFEST)

    def push(self, layout, label):
        """Pushes the image with a label, so that it is another one; its digest."""
        command("umoci", "config", "--image", f"{layout}:1", "--config.label", f"case={label}")
        command("skopeo", "copy", "--dest-tls-verify=false", f"oci:{layout}:1", f"docker://{self.name}:{label}")
        return json.loads(command("skopeo", "inspect", "--tls-verify=false", f"docker://{self.name}:{label}").stdout)["Digest"]


def payload(name, image_digest, kind="cosign container image signature"):
    return json.dumps({"critical": {"identity": {"docker-reference": name}, "image": {"docker-manifest-digest": image_digest}, "type": kind},
                       "optional": None}).encode()


def signed(repository, content, signature, **more):
    """The layer of a signature."""
    return repository.blob(content, PAYLOAD, **{"dev.cosignproject.cosign/signature": signature}, **more)


def bundle(key, image_digest, predicate=SIGN, **material):
    """A Sigstore bundle."""
    statement = json.dumps({"_type": "https://in-toto.io/Statement/v1", "subject": [{"digest": {"sha256": image_digest.removeprefix("sha256:")}}],
                            "predicateType": predicate, "predicate": {}}).encode()
    message = b"DSSEv1 %d %s %d %s" % (len(STATEMENT), STATEMENT.encode(), len(statement), statement)
    return json.dumps({"mediaType": BUNDLE, "verificationMaterial": material or {"publicKey": {"hint": "x"}},
                       "dsseEnvelope": {"payload": base64.b64encode(statement).decode(), "payloadType": STATEMENT,
                                        "signatures": [{"sig": key.sign(message)}]}}).encode()


def attach(repository, image_digest, content):
    """Attaches a bundle to an image, with the list of referrers at a tag: this registry has no interface for it."""
    empty = repository.blob(content, BUNDLE)
    found = repository.manifest("bundle", [empty], artifactType=BUNDLE, subject={"mediaType": MANIFEST, "digest": image_digest, "size": 1})
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": [{**found, "artifactType": BUNDLE}]}
    repository.request("PUT", f"{repository.address}/manifests/{image_digest.replace(':', '-')}", json.dumps(index).encode(), index["mediaType"])


def tag(image_digest):
    return image_digest.replace(":", "-") + ".sig"


def images(harness, directory, layout):
    """`jobc image verify`: each case is an image of its own."""
    home = Home(directory)
    key, other = Key(directory, "ours"), Key(directory, "other")
    rsa, ed25519 = Key(directory, "rsa", "rsa"), Key(directory, "ed", "ed25519")
    with registry(directory / "registry") as host:
        repository = Repository(host, "team/app")

        def check(text, prepare, code=0, *words, keys=(key,), options=()):
            label = text.replace(" ", "-").replace("'", "")
            image_digest = repository.push(layout, label)
            prepare(image_digest)
            keys = [word for each in keys for word in ("--key", each.public)]
            result = home.run("image", "verify", "--plain-http", *keys, *options, f"{repository.name}:{label}")
            problems = list(unexpected_result(result, code, *words))
            if code == 0 and f"{repository.name}@{image_digest}: signed by" not in result.stdout:
                problems.append(f"the output is {result.stdout}")
            harness.check(text, problems)

        def simple(*signers, name=repository.name, content=None, of=None, **more):
            """Signatures by these keys, of the payload for the image or for something else."""
            def prepare(image_digest):
                text = content if content is not None else payload(name, of or image_digest)
                repository.manifest(tag(image_digest), [signed(repository, text, signer.sign(text), **more) for signer in signers])
            return prepare

        check("no signature", lambda _: None, 1, "is not signed")
        check("a signature", simple(key))
        check("by another key", simple(other), 1, "made with another key")
        check("either key", simple(other), keys=(key, other))
        check("one of several", simple(other, key))
        check("RSA", simple(rsa), keys=(rsa,))
        check("Ed25519", simple(ed25519), keys=(ed25519,))
        check("of another image", simple(key, of="sha256:" + "1" * 64), 1, "is for another image, sha256:1111")
        check("of another name", simple(key, name="registry.example/other"), 1, "is for the name `registry.example/other`")
        check("any name", simple(key, name="registry.example/other"), options=("--any-name",))
        check("no name", simple(key, name=""))
        check("not JSON", simple(key, content=b"hello"), 1, "payload cannot be read")
        check("no claims", simple(key, content=b"{}"), 1, "payload cannot be read")
        check("another type", lambda it: simple(key, content=payload(repository.name, it, "atomic container signature"))(it), 1, "has the type")
        check("too large", simple(key, content=b" " * (2 << 20)), 1, "the limit is 1 MiB")
        check("a certificate", simple(other, **{"dev.sigstore.cosign/certificate": "x"}), 1, "keyless")
        check("no signature beside the payload", lambda it: repository.manifest(tag(it), [repository.blob(payload(repository.name, it), PAYLOAD)]),
              1, "has no signature")
        check("not base64", lambda it: repository.manifest(tag(it), [signed(repository, payload(repository.name, it), "%%")]), 1, "is not base64")
        check("an image instead", lambda it: repository.manifest(tag(it), [repository.blob(b"x", "application/vnd.oci.image.layer.v1.tar")]),
              1, "unknown type")
        check("a bundle", lambda it: attach(repository, it, bundle(key, it)))
        check("a bundle by another key", lambda it: attach(repository, it, bundle(other, it)), 1, "made with another key")
        check("a bundle of another image", lambda it: attach(repository, it, bundle(key, "sha256:" + "1" * 64)), 1, "is for another image")
        check("a bundle that is provenance", lambda it: attach(repository, it, bundle(key, it, "https://slsa.dev/provenance/v1")), 1, "not a signature")
        check("a bundle with a certificate", lambda it: attach(repository, it, bundle(other, it, certificate={"rawBytes": ""})), 1, "keyless")
        check("a damaged bundle", lambda it: attach(repository, it, b"{"), 1, "cannot be read")
        verified = home.run("image", "verify", "--plain-http", "--key", key.private, f"{repository.name}:a-signature")
        harness.check("a private key", unexpected_result(verified, 2, "has the label `PRIVATE KEY`"))
        harness.check("no such key", unexpected_result(home.run("image", "verify", "--key", "none.pub", repository.name), 2, "cannot read the key"))
        harness.check("an unknown image", unexpected_result(home.run("image", "verify", "--plain-http", "--key", key.public, f"{repository.name}:none"), 1,
                                                            "has no `"))
        policy(harness, directory / "policy", repository, layout, key, other)


def policy(harness, directory, repository, layout, key, other):
    """`policy.require_signature`: `jobc lock` and `jobc run` refuse an image at its line."""
    directory.mkdir()
    home = Home(directory)
    home.registries({repository.host: {"plain_http": True}})
    (directory / "ours.pub").write_text(key.public.read_text())
    targets = {"version": 1, "targets": {"here": {"backends": ["oci"], "policy": {"require_signature": {"key": "ours.pub"}}}}}
    (directory / "targets.yaml").write_text(json.dumps(targets))
    digests = {label: repository.push(layout, label) for label in ("unsigned", "theirs", "ours")}
    for label, signer in (("theirs", other), ("ours", key)):
        text = payload(repository.name, digests[label])
        repository.manifest(tag(digests[label]), [signed(repository, text, signer.sign(text))])

    def job(reference):
        (directory / "job.yaml").write_text(f"version: 1\nname: app\nimage: {reference}\nroles:\n  main:\n    resources: {{gpu: 0}}\n    run: [/data/small]\n")

    lock = directory / "jobc.lock"
    for label, words in (("unsigned", "is not signed"), ("theirs", "made with another key")):
        job(f"{repository.name}:{label}")
        harness.check(f"lock refuses an image: {label}", unexpected_result(home.run("lock"), 1, "J0504", words, "job.yaml:3:8"))
        harness.check(f"no lock file: {label}", [lock.read_text()] if lock.exists() else [])
        job(f"{repository.name}@{digests[label]}")
        harness.check(f"run refuses an image: {label}", unexpected_result(home.run("run"), 125, "J0504", words, "job.yaml:3:8"))
    job(f"{repository.name}:ours")
    harness.check("without a digest", unexpected_result(home.run("check"), 1, "J0504", "has no digest"))
    harness.check("lock accepts an image", unexpected_result(home.run("lock")))
    # The image has no program that could run.
    started = home.run("run")
    harness.check("run starts an image", [started.stderr] if "J0504" in started.stderr else [])
    harness.check("the image was pulled", [] if home.names() else [started.stderr])
    harness.check("a build", unexpected_result(home.run("build")))
    built = directory / "out/app/here"
    plan = json.loads((built / "plan.json").read_text())
    plan["jobs"][0]["images"]["main"]["reference"] = f"{repository.name}@{digests['unsigned']}"
    (built / "plan.json").write_text(json.dumps(plan))
    refused = home.run("run", built)
    harness.check("a built plan with another image", [] if refused.returncode != 0 and "is not signed" in refused.stderr else [refused.stderr])
    (directory / "ours.pub").unlink()
    harness.check("without the key", [] if (lost := home.run("run")).returncode != 0 and "cannot read the key" in lost.stderr else [lost.stderr])


def damaged(harness, directory):
    """A registry that sends another payload than it announces."""
    directory.mkdir()
    home, key, made = Home(directory), Key(directory, "ours"), Image(sizes=(10,))
    with FakeRegistry(made) as fake:
        name = fake.name.removesuffix(":1")
        text = payload(name, digest(made.manifest))
        layer = Image.descriptor(text, PAYLOAD, annotations={"dev.cosignproject.cosign/signature": key.sign(text)})
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": Image.descriptor(b"{}", CONFIG), "layers": [layer]}
        fake.put(tag(digest(made.manifest)), MANIFEST, json.dumps(manifest).encode())
        fake.blobs[layer["digest"]] = text
        harness.check("a whole payload", unexpected_result(home.run("image", "verify", "--plain-http", "--key", key.public, fake.name)))
        fake.blobs[layer["digest"]] = text.replace(b"null", b"true")
        harness.check("a changed payload", unexpected_result(home.run("image", "verify", "--plain-http", "--key", key.public, fake.name), 1,
                                                             "does not match its digest"))
        fake.blobs.clear()
        harness.check("a payload that is not there", unexpected_result(home.run("image", "verify", "--plain-http", "--key", key.public, fake.name), 1,
                                                                       "the registry lacks"))


def main():
    harness = Harness("signatures", __doc__)
    harness.parse()
    for tool in ("docker-registry", "skopeo", "umoci", "openssl"):
        harness.tool(tool)
    with scratch() as directory:
        directory = Path(directory)
        layout = image(directory)
        images(harness, directory, layout)
        damaged(harness, directory / "damaged")
    harness.end()


if __name__ == "__main__":
    main()
