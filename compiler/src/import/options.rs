//! The options of a command line, and what becomes of each: for the reader, and for the table in the documentation.

/// An option.
#[derive(Debug)]
pub(super) struct CommandOption {
    /// The long name, without `--`.
    pub(super) long: &'static str,
    /// The letter, or a blank.
    pub(super) short: char,
    /// Whether it has an argument.
    pub(super) argument: Argument,
    /// What it becomes.
    pub(super) becomes: Becomes,
}

/// Whether an option has an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Argument {
    /// Always.
    Required,
    /// Only behind `=`.
    Optional,
    /// Never.
    None,
}

/// What an option becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Becomes {
    /// A field that the reader computes; in words for the documentation.
    Field(&'static str),
    /// A field of `slurm` of a target.
    Target(&'static str),
    /// An entry of `slurm.extra` of a target.
    Extra,
    /// Nothing; why.
    Note(&'static str),
    /// An error: why, and what to write instead.
    Refusal(&'static str, &'static str),
}

/// A row of a table of options.
pub(super) const fn row(
    long: &'static str,
    short: char,
    argument: Argument,
    becomes: Becomes,
) -> CommandOption {
    CommandOption { long, short, argument, becomes }
}

impl Becomes {
    /// What it becomes, in words.
    pub(super) fn words(&self, long: &str) -> String {
        match self {
            Self::Field(what) => (*what).to_owned(),
            Self::Target(key) => format!("`slurm.{key}` of a target"),
            Self::Extra => format!("`slurm.extra.{long}` of a target"),
            Self::Note(why) => format!("nothing: {why}"),
            Self::Refusal(what, instead) => format!("an error: {what}; {instead}"),
        }
    }
}

/// The option with a letter.
pub(super) fn by_letter(options: &'static [CommandOption], letter: char) -> Option<&'static CommandOption> {
    options.iter().find(|option| option.short == letter && letter != ' ')
}

#[cfg(test)]
mod tests {
    use super::super::{compose, devcontainer, docker_run, sbatch, skypilot, torchx};

    #[test]
    fn names_are_sorted_and_letters_are_unique() {
        for options in [
            compose::KEYS,
            devcontainer::KEYS,
            docker_run::OPTIONS,
            sbatch::OPTIONS,
            skypilot::KEYS,
            torchx::KEYS,
        ] {
            assert!(options.windows(2).all(|pair| pair[0].long < pair[1].long));
            let mut letters: Vec<char> =
                options.iter().map(|option| option.short).filter(|c| *c != ' ').collect();
            letters.sort_unstable();
            assert!(letters.windows(2).all(|pair| pair[0] != pair[1]), "{letters:?}");
        }
    }
}
