use std::io::Write as _;

use super::*;
use crate::config::Config;
use crate::manifest::Descriptor;
use crate::manifest::media;
use crate::manifest::{Index, Manifest};
use crate::platform::Platform;
use jobc_schema::digest::Digest;
use jobc_schema::reference::Reference;
use std::fs;

/// A store in a temporary directory.
fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("images")).unwrap();
    (directory, store)
}

fn name(text: &str) -> Reference {
    text.parse().unwrap()
}

/// Adds an image of layers with these contents.
fn image(store: &Store, layers: &[&str]) -> Descriptor {
    let layers: Vec<Descriptor> =
        layers.iter().map(|layer| store.put(layer.as_bytes(), media::LAYER).unwrap()).collect();
    let mut config = Config { os: "linux".into(), architecture: "amd64".into(), ..Config::default() };
    config.rootfs.diff_ids = layers.iter().map(|layer| layer.digest.clone()).collect();
    let config = store.put_json(&config, media::CONFIG).unwrap();
    store.put_json(&Manifest::new(config, layers), media::MANIFEST).unwrap()
}

#[test]
fn an_image_is_found_by_its_name_and_by_its_digest() {
    let (_directory, store) = store();
    let descriptor = image(&store, &["one"]);
    store.tag(&name("app:1"), &descriptor).unwrap();
    assert_eq!(store.find(&name("docker.io/library/app:1")).unwrap(), Some(descriptor.clone()));
    assert_eq!(store.find(&name("app:1").at(&descriptor.digest)).unwrap(), Some(descriptor.clone()));
    assert_eq!(store.find(&name("app:2")).unwrap(), None);
    let found = store.image(&descriptor, &Platform::new("linux", "amd64", None)).unwrap();
    assert_eq!(found.manifest.layers.len(), 1);
    let error = store.image(&descriptor, &Platform::new("linux", "arm64", None)).unwrap_err();
    assert!(error.message().contains("is for `linux/amd64`, and not for `linux/arm64`"), "{error}");
}

#[test]
fn a_name_is_taken_from_whatever_had_it() {
    let (_directory, store) = store();
    store.tag(&name("app"), &image(&store, &["one"])).unwrap();
    let second = image(&store, &["two"]);
    store.tag(&name("app"), &second).unwrap();
    assert_eq!(store.find(&name("app")).unwrap(), Some(second));
    assert_eq!(store.images().unwrap().len(), 1);
    assert!(store.untag("docker.io/library/app:latest").unwrap());
    assert!(!store.untag("docker.io/library/app:latest").unwrap());
}

#[test]
fn content_with_a_wrong_digest_is_rejected() {
    let (_directory, store) = store();
    let wanted = Descriptor::new(media::LAYER, Digest::of(b"right"), 5);
    for (came, words) in [(&b"wrong"[..], "it has the digest"), (b"righ", "it has 4 bytes, not 5")] {
        let mut writer = store.begin().unwrap();
        writer.write_all(came).unwrap();
        let error = writer.finish(Some(&wanted)).unwrap_err();
        assert!(error.message().contains(words), "{error}");
    }
    let mut writer = store.resume(&wanted).unwrap().unwrap();
    assert!(writer.write_all(b"right and more").is_err());
    drop(writer);
    assert!(!store.has(&wanted.digest));
}

#[test]
fn an_incomplete_blob_is_resumed() {
    let (_directory, store) = store();
    let wanted = Descriptor::new(media::LAYER, Digest::of(b"first second"), 12);
    let mut writer = store.resume(&wanted).unwrap().unwrap();
    writer.write_all(b"first ").unwrap();
    drop(writer);
    let mut writer = store.resume(&wanted).unwrap().unwrap();
    assert_eq!(writer.written(), 6);
    writer.write_all(b"second").unwrap();
    assert_eq!(writer.finish(Some(&wanted)).unwrap(), wanted.digest);
    assert!(store.resume(&wanted).unwrap().is_none(), "it is whole");
    assert_eq!(fs::read_dir(store.root().join("partial")).unwrap().count(), 0);
}

#[test]
fn blobs_of_killed_processes_are_removed_and_those_being_written_are_not() {
    let (_directory, store) = store();
    let partial = store.root().join("partial");
    // A process of this number was killed, and this one has its number now.
    let left = partial.join(format!("new-{}-0", std::process::id()));
    fs::write(&left, "half").unwrap();
    let mut writer = store.begin().unwrap();
    writer.write_all(b"whole").unwrap();
    store.remove_abandoned().unwrap();
    assert!(!left.exists());
    assert_eq!(writer.finish(None).unwrap(), Digest::of(b"whole"));
    assert_eq!(fs::read_dir(&partial).unwrap().count(), 0);
}

#[test]
fn unnamed_unlocked_content_is_collected() {
    let (_directory, store) = store();
    let kept = image(&store, &["shared", "kept"]);
    let held = image(&store, &["shared", "held"]);
    let gone = image(&store, &["shared", "gone"]);
    store.tag(&name("kept"), &kept).unwrap();
    let hold = store.pin(std::slice::from_ref(&held.digest)).unwrap();
    let unpacked = store.root().join("unpacked/root");
    let layer = unpacked.join(Digest::of(b"gone").hex());
    let seam = unpacked.join(format!("{}.0123456789ab", Digest::of(b"kept").hex()));
    let part = unpacked.join(format!("{}.part", Digest::of(b"kept").hex()));
    for directory in [&layer, &seam, &part] {
        fs::create_dir_all(directory.join("files/etc")).unwrap();
    }
    let would = store.collect(false, false, true).unwrap().unwrap();
    assert_eq!((would.blobs.len(), would.layers.len()), (3, 2));
    assert!(store.has(&gone.digest) && layer.exists(), "a rehearsal removes nothing");
    let collected = store.collect(false, false, false).unwrap().unwrap();
    assert_eq!(collected, would);
    assert!(store.has(&kept.digest) && store.has(&held.digest) && !store.has(&gone.digest));
    assert!(store.has(&Digest::of(b"shared")) && store.has(&Digest::of(b"held")));
    assert!(!store.has(&Digest::of(b"gone")) && !layer.exists() && !part.exists() && seam.exists());
    drop(hold);
    store.collect(false, false, false).unwrap().unwrap();
    assert!(!store.has(&held.digest));
}

/// As after a full disk: what was fetched of a blob is kept for the next pull, until its room is wanted.
#[test]
fn incomplete_blobs_are_collected_when_that_is_requested() {
    let (_directory, store) = store();
    let wanted = Descriptor::new(media::LAYER_GZIP, Digest::of(b"firstsecond"), 11);
    let mut writer = store.resume(&wanted).unwrap().unwrap();
    writer.write_all(b"first").unwrap();
    drop(writer);
    assert_eq!(store.collect(false, false, false).unwrap().unwrap().partial, 0);
    let would = store.collect(false, true, true).unwrap().unwrap();
    assert_eq!((would.partial, would.bytes), (1, 5));
    assert!(store.partial_path(&wanted.digest).exists(), "a rehearsal removes nothing");
    assert_eq!(store.collect(false, true, false).unwrap().unwrap(), would);
    assert!(!store.partial_path(&wanted.digest).exists());
}

#[test]
fn nothing_is_collected_while_the_store_is_in_use() {
    let (_directory, store) = store();
    let other = Store::open(store.root()).unwrap();
    image(&other, &["on its way"]);
    assert_eq!(store.collect(false, false, false).unwrap(), None);
    drop(other);
    assert_eq!(store.collect(false, false, false).unwrap().unwrap().blobs.len(), 3);
}

#[test]
fn verify_finds_what_is_wrong() {
    let (_directory, store) = store();
    let good = image(&store, &["good"]);
    store.tag(&name("good"), &good).unwrap();
    assert_eq!(store.verify(false).unwrap(), []);
    let bad = image(&store, &["bad", "lost"]);
    store.tag(&name("bad"), &bad).unwrap();
    let (changed, lost) = (Digest::of(b"bad"), Digest::of(b"lost"));
    fs::remove_file(store.path(&changed)).unwrap();
    fs::write(store.path(&changed), "bod").unwrap();
    fs::remove_file(store.path(&lost)).unwrap();
    fs::write(store.root().join("blobs/sha256/README"), "").unwrap();
    let missing = Finding::Missing { digest: lost, by: "docker.io/library/bad:latest".into() };
    let foreign = Finding::Foreign { path: "blobs/sha256/README".into() };
    assert_eq!(
        store.verify(false).unwrap(),
        [foreign, Finding::Changed { digest: changed.clone(), removed: false }, missing]
    );
    store.verify(true).unwrap();
    assert!(!store.has(&changed));
}

#[test]
fn the_same_value_has_the_same_digest_in_any_order() {
    let (_directory, store) = store();
    let one = store.put_json(&serde_json::json!({"b": 1, "a": {"d": 2, "c": 3}}), "x").unwrap();
    let two = store.put_json(&serde_json::json!({"a": {"c": 3, "d": 2}, "b": 1}), "x").unwrap();
    assert_eq!(one, two);
}

/// Each index names the next one 300 times: 27 million ways to one image.
#[test]
fn an_image_that_indexes_name_again_and_again_is_read_once() {
    let (_directory, store) = store();
    let manifest = image(&store, &["one"]);
    let mut at = manifest.clone();
    for _ in 0..3 {
        at = store.put_json(&Index { manifests: vec![at; 300], ..Index::default() }, media::INDEX).unwrap();
    }
    let found: Vec<Digest> = store.images_in(&at).into_iter().map(|image| image.descriptor.digest).collect();
    assert_eq!(found, [manifest.digest]);
    // Deeper than any image is.
    for _ in 0..3 {
        at = store.put_json(&Index { manifests: vec![at], ..Index::default() }, media::INDEX).unwrap();
    }
    assert!(store.images_in(&at).is_empty());
}

#[test]
fn an_image_of_one_layer_named_again_and_again_is_refused() {
    let (_directory, store) = store();
    let descriptor = image(&store, &["one"; 1001]);
    let error = store.image(&descriptor, &Platform::new("linux", "amd64", None)).unwrap_err();
    assert!(error.message().ends_with("has 1001 layers; the limit is 1000"), "{error}");
    assert!(store.image(&image(&store, &["one"; 1000]), &Platform::new("linux", "amd64", None)).is_ok());
}
