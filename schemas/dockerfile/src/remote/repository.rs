//! Git repositories: an address, with the part of the repository in its query or its fragment.

use percent_encoding::percent_decode_str;

use super::RemoteError;

/// A Git repository, and the selected part of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// Its URL: `https://…`, `ssh://…` or `USER@HOST:PATH`, without a query and a fragment.
    pub url: String,
    /// A branch, a tag, a full reference or a commit; the default branch if `None`.
    pub reference: Option<String>,
    /// A directory in it, relative, without `..`; the root if `None`.
    pub subdirectory: Option<String>,
    /// `checksum=`, `commit=`: the commit that the reference must be, or the first digits of its name.
    pub checksum: Option<String>,
    /// `keep-git-dir`.
    pub keep_git_dir: Option<bool>,
    /// `submodules`: whether submodules are fetched.
    pub submodules: bool,
    /// `fetch-by-commit`: whether the checksum is fetched whatever the reference names.
    pub fetch_by_commit: bool,
}

/// How to write a query.
const HELP: &str = "such as `?ref=v1&subdir=docs`; the keys are `ref`, `branch`, `tag`, `subdir`, `checksum`, `commit`, \
                    `keep-git-dir`, `submodules`, `mtime` and `fetch-by-commit`";

impl Repository {
    pub(super) fn parse(address: &str, fragment: Option<&str>) -> Result<Self, RemoteError> {
        let (url, query) = address.split_once('?').map_or((address, None), |(url, query)| (url, Some(query)));
        let (reference, directory) =
            fragment.unwrap_or_default().split_once(':').unwrap_or((fragment.unwrap_or_default(), ""));
        let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let mut repository = Self {
            url: url.to_owned(),
            reference: given(reference),
            subdirectory: given(directory.trim_matches('/')),
            checksum: None,
            keep_git_dir: None,
            submodules: true,
            fetch_by_commit: false,
        };
        if let Some(query) = query {
            repository.read_query(query)?;
        }
        repository.check()?;
        Ok(repository)
    }

    /// Reads the keys of the query.
    fn read_query(&mut self, query: &str) -> Result<(), RemoteError> {
        let mut seen = Vec::new();
        let (mut branch, mut tag) = (None, None);
        for field in query.split('&').filter(|field| !field.is_empty()) {
            let (key, value) = field.split_once('=').unwrap_or((field, ""));
            let (key, value) = (decoded(key)?, decoded(value)?);
            if seen.contains(&key) {
                return Err(RemoteError::wrong(
                    format!("the key `{key}` of a git URL is repeated"),
                    "write it once",
                ));
            }
            let is_flag = matches!(key.as_str(), "keep-git-dir" | "submodules" | "fetch-by-commit");
            if value.is_empty() && !is_flag {
                return Err(RemoteError::wrong(format!("the key `{key}` of a git URL has no value"), HELP));
            }
            match key.as_str() {
                "ref" => select(&mut self.reference, value, "reference")?,
                "subdir" => {
                    select(&mut self.subdirectory, value.trim_matches('/').to_owned(), "subdirectory")?;
                }
                "branch" => branch = Some(value),
                "tag" => tag = Some(value),
                "checksum" | "commit" => select(&mut self.checksum, value, "checksum")?,
                "keep-git-dir" => self.keep_git_dir = Some(flag(&key, &value)?),
                "submodules" => self.submodules = flag(&key, &value)?,
                "fetch-by-commit" => self.fetch_by_commit = flag(&key, &value)?,
                // The times of a checkout are always those of the commit, so that it is reproducible.
                "mtime" if matches!(value.as_str(), "checkout" | "commit") => {}
                "mtime" => {
                    let message =
                        format!("`mtime` of a git URL must be `checkout` or `commit`, not `{value}`");
                    return Err(RemoteError::wrong(message, "leave it out: times are those of the commit"));
                }
                _ => {
                    return Err(RemoteError::wrong(format!("unknown key `{key}` of a git URL"), HELP));
                }
            }
            seen.push(key);
        }
        if branch.is_some() && tag.is_some() {
            return Err(RemoteError::wrong(
                "a git URL has both `branch` and `tag`".to_owned(),
                "keep one of them",
            ));
        }
        for (name, prefix) in [(tag, "refs/tags/"), (branch, "refs/heads/")] {
            let Some(name) = name else { continue };
            let full = if name.starts_with(prefix) { name } else { format!("{prefix}{name}") };
            select(&mut self.reference, full, "reference")?;
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), RemoteError> {
        if let Some(reference) = self.reference.as_deref().filter(|reference| !is_reference(reference)) {
            return Err(RemoteError::wrong(
                format!("invalid git reference `{reference}`"),
                "write a branch, a tag or a commit",
            ));
        }
        let directory = self.subdirectory.take().filter(|directory| directory != ".");
        if let Some(directory) = directory.filter(|directory| !directory.is_empty()) {
            if directory.split('/').any(|name| name == ".." || name.eq_ignore_ascii_case(".git")) {
                return Err(RemoteError::wrong(
                    format!("the subdirectory `{directory}` is outside the files of the repository"),
                    "write a path below its root",
                ));
            }
            self.subdirectory = Some(directory);
        }
        if let Some(checksum) = self.checksum.as_deref().filter(|checksum| !is_commit_prefix(checksum)) {
            return Err(RemoteError::wrong(
                format!("invalid checksum `{checksum}` of a git URL"),
                "write the commit in hexadecimal digits",
            ));
        }
        if self.fetch_by_commit
            && !self.checksum.as_deref().or(self.reference.as_deref()).is_some_and(is_commit)
        {
            return Err(RemoteError::wrong(
                "`fetch-by-commit` of a git URL needs a full commit".to_owned(),
                "write `checksum=` with all 40 or 64 hexadecimal digits",
            ));
        }
        Ok(())
    }

    /// The commit, if it is known without asking the server: 40 or 64 hexadecimal digits.
    pub fn commit(&self) -> Option<&str> {
        let fetched = self.checksum.as_deref().filter(|_| self.fetch_by_commit);
        fetched.or(self.reference.as_deref()).filter(|reference| is_commit(reference))
    }
}

/// Selects a part of a repository; the fragment and the keys of the query must agree.
fn select(part: &mut Option<String>, value: String, what: &str) -> Result<(), RemoteError> {
    match part {
        Some(other) if *other != value => Err(RemoteError::wrong(
            format!("a git URL has two values of its {what}: `{other}` and `{value}`"),
            "keep one of them",
        )),
        _ => {
            *part = Some(value);
            Ok(())
        }
    }
}

/// A part of a query, decoded.
fn decoded(text: &str) -> Result<String, RemoteError> {
    let text = text.replace('+', " ");
    let decoded = percent_decode_str(&text).decode_utf8().map(std::borrow::Cow::into_owned).ok();
    decoded.filter(|text| !text.chars().any(char::is_control)).ok_or_else(|| {
        RemoteError::wrong(
            format!("invalid encoding `{text}` in a git URL"),
            "write UTF-8, with `%` and two digits",
        )
    })
}

fn flag(key: &str, value: &str) -> Result<bool, RemoteError> {
    match value {
        "" | "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(RemoteError::wrong(
            format!("`{key}` of a git URL must be `true` or `false`, not `{value}`"),
            "without a value it is `true`",
        )),
    }
}

/// Whether a text is the full name of a commit.
pub fn is_commit(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a text is the name of a commit, or the beginning of one.
pub(crate) fn is_commit_prefix(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
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
