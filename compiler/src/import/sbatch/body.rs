//! The commands of a script: `srun`, modules, variables and arguments are replaced, the rest stays as it is.

use std::ops::Range;

use crate::source::{SourceId, Span};

use super::super::draft::Draft;
use super::super::nodes::{number, sequence, string};
use super::layout::{Layout, ROLE};
use super::scan::{Class, classes};
use super::steps::{self, Step, begins_command, commands};
use super::variables::{Facts, Value, uses};

/// The exit code of a task that wants to be resumed, as in the examples of `preemption`.
const RESUME: u64 = 85;

/// Commands of Slurm, for which a job has no counterpart, and what to do.
const OF_SLURM: [(&str, &str); 7] = [
    ("sacct", "`jobc history` and `jobc report` have the numbers of jobs"),
    ("sbcast", "`data` and `files` bring files to every instance"),
    ("scancel", "`completion` and `timeout` end a job"),
    ("scontrol", "`JOBC_HOSTS_<ROLE>` has the hosts of a role, with commas"),
    ("sinfo", "`jobc targets` shows what a cluster has"),
    ("sprio", "`jobc ps` shows the jobs of a target"),
    ("squeue", "`jobc ps` shows the jobs of a target"),
];

/// Commands that need the files of one host, and what brings them along.
const OF_HOST: [(&str, &str); 5] = [
    ("conda activate ", "`image: {conda: {file: environment.yml}}` builds the environment into an image"),
    ("source activate ", "`image: {conda: {file: environment.yml}}` builds the environment into an image"),
    ("mamba activate ", "`image: {conda: {file: environment.yml}}` builds the environment into an image"),
    ("source ~/", "`image` and `env` of a job file take its place"),
    ("source $HOME/", "`image` and `env` of a job file take its place"),
];

/// A body with the text that takes the place of parts of it.
pub(super) struct Body<'t> {
    pub(super) text: &'t str,
    start: usize,
    id: SourceId,
    /// What each byte is.
    pub(super) classes: Vec<Class>,
    edits: Vec<(Range<usize>, String)>,
    /// Lines to put before it.
    before: Vec<String>,
}

impl<'t> Body<'t> {
    /// The body of a script, which begins at a byte of the file.
    pub(super) fn new(text: &'t str, start: usize, id: SourceId) -> Self {
        Self { text, start, id, classes: classes(text), edits: vec![], before: vec![] }
    }

    /// The place of a part in the file.
    pub(super) fn span(&self, range: Range<usize>) -> Span {
        Span::new(self.id, self.start + range.start, self.start + range.end)
    }

    /// The line around a byte.
    fn line(&self, at: usize) -> Range<usize> {
        let begin = self.text[..at].rfind('\n').map_or(0, |at| at + 1);
        let end = self.text[at..].find('\n').map_or(self.text.len(), |length| at + length + 1);
        begin..end
    }

    /// Removes a part.
    pub(super) fn remove(&mut self, range: Range<usize>) {
        self.edits.push((range, String::new()));
    }

    /// Puts a text in the place of a part.
    pub(super) fn replace(&mut self, range: Range<usize>, text: &str) {
        self.edits.push((range, text.to_owned()));
    }

    /// Removes `srun` and its options; what it starts as a program of MPI, `mpirun` starts.
    pub(super) fn without_srun(&mut self, steps: &[Step], mpi: Option<Layout>, draft: &mut Draft<'_>) {
        for step in steps {
            draft.account.field(self.span(step.range.start..step.range.start + 4), "roles.main.instances");
            let tasks = step.option("ntasks").map(|option| option.value.text());
            let tasks = tasks.filter(|tasks| tasks.parse::<u32>().is_ok());
            let start = match mpi.filter(|layout| layout.tasks > 1) {
                Some(_) if step.option("ntasks").is_none() && !step.is_mpi() => String::new(),
                Some(layout) => format!("mpirun -n {} ", tasks.unwrap_or(layout.tasks.to_string())),
                None => String::new(),
            };
            // The image is that of the job.
            let shifter = if step.command.starts_with("shifter ") { "shifter ".len() } else { 0 };
            self.edits.push((step.range.start..step.range.end + shifter, start));
        }
    }

    /// Replaces variables of Slurm, and `scontrol show hostnames`.
    pub(super) fn replace_variables(&mut self, facts: &Facts, draft: &mut Draft<'_>) {
        for word in ["hostnames", "hostname"] {
            let pattern = format!("scontrol show {word}");
            let found: Vec<usize> = self.text.match_indices(&pattern).map(|(at, _)| at).collect();
            for at in found {
                let end = at + pattern.len();
                if self.classes[at] == Class::Comment
                    || self.is_edited(at)
                    || self.text[end..].starts_with('s')
                {
                    continue;
                }
                let rest = &self.text[end..];
                let length = rest.find([')', '|', '\n', ';', '`', '>']).unwrap_or(rest.len());
                let end = end + rest[..length].trim_end().len();
                let hosts = facts.hosts(&self.text[at..end]);
                draft.account.field(self.span(at..end), format!("${hosts}"));
                self.edits.push((at..end, format!("tr , '\\n' <<< \"${hosts}\"")));
            }
        }
        for used in uses(self.text, &self.classes) {
            if self.is_edited(used.range.start) {
                continue;
            }
            if steps::is_assigned_before(self.text, &used.name, used.range.start) {
                draft.note(self.span(used.range.clone()), "the script sets it");
                continue;
            }
            let value = facts.value(&used.name, &self.text[self.line(used.range.start)]);
            let span = self.span(used.range.clone());
            match (&value, used.replacement(self.text, &value)) {
                (_, Some(text)) => {
                    draft.account.field(span, text.clone());
                    self.edits.push((used.range.clone(), text));
                }
                (Value::Set(line), None) => {
                    draft.account.field(span, (*line).to_owned());
                    let line = format!("export {line}");
                    if !self.before.contains(&line) {
                        self.before.push(line);
                    }
                }
                _ if used.has_default(self.text) => draft.note(span, "not set here: the script has a value for this"),
                _ => draft.changed(
                    span,
                    format!("`${}` is set by Slurm only: it is empty here", used.name),
                    "`jobc explain JOBC_INDEX` and the page \"Environment variables\" have the variables of a task",
                ),
            }
        }
    }

    /// A script that starts itself again at its signal leaves by the contract of `preemption`.
    pub(super) fn replace_requeue(&mut self, draft: &mut Draft<'_>) {
        let (command, mut found) = ("scontrol requeue ", None);
        for (at, _) in self.text.match_indices(command) {
            let rest = &self.text[at + command.len()..];
            let length = match rest.strip_prefix('"').and_then(|quoted| quoted.find('"')) {
                Some(length) => length + 2,
                None => rest.find(|c: char| " \t\n;)&|>'\"".contains(c)).unwrap_or(rest.len()),
            };
            let job = &rest[..length];
            if self.classes[at] == Class::Comment || !begins_command(self.text, at) {
                continue;
            }
            // Another job is not this one's to start.
            if !job.contains("SLURM_JOB") && !job.contains("SLURM_ARRAY_JOB") {
                continue;
            }
            let end = at + command.len() + length;
            let span = self.span(at..end);
            draft.account.field(span, "preemption.exit_codes");
            self.edits.push((at..end, format!("exit {RESUME}")));
            found.get_or_insert(span);
        }
        let Some(span) = found else { return };
        for (of_role, key) in [(&["roles", ROLE, "stop_signal"][..], "signal"), (&["grace_period"], "grace")]
        {
            if let Some(value) = draft.get(of_role).cloned() {
                draft.remove(of_role);
                draft.set(&["preemption", key], value.span, value);
            }
        }
        draft.set(&["preemption", "exit_codes"], span, sequence(span, vec![number(span, RESUME)]));
    }

    /// Whether something takes the place of a byte.
    pub(super) fn is_edited(&self, at: usize) -> bool {
        self.edits.iter().any(|(range, _)| range.contains(&at))
    }

    /// Moves `module load` to the target.
    pub(super) fn read_modules(&mut self, draft: &mut Draft<'_>) {
        for name in ["module", "ml"] {
            for at in commands(self.text, &self.classes, name) {
                self.module(at, draft);
            }
        }
    }

    /// Reports commands that need Slurm or one host.
    pub(super) fn read_commands(&mut self, draft: &mut Draft<'_>) {
        for at in commands(self.text, &self.classes, "sbatch") {
            draft.refuse(
                self.span(at..at + 6),
                "the script submits another job",
                "write its command as a role of the same job file, with `needs`; a job that submits itself again is `retry`",
            );
        }
        for (name, note) in OF_SLURM {
            for at in commands(self.text, &self.classes, name) {
                if !self.is_edited(at) {
                    let span = self.span(at..at + name.len());
                    draft.changed(
                        span,
                        format!("`{name}` asks Slurm, which other targets do not have"),
                        note,
                    );
                }
            }
        }
        for (at, _) in self.text.match_indices("srun ") {
            let is_word = self.text[..at].ends_with([' ', '\t', '\n', ';', '(', '"']);
            if is_word && self.classes[at] == Class::Code && !self.is_edited(at) {
                let note = "write it at the beginning of a command, or its command without it";
                draft.changed(self.span(at..at + 4), "this `srun` is not read: jobc starts the tasks", note);
            }
        }
        let mut at = 0;
        for line in self.text.split_inclusive('\n') {
            let content = line.trim_start();
            let begin = at + line.len() - content.len();
            if let Some((start, note)) = OF_HOST.iter().find(|(start, _)| content.starts_with(start)) {
                let what = start.trim_end_matches(['/', ' ', '~']).trim_end();
                let span = self.span(begin..at + line.trim_end().len());
                draft.changed(span, format!("`{what}` needs the files of this host"), *note);
            }
            at += line.len();
        }
    }

    fn module(&mut self, at: usize, draft: &mut Draft<'_>) {
        let line = self.line(at);
        let content = self.text[line.clone()].split(" #").next().unwrap_or_default();
        let content = content.split(" || ").next().unwrap_or_default().trim();
        let words: Vec<&str> = content.split_whitespace().collect();
        let span = self.span(at..line.start + self.text[line.clone()].trim_end().len());
        let is_plain = |word: &&str| {
            word.starts_with(|c: char| c.is_ascii_alphanumeric())
                && word.chars().all(|c| c.is_ascii_alphanumeric() || "._/+:-".contains(c))
        };
        let names = match words[..] {
            ["module" | "ml", "load" | "add", ref names @ ..] => names,
            ["module" | "ml", "purge" | "list" | "avail" | "reset", ..] => {
                self.remove(line);
                return draft.note(span, "a job starts without modules");
            }
            ["ml", ref names @ ..] if !names.iter().any(|name| name.starts_with('-')) => names,
            _ => &[],
        };
        let first = self.text[line.clone()].starts_with(|c: char| !c.is_whitespace());
        if names.is_empty() || !names.iter().all(is_plain) || !first {
            return draft.changed(
                span,
                format!("`{}` needs the modules of a cluster", words.first().unwrap_or(&"module")),
                "`image` brings the programs along; `slurm: {modules: […]}` of a target loads modules by name",
            );
        }
        let mut modules: Vec<_> =
            draft.setting(&["slurm", "modules"]).map_or(vec![], |list| list.items().to_vec());
        modules.extend(names.iter().map(|name| string(span, *name)));
        draft.target(&["slurm", "modules"], span, sequence(span, modules));
        self.remove(line);
    }

    /// Makes parameters of `$1` to `$9`.
    pub(super) fn replace_arguments(&mut self, draft: &mut Draft<'_>) {
        let has_functions = self.text.lines().any(|line| {
            let line = line.trim_start();
            line.starts_with("function ") || line.contains("() {") || line.trim_end().ends_with("()")
        });
        if has_functions {
            return;
        }
        for (at, _) in self.text.match_indices('$') {
            let next = self.text[at + 1..].chars().next();
            if self.is_edited(at)
                || !matches!(self.classes[at], Class::Code | Class::Double)
                || self.text[..at].ends_with('\\')
            {
                continue;
            }
            match next {
                Some(digit @ '1'..='9') => {
                    let (name, span) = (format!("arg{digit}"), self.span(at..at + 2));
                    draft.set(&["params", &name], span, string(span, ""));
                    draft.account.field(span, format!("params.{name}"));
                    self.edits.push((at..at + 2, format!("${{{{ params.{name} }}}}")));
                }
                Some('@' | '*') => {
                    let span = self.span(at..at + 2);
                    draft.note(span, "a job has no arguments; `params` and `--set` take their place");
                }
                _ => {}
            }
        }
    }

    /// Removes blanks at the ends of lines, which no shell reads.
    fn trim_lines(&mut self) {
        let mut at = 0;
        for line in self.text.split_inclusive('\n') {
            let content = line.trim_end_matches(['\n', '\r']);
            let (begin, end) = (at + content.trim_end().len(), at + content.len());
            at += line.len();
            let is_quoted =
                || (begin..end).any(|at| matches!(self.classes[at], Class::Double | Class::Single));
            if begin < end && !self.text[..begin].ends_with('\\') && !is_quoted() {
                self.edits.push((begin..end, String::new()));
            }
        }
    }

    /// The text with its edits; `${{` of the script stays as it is.
    pub(super) fn finish(mut self) -> String {
        self.trim_lines();
        self.edits.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut out = String::with_capacity(self.text.len());
        let mut at = 0;
        for (range, text) in &self.edits {
            if range.start < at {
                continue;
            }
            out.push_str(&self.text[at..range.start].replace("${{", "${{ '${{' }}"));
            out.push_str(text);
            at = range.end;
        }
        out.push_str(&self.text[at..].replace("${{", "${{ '${{' }}"));
        let out = out.replace('\r', "");
        let lines: Vec<&str> = out.lines().collect();
        let is_text = |line: &&str| !line.trim().is_empty();
        let first = lines.iter().position(is_text).unwrap_or(0);
        let last = lines.iter().rposition(is_text).map_or(0, |at| at + 1);
        let before = self.before.iter().map(String::as_str);
        let lines: Vec<&str> = before.chain(lines[first..last.max(first)].iter().copied()).collect();
        lines.join("\n").trim_end().to_owned()
    }
}
