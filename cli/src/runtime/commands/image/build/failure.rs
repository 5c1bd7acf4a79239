//! The failure of an instruction of a generated Dockerfile, shown at the field of the job file that causes it.

use camino::Utf8Path;
use jobc_compiler::diagnostic::{Diagnostic, Sink};
use jobc_compiler::source::Sources;
use jobc_compiler::template::show_uses;
use jobc_compiler::why::FailedStep;
use jobc_compiler::why::source_map::SourceMap;
use jobc_sys::error::Error;

use crate::args::FormatArg;
use crate::report;

/// An instruction of a generated Dockerfile.
#[derive(Clone, Copy)]
pub(crate) struct Instruction<'a> {
    /// The path of the Dockerfile in the directory of the target.
    pub(crate) path: &'a Utf8Path,
    /// The text of the Dockerfile.
    pub(crate) text: &'a [u8],
    /// The line, from 1.
    pub(crate) line: usize,
}

impl Instruction<'_> {
    /// The finding; nothing if no field of the job file causes the instruction.
    pub(crate) fn finding(
        self,
        error: &Error,
        output: &[Vec<u8>],
        map: &SourceMap,
        sources: &Sources,
    ) -> Option<Diagnostic> {
        let output: Vec<_> = output.iter().map(|line| String::from_utf8_lossy(line)).collect();
        let help = error.advice();
        let step = FailedStep {
            path: self.path.as_str(),
            text: &String::from_utf8_lossy(self.text),
            line: u32::try_from(self.line).ok()?,
            message: &error.message(),
            help: help.as_deref(),
            output: &output.join("\n"),
        };
        step.finding(map, sources)
    }
}

/// Shows a finding; stdout is not used.
pub(crate) fn show(sources: &Sources, finding: Diagnostic, format: FormatArg) {
    let mut sink = Sink::new();
    sink.push(finding);
    show_uses(sources, &mut sink);
    report::findings(sources, sink, format, true);
}
