//! Remote sources of `ADD`, and remote build contexts: files by URL, and Git repositories.
//!
//! The rules are those of BuildKit: a URL whose path ends in `.git`, `ssh://…` and `USER@HOST:PATH` are repositories,
//! and the fragment selects a part of one: `#REF`, `#REF:SUBDIRECTORY`, `#:SUBDIRECTORY`.

/// A remote source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remote {
    /// A file: an `http` or `https` URL.
    File(String),
    /// A Git repository.
    Repository(Repository),
}

/// A Git repository, and the selected part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Its URL: `https://…`, `ssh://…` or `USER@HOST:PATH`, without a fragment.
    pub url: String,
    /// A branch, a tag, a full reference or a commit; the default branch if `None`.
    pub reference: Option<String>,
    /// A directory in it, relative, without `..`; the root if `None`.
    pub subdirectory: Option<String>,
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
            None if address.starts_with("git@") && address.contains(':') => true,
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

impl Repository {
    fn parse(address: &str, fragment: Option<&str>) -> Result<Self, RemoteError> {
        let fragment = fragment.unwrap_or_default();
        let (reference, directory) = fragment.split_once(':').unwrap_or((fragment, ""));
        if !is_reference(reference) {
            return Err(RemoteError::wrong(
                format!("invalid git reference `{reference}`"),
                "write a branch, a tag or a commit",
            ));
        }
        let directory = directory.trim_matches('/');
        if directory.split('/').any(|name| name == ".." || name.eq_ignore_ascii_case(".git")) {
            return Err(RemoteError::wrong(
                format!("the subdirectory `{directory}` is outside the files of the repository"),
                "write a path below its root",
            ));
        }
        let given = |text: &str| (!text.is_empty() && text != ".").then(|| text.to_owned());
        Ok(Self { url: address.to_owned(), reference: given(reference), subdirectory: given(directory) })
    }

    /// The commit, if the reference is one: 40 or 64 hexadecimal digits.
    pub fn commit(&self) -> Option<&str> {
        self.reference.as_deref().filter(|reference| is_commit(reference))
    }
}

impl RemoteError {
    fn wrong(message: String, help: &'static str) -> Self {
        Self { message, help, is_unsupported: false }
    }

    fn unsupported(message: String, help: &'static str) -> Self {
        Self { message, help, is_unsupported: true }
    }
}

/// Whether a text is the full name of a commit.
pub fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The rules of git-check-ref-format(1) for names that could have another meaning: an option, a range, a pattern.
fn is_reference(text: &str) -> bool {
    !text.starts_with(['-', '/'])
        && !text.ends_with(['/', '.'])
        && !text.contains("..")
        && !text.contains("@{")
        && !text.contains("//")
        && !text.contains(['~', '^', ':', '?', '*', '[', '\\', ' ', '\u{7f}'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> String {
        match Remote::parse(text) {
            None => "path".to_owned(),
            Some(Ok(Remote::File(url))) => format!("file {url}"),
            Some(Ok(Remote::Repository(Repository { url, reference, subdirectory }))) => {
                format!("git {url} {} {}", reference.unwrap_or_default(), subdirectory.unwrap_or_default())
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
