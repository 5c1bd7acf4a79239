use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use serde_json::json;

use std::io::Read as _;

use super::*;
use crate::manifest::{Descriptor, Index, media};
use crate::platform::Platform;
use crate::progress::ignore_progress;
use jobc_schema::digest::Digest;

/// A directory with a store, and files made for one import.
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

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    fn import(&self, source: &Path) -> Result<Vec<ImportedImage>> {
        super::import(&self.store, source, &ignore_progress, &AtomicBool::new(false))
    }

    /// Why a source is rejected; no part of it may be imported.
    fn refused(&self, source: &Path, words: &str) {
        let error = self.import(source).unwrap_err();
        assert!(error.message().contains(words), "{error}");
        assert_eq!(self.store.images().unwrap(), []);
    }
}

/// A tar archive of these files.
fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, *content).unwrap();
    }
    builder.into_inner().unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The output of old versions of `docker save` for an image of one layer.
fn saved(layer: &[u8], diff_id: &Digest, tags: &[&str]) -> Vec<u8> {
    let config = json!({
        "os": "linux", "architecture": "amd64", "config": {"Env": null, "Cmd": ["sh"]},
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
    });
    let config = config.to_string();
    let config_name = format!("{}.json", Digest::of(config.as_bytes()).hex());
    let directory = "a".repeat(64);
    let manifest =
        json!([{"Config": config_name, "RepoTags": tags, "Layers": [format!("{directory}/layer.tar")]}]);
    tar(&[
        (&format!("{directory}/layer.tar"), layer),
        (&format!("{directory}/json"), b"{}"),
        (&config_name, config.as_bytes()),
        ("manifest.json", manifest.to_string().as_bytes()),
    ])
}

#[test]
fn an_archive_of_files_is_its_layer_byte_for_byte() {
    let place = Scratch::new();
    let plain = tar(&[("etc/os-release", b"ID=x")]);
    for (name, bytes, media_type) in
        [("r.tar", plain.clone(), media::LAYER), ("r.tar.gz", gzip(&plain), media::LAYER_GZIP)]
    {
        let image = place.import(&place.file(name, &bytes)).unwrap().remove(0);
        assert_eq!((image.kind, image.names.len()), (SourceKind::RootFs, 0));
        let image = place.store.image(&image.descriptor, &Platform::here()).unwrap();
        assert_eq!(image.config.rootfs.diff_ids, [Digest::of(&plain)]);
        let layer = &image.manifest.layers[0];
        assert_eq!((layer.media_type.as_str(), &layer.digest), (media_type, &Digest::of(&bytes)));
        assert_eq!(layer.size, bytes.len() as u64);
    }
}

#[test]
fn what_docker_saved_keeps_its_names_and_its_configuration() {
    let place = Scratch::new();
    let layer = tar(&[("bin/sh", b"#!")]);
    for (name, layer) in [("plain.tar", layer.clone()), ("packed.tar", gzip(&layer))] {
        let archive = saved(&layer, &Digest::of(&tar(&[("bin/sh", b"#!")])), &["org/app:1", "app:2"]);
        let image = place.import(&place.file(name, &gzip(&archive))).unwrap().remove(0);
        let names: Vec<String> = image.names.iter().map(Reference::familiar).collect();
        assert_eq!(
            (image.kind, names),
            (SourceKind::DockerArchive, vec!["org/app:1".into(), "app:2".into()])
        );
        let image = place.store.image(&image.descriptor, &Platform::new("linux", "amd64", None)).unwrap();
        assert_eq!(image.config.config.cmd, ["sh"]);
        assert_eq!(place.store.verify(false).unwrap(), []);
    }
}

#[test]
fn a_layout_comes_in_as_a_directory_and_as_an_archive() {
    let other = Scratch::new();
    let image = other.import(&other.file("r.tar", &tar(&[("a", b"b")]))).unwrap().remove(0);
    other.store.tag(&"org/app:1".parse().unwrap(), &image.descriptor).unwrap();
    let place = Scratch::new();
    let root = other.store.root();
    let found = place.import(root).unwrap();
    assert_eq!(found[0].descriptor, image.descriptor);
    assert_eq!(found[0].names, ["org/app:1".parse().unwrap()]);
    let mut files = vec![("index.json".to_owned(), std::fs::read(root.join("index.json")).unwrap())];
    for entry in std::fs::read_dir(root.join("blobs/sha256")).unwrap() {
        let entry = entry.unwrap();
        let name = format!("./blobs/sha256/{}", entry.file_name().display());
        files.push((name, std::fs::read(entry.path()).unwrap()));
    }
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
    let place = Scratch::new();
    assert_eq!(place.import(&place.file("layout.tar", &tar(&files))).unwrap(), found);
    // One blob is another.
    let mut wrong = files.clone();
    let last = wrong.len() - 1;
    let other = vec![0; wrong[last].1.len()];
    wrong[last].1 = &other;
    let place = Scratch::new();
    place.refused(&place.file("wrong.tar", &tar(&wrong)), "has the digest");
    let place = Scratch::new();
    place.refused(&place.file("less.tar", &tar(&files[..last])), "is missing");
}

#[test]
fn a_directory_of_files_becomes_a_layer() {
    let place = Scratch::new();
    let directory = place.directory.path().join("root");
    std::fs::create_dir_all(directory.join("etc")).unwrap();
    std::fs::write(directory.join("etc/os-release"), "ID=x").unwrap();
    let image = place.import(&directory).unwrap().remove(0);
    assert_eq!((image.kind, image.names.len()), (SourceKind::RootFs, 0));
    let image = place.store.image(&image.descriptor, &Platform::here()).unwrap();
    let mut archive = tar::Archive::new(place.store.blob(&image.manifest.layers[0].digest).unwrap());
    let paths = archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().into_owned());
    assert_eq!(paths.collect::<Vec<_>>(), ["./", "etc/", "etc/os-release"].map(PathBuf::from));
}

/// The paths and hard links of an image's only layer.
fn layer_paths(place: &Scratch, image: &ImportedImage) -> Vec<String> {
    let image = place.store.image(&image.descriptor, &Platform::here()).unwrap();
    let blob = place.store.blob(&image.manifest.layers[0].digest).unwrap();
    let reader = jobc_container::decompress::decompressing_reader(std::io::BufReader::new(blob)).unwrap();
    let mut archive = tar::Archive::new(reader);
    let paths = archive.entries().unwrap().map(|entry| {
        let entry = entry.unwrap();
        let link = entry.link_name().unwrap().map(|to| format!(" -> {}", to.display())).unwrap_or_default();
        format!("{}{link}", entry.path().unwrap().display())
    });
    paths.collect()
}

#[test]
fn a_root_in_a_single_directory_is_the_root() {
    let place = Scratch::new();
    let mut builder = tar::Builder::new(Vec::new());
    let directory = |path: &str| (path.to_owned(), tar::EntryType::Directory, "");
    let link = ("rootfs/bin/sh".to_owned(), tar::EntryType::Link, "rootfs/bin/busybox");
    let symbolic = ("rootfs/bin/ls".to_owned(), tar::EntryType::Symlink, "busybox");
    let file = ("rootfs/bin/busybox".to_owned(), tar::EntryType::Regular, "");
    for (path, kind, link) in [directory("rootfs/"), directory("rootfs/bin/"), file, link, symbolic] {
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        header.set_mode(0o755);
        header.set_entry_type(kind);
        if !link.is_empty() {
            header.set_link_name(link).unwrap();
        }
        builder.append_data(&mut header, path, &[][..]).unwrap();
    }
    let plain = builder.into_inner().unwrap();
    let expected = ["./", "./bin/", "bin/busybox", "bin/sh -> bin/busybox", "bin/ls -> busybox"];
    for (name, bytes) in [("rootfs.tar", plain.clone()), ("rootfs.tar.gz", gzip(&plain))] {
        let notes = std::sync::Mutex::new(Vec::new());
        let on_progress = |progress| {
            if let crate::progress::Progress::Note(note) = progress {
                notes.lock().unwrap().push(note);
            }
        };
        let path = place.file(name, &bytes);
        let image =
            super::import(&place.store, &path, &on_progress, &AtomicBool::new(false)).unwrap().remove(0);
        assert_eq!(layer_paths(&place, &image), expected);
        let note =
            format!("all of `{name}` is in its directory `rootfs`, which is used as the root file system");
        assert_eq!(notes.into_inner().unwrap(), [note]);
    }
    assert_eq!(place.store.verify(false).unwrap(), []);
    // The same as a directory.
    let tree = place.directory.path().join("tree/rootfs");
    std::fs::create_dir_all(tree.join("bin")).unwrap();
    std::fs::write(tree.join("bin/sh"), "").unwrap();
    let image = place.import(tree.parent().unwrap()).unwrap().remove(0);
    assert_eq!(layer_paths(&place, &image), ["./", "bin/", "bin/sh"]);
}

#[test]
fn a_single_directory_of_something_else_stays() {
    let place = Scratch::new();
    let plain = tar(&[("app/bin/serve", b"x"), ("app/lib/x", b"y")]);
    let image = place.import(&place.file("app.tar", &plain)).unwrap().remove(0);
    assert_eq!(layer_paths(&place, &image), ["app/bin/serve", "app/lib/x"]);
}

#[test]
fn scratch_is_an_image() {
    let place = Scratch::new();
    let image = place.import(Path::new("scratch")).unwrap().remove(0);
    let image = place.store.image(&image.descriptor, &Platform::here()).unwrap();
    assert_eq!(image.manifest.layers, []);
}

#[test]
fn broken_sources_are_reported() {
    let place = Scratch::new();
    let layer = tar(&[("a", b"b")]);
    let mut short = gzip(&layer);
    short.truncate(short.len() - 9);
    place.refused(&place.file("short.tar.gz", &short), "it ends too early");
    place.refused(&place.file("text", b"root:x:0:0\nroot\n"), "is not a readable archive");
    place.refused(&place.file("empty.tar", &tar(&[])), "is empty");
    place.refused(&place.file("x.tar.xz", b"\xfd7zXZ\0"), "it ends too early");
    place.refused(&place.file("x.tar.bz2", b"BZh9"), "it ends too early");
    place.refused(&place.file("x.tar.bz2", b"BZh9rubbish"), "is not a readable archive");
    let saved = saved(&layer, &Digest::of(b"another"), &[]);
    place.refused(&place.file("swapped.tar", &saved), "and should be sha256:");
    place.refused(&place.directory.path().join("absent"), "no such file");
}

/// The output of a program of this host for a content; `None` if the program is not installed.
fn packed_by(program: &str, content: &[u8]) -> Option<Vec<u8>> {
    use std::process::{Command, Stdio};
    let child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = child else {
        jobc_test_skip::skip(program);
        return None;
    };
    child.stdin.take().expect("a pipe").write_all(content).expect("written");
    Some(child.wait_with_output().expect("an end").stdout)
}

#[test]
fn xz_and_bzip2_become_layers_of_gzip() {
    for program in ["xz", "bzip2"] {
        let place = Scratch::new();
        let layer = tar(&[("etc/os-release", b"ID=x")]);
        let Some(packed) = packed_by(program, &layer) else { continue };
        // A root file system, a layer of `docker save`, and all of `docker save`.
        let saved = saved(&packed, &Digest::of(&layer), &["a:1"]);
        let whole = packed_by(program, &saved).expect("packed");
        for (name, bytes) in [("root", &packed), ("saved", &saved), ("whole", &whole)] {
            let image = place.import(&place.file(name, bytes)).expect(name).remove(0);
            let image = place.store.image(&image.descriptor, &Platform::here()).expect("an image");
            assert_eq!(image.config.rootfs.diff_ids, [Digest::of(&layer)], "{program}, {name}");
            let [blob] = &image.manifest.layers[..] else { panic!("{:?}", image.manifest.layers) };
            assert_eq!(blob.media_type, media::LAYER_GZIP);
            let mut bytes = Vec::new();
            let mut blob = flate2::read::GzDecoder::new(place.store.blob(&blob.digest).expect("a blob"));
            blob.read_to_end(&mut bytes).expect("gzip");
            assert!(bytes == layer);
        }
        let truncated = place.file("truncated", &packed[..packed.len() - 9]);
        let error = place.import(&truncated).expect_err("truncated");
        assert!(error.message().contains("it ends too early"), "{error}");
        assert_eq!(error.kind, Kind::Config);
    }
}

#[test]
fn absolute_names_are_below_the_root() {
    let place = Scratch::new();
    let archive = |names: &[&str]| {
        let mut builder = tar::Builder::new(Vec::new());
        for name in names {
            let mut header = tar::Header::new_gnu();
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(0);
            header.set_cksum();
            builder.append(&header, &[][..]).expect("appended");
        }
        builder.into_inner().expect("an archive")
    };
    let kind =
        |names: &[&str]| place.import(&place.file("a.tar", &archive(names))).map(|images| images[0].kind);
    assert_eq!(kind(&["/", "/etc/passwd"]), Ok(SourceKind::RootFs));
    assert_eq!(kind(&["//etc/passwd"]), Ok(SourceKind::RootFs));
    assert_eq!(kind(&["/manifest.json"]).map_err(|error| error.kind), Err(Kind::Config), "an empty document");
}

#[test]
fn sparse_files_of_an_archive_are_whole() {
    // GNU's old form (tar -S): two pieces of a file of 2 MiB, and zeros around them.
    let mut header = tar::Header::new_gnu();
    header.set_path("layer.tar").unwrap();
    header.set_entry_type(tar::EntryType::GNUSparse);
    header.set_mode(0o644);
    header.set_size(8);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.realsize[..11].copy_from_slice(format!("{:011o}", 2 << 20).as_bytes());
    for (piece, at) in [4096_u64, 1 << 20].into_iter().enumerate() {
        gnu.sparse[piece].offset[..11].copy_from_slice(format!("{at:011o}").as_bytes());
        gnu.sparse[piece].numbytes[..11].copy_from_slice(format!("{:011o}", 4).as_bytes());
    }
    header.set_cksum();
    let mut archive = header.as_bytes().to_vec();
    archive.extend(b"headtail");
    archive.resize(1024, 0);
    let mut expected = vec![0; 2 << 20];
    expected[4096..4100].copy_from_slice(b"head");
    expected[1 << 20..(1 << 20) + 4].copy_from_slice(b"tail");
    let mut reader = jobc_container::tar::Reader::new(&archive[..]);
    let entry = reader.next().unwrap().expect("an entry");
    let mut content = Vec::new();
    jobc_container::tar::Content::new(&mut reader, &entry).read_to_end(&mut content).unwrap();
    assert!(content == expected);
}

#[test]
fn a_small_archive_that_becomes_large_is_refused() {
    let place = Scratch::new();
    let document = vec![b' '; 4 << 20];
    let names: Vec<String> = (0..9).map(|number| format!("{number}.json")).collect();
    let mut files: Vec<(&str, &[u8])> = vec![("oci-layout", b"{}")];
    files.extend(names.iter().map(|name| (name.as_str(), &document[..])));
    place.refused(&place.file("documents.tar.gz", &gzip(&tar(&files))), "more than 32 MiB of documents");
    // A sparse file without data: a terabyte in one block.
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::GNUSparse);
    header.set_path("blobs/sha256/x").unwrap();
    header.set_size(0);
    let sparse = header.as_gnu_mut().unwrap();
    sparse.set_real_size(1 << 40);
    sparse.sparse[0].set_offset(1 << 40);
    sparse.sparse[0].set_length(0);
    header.set_cksum();
    let holes = [header.as_bytes(), &[0; 1024][..]].concat();
    place.refused(&place.file("holes.tar", &holes), "becomes larger than 102400 MiB");
}

#[test]
fn a_file_that_stays_the_same_is_brought_in_once() {
    let place = Scratch::new();
    let path = place.file("r.tar", &tar(&[("a", b"one")]));
    let take = || import_one(&place.store, &path, &ignore_progress, &AtomicBool::new(false)).unwrap();
    let first = take();
    let blobs = place.store.root().join("blobs/sha256");
    let before: Vec<_> = std::fs::read_dir(&blobs).unwrap().collect();
    assert_eq!(take(), first);
    place.store.collect(false, false, false).unwrap().unwrap();
    assert_eq!(std::fs::read_dir(&blobs).unwrap().count(), 0, "nothing names it");
    assert_eq!(take(), first);
    assert_eq!(std::fs::read_dir(&blobs).unwrap().count(), before.len());
    place.file("r.tar", &tar(&[("a", b"two")]));
    assert_ne!(take(), first);
}

/// A docker archive whose manifest.json names one image, or one layer, thousands of times.
#[test]
fn a_docker_archive_that_names_its_parts_again_and_again_is_refused() {
    let place = Scratch::new();
    let diff = Digest::of(b"layer");
    let config = |count: usize| {
        let diffs = vec![diff.to_string(); count];
        json!({"os": "linux", "architecture": "amd64", "rootfs": {"type": "layers", "diff_ids": diffs}})
            .to_string()
    };
    for (images, layers, words) in [
        (1001, 1, "`manifest.json` has 1001 images; the limit is 1000"),
        (1, 1001, "it has 1001 layers; the limit is 1000"),
        (1, 250_000, "`manifest.json`: it has more than 200000 values"),
    ] {
        let entry = json!({"Config": "c.json", "Layers": vec!["l"; layers]});
        let manifest = json!(vec![entry; images]).to_string();
        let config = config(layers.min(1001));
        let files = [
            ("manifest.json", manifest.as_bytes()),
            ("c.json", config.as_bytes()),
            ("l", b"layer".as_slice()),
        ];
        place.refused(&place.file("a.tar", &tar(&files)), words);
    }
}

/// Each index of a layout names the next one 300 times.
#[test]
fn a_layout_whose_indexes_name_their_parts_again_and_again_is_imported_once() {
    let place = Scratch::new();
    let config =
        json!({"os": "linux", "architecture": "amd64", "rootfs": {"type": "layers", "diff_ids": []}});
    let config = place.store.put(config.to_string().as_bytes(), media::CONFIG).unwrap();
    let manifest = crate::manifest::Manifest::new(config, Vec::new());
    let mut at = place.store.put_json(&manifest, media::MANIFEST).unwrap();
    let index = |at: Descriptor| Index { manifests: vec![at; 300], ..Index::default() };
    for _ in 0..3 {
        at = place.store.put_json(&index(at), media::INDEX).unwrap();
    }
    let text = serde_json::to_vec(&index(at)).unwrap();
    let count = std::cell::Cell::new(0);
    let bring = |descriptor: &Descriptor| {
        count.set(count.get() + 1);
        Ok(place.store.has(&descriptor.digest))
    };
    let images = layout::images(&place.store, Path::new("layout"), &text, &bring).unwrap();
    assert_eq!((images.len(), count.get()), (1, 5), "three indexes, a manifest and a configuration");
}
