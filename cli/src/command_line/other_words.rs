//! The commands of other tools that people try, and those of jobc that do it.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A word, and the sentence that names the command. Words with only one meaning are aliases of the command instead.
const WORDS: [(&str, &str); 19] = [
    ("apply", "`jobc submit` submits a job to a cluster, and `jobc run` runs it on this host"),
    (
        "attach",
        "`jobc logs -f` follows the output of a job, and `jobc exec -it -- bash` starts a shell in it",
    ),
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
    ("retry", "`jobc run` runs a job again, with `--resume` those of a sweep that have not succeeded"),
    ("shell", "`jobc exec -it -- bash` starts a shell in a running job"),
    ("start", "`jobc run` runs a job on this host, and `jobc submit` submits it to a cluster"),
    ("status", "`jobc ps` lists jobs, and `jobc inspect` shows one"),
    ("up", "`jobc run` runs a job on this host, and `jobc submit` submits it to a cluster"),
    ("version", "`jobc --version` prints the version"),
];

/// The message for an unknown command that is one of another tool. `line` is the command line.
pub(super) fn answer(error: &clap::Error, line: &[String]) -> Option<String> {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return None;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return None };
    // Not a command of a command, such as `jobc image status`.
    let first = line.iter().skip(1).find(|word| !word.starts_with('-'))?;
    let (_, instead) = WORDS.iter().find(|(known, _)| known == word && known == first)?;
    Some(format!("error: `{word}` is not a command of `jobc`\n = help: {instead}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::Args;

    #[test]
    fn only_the_first_word_is_a_command_of_another_tool() {
        let check = |line: &str| {
            let line: Vec<String> = line.split(' ').map(str::to_owned).collect();
            Args::full_command().try_get_matches_from(&line).err().and_then(|error| answer(&error, &line))
        };
        assert!(check("jobc status").is_some_and(|text| text.contains("`jobc ps` lists jobs")));
        assert_eq!(check("jobc config status"), None);
        assert_eq!(check("jobc config ls"), None);
    }

    #[test]
    fn the_commands_that_a_word_names_exist() {
        let jobc = Args::full_command();
        for (word, instead) in WORDS {
            assert!(jobc.find_subcommand(word).is_none(), "`{word}` is a command");
            let mut commands =
                instead.split("`jobc ").skip(1).map(|rest| rest.split('`').next().unwrap_or(rest));
            let exists = |path: &str| {
                let first = path.split(' ').next().unwrap_or(path);
                first == "--version"
                    || jobc.find_subcommand(first).is_some()
                    || cfg!(not(feature = "runtime"))
            };
            assert!(commands.all(exists), "{instead}");
        }
    }
}
