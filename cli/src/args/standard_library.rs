//! `jobc std`: the built-in templates.

use crate::completion;

/// What is done with the standard library.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum StdCommand {
    /// List the built-in templates
    ///
    /// `--format json` prints all that `show` has of each.
    Ls,
    /// Show the parameters of a built-in template, and an example
    ///
    /// `--format json` has the JSON Schema of `with` and the text of the template too.
    Show {
        /// Name of the template, such as `torchrun` or `std/torchrun`
        #[arg(add = completion::templates())]
        name: String,
        /// Print the template itself
        #[arg(long)]
        source: bool,
    },
}
