//! `jobc check targets.yaml`: the findings of a targets file without a job.

use jobc_compiler::diagnostic::{Diagnostic, Sink};
use jobc_compiler::source::{SourceId, Sources};
use jobc_compiler::{compile, parse, validate};

/// The findings, if the file is a targets file; one with a syntax error is known by its name.
pub(super) fn check(sources: &Sources, file: SourceId) -> Option<Vec<Diagnostic>> {
    let mut sink = Sink::new();
    let Some(document) = parse::parse(sources, file, &mut sink) else {
        let is_named = sources.get(file).path().file_stem() == Some("targets");
        return is_named.then(|| sink.finish());
    };
    if !validate::is_targets_file(&document) {
        return None;
    }
    compile::check_targets(&document, sources, &mut sink);
    Some(sink.finish())
}
