//! Repositories made by `git` itself, good and hostile ones.

use std::path::PathBuf;
use std::process::Command;

use super::*;

struct Repository {
    root: tempfile::TempDir,
}

fn has_git() -> bool {
    let found = Command::new("git").arg("--version").output().is_ok();
    if !found {
        jobc_test_skip::skip("git");
    }
    found
}

impl Repository {
    /// A repository with these files in one commit; nothing where `git` is not installed.
    fn new(files: &[(&str, &[u8])]) -> Option<Self> {
        let repository = Self { root: tempfile::tempdir().unwrap() };
        if !has_git() {
            return None;
        }
        repository.git(&["init", "--quiet", "--initial-branch=main", "."]);
        for (path, bytes) in files {
            let path = repository.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        repository.commit();
        Some(repository)
    }

    fn path(&self) -> PathBuf {
        self.root.path().join("repository")
    }

    fn git(&self, words: &[&str]) -> String {
        std::fs::create_dir_all(self.path()).unwrap();
        let output = Command::new("git")
            .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always"])
            .args(words)
            .current_dir(self.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "more"]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn fetch(&self, path: &str, reference: &str) -> Result<PinnedFiles> {
        let directory = tempfile::tempdir().unwrap();
        let request = PinnedRequest {
            url: &format!("file://{}", self.path().display()),
            reference,
            path,
            local: true,
            directory: directory.path(),
            max_files: 4,
            max_bytes: 1 << 20,
        };
        PinnedFiles::fetch(request, &AtomicBool::new(false))
    }

    fn error(&self, path: &str, reference: &str) -> String {
        self.fetch(path, reference).unwrap_err().to_string()
    }
}

fn names(files: &PinnedFiles) -> Vec<(&str, &[u8])> {
    files.files.iter().map(|(name, bytes)| (&**name, &**bytes)).collect()
}

#[test]
fn files_of_a_commit_are_read() {
    let Some(repository) =
        Repository::new(&[("a/t.yaml", b"one"), ("a/b/c.bin", &[0, 255]), ("d", b"x"), ("ab", b"")])
    else {
        return;
    };
    let first = repository.git(&["rev-parse", "HEAD"]);
    repository.git(&["tag", "--annotate", "v1", "--message", "v1"]);
    std::fs::write(repository.path().join("a/t.yaml"), "two").unwrap();
    let second = repository.commit();
    let found = repository.fetch("a", "v1").unwrap();
    assert_eq!(found.commit, first);
    assert_eq!(names(&found), [("b/c.bin", &[0, 255][..]), ("t.yaml", b"one")]);
    let found = repository.fetch("a/t.yaml", "main").unwrap();
    assert_eq!((found.commit.clone(), names(&found)), (second.clone(), vec![("t.yaml", &b"two"[..])]));
    // A commit that is no longer reachable by a reference.
    repository.git(&["reset", "--quiet", "--hard", &first]);
    repository.git(&["tag", "keep", &second]);
    assert_eq!(
        names(&repository.fetch("a/t.yaml", &second.to_uppercase()).unwrap()),
        [("t.yaml", &b"two"[..])]
    );
    assert_eq!(names(&repository.fetch("", &first).unwrap()).len(), 4);
}

#[test]
fn missing_paths_and_references_are_reported() {
    let Some(repository) = Repository::new(&[("a/t.yaml", b"one")]) else { return };
    assert!(repository.error("a", "v2").contains("the repository has no branch or tag `v2`"));
    assert!(repository.error("b", "main").contains("the repository has no `b`"));
    assert!(repository.error("a/t.yaml/x", "main").contains("the repository has no `a/t.yaml/x`"));
    let unknown = "0123456789".repeat(4);
    let error = repository.error("a", &unknown);
    assert!(error.contains("fetch") || error.contains(&unknown), "{error}");
}

#[test]
fn hostile_repositories_are_refused() {
    let large = vec![b'x'; (1 << 20) + 1];
    let Some(repository) = Repository::new(&[("good/t.yaml", b"one"), ("large/t.yaml", &large)]) else {
        return;
    };
    for n in 0..5 {
        std::fs::create_dir_all(repository.path().join("many")).unwrap();
        std::fs::write(repository.path().join(format!("many/{n}")), "").unwrap();
    }
    std::fs::create_dir_all(repository.path().join("links")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", repository.path().join("links/t.yaml")).unwrap();
    std::os::unix::fs::symlink("good", repository.path().join("to-good")).unwrap();
    // Neither is run: nothing is checked out.
    let marker = repository.root.path().join("ran");
    for hook in ["post-checkout", "reference-transaction", "pre-auto-gc"] {
        let hook = repository.path().join(".git/hooks").join(hook);
        std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
        std::fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", marker.display())).unwrap();
        std::fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let filter = "*.yaml filter=evil\n";
    std::fs::write(repository.path().join("good/.gitattributes"), filter).unwrap();
    let commit = repository.commit();
    let _ = std::fs::remove_file(&marker);
    repository.git(&["update-index", "--add", "--cacheinfo", &format!("160000,{commit},modules/inner")]);
    repository.git(&["commit", "--quiet", "--message", "module"]);
    let _ = std::fs::remove_file(&marker);
    assert_eq!(repository.fetch("good", "main").unwrap().files.len(), 2);
    assert!(!marker.exists(), "a hook was run");
    for (path, wanted) in [
        ("large", "more than 4 files or 1 MiB"),
        ("many", "more than 4 files or 1 MiB"),
        ("links", "the symbolic link `links/t.yaml`"),
        ("links/t.yaml", "the symbolic link `links/t.yaml`"),
        ("to-good", "the symbolic link `to-good`"),
        ("to-good/t.yaml", "the repository has no `to-good/t.yaml`"),
        ("modules", "the submodule `modules/inner`"),
        ("modules/inner", "the submodule `modules/inner`"),
        ("../etc", ""),
    ] {
        let error = repository.error(path, "main");
        assert!(error.contains(wanted), "{path}: {error}");
    }
}

#[test]
fn other_protocols_are_not_followed() {
    if !has_git() {
        return;
    }
    let marker = tempfile::tempdir().unwrap();
    let ran = marker.path().join("ran");
    for (url, local) in [
        (format!("ext::sh -c touch% {}", ran.display()), false),
        (format!("ext::sh -c touch% {}", ran.display()), true),
        ("file:///".to_owned(), false),
        ("http://127.0.0.1:1/x".to_owned(), false),
        ("https://127.0.0.1:1/x".to_owned(), true),
        (format!("--upload-pack=touch {}", ran.display()), true),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let request = PinnedRequest {
            url: &url,
            reference: "main",
            path: "",
            local,
            directory: directory.path(),
            max_files: 4,
            max_bytes: 1 << 20,
        };
        let error = PinnedFiles::fetch(request, &AtomicBool::new(false)).unwrap_err().to_string();
        assert!(error.contains("git ls-remote"), "{url}: {error}");
        assert!(!ran.exists(), "{url}");
    }
}

#[test]
fn a_server_that_says_nothing_and_a_large_repository_are_given_up() {
    let Some(repository) = Repository::new(&[("a/t.yaml", b"one")]) else { return };
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/r", silent.local_addr().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let request = |url, local| PinnedRequest {
        url,
        reference: "main",
        path: "a",
        local,
        directory: directory.path(),
        max_files: 4,
        max_bytes: 1 << 20,
    };
    let limits = Limits { timeout: Duration::from_millis(300), ..LIMITS };
    let fetch = |request, limits| PinnedFiles::fetch_within(request, limits, &AtomicBool::new(false));
    let error = fetch(request(&url, false), limits).unwrap_err().to_string();
    assert!(error.contains(&format!("`git` for `{url}` timed out after 300ms")), "{error}");
    // While git waits, the directory has more than the limit.
    std::fs::write(directory.path().join("part"), vec![0; 4096]).unwrap();
    let error = fetch(request(&url, false), Limits { max_bytes: 1024, ..LIMITS }).unwrap_err().to_string();
    assert!(error.contains("has more than 0 MiB or 100000 files"), "{error}");
    let url = format!("file://{}", repository.path().display());
    std::fs::remove_file(directory.path().join("part")).unwrap();
    assert!(fetch(request(&url, true), LIMITS).is_ok());
}
