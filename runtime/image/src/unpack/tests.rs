use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};

use super::*;
use crate::config::Config;
use crate::manifest::Manifest;
use crate::manifest::media;
use crate::platform::Platform;
use crate::progress::ignore_progress;
use jobc_container::root::layers::Layers;
use jobc_container::root::layers::is_opaque;
use jobc_container::tar::{Entry, Kind as Is, Time, Writer};
use jobc_schema::digest::Digest;
use std::fs;

static CONTINUE: AtomicBool = AtomicBool::new(false);

/// An archive of lines: `d PATH MODE`, `f PATH TEXT`, `l PATH TARGET`, `h PATH TARGET`, `c PATH`, each of user 0 at the
/// time of its number.
fn tar(lines: &[&str]) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new());
    for (index, line) in lines.iter().enumerate() {
        let mut words = line.splitn(3, ' ');
        let (kind, path, rest) =
            (words.next().unwrap_or(""), words.next().unwrap_or(""), words.next().unwrap_or(""));
        let is = match kind {
            "d" => Is::Directory,
            "l" => Is::Symlink,
            "h" => Is::HardLink,
            "c" => Is::Character,
            _ => Is::File,
        };
        let mut entry = Entry::new(is, path);
        entry.mode = if is == Is::Directory { u32::from_str_radix(rest, 8).expect("a mode") } else { 0o640 };
        entry.mtime = Time { seconds: 1_000 + i64::try_from(index).expect("few"), nanoseconds: 7 };
        if matches!(is, Is::Symlink | Is::HardLink) {
            entry.link = rest.into();
        }
        if is == Is::Character {
            entry.device = (1, 3);
        }
        let text = if is == Is::File { rest } else { "" };
        entry.size = text.len() as u64;
        writer.file(&entry, &mut text.as_bytes()).expect("written");
    }
    writer.finish().expect("finished")
}

/// A store, and an image of layers as archives.
fn image(dir: &Path, layers: &[Vec<u8>]) -> (Store, Image) {
    let store = Store::open(&dir.join("store")).expect("a store");
    let mut config = Config::default();
    let mut blobs = Vec::new();
    for layer in layers {
        let blob = store.put(layer, media::LAYER).expect("a blob");
        config.rootfs.diff_ids.push(blob.digest.clone());
        blobs.push(blob);
    }
    (config.os, config.architecture) = ("linux".to_owned(), Platform::here().architecture);
    let config = store.put_json(&config, media::CONFIG).expect("a configuration");
    let manifest = store.put_json(&Manifest::new(config, blobs), media::MANIFEST).expect("a manifest");
    let image = store.image(&manifest, &Platform::here()).expect("an image");
    (store, image)
}

/// A directory's content, a line each.
fn listed(directory: &Path) -> String {
    let mut lines = BTreeMap::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(next) = directories.pop() {
        for entry in fs::read_dir(&next).expect("a directory") {
            let path = entry.expect("an entry").path();
            let data = fs::symlink_metadata(&path).expect("data");
            let what = if data.is_dir() {
                directories.push(path.clone());
                let open = std::os::fd::OwnedFd::from(fs::File::open(&path).expect("a directory"));
                if is_opaque(&open) { "/ opaque".to_owned() } else { "/".to_owned() }
            } else if data.file_type().is_char_device() && data.rdev() == 0 {
                // The creation time does not matter.
                lines.insert(
                    path.strip_prefix(directory).expect("below").display().to_string(),
                    " whiteout".to_owned(),
                );
                continue;
            } else if data.is_symlink() {
                format!(" -> {}", fs::read_link(&path).expect("a link").display())
            } else {
                format!(" = {}", fs::read_to_string(&path).unwrap_or_default())
            };
            let shown = path.strip_prefix(directory).expect("below").display().to_string();
            lines.insert(shown, format!("{what} {:o} {}", data.mode() & 0o7777, data.mtime()));
        }
    }
    lines.into_iter().fold(String::new(), |mut text, (path, what)| {
        let _ = writeln!(text, "{path}{what}");
        text
    })
}

/// Unpacks layers of lines, and shows each directory that they became.
fn check(layers: &[&[&str]]) -> String {
    let dir = tempfile::tempdir().expect("a directory");
    let tars: Vec<Vec<u8>> = layers.iter().map(|lines| tar(lines)).collect();
    let (store, image) = image(dir.path(), &tars);
    match super::layers(&store, &image, &ignore_progress, &CONTINUE) {
        Ok(directories) => {
            directories.iter().fold(String::new(), |text, directory| text + &listed(directory) + "--\n")
        }
        Err(error) => {
            let left = fs::read_dir(store.root().join("unpacked").join("root")).expect("a directory");
            // Layers that are whole stay; of the others nothing does.
            for entry in left {
                let path = entry.expect("an entry").path();
                assert!(path.extension().is_none(), "{} is left", path.display());
            }
            let digests: Vec<_> =
                image.manifest.layers.iter().map(|layer| layer.digest.to_string()).collect();
            digests.iter().fold(error.to_string(), |text, digest| text.replace(digest, "LAYER"))
        }
    }
}

#[test]
fn whiteouts_take_the_form_of_an_overlay() {
    if !jobc_test_skip::is_root() {
        return;
    }
    insta::assert_snapshot!(check(&[
        &["d ./ 755", "d a/ 750", "f a/x old", "d b/ 755", "f b/gone text", "f c text"],
        &[
            "d ./ 755",
            "d a/ 700",
            "f a/.wh.x ",
            "d b/ 755",
            "f b/.wh..wh..opq ",
            "f .wh..wh.plnk ",
            "f b/new text",
            "f .wh.c ",
            "d c/ 755",
            "f c/inner a whiteout and a directory",
            "f kept text",
            "f .wh.kept ",
            "f .wh.d ",
            "f d/e a whiteout and a directory without an entry",
        ],
    ]));
}

#[test]
fn directories_without_an_entry_are_as_the_layers_below_say() {
    if !jobc_test_skip::is_root() {
        return;
    }
    insta::assert_snapshot!(check(&[
        &["d ./ 711", "d a/ 750", "d a/b/ 1777", "f a/b/x text", "d gone/ 700"],
        &["f a/b/y text", "f gone/z text", "f unknown/to/all text"],
        &["f .wh.gone ", "d a/ 500"],
    ]));
}

#[test]
fn a_hard_link_may_be_for_a_file_of_a_lower_layer() {
    if !jobc_test_skip::is_root() {
        return;
    }
    insta::assert_snapshot!(check(&[
        &["d ./ 755", "d bin/ 755", "f bin/tool binary", "f other text"],
        &["d ./ 755", "h bin/alias bin/tool", "h second bin/alias", "h lost other"],
        &["d ./ 755", "f lost my own"],
    ]));
    insta::assert_snapshot!(check(&[&["d ./ 755"], &["h a nowhere"]]), @"`a` is a hard link to `nowhere`, which is in no layer");
}

#[test]
fn a_layer_that_comes_twice_is_one_directory() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let layer: &[&str] = &["d ./ 755", "f a text"];
    let other: &[&str] = &["d ./ 755", "f .wh.a "];
    let on_progress = check(&[layer, other, layer]);
    assert_eq!(on_progress.matches("--").count(), 2, "{on_progress}");
    assert!(on_progress.ends_with("a = text 640 1001\n--\n"), "{on_progress}");
}

#[test]
fn what_is_wrong_with_a_layer_is_reported_and_nothing_is_left() {
    if !jobc_test_skip::is_root() {
        return;
    }
    insta::assert_snapshot!(check(&[&["f ../x text"]]), @"cannot unpack the layer LAYER: `../x`: a path with `..`");
    insta::assert_snapshot!(check(&[&["f .wh.. text"]]), @"cannot unpack the layer LAYER: `.wh..`: a whiteout without a name");
    insta::assert_snapshot!(check(&[&["f a text"], &["l b /etc", "h c b/shadow", "f c x"]]), @"`c` is a hard link to `b/shadow`, which is in no layer");
}

#[test]
fn the_content_must_be_what_the_image_says() {
    let dir = tempfile::tempdir().expect("a directory");
    let (store, mut image) = image(dir.path(), &[tar(&["f a text"])]);
    image.config.rootfs.diff_ids[0] = Digest::of(b"another");
    if Ownership::of_current_user().is_ok_and(|whose| matches!(whose, Ownership::Mapped(_))) {
        jobc_test_skip::skip("root, or a user without a range of ids");
        return;
    }
    let error = super::layers(&store, &image, &ignore_progress, &CONTINUE).expect_err("refused");
    assert!(error.message().contains("but the image lists"), "{error}");
    let directory = Ownership::of_current_user().expect("ids").layer_directories(&store).own;
    assert_eq!(fs::read_dir(directory).expect("a directory").count(), 0);
}

#[test]
fn limits_stop_a_decompression_bomb() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let (store, image) = image(dir.path(), &[tar(&["f a text", "f b text"])]);
    let within = |limits: Limits| {
        layers_within(&store, &image, &limits, &ignore_progress, &CONTINUE).expect_err("refused").message()
    };
    let usual = Limits::default();
    assert!(within(Limits { bytes: 1 << 10, ..usual }).contains("becomes larger than 0 MiB"));
    assert!(within(Limits { entries: 1, ..usual }).contains("more than 1 entries"));
    let stopped = AtomicBool::new(true);
    let error = super::layers(&store, &image, &ignore_progress, &stopped).expect_err("given up");
    assert!(error.message().contains("canceled"), "{error}");
}

#[test]
fn a_layer_of_another_boot_is_unpacked_anew_unless_it_is_on_the_disk() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let (store, image) = image(dir.path(), &[tar(&["f a text"])]);
    let unpacked = || super::layers(&store, &image, &ignore_progress, &CONTINUE).expect("layers").remove(0);
    let files = unpacked();
    let boot = files.with_file_name("boot");
    fs::write(files.join("a"), "damaged").expect("written");
    assert_eq!(fs::read_to_string(unpacked().join("a")).expect("a file"), "damaged", "the same boot");
    fs::write(&boot, "another").expect("written");
    assert_eq!(fs::read_to_string(unpacked().join("a")).expect("a file"), "text", "another boot");
    // A minute later.
    let time = std::time::SystemTime::now() - std::time::Duration::from_mins(2);
    fs::File::options().write(true).open(&boot).and_then(|file| file.set_modified(time)).expect("old");
    unpacked();
    assert!(!boot.exists(), "it was seen to be on the disk");
    // The leftovers of a killed process are reused.
    let place = files.parent().expect("a parent");
    let mut part = place.as_os_str().to_owned();
    part.push(".part");
    fs::create_dir_all(Path::new(&part).join("files/old")).expect("directories");
    fs::rename(place, place.with_extension("away")).expect("renamed");
    assert!(!unpacked().join("old").exists());
    assert!(!Path::new(&part).exists());
}

#[test]
fn a_copy_is_what_an_overlay_would_show() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let layers = [
        tar(&[
            "d ./ 711",
            "d a/ 750",
            "f a/x old",
            "f a/gone text",
            "h linked a/x",
            "d b/ 755",
            "f b/hidden text",
        ]),
        tar(&["d ./ 755", "f a/.wh.gone ", "f a/y new", "d b/ 700", "f b/.wh..wh..opq ", "l b/link ../a/y"]),
    ];
    let (store, image) = image(dir.path(), &layers);
    let directories = super::layers(&store, &image, &ignore_progress, &CONTINUE).expect("layers");
    let to = dir.path().join("copy");
    copy(&directories, &to).expect("copied");
    insta::assert_snapshot!(listed(&to), @r"
    a/ 750 1001
    a/x = old 640 1002
    a/y = new 640 1002
    b/ 700 1003
    b/link -> ../a/y 777 1005
    linked = old 640 1002
    ");
    let inode = |name: &str| fs::metadata(to.join(name)).expect("data").ino();
    assert_eq!(inode("a/x"), inode("linked"));
    assert!(copy(&directories, &to).is_err(), "it is there");
}

#[test]
fn users_are_found_in_any_layer() {
    if !jobc_test_skip::is_root() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let layers = [
        tar(&["d ./ 755", "d etc/ 755", "f etc/passwd a:x:5:6:::\n", "f etc/group g:x:7:a\n"]),
        tar(&["d ./ 755", "d etc/ 755", "f etc/passwd a:x:8:9:::\n"]),
    ];
    let (store, image) = image(dir.path(), &layers);
    let directories = super::layers(&store, &image, &ignore_progress, &CONTINUE).expect("layers");
    let root = Layers::open(&directories).expect("layers");
    let account = jobc_container::user::lookup(&root, "a").expect("an account");
    assert_eq!((account.uid, account.gid, account.additional), (8, 9, vec![7, 9]));
}

/// Many layers under one root, mounted by a container's own start: 127 are what image tools allow.
#[test]
fn the_maximum_number_of_layers_can_be_mounted() {
    let dir = tempfile::tempdir().expect("a directory");
    let directories: Vec<PathBuf> = (0..127).map(|index| dir.path().join(format!("layer-{index}"))).collect();
    for (index, directory) in directories.iter().enumerate() {
        fs::create_dir(directory).expect("a directory");
        fs::write(directory.join(index.to_string()), "").expect("a file");
        fs::write(directory.join("top"), index.to_string()).expect("a file");
    }
    let root = jobc_container::root::Root::over(
        directories,
        jobc_container::root::UpperLayer::Memory { size: None },
    );
    let root = root.with_state_dir(dir.path()).expect("a place");
    let bundle = serde_json::json!({
        "ociVersion": "1.1.0",
        "root": {"path": dir.path().join("root")},
        "process": {"cwd": "/", "args": ["/top"], "user": {"uid": 0, "gid": 0}},
        "linux": {"namespaces": [{"type": "mount"}]},
    });
    fs::write(dir.path().join("config.json"), bundle.to_string()).expect("a bundle");
    let bundle = jobc_container::bundle::Bundle::open(dir.path()).expect("a bundle");
    let machine = jobc_sys::host::Host::read().expect("a host");
    let mut options = jobc_container::options::Options::default();
    let prepared =
        jobc_container::prepare::prepare(&bundle, &root, &mut options, &machine, None).expect("prepared");
    if !jobc_test_skip::is_root() {
        return;
    }
    // `/top` is not a program, so the start fails after everything else: the root was mounted with 127 layers.
    let error = prepared
        .spawn(jobc_container::start::CgroupFds::default(), &mut |_, _| Ok(()))
        .expect_err("no program");
    assert!(error.message().contains("cannot execute `/top`"), "{error}");
}

#[test]
fn devices_that_cannot_be_created_are_skipped_with_a_note() {
    let dir = tempfile::tempdir().expect("a directory");
    let files = dir.path().join("files");
    fs::create_dir(&files).expect("a directory");
    let mut tree = jobc_container::archive::tree::Tree::layer(&files, Owners::CurrentUser).expect("a tree");
    let archive = tar(&["c dev/null", "c jail/null", "f file text"]);
    jobc_container::archive::extract(&mut tree, &archive[..], 9, &CONTINUE).expect("filled");
    let left = tree.finish_layer().expect("finished");
    assert_eq!(left.skipped_devices, [b"jail/null"]);
    assert_eq!(left.implied_directories, [b"".to_vec()]);
}
