//! `jobc check` and `jobc image build` report the same for a Dockerfile: both use the same reader.

use std::collections::BTreeSet;

use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;

use crate::directory::{Directory, Run, binary, contents, files_of_cases};

/// Files that are not a case of a test below, or whose bytes no snapshot shows.
const MORE: &[&str] = &[
    "FROM a:1\nRUN --network=foo x\n",
    "FROM a:1\nHEALTHCHECK --interval=banana CMD x\n",
    "FROM a:1\nSTOPSIGNAL FOO\n",
    "FROM a:1\nEXPOSE x/y\n",
    "FROM a:1\nENV X\n",
    FOUR,
    "\u{feff}FROM A:1\r\nRUN x \\\r\n\r\n  y\r\nCOPY\r\n",
    "# escape=`\nFROM a:1\nRUN x `\n\n  y\nRUNN\n",
];

/// Four mistakes, a line each.
const FOUR: &str = "FROM a:1\nRUNN x\nEXPOSE 70000\nSTOPSIGNAL FOO\nENV =1\n";

/// Codes that only the compiler reports, because it knows the context.
const LINTS: &[&str] = &["J0606", "J0607", "J0609", "J0611", "J0623"];

/// A finding: its place, its code, its message.
type Finding = (u64, u64, String, String);

#[test]
fn check_and_build_say_the_same_of_every_dockerfile() {
    let files = files();
    assert!(files.len() >= 85, "only {} Dockerfiles were found", files.len());
    let files: Vec<&String> = files.iter().collect();
    // Each takes two processes.
    let halves = files.split_at(files.len() / 2);
    std::thread::scope(|scope| {
        for half in [halves.0, halves.1] {
            scope.spawn(move || half.iter().for_each(|text| check(text)));
        }
    });
}

#[test]
fn all_mistakes_of_a_dockerfile_are_shown_by_both() {
    let lines = |found: &[Finding]| found.iter().map(|finding| finding.0).collect::<Vec<_>>();
    let (checked, built) = both(FOUR);
    assert_eq!((lines(&checked), lines(&built)), (vec![2, 3, 4, 5], vec![2, 3, 4, 5]), "{checked:?}");
}

/// Asserts that both report the same for a file.
#[track_caller]
fn check(text: &str) {
    let (mut checked, built) = both(text);
    checked.retain(|(.., code, message)| {
        !LINTS.contains(&code.as_str()) && !message.contains("names no stage, so an image")
    });
    assert_eq!(checked, built, "`jobc check` on the left, `jobc image build` on the right, of:\n{text}");
}

/// What `jobc check` and `jobc image build` say of a file.
fn both(text: &str) -> (Vec<Finding>, Vec<Finding>) {
    let directory = Directory::with_job(
        "version: 1\nname: own\nimage: {dockerfile: ./Dockerfile}\nroles: {train: {run: python train.py}}\n",
    );
    directory.write("Dockerfile", text);
    // What the builder reads after the Dockerfile and before it fetches anything: so even a file without mistakes is
    // not built.
    directory.write(".dockerignore", "[\n");
    let check = directory.jobc(&["check", "--format", "json", "job.yaml"]);
    let mut build = directory.command(binary());
    build.args(["image", "build", "--builder", "embedded", "--format", "json", "."]);
    let build = Run::of(build.env("JOBC_IMAGE_ROOT", directory.path().join("store"))).exits(1);
    (findings(&check), findings(&build))
}

/// The findings in the Dockerfile, in order; those without a place are at the first line.
fn findings(run: &Run) -> Vec<Finding> {
    let mut found = Vec::new();
    for document in serde_json::Deserializer::from_str(&(run.out.clone() + &run.err)).into_iter::<Value>() {
        let document = document.unwrap_or_else(|error| panic!("{error}:\n{}\n{}", run.out, run.err));
        for finding in document["diagnostics"].as_array().unwrap() {
            let file = finding["file"].as_str().unwrap_or("./Dockerfile");
            if file.trim_start_matches("./") == "Dockerfile" {
                let at = |what: &str| finding["start"][what].as_u64().unwrap_or(1);
                let word = |what: &str| finding[what].as_str().unwrap().to_owned();
                found.push((at("line"), at("column"), word("code"), word("message")));
            }
        }
    }
    found.sort();
    found
}

/// Every Dockerfile that the tests of the reader, of the compiler and of the diagnostics have.
fn files() -> BTreeSet<String> {
    let workspace = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let below = |path: &str, part: &str| -> Vec<String> {
        let found: Vec<(Utf8PathBuf, Vec<u8>)> = contents(&workspace.join(path))
            .into_iter()
            .filter(|(path, _)| path.file_name().is_some_and(|name| name.contains(part)))
            .collect();
        assert!(!found.is_empty(), "nothing in {path} is called `{part}`");
        found.into_iter().map(|(_, bytes)| String::from_utf8(bytes).unwrap()).collect()
    };
    let mut files: BTreeSet<String> = MORE.iter().map(|text| (*text).to_owned()).collect();
    let of_cases = files_of_cases().into_iter();
    let of_cases =
        of_cases.filter(|(path, _)| path.file_name().is_some_and(|name| name.contains("Dockerfile")));
    files.extend(of_cases.map(|(_, text)| text));
    for text in below("schemas/dockerfile/src/snapshots", ".snap") {
        files.extend(of_reader(&text));
    }
    for text in below("compiler/src/dockerfile/snapshots", ".snap") {
        files.extend(of_compiler(&text));
    }
    files
}

/// The files that a snapshot of the reader shows, each line behind a bar.
fn of_reader(snapshot: &str) -> Vec<String> {
    let mut files = vec![String::new()];
    for line in snapshot.lines() {
        match line.strip_prefix('|') {
            Some(line) => {
                let line = line.strip_prefix(' ').unwrap_or(line);
                let line = line.replace('→', "\t").replace("<BOM>", "\u{feff}");
                let file = files.last_mut().unwrap();
                *file += &line;
                file.push('\n');
            }
            None => files.push(String::new()),
        }
    }
    files
}

/// The files that a snapshot of the compiler shows, each before a line `---- target` and behind what the one before it
/// tells.
fn of_compiler(snapshot: &str) -> Vec<String> {
    let body = snapshot.splitn(3, "---\n").nth(2).expect("a snapshot has a head");
    let mut files = Vec::new();
    let mut rest = body;
    while let Some((text, behind)) = rest.split_once("---- target ") {
        files.push(text.to_owned());
        let end =
            ["---- nothing\n\n", "\n}\n\n"].into_iter().filter_map(|end| Some(behind.find(end)? + end.len()));
        rest = end.min().map_or("", |end| &behind[end..]);
    }
    files
}
