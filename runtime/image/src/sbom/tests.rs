use crate::config::Config;
use crate::manifest::{Descriptor, Manifest, media};
use crate::packages::PackageKind;

use super::*;

fn image() -> Image {
    let layer = Descriptor::new(media::LAYER_GZIP, Digest::of(b"layer"), 5);
    let config = Descriptor::new(media::CONFIG, Digest::of(b"config"), 6);
    Image {
        descriptor: Descriptor::new(media::MANIFEST, Digest::of(b"manifest"), 8),
        manifest: Manifest::new(config, vec![layer]),
        config: Config {
            created: Some("2026-11-26T18:00:00Z".to_owned()),
            os: "linux".to_owned(),
            architecture: "amd64".to_owned(),
            ..Config::default()
        },
    }
}

#[test]
fn a_document_has_the_image_its_base_and_its_packages() {
    let image = image();
    let (name, base): (Reference, Reference) = ("team/app:1".parse().unwrap(), "debian:12".parse().unwrap());
    let found = Package {
        kind: PackageKind::Python,
        name: "torch".to_owned(),
        version: "2.4.0+cu121".to_owned(),
        path: "usr/lib/python3/site-packages/torch-2.4.0.dist-info/METADATA".to_owned(),
        layer: Digest::of(b"layer"),
        qualifiers: vec![],
        license: Some(License::Expression("BSD-3-Clause".to_owned())),
    };
    let version = Some("12".to_owned());
    let inventory = Inventory {
        distribution: Some(Distribution { id: "debian".to_owned(), version, name: None }),
        packages: vec![found],
        gaps: vec!["RPM packages of `x` are not listed".to_owned()],
    };
    let base_digest = Digest::of(b"base");
    let subject = Subject {
        name: Some(&name),
        digest: &image.descriptor.digest,
        image: &image,
        base: Some((&base_digest, Some(&base))),
        inventory: &inventory,
        version: "1.2.3",
    };
    let text = document(&subject);
    assert_eq!(text, document(&subject));
    insta::assert_snapshot!(text);
}

#[test]
fn a_time_or_license_that_is_none_is_not_written_as_one() {
    let mut image = image();
    let mut document_of = |created: &str, license: &str| {
        image.config.created = Some(created.to_owned());
        let found = Package {
            kind: PackageKind::Python,
            name: "a".to_owned(),
            version: "1".to_owned(),
            path: "a".to_owned(),
            layer: Digest::of(b"layer"),
            qualifiers: vec![],
            license: Some(License::Expression(license.to_owned())),
        };
        let inventory = Inventory { packages: vec![found], ..Inventory::default() };
        let digest = &image.descriptor.digest;
        let subject =
            Subject { name: None, digest, image: &image, base: None, inventory: &inventory, version: "1" };
        let found: serde_json::Value = serde_json::from_str(&document(&subject)).unwrap();
        (
            found["metadata"].get("timestamp").is_some(),
            found["components"][0]["licenses"][0].get("expression").is_some(),
        )
    };
    assert_eq!(document_of("2026-11-26T18:00:00.123456789Z", "MIT OR Apache-2.0"), (true, true));
    for text in ["2026-11-26T18:00:00", "2026-11-26", "yesterday, at six or so"] {
        assert_eq!(document_of(text, "MIT or so"), (false, false), "{text}");
    }
}

#[test]
fn serial_numbers_are_uuids() {
    let number = serial_number("a");
    assert_eq!(number, serial_number("a"));
    assert_ne!(number, serial_number("b"));
    assert_eq!(number.len(), "urn:uuid:".len() + 36);
    assert_eq!((&number[23..24], &number[28..29]), ("8", "a"), "{number}");
}
