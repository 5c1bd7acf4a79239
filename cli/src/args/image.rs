//! `jobc image`: the images of this user on this machine.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Subcommand};

use super::{FormatArg, text_or_json};

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
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PullArgs {
    /// Fetch the image for this machine, such as `linux/arm64`; that of this machine unless given
    #[arg(long, value_name = "OS/ARCH[/VARIANT]")]
    pub platform: Option<String>,
    /// Speak plain HTTP with the registry
    #[arg(long)]
    pub plain_http: bool,
    /// How progress and results are shown
    #[arg(long, value_parser = text_or_json(), default_value = "text")]
    pub format: FormatArg,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
    /// The images: `NAME[:TAG][@DIGEST]`, with the registry in front where it is not Docker Hub
    #[arg(required = true, value_name = "IMAGE")]
    pub images: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PushArgs {
    /// Speak plain HTTP with the registry
    #[arg(long)]
    pub plain_http: bool,
    /// How progress and results are shown
    #[arg(long, value_parser = text_or_json(), default_value = "text")]
    pub format: FormatArg,
    /// Print nothing but errors
    #[arg(long, short)]
    pub quiet: bool,
    /// The image as it is called here
    pub image: String,
    /// What it is to be called there; the same name unless given
    pub destination: Option<String>,
}
