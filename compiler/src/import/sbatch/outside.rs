//! What a script runs once, on its first node and outside of its steps: here each instance runs it.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::super::draft::Draft;
use super::body::Body;
use super::scan::Class;
use super::steps::{Step, commands};
use super::variables::Facts;

/// Commands that may run on each node instead of one: they change nothing outside of their shell, or the same twice.
const HARMLESS: &str = "[ [[ : . alias awk basename break builtin case clear conda continue cut date declare df dirname done echo elif else env esac eval exit export false fi find for free function getopts grep head hostname id if in let local ls lscpu mamba mapfile micromamba ml module nproc numactl nvidia-smi popd printenv printf ps pushd pwd read readarray readlink readonly realpath return scontrol sed select seq set shift shopt sleep sort source spack tail test time times tr trap true type typeset ulimit umask uname unset until uptime wait wc which while whoami xargs";

/// Words before a command that is still the beginning of a command.
const BEFORE: [&str; 8] = ["then", "do", "else", "!", "{", "exec", "sudo", "nohup"];

/// Commands whose output differs each time.
const RANDOM: [&str; 4] = ["shuf", "mktemp", "uuidgen", "openssl rand"];

/// The host that a script runs on, in a command substitution or a variable.
static HOST: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\$\((?:/bin/|/usr/bin/)?hostname\b[^()]*\)|`(?:/bin/)?hostname\b[^`]*`|\$\{?HOSTNAME\b\}?|\$\{?SLURMD_NODENAME\b\}?")
        .expect("a pattern")
});
static NUMBER: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\$RANDOM\b|\$\{RANDOM\}|\bRANDOM\b").expect("a pattern"));

/// A number from 1000 to 9999 that is the same in each instance of a job.
const SAME_NUMBER: &str = "$(printf %s \"$JOBC_JOB\" | cksum | cut -c1-4)";

/// Whether a step only asks nodes for their names or addresses, for the script to use:
/// `$(srun -N1 -n1 -w "$head" hostname --ip-address)`.
pub(super) fn asks_hosts(step: &Step, body: &str) -> bool {
    let mut words = step.command.split_whitespace();
    let before = body[..step.range.start].trim_end();
    words.next() == Some("hostname")
        && words.all(|word| word.starts_with('-'))
        && before.ends_with(['(', '`'])
        && !before.ends_with("<(")
}

impl Body<'_> {
    /// Puts the hosts that jobc knows in the place of steps that ask for them.
    pub(super) fn answer_hosts(&mut self, steps: &[Step], facts: &Facts, draft: &mut Draft<'_>) {
        for step in steps {
            let is_one = |name| step.option(name).is_some_and(|option| option.value.text() == "1");
            let hosts = facts.hosts("");
            let node = step.option("nodelist").map(|option| option.value.text());
            let text = match node {
                // An entry of the list of hosts is an address itself.
                Some(node)
                    if node.starts_with('$') && !node.contains(['(', '`']) && !node.contains("SLURM") =>
                {
                    format!("echo \"{node}\"")
                }
                None if !is_one("ntasks") && !is_one("nodes") => format!("tr , '\\n' <<< \"${hosts}\""),
                _ => format!("echo \"${{{hosts}%%,*}}\""),
            };
            draft.account.field(self.span(step.range.start..step.end), format!("${hosts}"));
            self.replace(step.range.start..step.end, &text);
        }
    }

    /// Replaces what must be the same in all instances outside of steps, and warns of what runs in each of them.
    pub(super) fn repeat(&mut self, steps: &[Step], facts: &Facts, draft: &mut Draft<'_>) {
        let count = facts.layout.instances;
        if count < 2 {
            return;
        }
        let is_outside = |range: &Range<usize>| {
            !steps.iter().any(|step| range.start < step.end && step.range.start < range.end)
        };
        let first = format!("${{{}%%,*}}", facts.hosts(""));
        for (pattern, text) in [(&HOST, first.as_str()), (&NUMBER, SAME_NUMBER)] {
            let found: Vec<Range<usize>> = pattern.find_iter(self.text).map(|found| found.range()).collect();
            // The words of `srun` are expanded once too, but for those in single quotes.
            for range in found {
                let is_expanded = matches!(self.classes[range.start], Class::Code | Class::Double);
                let is_bare = self.text[range.clone()].starts_with('R');
                let is_counted = self.text[..range.start].rsplit('\n').next().unwrap_or("").contains("((");
                if is_expanded
                    && !self.is_edited(range.start)
                    && !self.text[..range.start].ends_with('\\')
                    && (!is_bare || is_counted)
                {
                    draft.account.field(self.span(range.clone()), text);
                    self.replace(range, text);
                }
            }
        }
        for word in RANDOM {
            if let Some(at) =
                commands(self.text, &self.classes, word).into_iter().find(|at| is_outside(&(*at..*at + 1)))
            {
                draft.changed(
                    self.span(at..at + word.len()),
                    format!("`{word}` gives each of the {count} instances another value"),
                    "compute it from `$JOBC_JOB`, which is the same in each",
                );
            }
        }
        if let Some(range) = self.outside(steps).into_iter().next() {
            draft.changed(
                self.span(range.clone()),
                format!("`{}` runs in each of the {count} instances, not once before the steps", &self.text[range]),
                "where it must run once, write `[ \"$JOBC_INDEX\" != 0 ] || COMMAND`, or a role of its own with `needs: {ROLE: succeeded}`",
            );
        }
        for step in steps {
            if let Some(option) = step.option("nodelist").or(step.option("relative")) {
                draft.changed(
                    option.span,
                    format!("the step runs on one node; here it runs in each of the {count} instances"),
                    "write it as a role of its own, or start it if `$JOBC_INDEX` is the number of the node",
                );
            }
        }
    }

    /// The commands outside of steps that change something.
    fn outside(&self, steps: &[Step]) -> Vec<Range<usize>> {
        let mut found = vec![];
        let (mut at, mut is_continued, mut is_list) = (0, false, false);
        for line in self.text.split_inclusive('\n') {
            let (begin, end) = (at + line.len() - line.trim_start().len(), at + line.trim_end().len());
            at += line.len();
            let content = line.trim();
            let skips = std::mem::replace(&mut is_continued, content.ends_with('\\')) || is_list;
            is_list = if is_list { !content.starts_with(')') } else { content.ends_with("=(") };
            if skips || begin >= end {
                continue;
            }
            let mut start = begin;
            for place in begin..=end {
                let is_end = place == end
                    || self.classes[place] == Class::Code && b";&|".contains(&self.text.as_bytes()[place]);
                if !is_end || self.text[start..place].ends_with('>') {
                    continue;
                }
                if self.classes[start] == Class::Code
                    && !self.is_edited(start)
                    && !steps.iter().any(|step| start < step.end && step.range.start < place)
                    && let Some(range) = self.changes(start..place)
                {
                    found.push(range);
                }
                start = (place + 1).min(self.text.len().saturating_sub(1));
            }
        }
        found
    }

    /// The name of a command that changes something outside of its shell.
    fn changes(&self, range: Range<usize>) -> Option<Range<usize>> {
        let text = &self.text[range.clone()];
        let mut words = text.split_whitespace().skip_while(|word| BEFORE.contains(word));
        let word = words.next()?;
        let at = range.start + (word.as_ptr() as usize - text.as_ptr() as usize);
        let is_command = word.starts_with(|c: char| c.is_ascii_alphabetic() || "./~".contains(c))
            && !word.contains(['=', '(', ')', '"', '\'', '{', '}', '[', '+']);
        let mut marks = text.match_indices('>').map(|(mark, _)| mark);
        let writes = marks.any(|mark| {
            let after = text[mark + 1..].trim_start_matches('>').trim_start();
            self.classes[range.start + mark] == Class::Code
                && !text[..mark].ends_with(['2', '&', '<', '-', '=', '>'])
                && after.starts_with(|c: char| c.is_ascii_alphanumeric() || "$\"~./_'".contains(c))
                && !after.starts_with("/dev/")
        });
        let is_known = HARMLESS.split(' ').any(|known| known == word)
            || word == "cd"
            || word == "cat"
            || word == "mkdir" && words.clone().any(|word| word == "-p");
        (is_command && self.classes[at] == Class::Code && (writes || !is_known)).then(|| at..at + word.len())
    }
}
