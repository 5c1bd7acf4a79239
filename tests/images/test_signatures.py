"""Tests the verification of signatures: made by OpenSSL, put into docker-registry as cosign stores them (sigstore/cosign,
specs/SIGNATURE_SPEC.md and BUNDLE_SPEC.md), and what the policy of a target requires.
"""

import base64
import json
import subprocess
import urllib.request

import pytest

from fake_registry import CONFIG, MANIFEST, FakeRegistry, Image, digest
from home import assert_result
from registry import command, image, registry

pytestmark = [pytest.mark.duration(5), pytest.mark.needs("docker-registry", "skopeo", "umoci", "openssl")]

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


@pytest.fixture(scope="module")
def layout(shared):
    return image(shared)


@pytest.fixture(scope="module")
def repository(shared):
    with registry(shared / "registry") as host:
        yield Repository(host, "team/app")


@pytest.fixture(scope="module")
def keys(shared):
    """Keys by their names: `ours` is trusted."""
    return {"ours": Key(shared, "ours"), "other": Key(shared, "other"), "rsa": Key(shared, "rsa", "rsa"), "ed25519": Key(shared, "ed", "ed25519")}


def simple(*signers, name=None, content=None, of=None, kind=None, **more):
    """Signatures by these keys, of the payload for the image or for something else."""
    def prepare(repository, keys, it):
        text = content if content is not None else payload(repository.name if name is None else name, of or it, **({"kind": kind} if kind else {}))
        repository.manifest(tag(it), [signed(repository, text, keys[signer].sign(text), **more) for signer in signers])
    return prepare


def layer(make):
    """A signature whose layer `make` makes of the repository and the payload."""
    return lambda repository, _, it: repository.manifest(tag(it), [make(repository, payload(repository.name, it))])


def bundled(signer, of=None, predicate=SIGN, **material):
    return lambda repository, keys, it: attach(repository, it, bundle(keys[signer], of or it, predicate, **material))


OTHER = "sha256:" + "1" * 64
# What is attached to the image, the keys that are trusted, more options.
VALID = {
    "a_signature": (simple("ours"),),
    "either_key": (simple("other"), "ours", "other"),
    "one_of_several": (simple("other", "ours"),),
    "RSA": (simple("rsa"), "rsa"),
    "Ed25519": (simple("ed25519"), "ed25519"),
    "any_name": (simple("ours", name="registry.example/other"), "ours", "--any-name"),
    "no_name": (simple("ours", name=""),),
    "a_bundle": (bundled("ours"),),
}
# What is attached to the image, and the text of the error.
INVALID = {
    "no_signature": (lambda *_: None, "is not signed"),
    "by_another_key": (simple("other"), "made with another key"),
    "of_another_image": (simple("ours", of=OTHER), "is for another image, sha256:1111"),
    "of_another_name": (simple("ours", name="registry.example/other"), "is for the name `registry.example/other`"),
    "not_JSON": (simple("ours", content=b"hello"), "payload cannot be read"),
    "no_claims": (simple("ours", content=b"{}"), "payload cannot be read"),
    "another_type": (simple("ours", kind="atomic container signature"), "has the type"),
    "too_large": (simple("ours", content=b" " * (2 << 20)), "the limit is 1 MiB"),
    "a_certificate": (simple("other", **{"dev.sigstore.cosign/certificate": "x"}), "keyless"),
    "no_signature_beside_the_payload": (layer(lambda repository, text: repository.blob(text, PAYLOAD)), "has no signature"),
    "not_base64": (layer(lambda repository, text: signed(repository, text, "%%")), "is not base64"),
    "an_image": (layer(lambda repository, _: repository.blob(b"x", "application/vnd.oci.image.layer.v1.tar")), "unknown type"),
    "a_bundle_by_another_key": (bundled("other"), "made with another key"),
    "a_bundle_of_another_image": (bundled("ours", of=OTHER), "is for another image"),
    "a_bundle_that_is_provenance": (bundled("ours", predicate="https://slsa.dev/provenance/v1"), "not a signature"),
    "a_bundle_with_a_certificate": (bundled("other", certificate={"rawBytes": ""}), "keyless"),
    "a_damaged_bundle": (lambda repository, _, it: attach(repository, it, b"{"), "cannot be read"),
}


def verify(home, repository, layout, keys, label, prepare, *words):
    """The digest of a new image to which `prepare` has attached something, and the result of `image verify`."""
    image_digest = repository.push(layout, label)
    prepare(repository, keys, image_digest)
    words = [word for each in words or ("ours",) for word in (["--key", keys[each].public] if each in keys else [each])]
    return image_digest, home.run("image", "verify", "--plain-http", *words, f"{repository.name}:{label}")


@pytest.mark.parametrize("label", VALID)
def test_a_valid_signature_is_accepted(home, repository, layout, keys, label):
    image_digest, result = verify(home, repository, layout, keys, label, *VALID[label])
    assert_result(result)
    assert f"{repository.name}@{image_digest}: signed by" in result.stdout


@pytest.mark.parametrize("label", INVALID)
def test_an_invalid_signature_is_rejected(home, repository, layout, keys, label):
    prepare, text = INVALID[label]
    assert_result(verify(home, repository, layout, keys, label, prepare)[1], 1, text)


def test_a_key_that_cannot_be_used_is_reported(home, repository, keys):
    assert_result(home.run("image", "verify", "--plain-http", "--key", keys["ours"].private, f"{repository.name}:a"), 2, "has the label `PRIVATE KEY`")
    assert_result(home.run("image", "verify", "--key", "none.pub", repository.name), 2, "cannot read the key")


def test_an_unknown_image_is_reported(home, repository, keys):
    assert_result(home.run("image", "verify", "--plain-http", "--key", keys["ours"].public, f"{repository.name}:none"), 1, "has no `")


@pytest.fixture(scope="module")
def digests(repository, layout, keys):
    """Images that are unsigned, signed by another key, and by ours."""
    digests = {label: repository.push(layout, label) for label in ("unsigned", "theirs", "ours")}
    for label, signer in (("theirs", "other"), ("ours", "ours")):
        simple(signer)(repository, keys, digests[label])
    return digests


class Policy:
    """A home with a target that requires a signature by our key (`policy.require_signature`)."""

    def __init__(self, home, repository, keys):
        self.home, self.repository, self.lock = home, repository, home.directory / "jobc.lock"
        home.registries({repository.host: {"plain_http": True}})
        (home.directory / "ours.pub").write_text(keys["ours"].public.read_text())
        targets = {"version": 1, "targets": {"here": {"backends": ["oci"], "policy": {"require_signature": {"key": "ours.pub"}}}}}
        (home.directory / "targets.yaml").write_text(json.dumps(targets))

    def job(self, reference):
        (self.home.directory / "job.yaml").write_text(
            f"version: 1\nname: app\nimage: {self.repository.name}{reference}\nroles:\n  main:\n    resources: {{gpu: 0}}\n    run: [/data/small]\n")


@pytest.fixture
def policy(home, repository, keys):
    return Policy(home, repository, keys)


@pytest.mark.parametrize("label, words", [("unsigned", "is not signed"), ("theirs", "made with another key")])
def test_a_policy_refuses_an_image_at_its_line(policy, digests, label, words):
    policy.job(f":{label}")
    assert_result(policy.home.run("lock"), 1, "J0504", words, "job.yaml:3:8")
    assert not policy.lock.exists()
    policy.job(f"@{digests[label]}")
    assert_result(policy.home.run("run"), 125, "J0504", words, "job.yaml:3:8")


def test_a_policy_accepts_a_signed_image(policy, digests):
    home = policy.home
    policy.job(":ours")
    assert_result(home.run("check"), 1, "J0504", "has no digest")
    assert_result(home.run("lock"))
    # The image has no program that could run.
    started = home.run("run")
    assert "J0504" not in started.stderr and home.names(), started.stderr
    assert_result(home.run("build"))
    built = home.directory / "out/app/here"
    plan = json.loads((built / "plan.json").read_text())
    plan["jobs"][0]["images"]["main"]["reference"] = f"{policy.repository.name}@{digests['unsigned']}"
    (built / "plan.json").write_text(json.dumps(plan))
    refused = home.run("run", built)
    assert refused.returncode and "is not signed" in refused.stderr, refused.stderr
    (home.directory / "ours.pub").unlink()
    lost = home.run("run")
    assert lost.returncode and "cannot read the key" in lost.stderr, lost.stderr


def test_a_payload_that_is_not_as_announced_is_rejected(home, keys):
    made, key = Image(sizes=(10,)), keys["ours"]
    with FakeRegistry(made) as fake:
        text = payload(fake.name.removesuffix(":1"), digest(made.manifest))
        descriptor = Image.descriptor(text, PAYLOAD, annotations={"dev.cosignproject.cosign/signature": key.sign(text)})
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": Image.descriptor(b"{}", CONFIG), "layers": [descriptor]}
        fake.put(tag(digest(made.manifest)), MANIFEST, json.dumps(manifest).encode())
        words = ["image", "verify", "--plain-http", "--key", key.public, fake.name]
        fake.blobs[descriptor["digest"]] = text
        assert_result(home.run(*words))
        fake.blobs[descriptor["digest"]] = text.replace(b"null", b"true")
        assert_result(home.run(*words), 1, "does not match its digest")
        fake.blobs.clear()
        assert_result(home.run(*words), 1, "the registry lacks")
