//! `jobc image`: the images of this user on this host.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::build_access::BuildAccessArgs;
use super::format::{OutputArgs, or_json};
use super::image_build::BuildMoreArgs;
use super::image_tools::{DiffArgs, HistoryArgs, MountArgs, SbomArgs, TagArgs, UmountArgs};
use crate::args::FormatArg;
use crate::args::values::GLOBAL_OPTION_ORDER;
use crate::runtime::completion::images;
use crate::runtime::progress::Meter;

#[derive(Debug, ClapArgs)]
pub(crate) struct ImageArgs {
    /// Image store directory [default: ~/.local/share/jobc/images]
    #[arg(long, global = true, value_name = "DIR", env = "JOBC_IMAGE_ROOT", display_order = GLOBAL_OPTION_ORDER)]
    pub image_root: Option<PathBuf>,
    #[command(subcommand)]
    pub command: ImageCommand,
}

/// The commands about images, in the order of `jobc image --help`.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Pull images from registries
    Pull(PullArgs),
    /// Push an image to a registry
    Push(PushArgs),
    /// Build an image from a Dockerfile
    Build(Box<BuildArgs>),
    /// List images
    Ls(LsArgs),
    /// Import images from an archive or a directory
    Import(ImportArgs),
    /// Save images to an archive
    ///
    /// `jobc image import`, `docker load`, podman and skopeo read the archive.
    Save(SaveArgs),
    /// Add a name to an image
    Tag(TagArgs),
    /// Show the details of an image as JSON
    Inspect(InspectArgs),
    /// Show the steps that built an image, newest first
    History(HistoryArgs),
    /// List files that differ between two images, or between an image and its base
    ///
    /// `A` marks an added path, `C` a changed one and `D` a deleted one. Timestamps are not compared.
    Diff(DiffArgs),
    /// Mount an image read-only, or list mounted images
    ///
    /// Mounting needs root, or the root of a user namespace with its own mount namespace. `jobc image gc` keeps mounted
    /// images.
    Mount(MountArgs),
    /// Unmount images
    #[command(visible_alias = "unmount")]
    Umount(UmountArgs),
    /// Write a software bill of materials (SBOM) of an image
    Sbom(SbomArgs),
    /// Verify the integrity of the image store, or the signature of an image
    Verify(VerifyArgs),
    /// Remove images
    Rm(RmArgs),
    /// Remove data that no image, running job or build uses
    Gc(GcArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub output_args: OutputArgs,
    /// Print only names
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    /// Archive or directory, `-` for stdin, or `scratch` for an empty image
    ///
    /// An archive is a .tar, .tar.gz or .tar.zst file. An archive or a directory contains an OCI image layout, the
    /// output of `docker save`, or a root file system.
    pub source: PathBuf,
    /// Image name; required if the source contains none [default: from the source]
    #[arg(long, short, value_name = "NAME[:TAG]")]
    pub tag: Option<String>,
    #[command(flatten)]
    pub output_args: OutputArgs,
    /// Print only errors
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SaveArgs {
    /// File to write [default: stdout]
    ///
    /// An existing file is replaced atomically.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Platform that `docker load` should pick from a multi-platform image [default: host]
    #[arg(long, value_name = "OS/ARCH[/VARIANT]")]
    pub platform: Option<String>,
    /// Print only errors
    #[arg(long, short)]
    pub quiet: bool,
    /// Image names or digests
    #[arg(required = true, value_name = "IMAGE", add = images())]
    pub images: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InspectArgs {
    /// Image name or digest
    #[arg(add = images())]
    pub image: String,
    /// Platform of a multi-platform image to show [default: host]
    #[arg(long, value_name = "OS/ARCH[/VARIANT]")]
    pub platform: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct VerifyArgs {
    /// Image in a registry, whose signature is verified [default: the image store is verified]
    #[arg(value_name = "IMAGE", requires = "key", add = images())]
    pub image: Option<String>,
    /// Public key for a signature made with `cosign sign --key` (repeatable; one must match)
    #[arg(long, value_name = "FILE", requires = "image")]
    pub key: Vec<PathBuf>,
    /// Accept a signature for another repository, for images that were copied after they were signed
    #[arg(long, requires = "image")]
    pub any_name: bool,
    /// Use HTTP instead of HTTPS for registries
    #[arg(long, requires = "image")]
    pub plain_http: bool,
    /// Remove corrupted blobs; they are pulled again when needed
    #[arg(long, conflicts_with = "image")]
    pub remove: bool,
    #[command(flatten)]
    pub output_args: OutputArgs,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RmArgs {
    /// Image names or digests
    ///
    /// A name removes only that name; a digest removes all names of the image.
    #[arg(required = true, value_name = "IMAGE", add = images())]
    pub images: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GcArgs {
    /// Also remove the build cache: steps and the directories of `--mount=type=cache`
    #[arg(long)]
    pub cache: bool,
    /// Print what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub output_args: OutputArgs,
}

/// The options of `pull` and `push`.
#[derive(Debug, ClapArgs)]
pub(crate) struct TransferArgs {
    /// Use HTTP instead of HTTPS for registries
    #[arg(long)]
    pub plain_http: bool,
    /// Output format of progress and results
    #[arg(long, value_parser = or_json("text"), default_value = "text")]
    pub format: FormatArg,
    /// Print only errors
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PullArgs {
    /// Platform to pull from a multi-platform image, such as `linux/arm64` [default: host]
    #[arg(long, value_name = "OS/ARCH[/VARIANT]")]
    pub platform: Option<String>,
    /// Unpack layers during the download, so that the first job starts sooner
    #[arg(long)]
    pub unpack: bool,
    #[command(flatten)]
    pub transfer: TransferArgs,
    /// Image references: `NAME[:TAG][@DIGEST]`
    ///
    /// A name without a registry refers to Docker Hub.
    #[arg(required = true, value_name = "IMAGE", add = images())]
    pub images: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PushArgs {
    #[command(flatten)]
    pub transfer: TransferArgs,
    /// Name or digest of the image in the image store
    #[arg(add = images())]
    pub image: String,
    /// Image reference to push to [default: the name in the image store]
    pub destination: Option<String>,
}

#[derive(Clone, Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct BuildArgs {
    /// Build context: a directory, or a git repository such as `https://HOST/PATH.git#REF:DIRECTORY`
    #[arg(default_value = ".")]
    pub context: PathBuf,
    /// Dockerfile, or `-` for stdin [default: `Dockerfile` or `Containerfile` in the build context]
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Image name (repeatable)
    #[arg(long, short, value_name = "NAME[:TAG]")]
    pub tag: Vec<String>,
    /// Build stage to build [default: the last stage]
    #[arg(long, value_name = "STAGE")]
    pub target: Option<String>,
    /// Set a build argument (repeatable)
    ///
    /// Without `=VALUE`, the value of the environment variable `NAME` is used.
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub build_arg: Vec<String>,
    /// Secret for `RUN --mount=type=secret` (repeatable)
    ///
    /// Example: `--secret id=token,src=token.txt`. Without `src` and `env`, the value of the environment variable
    /// `NAME` is used.
    #[arg(long, value_name = "id=NAME[,src=FILE|,env=VARIABLE]")]
    pub secret: Vec<String>,
    #[command(flatten)]
    pub access: BuildAccessArgs,
    /// Set a label (repeatable)
    #[arg(long, value_name = "KEY=VALUE")]
    pub label: Vec<String>,
    /// Do not use the build cache
    #[arg(long)]
    pub no_cache: bool,
    /// Check registries for newer base images, even if they are in the image store
    #[arg(long)]
    pub pull: bool,
    /// Platforms to build for, such as `linux/amd64,linux/arm64` [default: host]
    ///
    /// Several platforms produce a multi-platform image. `RUN` commands for other architectures need an emulator
    /// registered with the kernel, such as the Debian package qemu-user-static.
    #[arg(long, value_name = "OS/ARCH[/VARIANT]", value_delimiter = ',')]
    pub platform: Vec<String>,
    #[command(flatten)]
    pub more: BuildMoreArgs,
    /// Check the Dockerfile without building it
    #[arg(long, conflicts_with = "push")]
    pub check: bool,
    /// Push the image to the registries of its names
    #[arg(long)]
    pub push: bool,
    /// Builder to use
    #[arg(long, value_enum, default_value_t = BuilderArg::Auto)]
    pub builder: BuilderArg,
    /// Latest timestamp in the image, in seconds since 1970 [default: no limit]
    ///
    /// With this option, the same files produce the same image.
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH")]
    pub timestamp: Option<i64>,
    /// Use HTTP instead of HTTPS for registries
    #[arg(long)]
    pub plain_http: bool,
    /// Output format of progress and results
    #[arg(long, value_parser = or_json("text"), default_value = "text")]
    pub format: FormatArg,
    /// How progress is shown [default: bars on a terminal, otherwise lines]
    #[arg(long, value_enum, default_value_t = ProgressArg::Auto, hide_default_value = true)]
    pub progress: ProgressArg,
    /// Print only errors and the image digest
    #[arg(long, short)]
    pub quiet: bool,
}

impl BuildArgs {
    /// What shows the progress of the build.
    pub(crate) fn meter(&self) -> Meter {
        match self.progress {
            ProgressArg::Plain if self.format != FormatArg::Json && !self.quiet => Meter::lines(),
            ProgressArg::Quiet => Meter::new(self.format, true),
            _ => Meter::new(self.format, self.quiet),
        }
    }
}

/// How the progress of a build is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressArg {
    /// Bars on a terminal, otherwise lines
    #[value(alias = "tty")]
    Auto,
    /// Lines, also on a terminal
    Plain,
    /// Nothing
    #[value(alias = "none")]
    Quiet,
}

/// The builder of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BuilderArg {
    /// The built-in builder, or an installed one if the Dockerfile needs unsupported features
    Auto,
    /// The built-in builder
    Embedded,
    /// Docker; jobc imports the image
    Docker,
    /// Buildah; jobc imports the image
    Buildah,
}
