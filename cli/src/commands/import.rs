//! `jobc import`: converts an OpenPAI job to a job file.

use std::fs;

use jobc_compiler::diagnostic::Sink;
use jobc_compiler::rewrite::{RewriteResult, rewrite};
use jobc_compiler::source::Sources;

use super::schema::modeline;
use crate::args::{FormatArg, ImportArgs, SchemaArg};
use crate::input::{read_source, reason};
use crate::outcome::Outcome;
use crate::{report, terminal};

pub(crate) fn run(import: &ImportArgs, format: FormatArg) -> Outcome {
    let source = match read_source(&import.job) {
        Ok(source) => source,
        Err(why) => return super::report_input_error(&why),
    };
    let mut sources = Sources::new();
    let id = sources.add(source);
    let mut sink = Sink::new();
    let rewritten = rewrite(&mut sources, id, &mut sink);
    let outcome = report::findings(&sources, sink, format, import.output.is_none());
    let text = match rewritten {
        RewriteResult::Job(text) => match modeline(SchemaArg::Job) {
            Some(line) => format!("{line}\n{text}"),
            None => text,
        },
        RewriteResult::Refused => return outcome,
        RewriteResult::Own => {
            terminal::eprint(&format!("jobc: `{}` is already a job file of jobc\n", import.job));
            return Outcome::UsageError;
        }
    };
    let Some(path) = &import.output else {
        terminal::print(&text);
        return outcome;
    };
    if path.exists() && !import.force {
        terminal::eprint(&format!("jobc: `{path}` exists; use `--force` to overwrite it\n"));
        return Outcome::UsageError;
    }
    if let Err(error) = fs::write(path, text) {
        terminal::eprint(&format!("jobc: cannot write `{path}`: {}\n", reason(&error)));
        return Outcome::SystemError;
    }
    terminal::eprint(&format!("wrote {path}; next: jobc build {path}\n"));
    outcome
}
