use std::fs;
use std::io::Read as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;

/// Layers of files that contain their own place; `!name` is a whiteout, `name!` an opaque directory, `name -> target` a
/// link.
fn layers(dir: &Path, layers: &[&[&str]]) -> Layers {
    let mut directories = Vec::new();
    for (index, entries) in layers.iter().enumerate() {
        let directory = dir.join(index.to_string());
        fs::create_dir(&directory).expect("a directory");
        for entry in *entries {
            let (name, target) =
                entry.split_once(" -> ").map_or((*entry, None), |(name, to)| (name, Some(to)));
            let path = directory.join(name.trim_matches('!'));
            fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
            if let Some(target) = target {
                symlink(target, path).expect("a link");
            } else if name.starts_with('!') {
                let mode = Mode::empty();
                rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::CharacterDevice, mode, 0)
                    .expect("a whiteout");
            } else if name.ends_with('!') {
                fs::create_dir(&path).expect("a directory");
                rustix::fs::setxattr(&path, OPAQUE_ATTRIBUTES[1], b"y", rustix::fs::XattrFlags::empty())
                    .expect("an attribute");
            } else {
                fs::write(path, format!("{index}:{name}")).expect("a file");
            }
        }
        directories.push(directory);
    }
    Layers::open(&directories).expect("layers")
}

fn read(layers: &Layers, path: &CStr) -> String {
    match layers.find(path, OFlags::RDONLY) {
        Ok(file) => {
            let mut text = String::new();
            fs::File::from(file).read_to_string(&mut text).expect("text");
            text
        }
        Err(errno) => format!("{errno:?}"),
    }
}

#[test]
fn the_highest_layer_wins_and_directories_merge() {
    let dir = tempfile::tempdir().expect("a directory");
    let layers = layers(
        dir.path(),
        &[
            &["etc/passwd", "etc/group", "etc/gone", "opt/a/file", "usr/bin/sh", "bin -> usr/bin", "x/y"],
            &[
                "etc/passwd",
                "!etc/gone",
                "opt/a!",
                "opt/a/new",
                "sbin -> /bin/",
                "up -> ../../etc/group",
                "x",
            ],
        ],
    );
    let cases = [
        (c"etc/passwd", "1:etc/passwd"),
        (c"/etc/group", "0:etc/group"),
        (c"etc/gone", "Os { code: 2, kind: NotFound, message: \"No such file or directory\" }"),
        (c"opt/a/file", "Os { code: 2, kind: NotFound, message: \"No such file or directory\" }"),
        (c"opt/a/new", "1:opt/a/new"),
        (c"bin/sh", "0:usr/bin/sh"),
        (c"sbin/sh", "0:usr/bin/sh"),
        (c"../up", "0:etc/group"),
        (c"x/y", "Os { code: 20, kind: NotADirectory, message: \"Not a directory\" }"),
    ];
    for (path, expected) in cases {
        assert_eq!(read(&layers, path), expected, "{path:?}");
    }
}

#[test]
fn links_in_a_circle_end() {
    let dir = tempfile::tempdir().expect("a directory");
    let layers = layers(dir.path(), &[&["a -> b"], &["b -> a"]]);
    assert_eq!(layers.find(c"a", OFlags::RDONLY).err(), Some(Errno::LOOP));
}
