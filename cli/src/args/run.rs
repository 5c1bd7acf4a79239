//! `jobc run`: one bundle, on this machine, in the foreground.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args as ClapArgs;

#[derive(Debug, ClapArgs)]
#[allow(clippy::struct_excessive_bools)] // each is a switch of the command line
pub(crate) struct RunArgs {
    /// The bundle: a folder with a config.json
    pub bundle: PathBuf,
    /// The root file system: a folder, an archive (.tar, .tar.gz, .tgz), or `host` for this machine's own files under a
    /// writable layer
    #[arg(long, value_name = "host|DIR|TAR")]
    pub root: Option<String>,
    /// Run the bundle with another OCI runtime: its name, such as `crun`, or its path
    #[arg(long, value_name = "RUNTIME")]
    pub oci_runtime: Option<OsString>,
    /// Print what would be done, in order, and do nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Go on where a limit cannot be enforced, and say so
    #[arg(long)]
    pub allow_unenforced: bool,
    /// The container's name; `run-` and this process's number unless given
    #[arg(long, value_name = "NAME")]
    pub id: Option<String>,
    /// Keep the container and its copy of the bundle after its end
    #[arg(long)]
    pub keep: bool,
    /// Print what was chosen for this machine
    #[arg(long, short)]
    pub verbose: bool,
}
