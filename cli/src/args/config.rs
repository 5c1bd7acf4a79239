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
    List,
    /// Print the value of a setting
    Get {
        /// Setting, such as `target`
        name: String,
    },
    /// Change a setting in the file of the user or of the project
    Set {
        /// Setting, such as `target`
        name: String,
        /// New value
        value: String,
        #[command(flatten)]
        file: FileArgs,
    },
    /// Remove a setting from the file of the user or of the project
    Unset {
        /// Setting, such as `target`
        name: String,
        #[command(flatten)]
        file: FileArgs,
    },
    /// Print the path of the file of the user or of the project
    Path {
        #[command(flatten)]
        file: FileArgs,
    },
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FileArgs {
    /// Use `.jobc/config.toml` of the project [default: the file of the user]
    #[arg(long)]
    pub project: bool,
}
