//! An invalid image name is an error of `jobc check` at the character at fault, in every field.

use crate::directory::Directory;

/// Names, the byte where each is invalid, and the message after `invalid reference format`.
const WRONG: &[(&str, usize, &str)] = &[
    ("python:3.12~slim", 11, ""),
    ("a//b:1", 2, ""),
    ("python:", 7, ""),
    ("-x:1", 0, ""),
    ("python@sha256:abc", 7, ""),
    ("ghcr.io/org/app:1.2:3", 19, ""),
    ("UPPER/Repo:1", 0, ": repository name must be lowercase"),
];

/// Job files with `@` instead of the name: every field that takes an image.
const FIELDS: &[&str] = &[
    "version: 1\nname: x\nimage: \"@\"\nroles: {main: {run: \"true\"}}\n",
    "version: 1\nname: x\nroles: {main: {image: \"@\", run: \"true\"}}\n",
    "version: 1\nname: x\nimage: {from: \"@\", apt: [git]}\nroles: {main: {run: \"true\"}}\n",
    "version: 1\nname: x\nroles: {main: {image: {from: \"@\", apt: [git]}, run: \"true\"}}\n",
    "version: 1\nname: x\nimages: {a: {from: \"@\", apt: [git]}}\nroles: {main: {image: {use: a}, run: \"true\"}}\n",
    "version: 1\nname: x\nimage: {from: \"a:1\", copy: [{image: \"@\", from: /x, to: /y}]}\nroles: {main: {run: \"true\"}}\n",
    "version: 1\nname: x\nimage: {from: \"a:1\", steps: [{copy: {image: \"@\", from: /x, to: /y}}]}\nroles: {main: {run: \"true\"}}\n",
    "protocolVersion: 2\nname: x\ntype: job\nprerequisites:\n  - {name: i, type: dockerimage, uri: \"@\"}\ntaskRoles:\n  main:\n    \
     dockerImage: i\n    resourcePerInstance: {cpu: 1, memoryMB: 64, gpu: 0}\n    commands: [\"true\"]\n",
];

#[test]
fn a_wrong_name_is_an_error_in_every_field() {
    for field in FIELDS {
        for (name, at, more) in WRONG {
            check(field, name, *at, more);
        }
    }
}

#[track_caller]
fn check(field: &str, name: &str, at: usize, more: &str) {
    let before = &field[..field.find('@').unwrap()];
    let (line, column) = (before.matches('\n').count() + 1, before.len() - before.rfind('\n').unwrap() + at);
    let job = field.replacen('@', name, 1);
    let run = Directory::with_job(&job).jobc(&["check", "--format", "short", "job.yaml"]).exits(1);
    let expected = format!(
        "job.yaml:{line}:{column}: error[J0223]: `{name}` is not an image reference: invalid reference format{more}"
    );
    let output = run.out + &run.err;
    assert!(output.lines().any(|line| line == expected), "{expected}\nis not in\n{output}\nof\n{job}");
}
