//! Files on disk, as a case of a test sees them.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::files::{CodeError, Files, PackedCode};

/// The files below one directory; absolute paths are themselves.
#[derive(Clone, Debug)]
pub struct DiskFiles(pub Utf8PathBuf);

impl Files for DiskFiles {
    fn read(&self, path: &Utf8Path) -> io::Result<Vec<u8>> {
        std::fs::read(self.0.join(path))
    }

    fn exists(&self, path: &Utf8Path) -> bool {
        self.0.join(path).exists()
    }

    fn code(&self, directory: &Utf8Path) -> Result<Option<Arc<PackedCode>>, CodeError> {
        jobc_code::pack(&self.0.join(directory), directory.as_str()).map(Arc::new).map(Some)
    }

    fn mentions(&self, path: &Utf8Path) -> BTreeSet<String> {
        jobc_code::mentions(&self.0.join(path))
    }

    fn template(&self, digest: &str) -> io::Result<Vec<u8>> {
        std::fs::read(self.0.join("templates").join(digest.replace(':', "-")))
    }
}
