//! Where a build finds its `.dockerignore`.

use std::path::{Path, PathBuf};

/// The ignore file of a Dockerfile: `NAME.dockerignore` next to it, else `.dockerignore` of the context.
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
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        assert_eq!(file(Some(&at("Dockerfile")), directory.path()), None);
        std::fs::write(at(".dockerignore"), "").unwrap();
        assert_eq!(file(Some(&at("Dockerfile")), directory.path()), Some(at(".dockerignore")));
        assert_eq!(file(None, directory.path()), Some(at(".dockerignore")));
        std::fs::write(at("Dockerfile.dockerignore"), "").unwrap();
        assert_eq!(file(Some(&at("Dockerfile")), directory.path()), Some(at("Dockerfile.dockerignore")));
    }
}
