//! The overview in `jobc --help`: the commands in groups, since clap has one heading for all subcommands of a command.

use std::fmt::Write as _;

use clap::Command;

/// A heading and the names of its commands, the most used ones first.
type Group = (&'static str, &'static [&'static str]);

/// All commands, also those that are not on this platform.
const GROUPS: [Group; 6] = [
    (
        "Write",
        &[
            "init", "check", "fmt", "build", "plan", "diff", "why", "explain", "std", "import", "backends",
            "backend",
        ],
    ),
    (
        "Run",
        &[
            "run",
            "submit",
            "ps",
            "logs",
            "exec",
            "stop",
            "inspect",
            "events",
            "stats",
            "top",
            "report",
            "history",
            "metrics",
            "serve",
            "port-forward",
            "copy",
            "trace",
            "wait",
            "kill",
            "pause",
            "suspend",
            "resume",
            "rm",
            "gc",
        ],
    ),
    ("Images", &["image", "lock"]),
    ("GPUs", &["gpu"]),
    ("Editor and CI", &["test", "lsp", "mcp", "skill", "schema"]),
    ("Host", &["doctor", "targets", "config", "oci", "completions", "man"]),
];

/// The names of all commands.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|(_, names)| names.iter().copied())
}

/// A help template that is clap's own, with the groups instead of its list of commands.
///
/// The description of each command is its `about`. Commands that this build does not have are left out.
pub(super) fn template(jobc: &Command) -> String {
    let heading = jobc.get_styles().get_header();
    let literal = jobc.get_styles().get_literal();
    let width = jobc.get_subcommands().map(|command| command.get_name().len()).max().unwrap_or(0);
    let mut text = "{before-help}{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        let commands: Vec<&Command> = names.iter().filter_map(|name| jobc.find_subcommand(name)).collect();
        if !commands.is_empty() {
            let _ = writeln!(text, "\n{heading}{title}:{heading:#}");
        }
        for command in commands {
            let name = command.get_name();
            let gap = width - name.len();
            let _ = writeln!(text, "  {literal}{name}{literal:#}{:gap$}  {}", "", about(command));
        }
    }
    let _ = write!(text, "\n{heading}Options:{heading:#}\n{{options}}{{after-help}}");
    text
}

/// The description of a command, in one line.
fn about(command: &Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command_line::Args;
    use crate::runtime::with_hidden_commands;

    #[test]
    fn every_visible_command_is_in_one_group() {
        for command in Args::full_command().get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = command.get_name();
            let groups = GROUPS.iter().filter(|(_, names)| names.contains(&name)).count();
            assert_eq!(groups, 1, "`{name}` is in {groups} groups");
        }
    }

    #[test]
    fn every_name_in_a_group_is_a_command() {
        let jobc = with_hidden_commands(Args::full_command(), names());
        for name in names() {
            assert!(jobc.find_subcommand(name).is_some(), "`{name}` is not a command");
        }
    }

    /// Words and phrases that people of the field do not search for, or that have to be read twice.
    #[rustfmt::skip]
    const AVOIDED: [&str; 52] = [
        "folder", "folders", "machine", "machines", "normal user", "user without root", "control group",
        "control groups", "system call", "system calls", "way out", "unless given", "nobody", "somebody", "whoever",
        "patience", "longest", "largest", "deepest", "most", "said", "told", "asked", "heard", "attend", "hear",
        "visitor", "visitors", "course", "maker", "turn", "seating", "near", "apart", "ahead", "mask", "masked", "lost",
        "judge", "judges", "breakage", "further program", "another attempt", "tried once more", "once more", "vouch",
        "vouches", "in vain", "what they ask for", "is no", "how it ended", "colour",
    ];

    /// A line in lower case as words with a space before and after each. A `descriptor` may only be one of a file.
    fn padded_words(line: &str) -> String {
        let words: Vec<String> = line
            .split(|c: char| !c.is_alphanumeric())
            .map(str::to_lowercase)
            .filter(|word| !word.is_empty())
            .collect();
        format!(" {} ", words.join(" ")).replace(" file descriptor", " file")
    }

    /// The places where the help of a command, or of one below it, has an avoided word.
    fn avoided(path: &str, command: &mut Command, found: &mut Vec<String>) {
        let help = command.render_long_help().to_string();
        for line in help.lines() {
            let words = padded_words(line);
            found.extend(
                AVOIDED
                    .iter()
                    .chain(&["descriptor", "descriptors"])
                    .filter(|phrase| words.contains(&format!(" {phrase} ")))
                    .map(|phrase| format!("{path}: `{phrase}`: {line}")),
            );
        }
        for below in command.get_subcommands_mut() {
            let path = format!("{path} {}", below.get_name());
            avoided(&path, below, found);
        }
    }

    #[test]
    fn avoided_words_are_found_in_help() {
        let mut found = Vec::new();
        let inner = Command::new("inner").about("Closes a descriptor of the Folder");
        avoided(
            "outer",
            &mut Command::new("outer").about("Takes a file descriptor").subcommand(inner),
            &mut found,
        );
        let found: Vec<&str> = found.iter().filter_map(|place| place.split('`').nth(1)).collect();
        // Twice: the list of the outer command, and the inner command itself.
        assert_eq!(found, ["folder", "descriptor", "folder", "descriptor"]);
    }

    #[test]
    fn help_has_the_words_of_the_field() {
        let mut found = Vec::new();
        avoided("jobc", &mut Args::full_command(), &mut found);
        assert!(found.is_empty(), "{found:#?}");
    }

    #[test]
    fn descriptions_fit_in_80_columns() {
        // clap does not wrap the text of a template, and reads `{` as the start of a tag.
        let longest = "completions".len();
        for command in Args::full_command().get_subcommands() {
            let about = about(command);
            assert!(!about.is_empty() && !about.contains('{'), "{}: {about}", command.get_name());
            assert!(2 + longest + 2 + about.len() <= 80, "{}: {about}", command.get_name());
        }
    }
}
