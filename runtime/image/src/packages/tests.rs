use jobc_container::tar::{Entry, Kind as Is, Writer};

use jobc_schema::digest::Digest;

use super::*;

const DPKG: &str = "Package: bash\nStatus: install ok installed\nArchitecture: amd64\nVersion: 5.2.15-2+b7\nDescription: shell\n x: y\n\n\
     Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\nPackage: tzdata\nStatus: hold ok installed\nVersion: 2024a\n";
const APK: &str = "C:Q1x\nP:musl\nV:1.2.5-r0\nA:x86_64\nL:MIT\no:musl\nF:lib\nR:ld.so\n\nP:busybox\nV:1.36.1-r29\nA:x86_64\nL:GPL-2.0-only\n";
const METADATA: &str = "Metadata-Version: 2.4\nName: Torch_Vision\nVersion: 0.19.0\nLicense-Expression: BSD-3-Clause\n\nName: not-this\n";
const CONDA: &str = r#"{"name": "numpy", "version": "1.26.4", "build": "py312_0", "channel": "https://me:secret@c.example/t/abc/main",
    "subdir": "linux-64", "license": "BSD-3-Clause"}"#;

/// A layer of files: `path: content`; ` = ` for hard links.
fn layer(files: &[(&str, &str)]) -> Vec<u8> {
    let mut archive = Writer::new(Vec::new());
    for (path, content) in files {
        if let Some(target) = content.strip_prefix("= ") {
            let entry = Entry { link: target.into(), ..Entry::new(Is::HardLink, *path) };
            archive.entry(&entry).unwrap();
            continue;
        }
        let entry = Entry { mode: 0o644, size: content.len() as u64, ..Entry::new(Is::File, *path) };
        archive.file(&entry, &mut content.as_bytes()).unwrap();
    }
    archive.finish().unwrap()
}

fn read_layers(layers: &[&[(&str, &str)]]) -> Inventory {
    let mut files = databases::Files::new();
    for (index, entries) in layers.iter().enumerate() {
        let digest = Digest::of(&[u8::try_from(index).unwrap()]);
        databases::apply(&mut files, &layer(entries)[..], &digest, 100).unwrap();
    }
    inventory(&files)
}

fn names(layers: &[&[(&str, &str)]]) -> Vec<String> {
    let packages = read_layers(layers).packages;
    packages
        .iter()
        .map(|package| format!("{:?} {} {}", package.kind, package.name, package.version))
        .collect()
}

#[test]
fn packages_are_read_from_their_databases() {
    let site = "usr/lib/python3.12/site-packages";
    let python = format!("./{site}/torchvision-0.19.0.dist-info/METADATA");
    let files = [
        ("var/lib/dpkg/status", DPKG),
        ("lib/apk/db/installed", APK),
        (&python, METADATA),
        ("opt/conda/conda-meta/numpy-1.26.4-py312_0.json", CONDA),
        ("opt/conda/conda-meta/history", "x"),
        ("etc/os-release", "NAME=\"x\"\nID=debian\nVERSION_ID=\"12\"\n"),
        ("var/lib/rpm/rpmdb.sqlite", "SQLite format 3"),
        ("home/METADATA", METADATA),
    ];
    assert_eq!(
        names(&[&files]),
        [
            "Debian bash 5.2.15-2+b7",
            "Debian tzdata 2024a",
            "Alpine busybox 1.36.1-r29",
            "Alpine musl 1.2.5-r0",
            "Python Torch_Vision 0.19.0",
            "Conda numpy 1.26.4",
        ]
    );
    let found = read_layers(&[&files]);
    assert_eq!(found.distribution.unwrap().version.as_deref(), Some("12"));
    assert_eq!(found.gaps, ["RPM packages of `var/lib/rpm/rpmdb.sqlite` are not listed"]);
    let conda = found.packages.last().unwrap();
    assert_eq!(conda.qualifiers[1], ("channel", "https://c.example/main".to_owned()));
    assert_eq!(conda.license, Some(License::Name("BSD-3-Clause".to_owned())));
    let python = &found.packages[4];
    assert_eq!(python.license, Some(License::Expression("BSD-3-Clause".to_owned())));
    assert_eq!(python.path, format!("{site}/torchvision-0.19.0.dist-info/METADATA"));
}

#[test]
fn upper_layers_win() {
    let file = "usr/lib/p/site-packages/a-1.dist-info/METADATA";
    let (one, two) = ("Name: a\nVersion: 1\n", "Name: a\nVersion: 2\n");
    assert_eq!(names(&[&[(file, one)], &[(file, two)]]), ["Python a 2"]);
    assert_eq!(read_layers(&[&[(file, one)], &[(file, two)]]).packages[0].layer, Digest::of(&[1]));
    assert_eq!(names(&[&[(file, one)], &[("usr/lib/p/site-packages/.wh.a-1.dist-info", "")]]), [""; 0]);
    assert_eq!(names(&[&[(file, one)], &[("usr/lib/p/.wh..wh..opq", "")]]), [""; 0]);
    // A file in the place of a directory.
    assert_eq!(names(&[&[(file, one)], &[("usr/lib/p", "x")]]), [""; 0]);
    // A whiteout hides lower layers only.
    let both = [("usr/lib/p/.wh..wh..opq", ""), (file, two)];
    assert_eq!(names(&[&[(file, one)], &both]), ["Python a 2"]);
}

#[test]
fn conda_links_what_it_has_downloaded() {
    let cached = "opt/conda/pkgs/six-1/site-packages/six-1.dist-info/METADATA";
    let installed = "opt/conda/lib/site-packages/six-1.dist-info/METADATA";
    let link = format!("= {cached}");
    assert_eq!(names(&[&[(cached, "Name: six\nVersion: 1\n"), (installed, &link)]]), ["Python six 1"]);
}

#[test]
fn damaged_databases_are_no_packages() {
    let broken = [
        ("var/lib/dpkg/status", "Package\n\nPackage: a\n\nVersion: 1\n"),
        ("a/x.dist-info/METADATA", "\u{0}\u{1}"),
        ("c/conda-meta/x.json", "{"),
        ("lib/apk/db/installed", "P:\n\nV:1"),
    ];
    assert_eq!(names(&[&broken]), [""; 0]);
}
