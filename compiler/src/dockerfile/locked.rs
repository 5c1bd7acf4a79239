//! The images that a Dockerfile names, and their digests by `jobc.lock`.
//!
//! The file keeps its lines; a builder that knows the digests takes the images by them.

use std::ops::Range;

use indexmap::IndexMap;
use parse_dockerfile::Instruction;

use super::Places;
use super::lint::value;
use super::stages::{Base, Stages};
use crate::diagnostic::{Place, Sink};
use crate::lock::Lock;

/// The digests of the images that the file names, in their order; an image without one is reported where there must be one.
pub(super) fn locked(
    stages: &Stages<'_, '_>,
    lock: &Lock,
    at: &Places,
    sink: &mut Sink,
) -> IndexMap<String, String> {
    let mut found = IndexMap::new();
    for stage in &stages.list {
        if matches!(stage.base, Base::Hidden(_)) {
            lock.refuse_hidden(Place::Span(at.span(&stage.at)), sink);
        }
    }
    for (name, span) in images(stages) {
        if let Some(digest) = lock.digest(&name, Place::Span(at.span(&span)), sink) {
            found.insert(name, digest.to_owned());
        }
    }
    found
}

/// Each image with the place that names it: `FROM`, `COPY --from`, `RUN --mount=from=`.
fn images(stages: &Stages<'_, '_>) -> Vec<(String, Range<usize>)> {
    let mut found = Vec::new();
    for stage in &stages.list {
        if let Base::Image(image) = &stage.base {
            found.push((image.clone(), stage.at.clone()));
        }
        // What is no stage above is an image; a variable there means nothing, and is refused by builders.
        let mut take = |from: &str, span: &Range<usize>| {
            let is_stage = stages.find(from, stages.list.len()).is_some() || from.parse::<usize>().is_ok();
            if !from.contains('$') && !is_stage {
                found.push((from.to_owned(), span.clone()));
            }
        };
        for instruction in &stage.instructions {
            match instruction {
                Instruction::Copy(copy) => {
                    if let Some(from) = value(&copy.options, "from") {
                        take(&from.value, &from.span);
                    }
                }
                Instruction::Run(run) => {
                    for flag in run.options.iter().filter(|flag| flag.name.value == "mount") {
                        let Some(options) = &flag.value else { continue };
                        if let Some(from) =
                            options.value.split(',').find_map(|option| option.strip_prefix("from="))
                        {
                            take(from, &options.span);
                        }
                    }
                }
                _ => {}
            }
        }
    }
    found
}
