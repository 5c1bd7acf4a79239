//! `jobc lock`: what is written into jobc.lock, and what follows it.

use std::fs;
use std::process::Command;

use crate::directory::{Directory, Run, binary};

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
fn lock_entries_stay_until_they_are_updated() {
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
fn a_missing_image_leaves_the_lock_file_unchanged() {
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

const TEMPLATE: &str = "\
template: 1
kind: job
params: {word: one}
body:
  image: host
  roles:
    main:
      files: {/etc/word: {from: \"${{ template.directory }}/word\"}}
      run: echo ${{ with.word }}
";

/// A directory with a repository that has a template below `train`, and with its own cache.
struct WithRepository(Directory);

impl WithRepository {
    fn new() -> Self {
        let this = Self(Directory::new());
        this.0.write("repository/train/template.yaml", TEMPLATE);
        this.0.write("repository/train/word", "first\n");
        this.git(&["init", "--quiet", "--initial-branch=main", "."]);
        this.commit();
        this
    }

    fn git(&self, words: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(words);
        command.current_dir(self.0.path().join("repository"));
        let output = command.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "more"]);
        self.git(&["rev-parse", "HEAD"])
    }

    /// The name of a template in the repository, and a job that uses it.
    fn job(&self, path_and_reference: &str) -> String {
        let uses = format!("git+file://{}/repository//{path_and_reference}", self.0.path());
        self.0.write("job.yaml", &format!("version: 1\nname: locked\nuses: \"{uses}\"\n"));
        uses
    }

    fn jobc(&self, words: &[&str]) -> Run {
        let mut command = self.0.command(binary());
        command.args(words).env("XDG_CACHE_HOME", self.0.path().join("cache"));
        // Neither may lead git somewhere else.
        command
            .env("GIT_DIR", "/nowhere")
            .env("GIT_WORK_TREE", "/nowhere")
            .env("GIT_OBJECT_DIRECTORY", "/nowhere");
        Run::of(&mut command)
    }
}

#[test]
fn a_template_from_git_is_locked_and_then_used_offline() {
    let place = WithRepository::new();
    let first = place.git(&["rev-parse", "HEAD"]);
    let uses = place.job("train@main");
    place
        .jobc(&["check"])
        .exits(1)
        .says("J0297")
        .says("is not locked")
        .says("job.yaml:3:7")
        .says("`jobc lock` fetches it");
    place.jobc(&["lock", "--check"]).exits(1).says("does not exist and would have").says(&uses);
    assert!(place.jobc(&["lock"]).exits(0).out.contains(&format!("{uses} {first} (new)")));
    let lock = place.0.read("jobc.lock");
    assert!(lock.contains(&format!("commit: \"{first}\"")) && lock.contains("digest: sha256:"), "{lock}");
    place.jobc(&["lock", "--check"]).exits(0);
    // Another commit of the branch is not used until an update is requested, and the repository is not needed.
    place.0.write("repository/train/word", "second\n");
    let second = place.commit();
    fs::rename(place.0.path().join("repository"), place.0.path().join("gone")).unwrap();
    assert!(place.jobc(&["lock"]).exits(0).out.contains("(unchanged)"));
    let plan = place.jobc(&["plan", "--format", "json", "--target", "local"]).exits(0).out;
    assert!(plan.contains("first\\n") && plan.contains("echo one"), "{plan}");
    // Without the cache it is.
    fs::remove_dir_all(place.0.path().join("cache")).unwrap();
    place
        .jobc(&["check"])
        .exits(1)
        .says("are not in the cache of this host")
        .says("`jobc lock` fetches them");
    place.jobc(&["lock"]).exits(1).says("cannot be fetched").says("job.yaml:3:7");
    fs::rename(place.0.path().join("gone"), place.0.path().join("repository")).unwrap();
    assert!(place.jobc(&["lock"]).exits(0).out.contains(&format!("{first} (unchanged)")));
    assert_eq!(place.0.read("jobc.lock"), lock);
    place.jobc(&["lock", "--update", "git+file:///x@v1"]).exits(2).says("the job has no image");
    assert!(place.jobc(&["lock", "--update", &uses]).exits(0).out.contains(&format!("{second} (changed)")));
    assert!(
        place.jobc(&["plan", "--format", "json", "--target", "local"]).exits(0).out.contains("second\\n")
    );
    let left: Vec<String> = crate::directory::contents(&place.0.path().join("cache/jobc/templates"))
        .into_keys()
        .map(|path| path.to_string())
        .collect();
    assert!(left.iter().all(|name| name.starts_with("sha256-")) && left.len() == 2, "{left:?}");
}

#[test]
fn a_cache_or_lock_that_does_not_fit_is_refused() {
    let place = WithRepository::new();
    let commit = place.git(&["rev-parse", "HEAD"]);
    place.job(&format!("train@{commit}"));
    place.jobc(&["lock"]).exits(0);
    place.jobc(&["check"]).exits(0);
    let cache = place.0.path().join("cache/jobc/templates");
    let file = cache.read_dir_utf8().unwrap().next().unwrap().unwrap().into_path();
    let packed = fs::read(&file).unwrap();
    fs::write(&file, [&packed[..], b"\n"].concat()).unwrap();
    place.jobc(&["check"]).exits(1).says("do not have the digest of `jobc.lock`");
    place.jobc(&["lock"]).exits(0);
    place.jobc(&["check"]).exits(0);
    // Another digest.
    let lock = place.0.read("jobc.lock");
    let digest = lock.split("digest: ").nth(1).unwrap().trim();
    place.0.write("jobc.lock", &lock.replace(digest, &format!("sha256:{}", "0".repeat(64))));
    place.jobc(&["check"]).exits(1).says("are not in the cache of this host");
    place.jobc(&["lock"]).exits(1).says("do not have the digest of jobc.lock");
    place.0.write(
        "jobc.lock",
        &lock.replace(&format!("commit: \"{commit}\""), &format!("commit: \"{}\"", "1".repeat(40))),
    );
    place.jobc(&["check"]).exits(1).says("`jobc.lock` has commit 1111");
}

#[test]
fn git_errors_are_reported_at_their_lines() {
    let place = WithRepository::new();
    std::os::unix::fs::symlink("/etc/passwd", place.0.path().join("repository/train/link")).unwrap();
    place.0.write("repository/other/template.yaml", TEMPLATE);
    place.commit();
    for (uses, wanted) in [
        ("train@main", "the symbolic link `train/link`"),
        ("other@v9", "no branch or tag `v9`"),
        ("nothing@main", "the repository has no `nothing`"),
        (&format!("other@{}", "12".repeat(20)), "cannot be fetched"),
    ] {
        place.job(uses);
        place.jobc(&["lock"]).exits(1).says(wanted).says("job.yaml:3:7");
        assert!(!place.0.path().join("jobc.lock").exists(), "{uses}");
    }
    place.job("other");
    place.jobc(&["lock"]).exits(1).says("J0296").says("needs a commit");
    place.job("other@main");
    place.jobc(&["lock"]).exits(1).says("J0280").says("no file `word`");
    let mut command = place.0.command(binary());
    command.arg("lock").env("PATH", place.0.path()).env("XDG_CACHE_HOME", place.0.path().join("empty"));
    Run::of(&mut command).exits(1).says("`git` is not installed");
}
