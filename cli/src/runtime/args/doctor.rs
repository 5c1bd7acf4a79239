//! `jobc doctor`: checks this host, and sets it up.

use clap::Args as ClapArgs;

#[derive(Debug, ClapArgs)]
pub(crate) struct DoctorArgs {
    /// Print the commands that set this host up for a user to run jobs, as a script for root
    ///
    /// They delegate cgroups, assign subordinate ID ranges, allow user namespaces and install packages, where checks
    /// failed. Steps without a command are printed as comments.
    #[arg(long)]
    pub fix: bool,
    /// Run these commands, as root: `sudo jobc doctor --fix --apply`
    #[arg(long, requires = "fix")]
    pub apply: bool,
    /// User to set the host up for [default: the user who called sudo, or the current user]
    #[arg(long, value_name = "NAME", requires = "fix")]
    pub user: Option<String>,
}
