use std::fs;
use std::io::Write as _;
use std::path::Path;

use super::*;
use crate::config::Config;
use crate::manifest::{Descriptor, Manifest, media};
use crate::platform::Platform;
use crate::progress::ignore_progress;
use jobc_container::tar::{Entry, Kind as Is, Writer};
use jobc_schema::digest::Digest;
use jobc_sys::error::{Error, Kind};

static CONTINUE: AtomicBool = AtomicBool::new(false);

/// A layer of one file.
fn layer(name: &str, text: &[u8]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    let mut entry = Entry::new(Is::File, name);
    (entry.mode, entry.size) = (0o644, text.len() as u64);
    writer.file(&entry, &mut &text[..]).expect("written");
    writer.finish().expect("finished")
}

/// A store with an image whose layers are not in it yet.
fn image(directory: &Path, layers: &[Vec<u8>]) -> (Store, Image) {
    let store = Store::open(&directory.join("store")).expect("a store");
    let mut config = Config::default();
    (config.os, config.architecture) = ("linux".to_owned(), Platform::here().architecture);
    config.rootfs.diff_ids = layers.iter().map(|layer| Digest::of(layer)).collect();
    let blob = |layer: &Vec<u8>| Descriptor::new(media::LAYER, Digest::of(layer), layer.len() as u64);
    let config = store.put_json(&config, media::CONFIG).expect("a configuration");
    let manifest = Manifest::new(config, layers.iter().map(blob).collect());
    let manifest = store.put_json(&manifest, media::MANIFEST).expect("a manifest");
    let image = store.image(&manifest, &Platform::here()).expect("an image");
    (store, image)
}

/// The names in the directory of unpacked layers.
fn unpacked(store: &Store) -> Vec<String> {
    let directory = Ownership::of_current_user().expect("an owner").layer_directories(store).own;
    let mut names: Vec<String> = fs::read_dir(directory)
        .map(|entries| {
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into()).collect()
        })
        .unwrap_or_default();
    names.sort();
    names
}

/// A user-namespace worker would start this program again, which is the test.
fn is_skipped() -> bool {
    let mapped = matches!(Ownership::of_current_user(), Ok(Ownership::Mapped(_)));
    if mapped {
        jobc_test_skip::skip("root, or a user without a range of ids");
    }
    mapped
}

fn fetch(store: &Store, layer: &Descriptor, bytes: &[u8]) -> Result<()> {
    let mut writer = store.resume(layer)?.expect("not there yet");
    for piece in bytes.chunks(bytes.len() / 7 + 1) {
        writer.write_all(piece).expect("written");
        std::thread::sleep(Duration::from_millis(3));
    }
    writer.finish(Some(layer)).map(drop)
}

#[test]
fn layers_are_unpacked_while_they_come() {
    if is_skipped() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let layers = [layer("a", &vec![1; 2 << 20]), layer("b", &[2; 9_000]), layer("c", b"")];
    let (store, image) = image(directory.path(), &layers);
    let result = follow(&store, &image, &ignore_progress, &CONTINUE, || {
        // A part of the first comes, and it is being unpacked before there is more.
        let first = &image.manifest.layers[0];
        let mut writer = store.resume(first)?.expect("not there yet");
        writer.write_all(&layers[0][..1 << 20]).expect("written");
        let part = format!("{}.part", image.config.rootfs.diff_ids[0].hex());
        let file = Ownership::of_current_user()?.layer_directories(&store).own.join(part).join("files/a");
        let has_begun = || {
            std::thread::sleep(Duration::from_millis(1));
            fs::metadata(&file).is_ok_and(|data| data.len() > 10_000)
        };
        assert!((0..20_000).any(|_| has_begun()), "nothing was unpacked");
        writer.write_all(&layers[0][1 << 20..]).expect("written");
        writer.finish(Some(first))?;
        for (layer, bytes) in image.manifest.layers.iter().zip(&layers).skip(1) {
            fetch(&store, layer, bytes)?;
        }
        Ok("fetched")
    });
    assert_eq!(result, Ok("fetched"));
    let mut names: Vec<&str> = image.config.rootfs.diff_ids.iter().map(Digest::hex).collect();
    names.sort_unstable();
    assert_eq!(unpacked(&store), names, "all without another call");
    let paths = super::super::layers(&store, &image, &ignore_progress, &CONTINUE).expect("directories");
    assert!(fs::read(paths[0].join("a")).expect("a file") == vec![1; 2 << 20]);
}

#[test]
fn a_fetch_that_begins_again_is_unpacked_from_the_whole_blob() {
    if is_skipped() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let layers = [layer("a", &vec![7; 1 << 20])];
    let (store, image) = image(directory.path(), &layers);
    let blob = &image.manifest.layers[0];
    let wrong = layer("b", &vec![9; 1 << 20]);
    let result = follow(&store, &image, &ignore_progress, &CONTINUE, || {
        // First other bytes, then shorter ones, then a blob with the wrong digest.
        let mut writer = store.resume(blob)?.expect("not there yet");
        writer.write_all(&wrong[..700_000]).expect("written");
        std::thread::sleep(Duration::from_millis(30));
        writer.restart()?;
        writer.write_all(&wrong).expect("written");
        assert!(writer.finish(Some(blob)).is_err());
        std::thread::sleep(Duration::from_millis(30));
        fetch(&store, blob, &layers[0])
    });
    assert_eq!(result, Ok(()));
    assert_eq!(unpacked(&store), [image.config.rootfs.diff_ids[0].hex()]);
}

#[test]
fn an_error_leaves_nothing() {
    if is_skipped() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let layers = [layer("a", &vec![7; 1 << 20]), layer("b", b"text")];
    let (store, image) = image(directory.path(), &layers);
    let result = follow(&store, &image, &ignore_progress, &CONTINUE, || {
        let mut writer = store.resume(&image.manifest.layers[0])?.expect("not there yet");
        writer.write_all(&layers[0][..700_000]).expect("written");
        std::thread::sleep(Duration::from_millis(30));
        Err::<(), _>(Error::new(Kind::System, "the network is gone"))
    });
    assert_eq!(result.expect_err("an error").message(), "the network is gone");
    assert_eq!(unpacked(&store), [""; 0]);
}

#[test]
fn a_layer_with_another_diff_id_is_an_error_afterwards() {
    if is_skipped() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let layers = [layer("a", b"text")];
    let (store, mut image) = image(directory.path(), &layers);
    image.config.rootfs.diff_ids[0] = Digest::of(b"another");
    let fetched = follow(&store, &image, &ignore_progress, &CONTINUE, || {
        fetch(&store, &image.manifest.layers[0], &layers[0])
    });
    assert_eq!(fetched, Ok(()));
    assert_eq!(unpacked(&store), [""; 0]);
    let error = super::super::layers(&store, &image, &ignore_progress, &CONTINUE).expect_err("another layer");
    assert!(error.message().contains("has the diff ID"), "{error}");
}
