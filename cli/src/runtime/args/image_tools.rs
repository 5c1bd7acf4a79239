//! `jobc image tag|history|diff|mount|umount`.

use std::path::PathBuf;

use clap::{ArgAction, Args as ClapArgs};

use super::format::OutputArgs;
use crate::runtime::completion::images;

#[derive(Debug, ClapArgs)]
pub(crate) struct TagArgs {
    /// Image name or digest
    #[arg(add = images())]
    pub source: String,
    /// New name: `NAME[:TAG]`
    ///
    /// If another image has this name, that image loses it.
    pub target: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SbomArgs {
    /// Image name or digest
    #[arg(add = images())]
    pub image: String,
    /// Platform of a multi-platform image to read [default: host]
    #[arg(long, value_name = "OS/ARCH[/VARIANT]")]
    pub platform: Option<String>,
    /// Write to a file [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct HistoryArgs {
    /// Image name or digest
    #[arg(add = images())]
    pub image: String,
    /// Platform of a multi-platform image to show [default: host]
    #[arg(long, value_name = "OS/ARCH[/VARIANT]")]
    pub platform: Option<String>,
    /// Print full commands and digests
    #[arg(long)]
    pub no_trunc: bool,
    /// Print human-readable sizes and times; `--human=false` prints bytes and full timestamps
    #[arg(long, short = 'H', value_name = "BOOL", action = ArgAction::Set, default_value_t = true, num_args = 0..=1,
          require_equals = true, default_missing_value = "true")]
    pub human: bool,
    /// Print only the digests of layers
    #[arg(long, short)]
    pub quiet: bool,
    #[command(flatten)]
    pub output_args: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct DiffArgs {
    /// Image name or digest
    #[arg(add = images())]
    pub image: String,
    /// Image to compare with [default: the base of IMAGE, if the image store has it]
    ///
    /// With two images, the output shows how the second differs from the first.
    #[arg(add = images())]
    pub other: Option<String>,
    /// Platform of multi-platform images to compare [default: host]
    #[arg(long, value_name = "OS/ARCH[/VARIANT]")]
    pub platform: Option<String>,
    #[command(flatten)]
    pub output_args: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct MountArgs {
    /// Image name or digest [default: list the mounted images]
    #[arg(add = images())]
    pub image: Option<String>,
    /// Directory to mount on [default: a new one in the image store]
    pub directory: Option<PathBuf>,
    /// Platform of a multi-platform image to mount [default: host]
    #[arg(long, value_name = "OS/ARCH[/VARIANT]")]
    pub platform: Option<String>,
    #[command(flatten)]
    pub output_args: OutputArgs,
    /// Print only errors and the directory
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct UmountArgs {
    /// Directories to unmount, or image names or digests to unmount all mounts of an image
    #[arg(required_unless_present = "all", value_name = "DIR|IMAGE", add = images())]
    pub mounts: Vec<String>,
    /// Unmount all images
    #[arg(long, short, conflicts_with = "mounts")]
    pub all: bool,
}
