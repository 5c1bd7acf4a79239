//! The pages of diagnostic codes: one fixed form, whose examples are compiled.

use jobc_compiler::diagnostic::Code;
use jobc_compiler::files::MemoryFiles;
use jobc_compiler::source::Source;

use crate::compile::{Arguments, Case, Compilation};

/// A section of a page whose blocks make one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// What gets the code.
    Example,
    /// What does not.
    WriteInstead,
}

impl Section {
    fn heading(self) -> &'static str {
        match self {
            Self::Example => "\n## Example\n",
            Self::WriteInstead => "\n## Write instead\n",
        }
    }

    /// The text from its heading to the next one.
    pub fn of(self, page: &str) -> Option<&str> {
        let (_, rest) = page.split_once(self.heading())?;
        Some(rest.split("\n## ").next().unwrap_or(rest))
    }
}

/// A fenced block.
struct Block<'p> {
    language: &'p str,
    text: &'p str,
    /// The file it is, after words such as: with a `board.yaml` of.
    introduced: Option<&'p str>,
}

fn blocks(section: &str) -> Vec<Block<'_>> {
    let mut blocks = vec![];
    let mut parts = section.split("```");
    while let (Some(prose), Some(block)) = (parts.next(), parts.next()) {
        let introduced = prose.trim_end().strip_suffix("` of").and_then(|words| words.rsplit('`').next());
        let (language, text) = block.split_once('\n').unwrap_or((block, ""));
        blocks.push(Block { language, text, introduced });
    }
    blocks
}

/// What a page lacks of the fixed form; empty if nothing.
pub fn faults(code: Code) -> Vec<String> {
    let page = code.page();
    let mut faults = Vec::new();
    let title = format!("# {code}: {}", code.title());
    if page.lines().next() != Some(&title) {
        faults.push(format!("{code}: the first line must be `{title}`"));
    }
    let explained =
        page.split("\n## ").next().unwrap_or("").lines().skip(1).any(|line| !line.trim().is_empty());
    if !explained {
        faults.push(format!("{code}: no paragraph says what the rule is and why"));
    }
    for section in [Section::Example, Section::WriteInstead] {
        if section.of(page).is_none_or(|text| blocks(text).is_empty()) {
            faults.push(format!("{code}: no block below `{}`", section.heading().trim()));
        }
    }
    if !page.matches("```").count().is_multiple_of(2) {
        faults.push(format!("{code}: a block is not closed"));
    }
    faults
}

const ANY_JOB: &str = "version: 1\nname: any\nimage: busybox:1.36\nroles:\n  main: {run: \"true\"}\n";

/// A whole job that a section shows, with the files beside it.
pub struct PageJob {
    /// What the command of a first line such as `# jobc build --target lab` sets.
    pub arguments: Arguments,
    job: Source,
    targets: Option<Source>,
    files: MemoryFiles,
}

impl PageJob {
    /// Reads a section.
    ///
    /// A block whose first line is a comment that names a file, such as `# targets.yaml`, is that file beside the job.
    /// `None` if the section does not show a whole job: a part of one may be enough for a simple rule.
    pub fn read(code: Code, section: Section) -> Option<Self> {
        let mut files = MemoryFiles::default();
        let mut targets = None;
        let mut job = None;
        let mut arguments = Arguments::default();
        for block in blocks(section.of(code.page())?) {
            if let Some(command) = block.text.lines().next().filter(|line| line.starts_with("# jobc ")) {
                arguments = Arguments::of_command(command);
            }
            match block.introduced.or_else(|| named_file(block.text)) {
                Some("targets.yaml") => targets = Some(Source::new("targets.yaml", block.text)),
                Some(name) if !name.starts_with("job.") => files = files.with(name, block.text),
                _ if matches!(block.language, "yaml" | "json") => {
                    let text = whole(code, block.text);
                    job = text.map(|text| Source::new(format!("job.{}", block.language), text)).or(job);
                }
                _ => {}
            }
        }
        // Targets alone are shown for any job.
        let job = job.or_else(|| targets.is_some().then(|| Source::new("job.yaml", ANY_JOB)))?;
        Some(Self { arguments, job, targets, files })
    }

    /// Compiles it.
    pub fn compile(&self, arguments: Arguments) -> Compilation {
        let (job, targets) = (self.job.clone(), self.targets.clone());
        Case { job, targets, params: vec![], arguments, files: &self.files }.compile()
    }
}

/// The file that a block's first line names in a comment; a block of targets needs none.
fn named_file(text: &str) -> Option<&str> {
    if text.lines().any(|line| line == "targets:") {
        return Some("targets.yaml");
    }
    let name = text.lines().next()?.strip_prefix("# ")?;
    (name == "Dockerfile" || (name.contains('.') && !name.contains(' '))).then_some(name)
}

/// A block as a whole job; `None` if it is not a job file.
///
/// A page may leave out what has nothing to do with its rule: version, name and image. For the parser any text will do.
fn whole(code: Code, text: &str) -> Option<String> {
    let begins = |key: &str| text.lines().any(|line| line.starts_with(key));
    let other = ["protocolVersion:", "{", "version: 2"].iter().any(|key| begins(key));
    if code.as_str().starts_with("J00") || other {
        return Some(text.to_owned());
    }
    if !begins("roles:") && !begins("version:") {
        return None;
    }
    let parts =
        [("version:", "version: 1\n"), ("name:", "name: example\n"), ("image", "image: python:3.12-slim\n")];
    // A job with a version is used as it is: what it omits may be the mistake.
    let missing = parts.iter().filter(|(key, _)| !begins("version:") && !begins(key)).map(|(_, line)| *line);
    Some(missing.chain([text]).collect())
}
