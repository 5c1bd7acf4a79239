//! Where a build finds its `.dockerignore`.

use std::path::{Path, PathBuf};

/// The file that says what is left out for a Dockerfile: `NAME.dockerignore` beside it, else `.dockerignore` of the context.
pub fn file(dockerfile: Option<&Path>, context: &Path) -> Option<PathBuf> {
    let own = dockerfile.and_then(|path| {
        let mut name = path.file_name()?.to_owned();
        name.push(".dockerignore");
        Some(path.with_file_name(name))
    });
    own.into_iter().chain([context.join(".dockerignore")]).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dockerfile_has_its_own_before_the_context() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert_eq!(file(Some(&at("Dockerfile")), folder.path()), None);
        std::fs::write(at(".dockerignore"), "").unwrap();
        assert_eq!(file(Some(&at("Dockerfile")), folder.path()), Some(at(".dockerignore")));
        assert_eq!(file(None, folder.path()), Some(at(".dockerignore")));
        std::fs::write(at("Dockerfile.dockerignore"), "").unwrap();
        assert_eq!(file(Some(&at("Dockerfile")), folder.path()), Some(at("Dockerfile.dockerignore")));
    }
}
