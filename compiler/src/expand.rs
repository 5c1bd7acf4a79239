//! Between pass 1 and pass 2: parameters, the matrix, and expressions that depend on the file alone.
//!
//! The result is again documents with the file's spans, so that validation checks the values that are used and still
//! points to the text that produced them. Expressions that need the whole job (`hosts.train[0]`) are left for
//! `resolve`.

mod findings;
mod groups;
mod matrix;
mod numbers;
mod outputs;
mod params;
mod stand_in;
mod substitute;
mod variant;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;
use jobc_schema::Scalar;

use crate::diagnostic::Sink;
use crate::document::Document;
use crate::expression::Engine;
use crate::source::Sources;

pub(crate) use findings::merge_findings;
pub(crate) use groups::with_groups;
pub use groups::{Group, Groups};
pub use matrix::MAX_COMBINATIONS;
pub use params::{Environment, Overrides};
pub use variant::Variant;

/// Substitutes parameters, matrix values and the job's name in `${{ … }}`.
///
/// There is always at least one variant, so that later passes can report further errors. If expressions of one
/// combination are wrong, the combinations after it are not checked.
pub fn expand(
    document: &Document,
    sources: &Sources,
    overrides: &Overrides<'_>,
    sink: &mut Sink,
) -> Vec<Variant> {
    let engine = Engine::new();
    let params::ParamValues { values, from_environment } = params::read(document, overrides, sink);
    let params = Arc::new(values);
    let matrix = matrix::read(&document.root, sink);
    let (document, groups) = groups::expand_groups(document, matrix.as_ref(), sink);
    let groups = Arc::new(groups);
    let max_parallel = matrix.as_ref().and_then(|matrix| matrix.max_parallel);
    let combinations: Vec<(IndexMap<String, Scalar>, Option<u32>)> = match matrix {
        Some(matrix) => {
            let numbers = numbers::of(&matrix.combinations, overrides.numbers);
            matrix.combinations.into_iter().zip(numbers.into_iter().map(Some)).collect()
        }
        None => vec![(IndexMap::new(), None)],
    };
    let mut variants = Vec::with_capacity(combinations.len());
    for (combination, suffix) in combinations {
        let errors = sink.error_count();
        let mut variant = Variant {
            document: Document { root: document.root.clone() },
            suffix,
            matrix: combination,
            groups: groups.clone(),
            params: (*params).clone(),
            from_environment: from_environment.clone(),
            all_gpus: BTreeSet::new(),
            max_parallel,
            broken: BTreeSet::new(),
            late: BTreeMap::new(),
        };
        substitute::substitute(&document, sources, &engine, &params, &mut variant, sink);
        variants.push(variant);
        if sink.error_count() > errors {
            break;
        }
    }
    outputs::compare(&variants, sink);
    variants
}

#[cfg(test)]
mod tests;
