use serde_json::json;

use super::*;

/// A bundle with files next to its config.json, and its root for a choice; `DIR` is the bundle's directory.
fn check(image: Option<&str>, path: &str, files: &[&str], choice: Option<&str>) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let dir = fs::canonicalize(directory.path()).expect("a path");
    let state = dir.join("state");
    fs::create_dir(&state).expect("a directory");
    for file in files {
        let path = dir.join(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        if file.ends_with('/') {
            fs::create_dir_all(path).expect("a directory");
        } else {
            // Only the end marker: an empty archive.
            fs::write(path, [0; 1024]).expect("a file");
        }
    }
    let written = path.replace("DIR", &dir.display().to_string());
    let mut config = json!({"ociVersion": "1.1.0", "root": {"path": written}, "annotations": {}});
    if let Some(image) = image {
        config["annotations"]["dev.jobc.image"] = json!(image);
        config["annotations"]["dev.jobc.disk"] = json!("1048576");
    }
    fs::write(dir.join("config.json"), config.to_string()).expect("a configuration");
    let bundle = Bundle::open(&dir).expect("a bundle");
    let chosen = choice.map(|choice| choice.replace("DIR", &dir.display().to_string()));
    let output = match Root::of(&bundle, chosen.as_deref(), &state) {
        Ok(Root::Overlay { lowers, upper: UpperLayer::Memory { size }, on, .. }) => {
            assert!(fs::read_dir(&on).expect("a directory").next().is_none(), "nothing else is there");
            let [lower] = &lowers[..] else { panic!("one layer") };
            format!("{} under {size:?} on {}", lower.display(), on.display())
        }
        Ok(Root::Directory(path)) => {
            assert!(path.is_dir());
            path.display().to_string()
        }
        Ok(other) => panic!("{other:?}"),
        Err(error) => {
            error.to_string() + &error.hints.iter().map(|help| format!("\n    {help}")).collect::<String>()
        }
    };
    let output = output.replace(&dir.display().to_string(), "DIR");
    format!("image {image:?}, path `{path}`, files {files:?}, choice {choice:?}\n  {output}\n")
}

#[test]
fn where_the_root_comes_from() {
    let cases = [
        check(None, "rootfs", &["rootfs/"], None),
        check(Some("host"), "rootfs", &["rootfs/", "rootfs.tar"], None),
        check(None, "rootfs", &["rootfs.tar"], None),
        check(None, "rootfs", &["rootfs.tgz"], None),
        check(None, "image.tar", &["image.tar"], None),
        check(Some("host"), "rootfs", &[], None),
        check(Some("python:3.12"), "rootfs", &[], None),
        check(None, "rootfs", &[], None),
        check(None, "", &[], None),
        check(None, ".", &["bin/"], None),
        check(None, "./", &["rootfs.tar"], None),
        check(None, "DIR", &["bin/"], None),
        check(None, "bin/..", &["bin/"], None),
        check(None, "rootfs", &["rootfs/"], Some("host")),
        check(None, "rootfs", &["rootfs/", "other/"], Some("DIR/other")),
        check(None, "rootfs", &["rootfs/", "other.tar"], Some("DIR/other.tar")),
        check(None, "rootfs", &["rootfs/"], Some("DIR/missing")),
        check(None, "rootfs", &["rootfs/"], Some("/")),
        check(None, "/", &[], None),
    ];
    insta::assert_snapshot!(cases.concat());
}

#[test]
fn an_archive_is_unpacked_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let archive = directory.path().join("rootfs.tar");
    fs::write(&archive, [0; 1024]).expect("an archive");
    let first = Root::at(&archive, directory.path()).expect("a root");
    fs::write(directory.path().join("rootfs/made"), "by the container").expect("a file");
    assert_eq!(Root::at(&archive, directory.path()), Ok(first));
    assert!(directory.path().join("rootfs/made").exists());
}
