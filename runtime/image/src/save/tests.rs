use super::*;
use crate::progress::ignore_progress;
use crate::source::{self, SourceKind};

/// A directory with a store.
struct Scratch {
    directory: tempfile::TempDir,
    store: Store,
}

impl Scratch {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(&directory.path().join("images")).unwrap();
        Self { directory, store }
    }

    /// An image for a platform, with a layer of this content below one that all images share.
    fn image(&self, architecture: &str, content: &[u8]) -> Descriptor {
        let layers =
            [b"shared".as_slice(), content].map(|layer| self.store.put(layer, media::LAYER).unwrap());
        let diffs = layers.each_ref().map(|layer| &layer.digest);
        let config = json!({"os": "linux", "architecture": architecture, "config": {},
                            "rootfs": {"type": "layers", "diff_ids": diffs}});
        let config = self.store.put_json(&config, media::CONFIG).unwrap();
        self.store.put_json(&Manifest::new(config, layers.to_vec()), media::MANIFEST).unwrap()
    }

    /// A list of two images: one in the store, and one that is missing.
    fn list(&self) -> Descriptor {
        let here = Descriptor {
            platform: Some(Platform::new("linux", "arm64", None)),
            ..self.image("arm64", b"arm")
        };
        let absent = Descriptor {
            platform: Some(Platform::new("linux", "amd64", None)),
            ..Descriptor::new(media::MANIFEST, Digest::of(b"absent"), 6)
        };
        let index = Index { manifests: vec![absent, here], ..Index::default() };
        self.store.put_json(&index, media::INDEX).unwrap()
    }

    fn saved(&self, images: &[(Descriptor, Option<Reference>)]) -> Result<Vec<u8>> {
        let (mut archive, platform) = (Vec::new(), Platform::new("linux", "amd64", None));
        save(&self.store, images, &platform, &ignore_progress, &AtomicBool::new(false), &mut archive)?;
        Ok(archive)
    }
}

fn name(text: &str) -> Reference {
    text.parse().unwrap()
}

/// The files of an archive with their content, in their order.
fn files(archive: &[u8]) -> IndexMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(archive);
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        (entry.path().unwrap().display().to_string(), content)
    });
    let (count, files) = entries.fold((0, IndexMap::new()), |(count, mut files), (path, content)| {
        files.insert(path, content);
        (count + 1, files)
    });
    assert_eq!(files.len(), count, "nothing is in it twice");
    files
}

#[test]
fn what_is_saved_is_a_layout_and_what_docker_saves() {
    let place = Scratch::new();
    let images = [
        (place.image("amd64", b"one"), Some(name("org/app:1"))),
        (place.image("amd64", b"two"), Some(name("r.lan:5000/b:2"))),
    ];
    let archive = place.saved(&images).unwrap();
    let files = files(&archive);
    assert_eq!(files.keys().take(3).collect::<Vec<_>>(), ["oci-layout", "index.json", "manifest.json"]);
    let list: serde_json::Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    assert_eq!(list[0]["RepoTags"], json!(["docker.io/org/app:1"]));
    assert_eq!(list[1]["RepoTags"], json!(["r.lan:5000/b:2"]));
    for image in list.as_array().unwrap() {
        assert!(files.contains_key(image["Config"].as_str().unwrap()));
        let layers = image["Layers"].as_array().unwrap();
        let contents: Vec<&[u8]> = layers.iter().map(|path| &files[path.as_str().unwrap()][..]).collect();
        assert!(contents == [&b"shared"[..], b"one"] || contents == [&b"shared"[..], b"two"], "{contents:?}");
    }
    // The same images are the same bytes, and come back as they were.
    assert_eq!(place.saved(&images).unwrap(), archive);
    let other = Scratch::new();
    let path = other.directory.path().join("images.tar");
    std::fs::write(&path, &archive).unwrap();
    let found = source::import(&other.store, &path, &ignore_progress, &AtomicBool::new(false)).unwrap();
    for (found, (descriptor, name)) in found.iter().zip(&images) {
        assert_eq!((&found.descriptor, found.kind), (descriptor, SourceKind::Layout));
        assert_eq!(found.names.first(), name.as_ref());
    }
    assert_eq!(other.store.verify(false).unwrap(), []);
}

#[test]
fn a_list_keeps_its_digest_and_what_is_here_of_it() {
    let place = Scratch::new();
    let list = place.list();
    let archive = place.saved(&[(list.clone(), None)]).unwrap();
    let files = files(&archive);
    let shown: serde_json::Value = serde_json::from_slice(&files["manifest.json"]).unwrap();
    assert_eq!(shown[0]["RepoTags"], json!([]));
    assert_eq!(files[shown[0]["Layers"][1].as_str().unwrap()], b"arm", "the only one that is here");
    let other = Scratch::new();
    let path = other.directory.path().join("list.tar");
    std::fs::write(&path, &archive).unwrap();
    let found = source::import(&other.store, &path, &ignore_progress, &AtomicBool::new(false)).unwrap();
    assert_eq!(found[0].descriptor, list);
}

#[test]
fn incomplete_images_are_not_saved() {
    let place = Scratch::new();
    let image = place.image("amd64", b"one");
    let layer = place.store.path(&Digest::of(b"one"));
    std::fs::remove_file(&layer).unwrap();
    let error = place.saved(&[(image.clone(), None)]).unwrap_err();
    assert!(error.message().contains("is incomplete in this store"), "{error}");
    std::fs::write(&layer, b"eno").unwrap();
    let error = place.saved(&[(image, None)]).unwrap_err();
    assert!(error.message().contains("was changed"), "{error}");
}
