//! Instructions in obsolete forms, without effect, or dependent on the base image.

use super::super::build::{Inspection, Stage};
use super::super::forms::{Command, ImageOrStage, Instruction, Kind, Word};
use super::super::line::Line;
use super::super::refusal::Span;
use super::super::rules::Lint;
use super::findings::Findings;

/// Reports them, stage by stage.
pub(super) fn check(lines: &[Line], file: &Inspection, findings: &mut Findings) {
    let mut ends: Vec<Inherited> = Vec::new();
    for stage in &file.stages {
        let mut so_far = match &stage.from {
            ImageOrStage::Stage(below) => ends.get(*below).cloned().unwrap_or_default(),
            ImageOrStage::Scratch => Inherited { absolute: true, ..Inherited::default() },
            ImageOrStage::Image { .. } => Inherited::default(),
        };
        for instruction in &stage.instructions {
            let line = lines.iter().find(|line| line.span == instruction.span);
            one(instruction, line, &mut so_far, findings);
        }
        several(stage, findings);
        ends.push(so_far);
    }
}

/// What a stage inherits from its base.
#[derive(Clone, Default)]
struct Inherited {
    /// Whether `WORKDIR` is known.
    absolute: bool,
    /// Whether the file sets the shell itself.
    shell: bool,
}

fn one(instruction: &Instruction, line: Option<&Line>, so_far: &mut Inherited, findings: &mut Findings) {
    match &instruction.kind {
        Kind::Shell(_) => so_far.shell = true,
        Kind::Cmd(Command::Shell(_)) => json("CMD", instruction, so_far, findings),
        Kind::Entrypoint(Command::Shell(_)) => json("ENTRYPOINT", instruction, so_far, findings),
        Kind::Env(_) => pair("ENV", line, findings),
        Kind::Label(_) => pair("LABEL", line, findings),
        Kind::Workdir(word) => workdir(word, so_far, findings),
        Kind::Expose(words) => {
            for word in words {
                expose(word, findings);
            }
        }
        _ => {}
    }
}

/// Reports a command in shell form: the shell does not pass signals on to the program.
fn json(keyword: &str, instruction: &Instruction, so_far: &Inherited, findings: &mut Findings) {
    if so_far.shell {
        return;
    }
    findings.add(
        Lint::JsonArgsRecommended,
        instruction.span.start..instruction.span.start + keyword.len(),
        format!("`{keyword}` runs in a shell, which does not forward signals such as that of `docker stop`"),
        format!("write a JSON array, such as `{keyword} [\"python\", \"main.py\"]`; if the shell is meant, set it with `SHELL`"),
    );
}

/// `ENV NAME value`.
fn pair(keyword: &str, line: Option<&Line>, findings: &mut Findings) {
    let Some(line) = line else { return };
    let rest = line.part().split_first().1;
    let (name, value) = rest.split_first();
    if name.text().contains('=') || value.is_empty() {
        return;
    }
    let text = value.text();
    let message = format!("`{keyword} {} …` without `=` is a legacy format", name.text());
    let help = format!("write `{keyword} {}=…`", name.text());
    // Quotes and escapes of a value without `=` would have another meaning with it.
    let one_line = rest.span().len() == rest.text().len();
    if text.contains(['"', '\'', '\\', '`']) || name.text().contains(['"', '\'']) || !one_line {
        findings.add(Lint::LegacyKeyValueFormat, rest.span(), message, help);
    } else {
        let value = if text.contains(char::is_whitespace) { format!("\"{text}\"") } else { text.to_owned() };
        let written = format!("{}={value}", name.text());
        findings.fix(Lint::LegacyKeyValueFormat, rest.span(), message, help, written);
    }
}

fn workdir(word: &Word, so_far: &mut Inherited, findings: &mut Findings) {
    let text = word.text.trim_start_matches(['"', '\'']);
    // A variable may begin with a slash, and Windows paths may be absolute in other ways.
    let absolute = text.starts_with(['/', '$', '\\']) || text.as_bytes().get(1) == Some(&b':');
    if !absolute && !so_far.absolute {
        findings.add(
            Lint::WorkdirRelativePath,
            word.span.clone(),
            format!("the relative `WORKDIR {}` depends on the base image's working directory", word.text),
            "write an absolute path",
        );
    }
    so_far.absolute = true;
}

fn expose(word: &Word, findings: &mut Findings) {
    let text = &word.text;
    if text.contains(['$', '"', '\'']) {
        return;
    }
    if let Some((_, port)) = text.rsplit_once(':') {
        findings.fix(
            Lint::ExposeInvalidFormat,
            word.span.clone(),
            format!("`EXPOSE {text}` has an address or a port of the host, which are ignored"),
            format!("write `EXPOSE {port}`; `docker run -p` and `ports` of a role publish ports"),
            port,
        );
    }
    if let Some((port, protocol)) = text.split_once('/')
        && protocol != protocol.to_ascii_lowercase()
    {
        let lower = protocol.to_ascii_lowercase();
        let start = word.span.start + port.len() + 1;
        findings.fix(
            Lint::ExposeProtoCasing,
            start..word.span.end,
            format!("the protocol `{protocol}` has upper-case letters"),
            format!("write `{lower}`"),
            lower,
        );
    }
}

/// Reports all but the last of instructions of which only the last has an effect.
fn several(stage: &Stage, findings: &mut Findings) {
    let name = |instruction: &Instruction| match &instruction.kind {
        Kind::Cmd(_) => Some("CMD"),
        Kind::Entrypoint(_) => Some("ENTRYPOINT"),
        Kind::Healthcheck(_) => Some("HEALTHCHECK"),
        _ => None,
    };
    for (at, instruction) in stage.instructions.iter().enumerate() {
        let Some(keyword) = name(instruction) else { continue };
        if !stage.instructions[at + 1..].iter().any(|later| name(later) == Some(keyword)) {
            continue;
        }
        let span: Span = instruction.span.start..instruction.span.start + keyword.len();
        findings.add(
            Lint::MultipleInstructionsDisallowed,
            span,
            format!("this `{keyword}` has no effect: a later one in the stage replaces it"),
            "remove it",
        );
    }
}
