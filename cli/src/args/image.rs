//! `jobc image`: the images of this user on this machine.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand, ValueEnum};

use super::format::{FormatArg, Shown, text_or_json};

#[derive(Debug, ClapArgs)]
pub(crate) struct ImageArgs {
    /// Keep images in this folder
    #[arg(long, global = true, value_name = "DIR", env = "JOBC_IMAGE_ROOT")]
    pub image_root: Option<PathBuf>,
    #[command(subcommand)]
    pub command: ImageCommand,
}

/// The commands about images, in the order of `jobc image --help`.
#[derive(Debug, Subcommand)]
pub(crate) enum ImageCommand {
    /// Fetch images from registries
    Pull(PullArgs),
    /// Send an image to a registry
    Push(PushArgs),
    /// Build an image of a Dockerfile
    Build(Box<BuildArgs>),
    /// List the images that are here
    Ls(LsArgs),
    /// Bring images in from archives and folders: OCI layouts, `docker save`, root file systems
    Import(ImportArgs),
    /// Write images as one archive, for `jobc image import`, `docker load`, podman and skopeo
    Save(SaveArgs),
    /// Show all that is known of an image, as JSON
    Inspect(InspectArgs),
    /// Look whether everything in the store is what it should be
    Verify(VerifyArgs),
    /// Remove images
    Rm(RmArgs),
    /// Remove what no image, no running job and no build uses
    Gc(GcArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub shown: Shown,
    /// Print names only
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ImportArgs {
    /// An archive (.tar, .tar.gz, .tar.zst; `-` for standard input) or a folder: an OCI layout, what `docker save` wrote, or
    /// a root file system; or `scratch`, the image without files
    pub source: PathBuf,
    /// What the image is to be called; needed where the source does not say
    #[arg(long, short, value_name = "NAME[:TAG]")]
    pub tag: Option<String>,
    #[command(flatten)]
    pub shown: Shown,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SaveArgs {
    /// The file to write, which is replaced as a whole; standard output unless given
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Of an image for several platforms, the one that a Docker is to load that reads one alone; that of this machine unless
    /// given
    #[arg(long, value_name = "OS/ARCH[/VARIANT]")]
    pub platform: Option<String>,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
    /// The images, by their names or their digests
    #[arg(required = true, value_name = "IMAGE")]
    pub images: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InspectArgs {
    /// The image, by its name or its digest
    pub image: String,
    /// Of an image for several platforms, this one; that of this machine unless given
    #[arg(long, value_name = "OS/ARCH[/VARIANT]")]
    pub platform: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct VerifyArgs {
    /// Remove what is not what it should be, so that it is fetched again
    #[arg(long)]
    pub remove: bool,
    #[command(flatten)]
    pub shown: Shown,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RmArgs {
    /// The images, by their names or digests
    #[arg(required = true, value_name = "IMAGE")]
    pub images: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct GcArgs {
    /// Remove what builds have kept as well: steps, and the folders of `--mount=type=cache`
    #[arg(long)]
    pub cache: bool,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub shown: Shown,
}

/// How an image goes from or to a registry.
#[derive(Debug, ClapArgs)]
pub(crate) struct Transfer {
    /// Speak plain HTTP with the registry
    #[arg(long)]
    pub plain_http: bool,
    /// How progress and results are shown
    #[arg(long, value_parser = text_or_json(), default_value = "text")]
    pub format: FormatArg,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PullArgs {
    /// Fetch the image for this machine, such as `linux/arm64`; that of this machine unless given
    #[arg(long, value_name = "OS/ARCH[/VARIANT]")]
    pub platform: Option<String>,
    #[command(flatten)]
    pub transfer: Transfer,
    /// The images: `NAME[:TAG][@DIGEST]`, with the registry in front where it is not Docker Hub
    #[arg(required = true, value_name = "IMAGE")]
    pub images: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PushArgs {
    #[command(flatten)]
    pub transfer: Transfer,
    /// The image as it is called here
    pub image: String,
    /// What it is to be called there; the same name unless given
    pub destination: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct BuildArgs {
    /// The folder that the Dockerfile copies from
    #[arg(default_value = ".")]
    pub context: PathBuf,
    /// The Dockerfile, or `-` for standard input; `Dockerfile` or `Containerfile` of the context unless given
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// What the image is to be called; may be repeated
    #[arg(long, short, value_name = "NAME[:TAG]")]
    pub tag: Vec<String>,
    /// Build this stage; the last one unless given
    #[arg(long, value_name = "STAGE")]
    pub target: Option<String>,
    /// Give an `ARG` a value, that of the variable of its name where none is written; may be repeated
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub build_arg: Vec<String>,
    /// Give `RUN --mount=type=secret` a value: `id=NAME,src=FILE` or `id=NAME,env=VARIABLE`; may be repeated
    #[arg(long, value_name = "id=NAME[,src=FILE|,env=VARIABLE]")]
    pub secret: Vec<String>,
    /// Give the image a label; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub label: Vec<String>,
    /// Carry out every step, although its result may be known
    #[arg(long)]
    pub no_cache: bool,
    /// Ask registries for base images, although they may be here
    #[arg(long)]
    pub pull: bool,
    /// Build for another platform, such as `linux/arm64`
    #[arg(long, value_name = "OS/ARCH[/VARIANT]")]
    pub platform: Option<String>,
    /// Who builds
    #[arg(long, value_enum, default_value_t = BuilderArg::Auto)]
    pub builder: BuilderArg,
    /// Let no time in the image be later than this, in seconds since 1970, so that the same files give the same image
    #[arg(long, value_name = "SECONDS", env = "SOURCE_DATE_EPOCH")]
    pub timestamp: Option<i64>,
    /// Speak plain HTTP with the registry
    #[arg(long)]
    pub plain_http: bool,
    /// How progress and results are shown
    #[arg(long, value_parser = text_or_json(), default_value = "text")]
    pub format: FormatArg,
    /// Print nothing but errors and the image's digest
    #[arg(long, short)]
    pub quiet: bool,
}

/// Who builds an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum BuilderArg {
    /// This program; an installed builder where the Dockerfile asks for what only that does
    Auto,
    /// This program
    Embedded,
    /// Docker, whose image is then brought in
    Docker,
    /// Buildah, whose image is then brought in
    Buildah,
}
