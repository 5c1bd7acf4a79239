//! `jobc std`: the built-in templates.

use crate::completion;

/// The commands of `jobc std`.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum StdCommand {
    /// List the built-in templates
    ///
    /// `--format json` prints the details of each template, as `show` does.
    Ls,
    /// Show the parameters of a built-in template, and an example
    ///
    /// `--format json` also prints the JSON Schema of `with` and the text of the template.
    Show {
        /// Name of the template, such as `torchrun` or `std/torchrun`
        #[arg(add = completion::templates())]
        name: String,
        /// Print the template itself
        #[arg(long)]
        source: bool,
    },
}
