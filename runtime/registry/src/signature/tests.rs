use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;

const PAYLOAD: &[u8] = include_bytes!("samples/payload.json");
const BUNDLE: &str = include_str!("samples/bundle.json");
const DIGEST: &str = "sha256:1111111111111111111111111111111111111111111111111111111111111111";

/// Keys and their signatures of the payload.
const SAMPLES: [(&str, &str, &str); 5] = [
    ("p256", include_str!("samples/p256.pub"), include_str!("samples/p256.sig")),
    ("p384", include_str!("samples/p384.pub"), include_str!("samples/p384.sig")),
    ("p384-sha384", include_str!("samples/p384.pub"), include_str!("samples/p384-sha384.sig")),
    ("rsa", include_str!("samples/rsa.pub"), include_str!("samples/rsa.sig")),
    ("ed25519", include_str!("samples/ed25519.pub"), include_str!("samples/ed25519.sig")),
];

fn key(name: &str) -> PublicKey {
    let (name, pem, _) = SAMPLES.into_iter().find(|sample| sample.0 == name).unwrap();
    PublicKey::from_pem(name, pem.as_bytes()).unwrap()
}

fn decode(text: &str) -> Vec<u8> {
    STANDARD.decode(text.trim()).unwrap()
}

#[test]
fn a_payload_is_read_if_a_key_has_signed_it() {
    for (name, pem, signature) in SAMPLES {
        let own = PublicKey::from_pem(name, pem.as_bytes()).unwrap();
        let other = key(if name == "p256" { "rsa" } else { "p256" });
        let claim = payload::claim(&[other.clone(), own], PAYLOAD, &decode(signature)).expect(name);
        assert_eq!((claim.key, &claim.digests[..]), (1, &[DIGEST.to_owned()][..]), "{name}");
        assert_eq!(claim.repository.as_deref(), Some("registry.example/team/app"), "{name}");
        let why = payload::claim(&[other], PAYLOAD, &decode(signature)).unwrap_err();
        assert!(why.contains("another key"), "{name}: {why}");
    }
}

#[test]
fn every_changed_byte_of_payload_and_signature_is_noticed() {
    let (keys, signature) = ([key("p256")], decode(SAMPLES[0].2));
    for index in 0..PAYLOAD.len() {
        let mut changed = PAYLOAD.to_vec();
        changed[index] ^= 1;
        assert!(payload::claim(&keys, &changed, &signature).is_err(), "byte {index} of the payload");
    }
    for index in 0..signature.len() {
        let mut changed = signature.clone();
        changed[index] ^= 1;
        assert!(payload::claim(&keys, PAYLOAD, &changed).is_err(), "byte {index} of the signature");
    }
}

#[test]
fn keys_that_cannot_be_used_are_named() {
    let refused = |text: &str| PublicKey::from_pem("x.pub", text.as_bytes()).unwrap_err().message();
    assert_eq!(refused("hello"), "`x.pub` is not a public key in PEM form");
    assert_eq!(
        refused(
            "-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED SIGSTORE PRIVATE KEY-----\n"
        ),
        "`x.pub` has the label `ENCRYPTED SIGSTORE PRIVATE KEY`, not `PUBLIC KEY`"
    );
    assert_eq!(refused(include_str!("samples/p521.pub")), "`x.pub` is a public key of an unsupported kind");
    let broken = SAMPLES[0].1.replacen("MFkw", "MFkx", 1);
    assert!(refused(&broken).contains("`x.pub`"));
}

/// A bundle with one change; the signed part is unchanged.
fn changed(change: impl Fn(&mut Value)) -> Vec<u8> {
    let mut bundle: Value = serde_json::from_str(BUNDLE).unwrap();
    change(&mut bundle);
    bundle.to_string().into_bytes()
}

#[test]
fn a_bundle_is_read_if_a_key_has_signed_it() {
    let claim = bundle::claim(&[key("rsa"), key("p256")], BUNDLE.as_bytes()).unwrap();
    assert_eq!((claim.key, &claim.digests[..], claim.repository), (1, &[DIGEST.to_owned()][..], None));
    let refused = |text: &[u8]| bundle::claim(&[key("p256")], text).unwrap_err();
    assert!(bundle::claim(&[key("rsa")], BUNDLE.as_bytes()).unwrap_err().contains("another key"));
    let keyless = changed(|bundle| {
        bundle["verificationMaterial"] = json!({"certificate": {"rawBytes": ""}});
        bundle["dsseEnvelope"]["signatures"][0]["sig"] = "AAAA".into();
    });
    assert_eq!(refused(&keyless), candidate::KEYLESS);
    let blob = changed(|bundle| {
        bundle.as_object_mut().unwrap().remove("dsseEnvelope");
    });
    assert!(refused(&blob).contains("no signed statement"));
    let other = changed(|bundle| bundle["dsseEnvelope"]["payloadType"] = "text/plain".into());
    assert!(refused(&other).contains("signs `text/plain`"));
    let moved = changed(|bundle| {
        let statement =
            json!({"_type": "https://in-toto.io/Statement/v1", "subject": [], "predicateType": "x"});
        bundle["dsseEnvelope"]["payload"] = STANDARD.encode(statement.to_string()).into();
    });
    assert!(refused(&moved).contains("another key, or is damaged"));
    assert!(refused(b"{").contains("cannot be read"));
}

#[test]
fn a_claim_is_about_one_image_of_one_name() {
    let reference: Reference = "registry.example/team/app:1".parse().unwrap();
    let digest: Digest = DIGEST.parse().unwrap();
    let keys = [key("p256")];
    let check = |repository: &str, named: &str, any_name: bool| {
        let claim =
            Claim { key: 0, digests: vec![named.to_owned()], repository: Some(repository.to_owned()) };
        let required = Requirement { keys: &keys, any_name };
        super::check(&Ok(claim), &reference, &digest, &required).map(|(_, repository)| repository)
    };
    let own = "registry.example/team/app";
    assert_eq!(check(own, DIGEST, false), Ok(Some(own.to_owned())));
    assert_eq!(
        check("registry.example/team/app:2", DIGEST, false),
        Ok(Some("registry.example/team/app:2".to_owned()))
    );
    assert_eq!(check("", DIGEST, false), Ok(None));
    assert_eq!(check("staging.example/app", DIGEST, true), Ok(Some("staging.example/app".to_owned())));
    assert!(check(own, &DIGEST.replace('1', "2"), true).is_err());
    assert_eq!(
        check("registry.example/team/other", DIGEST, false),
        Err("a signature is for the name `registry.example/team/other`".to_owned())
    );
    assert_eq!(
        check(own, &DIGEST.replace('1', "2"), false),
        Err(format!("a signature is for another image, {}", DIGEST.replace('1', "2")))
    );
}

#[test]
fn a_refusal_says_why() {
    let reference: Reference = "registry.example/team/app:1".parse().unwrap();
    let digest: Digest = DIGEST.parse().unwrap();
    let mut reasons = BTreeSet::new();
    assert_eq!(
        refusal(&reference, &digest, &reasons),
        format!("the image `registry.example/team/app@{DIGEST}` is not signed")
    );
    reasons.extend(["b".to_owned(), "a".to_owned()]);
    assert_eq!(
        refusal(&reference, &digest, &reasons),
        format!("the image `registry.example/team/app@{DIGEST}` has no valid signature: a; b")
    );
}
