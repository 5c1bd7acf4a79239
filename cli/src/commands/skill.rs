//! `jobc skill`: the page that tells AI agents how to work with jobc, in the form of an Agent Skill.

use std::fs;

use camino::Utf8Path;

use crate::args::SkillArgs;
use crate::input::reason;
use crate::outcome::Outcome;
use crate::terminal;

const PAGE: &str = include_str!("skill.md");

pub(crate) fn run(skill: &SkillArgs) -> Outcome {
    match &skill.install {
        None => {
            terminal::print(PAGE);
            Outcome::Success
        }
        Some(directory) => install(directory, skill.force),
    }
}

/// Writes the page as `jobc/SKILL.md` below a directory of skills.
fn install(directory: &Utf8Path, force: bool) -> Outcome {
    let path = directory.join("jobc/SKILL.md");
    if !force && path.exists() && !fs::read(&path).is_ok_and(|bytes| bytes == PAGE.as_bytes()) {
        terminal::eprint(&format!("jobc: `{path}` would be overwritten; use `--force` to overwrite\n"));
        return Outcome::UsageError;
    }
    let written = fs::create_dir_all(directory.join("jobc")).and_then(|()| fs::write(&path, PAGE));
    if let Err(error) = written {
        terminal::eprint(&format!("jobc: cannot write `{path}`: {}\n", reason(&error)));
        return Outcome::SystemError;
    }
    terminal::print(&format!("wrote {path}\n"));
    Outcome::Success
}

#[cfg(all(test, target_os = "linux", feature = "runtime"))]
mod tests {
    use jobc_place::exit_code;

    use super::*;

    /// The rows of the table of exit codes: of what, and the code.
    fn rows() -> Vec<(&'static str, &'static str)> {
        let table = PAGE.split("## Exit codes").nth(1).unwrap();
        let lines = table.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
        lines
            .take_while(|line| line.starts_with('|'))
            .map(|line| {
                let mut cells = line.split('|').map(str::trim).skip(1);
                (cells.next().unwrap(), cells.next().unwrap())
            })
            .collect()
    }

    #[test]
    fn the_exit_codes_are_those_of_the_code() {
        let commands = [Outcome::Success, Outcome::Errors, Outcome::UsageError, Outcome::SystemError];
        let jobs = [
            exit_code::SUCCEEDED,
            exit_code::FAILED,
            exit_code::TIMED_OUT,
            exit_code::NOT_STARTED,
            exit_code::STOPPED,
        ];
        let tasks =
            [exit_code::TIMED_OUT, exit_code::NOT_STARTED, exit_code::NOT_EXECUTABLE, exit_code::NOT_FOUND];
        let mut expected: Vec<(&str, String)> = Vec::new();
        expected.extend(commands.map(|outcome| ("command", (outcome as u8).to_string())));
        expected.extend(jobs.map(|code| ("job", code.to_string())));
        expected.extend(tasks.map(|code| ("task", code.to_string())));
        expected.extend([("task", "128 + n".to_owned()), ("task", "other".to_owned())]);
        let rows: Vec<(&str, String)> = rows().into_iter().map(|(of, code)| (of, code.to_owned())).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn the_reference_has_the_same_exit_codes() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/exit-codes.md");
        let page = fs::read_to_string(page).unwrap();
        for (of, heading) in [("command", "## Commands"), ("job", "## Jobs"), ("task", "## Tasks")] {
            let section = page.split(heading).nth(1).unwrap().split("\n## ").next().unwrap();
            let lines = section.lines().filter_map(|line| line.strip_prefix("| "));
            let codes: Vec<&str> = lines.skip(1).map(|line| line.split(" |").next().unwrap()).collect();
            let own: Vec<&str> = rows().into_iter().filter(|row| row.0 == of).map(|row| row.1).collect();
            assert_eq!(own, codes, "{heading}");
        }
    }
}
