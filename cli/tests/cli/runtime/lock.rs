//! `jobc lock`: what is written into jobc.lock, and what follows it.

use std::fs;
use std::process::Command;

use crate::directory::Directory;

const JOB: &str = "\
version: 1
name: locked
image: base:1
roles:
  main: {run: 'true'}
  built: {image: {from: 'other:2', run: ['true']}, run: 'true'}
";

/// A directory with a job, and a store of images in it that has those it names.
fn directory() -> Directory {
    let directory = Directory::with_job(JOB);
    import(&directory, "base:1", "one");
    import(&directory, "other:2", "two");
    directory
}

/// Brings in an image of one file under a name.
fn import(directory: &Directory, name: &str, content: &str) {
    fs::write(directory.path().join("file"), content).unwrap();
    let path = directory.path();
    let made = Command::new("tar")
        .current_dir(path)
        .args(["--mtime=@1700000000", "-cf", "root.tar", "file"])
        .status();
    assert!(made.unwrap().success());
    directory.jobc(&["image", "--image-root", "images", "import", "root.tar", "--tag", name]).exits(0);
}

fn digests(directory: &Directory) -> Vec<String> {
    let text = fs::read_to_string(directory.path().join("jobc.lock")).unwrap();
    text.lines().filter_map(|line| Some(line.split_once("\": ")?.1.to_owned())).collect()
}

#[test]
fn names_get_the_digests_of_the_store() {
    let directory = directory();
    directory
        .jobc(&["lock", "--check"])
        .exits(1)
        .says("`jobc.lock` does not exist")
        .says("`base:1` and `other:2`");
    directory.jobc(&["lock", "--local", "--image-root", "images"]).exits(0);
    let [base, other] = &digests(&directory)[..] else { panic!("two images have digests") };
    assert!(base.starts_with("sha256:") && other.starts_with("sha256:") && base != other);
    directory.jobc(&["lock", "--check"]).exits(0);
    directory.jobc(&["build", "--locked", "--target", "local"]).exits(0);
    let plan = fs::read_to_string(directory.path().join("out/locked/local/plan.json")).unwrap();
    assert!(plan.contains(&format!("base:1@{base}")) && plan.contains(&format!("other:2@{other}")), "{plan}");
}

#[test]
fn what_is_written_stays_until_it_is_requested_again() {
    let directory = directory();
    let lock = |more: &[&str]| {
        directory.jobc(&[&["lock", "--local", "--image-root", "images"], more].concat()).exits(0);
        digests(&directory)
    };
    let before = lock(&[]);
    import(&directory, "base:1", "three");
    import(&directory, "other:2", "three");
    assert_eq!(lock(&[]), before);
    let one = lock(&["--update", "base:1"]);
    assert!(one[0] != before[0] && one[1] == before[1]);
    let all = lock(&["--update-all"]);
    assert!(all[0] == one[0] && all[1] == all[0]);
    directory.jobc(&["lock", "--update", "bass:1"]).exits(2).says("did you mean `base:1`?");
}

#[test]
fn an_image_that_is_not_locked_is_refused_where_that_is_requested() {
    let directory = directory();
    directory
        .jobc(&["build", "--locked"])
        .exits(1)
        .says("J0291")
        .says("there is no jobc.lock next to the job file");
    directory.jobc(&["run", "--locked"]).exits(125).says("J0291");
    directory.jobc(&["build", "--target", "local"]).exits(0);
    directory.jobc(&["run", "--locked", "out/locked/local"]).exits(125).says("`--locked` does not apply to");
    fs::write(directory.path().join("jobc.lock"), "version: 2\n").unwrap();
    directory.jobc(&["build"]).exits(1).says("J0502");
    directory.jobc(&["lock", "--local"]).exits(1).says("J0502");
}

#[test]
fn an_image_that_is_nowhere_leaves_the_file_as_it_was() {
    let directory = Directory::with_job(JOB);
    directory
        .jobc(&["lock", "--local", "--image-root", "images"])
        .exits(3)
        .says("the image `base:1` is not in the image store");
    assert!(!directory.path().join("jobc.lock").exists());
}

#[test]
fn a_policy_that_requires_digests_lets_images_be_locked() {
    let directory = directory();
    directory.write(
        "targets.yaml",
        "version: 1\ntargets:\n  here: {backends: [oci], policy: {require_digest: true}}\n",
    );
    directory.jobc(&["check"]).exits(1).says("J0503").says("run `jobc lock`");
    directory.jobc(&["lock", "--check"]).exits(1).says("`jobc.lock` does not exist");
    directory.jobc(&["lock", "--local", "--image-root", "images"]).exits(0);
    directory.jobc(&["check"]).exits(0);
}
