//! Files and directories that are not part of a listing: downloads, and checked-out repositories.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{Timespec, Timestamps};

use super::super::source_listing::find;
use super::TreeWriter;
use jobc_dockerfile::ignore::Ignore;

/// The bits of a download, as with BuildKit.
const DOWNLOAD_MODE: u32 = 0o600;

impl TreeWriter<'_> {
    /// Copies a file under a name, with a time in seconds since 1970.
    pub(in crate::build) fn write_download(
        &mut self,
        mut from: &File,
        name: &str,
        modified: i64,
        target: &str,
    ) -> io::Result<()> {
        let path = self.file_target(target, Path::new(name))?;
        let (parent, name) = self.open_parent(&path)?;
        let mut file = File::from(self.create_file(&parent, &name)?);
        io::copy(&mut from, &mut file)?;
        let (uid, gid) = self.file_attributes.owner.unwrap_or_default();
        self.chown(&file, uid, gid)?;
        rustix::fs::fchmod(&file, self.file_attributes.bits(DOWNLOAD_MODE, false))?;
        let time = Timespec { tv_sec: modified, tv_nsec: 0 };
        Ok(rustix::fs::futimens(&file, &Timestamps { last_access: time, last_modification: time })?)
    }

    /// Copies the content of a directory of the host.
    pub(in crate::build) fn copy_directory(
        &mut self,
        directory: &Path,
        exclude: &Ignore,
        target: &str,
    ) -> io::Result<()> {
        let tree = super::super::overlay::mount_layers(&[directory.to_owned()], None)
            .map_err(|error| io::Error::other(error.message()))?;
        for mut found in find(&tree, ".", &Ignore::default(), false)? {
            if found.exclude(exclude) {
                self.copy_source(&tree, &found, target)?;
            }
        }
        self.finish()
    }
}
