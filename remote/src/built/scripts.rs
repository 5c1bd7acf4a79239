//! Batch scripts for Slurm in a built directory.

use jobc_sys::error::{Error, Kind, Result};

use super::Part;

/// A batch script, which Slurm schedules on its own.
#[derive(Clone, Debug)]
pub struct BatchScript {
    /// The name of its group of roles: that of the file without `.sbatch`.
    pub group: String,
    /// The script.
    pub text: String,
    /// The groups that must have succeeded before it starts.
    pub after: Vec<String>,
    /// Where its lines come from.
    pub(super) origins: Vec<Part>,
}

impl BatchScript {
    /// The script of a file; none if the file is another one.
    pub(super) fn of_file(path: &str, text: &str, origins: Vec<Part>) -> Option<Self> {
        let group = path.strip_prefix("slurm/")?.strip_suffix(".sbatch")?;
        if group.contains('/') || group == "array" {
            return None;
        }
        let after = text.lines().find_map(|line| line.strip_prefix("#JOBC --after="));
        let after = after.into_iter().flat_map(|names| names.split(',')).map(str::to_owned).collect();
        Some(Self { group: group.to_owned(), text: text.to_owned(), after, origins })
    }

    /// A script without a source map, for tests.
    #[cfg(test)]
    pub(crate) fn of_text(group: &str, text: &str) -> Self {
        Self::of_file(&format!("slurm/{group}.sbatch"), text, vec![]).expect("the path is that of a script")
    }

    /// The lines of the header with options of `sbatch`, as they are.
    pub fn directives(&self) -> impl Iterator<Item = &str> {
        let header = self.text.lines().take_while(|line| line.starts_with('#'));
        header.filter(|line| option_of(line).is_some())
    }

    /// The options: the number of the line from 1, and the option without `--`.
    pub fn options(&self) -> impl Iterator<Item = (u32, String)> {
        let lines = self.text.lines().zip(1..);
        lines
            .take_while(|(line, _)| line.starts_with('#'))
            .filter_map(|(line, number)| Some((number, option_of(line)?)))
    }

    /// The value of an option; empty for one without a value.
    pub fn option(&self, name: &str) -> Option<String> {
        self.options().find_map(|(_, option)| {
            let (found, value) = option.split_once('=').unwrap_or((&option, ""));
            (found == name).then(|| value.to_owned())
        })
    }

    /// Where an option comes from: `job.yaml:11:3`, or a setting of the target.
    pub fn origin(&self, name: &str) -> Option<String> {
        let is_named = |option: &str| option.split('=').next() == Some(name);
        let (number, _) = self.options().find(|(_, option)| is_named(option))?;
        self.origins.iter().find(|part| part.line == Some(number)).and_then(Part::place)
    }

    /// The role whose tasks the script starts without a supervisor, by one `srun`, which has the role's name.
    pub fn direct_role(&self) -> Option<&str> {
        let step = |line: &'_ str| {
            let line = line.strip_prefix("exec ").unwrap_or(line);
            line.starts_with("srun --job-name=").then_some(())
        };
        let line = self.text.lines().find(|line| step(line).is_some())?;
        line.split_once("--job-name=")?.1.split(' ').next()
    }

    /// Whether the script requests nodes that differ.
    pub fn is_heterogeneous(&self) -> bool {
        self.text.lines().take_while(|line| line.starts_with('#')).any(|line| line == "#SBATCH hetjob")
    }
}

/// The option in a line of a header, without `--`, as `sbatch` reads it: with quotes, and with backslashes before
/// characters that would mean something.
fn option_of(line: &str) -> Option<String> {
    let (mut text, mut quote) = (String::new(), None);
    let mut chars = line.strip_prefix("#SBATCH ")?.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.extend(chars.next()),
            '"' | '\'' if quote.is_none() => quote = Some(c),
            _ if quote == Some(c) => quote = None,
            _ => text.push(c),
        }
    }
    text.strip_prefix("--").map(str::to_owned)
}

/// Orders scripts so that each comes after those it waits for.
pub(super) fn ordered(mut scripts: Vec<BatchScript>) -> Result<Vec<BatchScript>> {
    let mut found: Vec<BatchScript> = Vec::with_capacity(scripts.len());
    while !scripts.is_empty() {
        let is_there = |name: &String| found.iter().any(|other| other.group == *name);
        let Some(next) = scripts.iter().position(|script| script.after.iter().all(is_there)) else {
            let message = format!("`slurm/{}.sbatch` waits for a script that is not there", scripts[0].group);
            return Err(Error::new(Kind::Config, message));
        };
        found.push(scripts.remove(next));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_the_header() {
        let text = "#!/bin/bash\n#SBATCH --nodes=2\n#SBATCH \"--comment=a b\"\n#SBATCH --exclusive\n#JOBC --after=a,b\n\
                    # Job x\n\n#SBATCH --late=1\n";
        let script = BatchScript::of_text("job", text);
        let options = script.options().map(|(number, option)| format!("{number} {option}"));
        assert_eq!(options.collect::<Vec<_>>(), ["2 nodes=2", "3 comment=a b", "4 exclusive"]);
        assert_eq!(
            (script.option("nodes").as_deref(), script.option("exclusive").as_deref()),
            (Some("2"), Some(""))
        );
        assert_eq!((script.option("late"), script.is_heterogeneous()), (None, false));
        assert_eq!(script.directives().nth(1), Some("#SBATCH \"--comment=a b\""));
        assert_eq!(script.after, ["a", "b"]);
        assert!(BatchScript::of_file("slurm/array.sbatch", text, vec![]).is_none());
        assert!(BatchScript::of_file("slurm/roles/a.sh", text, vec![]).is_none());
    }

    #[test]
    fn options_are_read_as_sbatch_reads_them() {
        for (line, option) in [
            (
                r#"#SBATCH "--comment=it's \"5\" \\ \# 日本 $HOME""#,
                Some(r#"comment=it's "5" \ # 日本 $HOME"#),
            ),
            (r"#SBATCH --comment=a\#b", Some("comment=a#b")),
            (r"#SBATCH '--comment=a b'", Some("comment=a b")),
            ("#SBATCH hetjob", None),
            ("# --x", None),
        ] {
            assert_eq!(option_of(line).as_deref(), option, "{line}");
        }
    }

    #[test]
    fn a_script_stands_after_those_it_waits_for() {
        let script = |name: &str, after: &str| BatchScript::of_text(name, &format!("#!/bin/bash\n{after}\n"));
        let scripts = vec![script("a", "#JOBC --after=z"), script("b", "#JOBC --after=a"), script("z", "")];
        let names = |scripts: &[BatchScript]| {
            scripts.iter().map(|script| script.group.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(names(&ordered(scripts.clone()).unwrap()), "z a b");
        assert!(ordered(scripts[..2].to_vec()).is_err());
    }
}
