//! Options of `jobc image build` for outputs, caches, named contexts and the containers of commands.

use std::path::PathBuf;

use clap::Args as ClapArgs;

#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct BuildMoreArgs {
    /// Additional build context for `FROM NAME` and `COPY --from=NAME` (repeatable)
    ///
    /// `PATH` is a directory, for `COPY --from` only. `oci-layout:PATH[:TAG]` is an OCI image layout. Any other value
    /// is an image.
    #[arg(long, value_name = "NAME=PATH|oci-layout:PATH|IMAGE")]
    pub build_context: Vec<String>,
    /// Import the build cache from an image in a registry (repeatable)
    #[arg(long, value_name = "type=registry,ref=IMAGE")]
    pub cache_from: Vec<String>,
    /// Export the build cache to an image in a registry (repeatable)
    #[arg(long, value_name = "type=registry,ref=IMAGE")]
    pub cache_to: Vec<String>,
    /// Also write the image to a file or a directory (repeatable)
    ///
    /// `oci` is an archive that `jobc image import`, `docker load`, podman and skopeo read, `tar` an archive of the
    /// files, `local` a directory of the files. `-o DIR` means `type=local,dest=DIR`, `-o -` an archive of the files on
    /// stdout.
    #[arg(long, short, value_name = "type=oci|tar|local,dest=PATH")]
    pub output: Vec<String>,
    /// Write the image digest to a file
    #[arg(long, value_name = "FILE")]
    pub iidfile: Option<PathBuf>,
    /// Write the digests and names of the image to a JSON file, with the keys of BuildKit
    #[arg(long, value_name = "FILE")]
    pub metadata_file: Option<PathBuf>,
    /// Write a software bill of materials of the image to a file (CycloneDX, JSON)
    #[arg(long, value_name = "FILE")]
    pub sbom: Option<PathBuf>,
    /// Add a line to /etc/hosts of `RUN` commands (repeatable)
    ///
    /// The line does not become part of the image.
    #[arg(long, value_name = "HOST:IP")]
    pub add_host: Vec<String>,
    /// Size of /dev/shm of `RUN` commands, such as `512m` or `2g` [default: 64m]
    #[arg(long, value_name = "BYTES")]
    pub shm_size: Option<String>,
    /// Resource limit of `RUN` commands, such as `nofile=1024:4096` (repeatable)
    #[arg(long, value_name = "NAME=SOFT[:HARD]")]
    pub ulimit: Vec<String>,
    /// Memory limit of each `RUN` command, such as `512m` or `2g`; needs root [default: no limit]
    #[arg(long, short, value_name = "BYTES")]
    pub memory: Option<String>,
    /// Trust the certificates of a file (PEM) while the image is built (repeatable)
    ///
    /// Pulls, downloads, git and the programs of `RUN` commands trust them, besides those that the host trusts. They do
    /// not become part of the image.
    #[arg(long, value_name = "FILE")]
    pub ca: Vec<PathBuf>,
    /// Label the image with the Git commit and URL of the build context, and with the version of jobc
    ///
    /// The labels are also annotations of the manifest. The digest of the image then changes with every commit.
    #[arg(long)]
    pub provenance: bool,
    /// Add an annotation to the manifest (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    pub annotation: Vec<String>,
}
