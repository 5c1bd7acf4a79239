//! Remote sources of `ADD`, and remote build contexts: files by URL, and Git repositories.
//!
//! The rules are those of BuildKit: a URL whose path ends in `.git`, `ssh://…` and `USER@HOST:PATH` are repositories.
//! The fragment or the query selects a part of one: `#REF`, `#REF:SUBDIRECTORY`, `#:SUBDIRECTORY`, `?ref=REF&subdir=…`.

mod repository;

pub(crate) use repository::is_commit_prefix;
pub use repository::{Repository, is_commit};

/// A remote source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remote {
    /// A file: an `http` or `https` URL.
    File(String),
    /// A Git repository.
    Repository(Repository),
}

/// Why a remote source cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteError {
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: &'static str,
    /// Whether another builder may accept it.
    pub is_unsupported: bool,
}

/// The maximum length of a URL in bytes.
const MAX_ADDRESS_LENGTH: usize = 8192;

impl Remote {
    /// Parses a source whose variables are expanded; `None` if it is a path.
    pub fn parse(text: &str) -> Option<Result<Self, RemoteError>> {
        let (address, fragment) = text.split_once('#').map_or((text, None), |(a, b)| (a, Some(b)));
        let scheme = address.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        let is_web = matches!(scheme.as_deref(), Some("http" | "https"));
        let is_git = match scheme.as_deref() {
            Some("http" | "https") => {
                address.split('?').next().is_some_and(|path| path.strip_suffix(".git").is_some())
            }
            Some("git" | "ssh" | "git+ssh" | "git+https" | "git+http") => true,
            Some("ftp") => false,
            None if is_scp_style(address) => true,
            _ => return None,
        };
        if text.len() > MAX_ADDRESS_LENGTH || text.chars().any(|c| c.is_control() || c == ' ') {
            let message =
                "an address with blanks or control characters, or of more than 8192 bytes".to_owned();
            return Some(Err(RemoteError::wrong(message, "write blanks as `%20`")));
        }
        Some(match scheme.as_deref() {
            Some("git") => Err(RemoteError::unsupported(
                format!("the protocol of `{address}` is not supported"),
                "use `https://` or `ssh://`: `git://` is not encrypted",
            )),
            // The syntax of pip and npm, which no builder supports.
            Some(prefixed) if prefixed.starts_with("git+") => Err(RemoteError::wrong(
                format!("the protocol of `{address}` is not one of git's"),
                "write `ssh://HOST/PATH`, or `https://HOST/PATH.git`, without `git+`",
            )),
            Some("http") if is_git => Err(RemoteError::unsupported(
                format!("git by `http://` is not supported: `{address}`"),
                "use `https://` or `ssh://`: `http://` is not encrypted",
            )),
            Some("ftp") => Err(RemoteError::unsupported(
                format!("`ADD` of `{text}` is not supported: FTP is not"),
                "use an `https://` URL",
            )),
            _ if is_git => Repository::parse(address, fragment).map(Self::Repository),
            _ if is_web
                && address
                    .split_once("://")
                    .is_none_or(|(_, rest)| rest.starts_with('/') || rest.is_empty()) =>
            {
                Err(RemoteError::wrong(format!("the URL `{text}` has no host"), "write `https://HOST/PATH`"))
            }
            // The fragment of a URL is not sent.
            _ => {
                let rest = address.split_once("://").map_or("", |(_, rest)| rest);
                Ok(Self::File(format!("{}://{rest}", scheme.unwrap_or_default())))
            }
        })
    }
}

/// `USER@HOST:PATH`.
fn is_scp_style(address: &str) -> bool {
    let is_name = |text: &str, more: &[char]| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || more.contains(&c))
    };
    address.split_once('@').is_some_and(|(user, rest)| {
        is_name(user, &['_']) && rest.split_once(':').is_some_and(|(host, _)| is_name(host, &['.']))
    })
}

impl RemoteError {
    fn wrong(message: String, help: &'static str) -> Self {
        Self { message, help, is_unsupported: false }
    }

    fn unsupported(message: String, help: &'static str) -> Self {
        Self { message, help, is_unsupported: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> String {
        match Remote::parse(text) {
            None => "path".to_owned(),
            Some(Ok(Remote::File(url))) => format!("file {url}"),
            Some(Ok(Remote::Repository(repository))) => {
                let Repository { url, reference, subdirectory, checksum, .. } = repository.clone();
                let mut shown = format!("git {url}");
                for (key, value) in [("ref", reference), ("subdir", subdirectory), ("checksum", checksum)] {
                    shown += &value.map(|value| format!(" {key}={value}")).unwrap_or_default();
                }
                for (key, on) in [
                    ("keep-git-dir", repository.keep_git_dir == Some(true)),
                    ("no submodules", !repository.submodules),
                    ("fetch-by-commit", repository.fetch_by_commit),
                ] {
                    shown += &if on { format!(" {key}") } else { String::new() };
                }
                shown
            }
            Some(Err(error)) => {
                format!("{}: {}", if error.is_unsupported { "unsupported" } else { "wrong" }, error.message)
            }
        }
    }

    #[test]
    fn sources_are_paths_files_or_repositories() {
        let texts = [
            "a/b.git",
            "./https",
            "file:///etc/passwd",
            "https://h/x.tar#part",
            "HTTP://h/x",
            "https:///x",
            "https://h/r.git",
            "https://h/r.git#v1",
            "https://h/r.git#v1:a/b/",
            "https://h/r.git#:a",
            "git@h:r.git#main",
            "me_2@h.x:r#main",
            "a b@h:r",
            "@h:r",
            "https://h/r.git?ref=v1&subdir=/a/b/",
            "https://h/r.git?branch=main&submodules=false&keep-git-dir",
            "https://h/r.git?tag=v1&checksum=A1b2&mtime=commit",
            "https://h/r.git?tag=refs/tags/v1#refs/tags/v1",
            "git@h:r.git?ref=x%2Fy",
            "ssh://git@h/r?subdir=d#main",
            "https://h/r.git?fetch-by-commit&commit=1111111111111111111111111111111111111111#v1",
            "https://h/r.git?fetch-by-commit&commit=1111",
            "https://h/r.git?ref=v1#v2",
            "https://h/r.git?branch=a&tag=b",
            "https://h/r.git?ref=",
            "https://h/r.git?ref=a&ref=a",
            "https://h/r.git?rev=a",
            "https://h/r.git?submodules=perhaps",
            "https://h/r.git?commit=xyz",
            "https://h/r.git?mtime=now",
            "https://h/r.git?ref=--upload-pack=x",
            "https://h/r.git?subdir=../x",
            "https://h/r.git?ref=%ff",
            "https://h/x.tar?file=r.git",
            "ssh://git@h/r#main",
            "git://h/r.git",
            "git+ssh://git@h/r.git#v1",
            "git+https://h/r",
            "http://h/r.git",
            "ftp://h/x",
            "https://h/r.git#--upload-pack=x",
            "https://h/r.git#a..b",
            "https://h/r.git#v1:../x",
            "https://h/r.git#v1:x/.GIT/hooks",
            "https://h/a b",
        ];
        let shown: Vec<String> = texts.iter().map(|text| format!("{text} -> {}", check(text))).collect();
        insta::assert_snapshot!(shown.join("\n"));
    }

    #[test]
    fn a_commit_has_40_or_64_digits() {
        assert!(is_commit(&"a1".repeat(20)) && is_commit(&"0F".repeat(32)));
        assert!(!is_commit("a1b2c3d") && !is_commit(&"g".repeat(40)));
    }
}
