//! A template in a Git repository, as named in `uses`: `git+https://HOST/REPO//PATH@COMMIT`.
//!
//! The repository's URL ends at the first `//`, the path in it at the `@`. Without a path, the repository's root is the
//! template's directory. The syntax is restricted, since parts of it become arguments of `git`.

use std::fmt;

use jobc_dockerfile::is_commit;

use super::location::is_file_name;

/// The URL scheme of `git` for each scheme of `uses`.
const SCHEMES: [(&str, &str); 3] = [("git+https", "https"), ("git+ssh", "ssh"), ("git+file", "file")];

/// A template in a Git repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GitReference {
    /// The repository, as passed to `git`: `https://HOST/REPO`.
    pub url: String,
    /// The template's directory or file in it; empty for the root. No `.`, `..` or empty names.
    pub path: String,
    /// A commit, branch or tag.
    pub reference: String,
}

impl GitReference {
    /// Whether `uses` names a template in a repository.
    pub fn is_one(uses: &str) -> bool {
        uses.starts_with("git+") || uses.starts_with("git@")
    }

    /// Parses the text of `uses`.
    ///
    /// # Errors
    /// Returns what is wrong with it, and what to write instead.
    pub fn parse(uses: &str) -> Result<Self, (String, &'static str)> {
        const FORM: &str = "write `git+https://HOST/REPO//PATH@COMMIT`";
        let known = SCHEMES.iter().find_map(|(name, scheme)| Some((*scheme, uses.strip_prefix(name)?)));
        let Some((scheme, rest)) = known.and_then(|(scheme, rest)| Some((scheme, rest.strip_prefix("://")?)))
        else {
            return Err((
                "unknown scheme of a Git template".to_owned(),
                "write `git+https://`, `git+ssh://` or `git+file://`",
            ));
        };
        if let Some(wrong) = uses.chars().find(|c| !is_plain(*c)) {
            return Err((format!("invalid character `{}` in a Git template", wrong.escape_debug()), FORM));
        }
        // The path of a local repository begins with `/`.
        let start = usize::from(scheme == "file" && rest.starts_with('/'));
        let (repository, path_and_reference) = match rest[start..].split_once("//") {
            Some((repository, path)) => (&rest[..start + repository.len()], path),
            None => split_whole(rest),
        };
        let Some((path, reference)) = path_and_reference.split_once('@') else {
            return Err(("a Git template needs a commit".to_owned(), FORM));
        };
        let path = path.trim_end_matches('/');
        if !path.is_empty() && !path.split('/').all(is_name) {
            return Err((
                format!("invalid path `{path}` in a Git template"),
                "write a path without `.`, `..` and `.git`",
            ));
        }
        if !is_reference(reference) {
            return Err((format!("invalid commit, branch or tag `{reference}` of a Git template"), FORM));
        }
        let host = repository.split('/').next().unwrap_or_default();
        if scheme != "file" && (host.is_empty() || !repository.contains('/')) || repository.len() <= start {
            return Err(("a Git template needs a host and a repository".to_owned(), FORM));
        }
        let (login, host) = host.rsplit_once('@').map_or((None, host), |(login, host)| (Some(login), host));
        if login.is_some_and(|login| login.contains(':') || scheme != "ssh") {
            return Err((
                "a Git template cannot have a user or password".to_owned(),
                "store it in a credential helper of git, or use `git+ssh://git@HOST/REPO//PATH@COMMIT`",
            ));
        }
        if host.starts_with('-') || login.is_some_and(|login| login.starts_with('-')) {
            return Err(("invalid host of a Git template".to_owned(), FORM));
        }
        Ok(Self {
            url: format!("{scheme}://{}", repository.trim_end_matches('/')),
            path: path.to_owned(),
            reference: reference.to_owned(),
        })
    }

    /// The commit, if the reference is one: 40 or 64 hexadecimal digits.
    pub fn commit(&self) -> Option<&str> {
        is_commit(&self.reference).then_some(&*self.reference)
    }

    /// Whether the path is that of a single file.
    pub fn is_file(&self) -> bool {
        is_file_name(&self.path)
    }

    /// Whether the repository is a directory on this host.
    pub fn is_local(&self) -> bool {
        self.url.starts_with("file:")
    }
}

/// A file of the template, as findings show it.
impl fmt::Display for GitReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "git+{}", self.url)?;
        if !self.path.is_empty() {
            write!(f, "//{}", self.path)?;
        }
        write!(f, "@{}", self.reference)
    }
}

/// Splits `HOST/REPO@REFERENCE`, in which the host may include a user, into the repository and `@REFERENCE`.
fn split_whole(rest: &str) -> (&str, &str) {
    let host = rest.find('/').unwrap_or(rest.len());
    match rest[host..].find('@') {
        Some(at) => rest.split_at(host + at),
        None => (rest, ""),
    }
}

/// Whether the character is allowed in URLs, paths and references: not special to a shell, YAML or `git`.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "+-._~/:@%".contains(c)
}

/// Whether a name may be part of a path in a repository.
fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && !name.eq_ignore_ascii_case(".git")
        && !name.starts_with('-')
        && !name.contains([':', '@'])
}

/// Whether `git` reads the text as a branch, tag or commit, and as nothing else.
fn is_reference(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/+".contains(c);
    !text.is_empty()
        && text.len() <= 200
        && text.chars().all(plain)
        && !text.contains("..")
        && text.split('/').all(|part| {
            !part.is_empty() && !part.starts_with(['.', '-']) && part.strip_suffix(".lock").is_none()
        })
        && !text.ends_with('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(uses: &str) -> String {
        match GitReference::parse(uses) {
            Ok(found) => {
                assert_eq!(GitReference::parse(&found.to_string()).as_ref(), Ok(&found), "{uses}");
                format!("{} | {} | {}", found.url, found.path, found.reference)
            }
            Err((why, _)) => why,
        }
    }

    #[test]
    fn a_reference_is_split_into_its_parts() {
        for (uses, wanted) in [
            ("git+https://h/r//a/b@v1", "https://h/r | a/b | v1"),
            (
                "git+https://h:8443/team/r.git//t.yaml@feature/x",
                "https://h:8443/team/r.git | t.yaml | feature/x",
            ),
            ("git+https://h/r@main", "https://h/r |  | main"),
            ("git+https://h/r//@main", "https://h/r |  | main"),
            ("git+ssh://git@h/r//a@v1", "ssh://git@h/r | a | v1"),
            ("git+ssh://git@h/r@v1", "ssh://git@h/r |  | v1"),
            ("git+file:///srv/r//a/@v1", "file:///srv/r | a | v1"),
            ("git+file:///srv/r@v1", "file:///srv/r |  | v1"),
        ] {
            assert_eq!(parsed(uses), wanted, "{uses}");
        }
        let commit = "a".repeat(40);
        assert_eq!(
            GitReference::parse(&format!("git+https://h/r//a@{commit}")).unwrap().commit(),
            Some(&*commit)
        );
        assert_eq!(GitReference::parse("git+https://h/r//a@abc").unwrap().commit(), None);
        assert!(GitReference::parse("git+https://h/r//a/t.yaml@v1").unwrap().is_file());
        assert!(!GitReference::parse("git+https://h/r//a@v1").unwrap().is_file());
    }

    #[test]
    fn text_that_git_could_misread_is_rejected() {
        for uses in [
            "git+https://h/r//a",
            "git+https://h/r//a@",
            "git+https://h/r//a@--upload-pack=x",
            "git+https://h/r//a@-x",
            "git+https://h/r//a@v1..v2",
            "git+https://h/r//a@v1:x",
            "git+https://h/r//a@HEAD^",
            "git+https://h/r//a@v1@v2",
            "git+https://h/r//../a@v1",
            "git+https://h/r//a/./b@v1",
            "git+https://h/r//a//b@v1",
            "git+https://h/r//.git/config@v1",
            "git+https://h/r//.GIT@v1",
            "git+https://h/r//-a@v1",
            "git+https://h/r//a b@v1",
            "git+https://h/r//a\u{1b}b@v1",
            "git+https://h/r//a\"b@v1",
            "git+https://h/r//$(x)@v1",
            "git+https://user:word@h/r//a@v1",
            "git+https://user@h/r//a@v1",
            "git+ssh://git:word@h/r//a@v1",
            "git+ssh://-oProxyCommand=x/r//a@v1",
            "git+ssh://-o@h/r//a@v1",
            "git+https:///r//a@v1",
            "git+https://h//a@v1",
            "git+http://h/r//a@v1",
            "git+ext::sh//a@v1",
            "git@h:r//a@v1",
            "git+file://@v1",
            "git+file:///@v1",
        ] {
            assert!(GitReference::is_one(uses));
            assert!(GitReference::parse(uses).is_err(), "{uses}: {:?}", GitReference::parse(uses));
        }
    }
}
