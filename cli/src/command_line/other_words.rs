//! The commands of other tools that people try, and those of jobc that do it.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A word, and the sentence that names the command. Words with only one meaning are aliases of the command instead.
const WORDS: [(&str, &str); 14] = [
    ("apply", "`jobc submit` submits a job to a cluster, and `jobc run` runs it on this host"),
    ("create", "`jobc init` creates a job file, and `jobc submit` submits a job"),
    ("delete", "`jobc stop` stops jobs, and `jobc rm` removes their records"),
    ("down", "`jobc stop` stops jobs"),
    ("get", "`jobc ps` lists jobs, and `jobc inspect` shows one"),
    ("images", "`jobc image ls` lists images"),
    ("list", "`jobc ps` lists jobs, and `jobc image ls` lists images"),
    ("login", "`jobc` uses the credentials that `docker login` and `podman login` save"),
    ("ls", "`jobc ps` lists jobs, and `jobc image ls` lists images"),
    ("new", "`jobc init` creates a job file"),
    ("pull", "`jobc image pull` pulls images"),
    ("push", "`jobc image push` pushes an image"),
    ("start", "`jobc run` runs a job on this host, and `jobc submit` submits it to a cluster"),
    ("up", "`jobc run` runs a job on this host, and `jobc submit` submits it to a cluster"),
];

/// The message for an unknown command that is one of another tool.
pub(super) fn answer(error: &clap::Error) -> Option<String> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    let (_, instead) = WORDS.iter().find(|(known, _)| known == word)?;
    Some(format!("error: `{word}` is not a command of `jobc`\n = help: {instead}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::Args;

    #[test]
    fn the_commands_that_a_word_names_exist() {
        let jobc = Args::full_command();
        for (word, instead) in WORDS {
            assert!(jobc.find_subcommand(word).is_none(), "`{word}` is a command");
            let mut commands =
                instead.split("`jobc ").skip(1).map(|rest| rest.split('`').next().unwrap_or(rest));
            let exists = |path: &str| {
                let first = path.split(' ').next().unwrap_or(path);
                jobc.find_subcommand(first).is_some() || cfg!(not(feature = "runtime"))
            };
            assert!(commands.all(exists), "{instead}");
        }
    }
}
