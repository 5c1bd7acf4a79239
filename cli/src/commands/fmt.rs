//! `jobc fmt`: writes job files and targets files in their canonical form.

use camino::{Utf8Path, Utf8PathBuf};
use jobc_compiler::diagnostic::Sink;
use jobc_compiler::format;
use jobc_compiler::parse;
use jobc_compiler::source::{Source, Sources};
use similar::TextDiff;

use crate::args::values::GOLDEN;
use crate::args::{FmtArgs, FormatArg};
use crate::input::{STDIN, read_source};
use crate::job_files::find_named;
use crate::outcome::Outcome;
use crate::replace::replace;
use crate::{report, terminal};

/// The files that are formatted below a directory.
const NAMES: [&str; 4] = ["job.yaml", "job.yml", "targets.yaml", "targets.yml"];

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileResult {
    Unchanged,
    Changed,
    /// It has syntax errors, which are printed.
    Broken,
}

pub(crate) fn run(args: &FmtArgs) -> Outcome {
    let here = [Utf8PathBuf::from(".")];
    let given = if args.files.is_empty() { &here[..] } else { &args.files };
    let files = match find_named(given, &NAMES, GOLDEN) {
        Ok(files) => files,
        Err(why) => return super::report_input_error(&why),
    };
    let mut outcome = Outcome::Success;
    let mut changed = 0;
    for file in &files {
        let source = match read_source(file) {
            Ok(source) => source,
            Err(why) => return super::report_input_error(&why),
        };
        match format_one(file, source, args.check) {
            Ok(FileResult::Unchanged) => {}
            Ok(FileResult::Changed) => changed += 1,
            Ok(FileResult::Broken) => outcome = Outcome::Errors,
            Err(error) => {
                terminal::eprint(&report::cannot_write(file, &error));
                return Outcome::SystemError;
            }
        }
    }
    if args.check && changed > 0 {
        let files = if changed == 1 { "1 file is" } else { &format!("{changed} files are") };
        terminal::eprint(&format!("jobc: {files} not formatted; run `jobc fmt`\n"));
        return Outcome::Errors;
    }
    outcome
}

fn format_one(file: &Utf8Path, source: Source, is_check: bool) -> std::io::Result<FileResult> {
    let is_stdin = source.path() == STDIN;
    let shown = file.strip_prefix("./").unwrap_or(file);
    let Some(new) = format::format(source.text()) else {
        return Ok(unformatted(shown, source, is_stdin && !is_check));
    };
    let old = source.text();
    if is_check {
        if new == old {
            return Ok(FileResult::Unchanged);
        }
        let diff = TextDiff::from_lines(old, &new);
        terminal::print(&diff.unified_diff().header(shown.as_str(), shown.as_str()).to_string());
        return Ok(FileResult::Changed);
    }
    if is_stdin {
        terminal::print(&new);
        return Ok(FileResult::Unchanged);
    }
    if new == old {
        return Ok(FileResult::Unchanged);
    }
    replace(file, &new)?;
    terminal::print(&format!("{shown}\n"));
    Ok(FileResult::Changed)
}

/// A file without a canonical form: syntax errors are printed; JSON is left unchanged.
fn unformatted(shown: &Utf8Path, source: Source, prints: bool) -> FileResult {
    let text = source.text().to_owned();
    let mut sources = Sources::new();
    let id = sources.add(source);
    let mut sink = Sink::new();
    parse::parse(&sources, id, &mut sink);
    if report::findings(&sources, sink, FormatArg::Text, true) != Outcome::Success {
        return FileResult::Broken;
    }
    terminal::eprint(&format!("jobc: `{shown}` is JSON, which `jobc fmt` leaves alone\n"));
    if prints {
        terminal::print(&text);
    }
    FileResult::Unchanged
}
