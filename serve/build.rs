//! Embeds the files of the page, which `serve/page/build` makes: none where it did not run.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("page/dist");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", directory.display());
    let mut files = vec![];
    find(&directory, &mut files);
    files.sort();
    let mut text = "&[\n".to_owned();
    for file in files {
        let name = file.strip_prefix(&directory).expect("it lies below").with_extension("");
        let (name, file) = (name.display().to_string(), file.display().to_string());
        let _ = writeln!(text, "    ({name:?}, include_bytes!({file:?}).as_slice()),");
    }
    text += "]\n";
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it"));
    std::fs::write(out.join("page.rs"), text).expect("the output directory is writable");
}

/// The compressed files below a directory.
fn find(directory: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = directory.read_dir() else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "gz") {
            println!("cargo::rerun-if-changed={}", path.display());
            files.push(path);
        }
    }
}
