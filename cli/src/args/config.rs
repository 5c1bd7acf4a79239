//! `jobc config`: the settings.

use clap::{Args as ClapArgs, Subcommand};

#[derive(Debug, ClapArgs)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub command: Option<ConfigCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List all settings, their values, and where they come from
    ///
    /// `--format json` prints JSON.
    #[command(alias = "ls")]
    List,
    /// Print the value of a setting
    Get {
        /// Setting, such as `target`
        name: String,
    },
    /// Change a setting in the user or project file
    Set {
        /// Setting, such as `target`
        name: String,
        /// New value
        value: String,
        #[command(flatten)]
        file: FileArgs,
    },
    /// Remove a setting from the user or project file
    Unset {
        /// Setting, such as `target`
        name: String,
        #[command(flatten)]
        file: FileArgs,
    },
    /// Print the path of the user or project file
    Path {
        #[command(flatten)]
        file: FileArgs,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FileArgs {
    /// Use the project file, `.jobc/config.toml` [default: the user file]
    #[arg(long)]
    pub project: bool,
}
