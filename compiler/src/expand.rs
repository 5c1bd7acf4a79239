//! Between pass 1 and pass 2: parameters, the matrix, and the expressions that the file alone decides.
//!
//! What comes out are documents again, with the spans of the file, so that validation speaks of the values that
//! are used and still points at the place that made them. Expressions that need the whole job (`hosts.train[0]`)
//! stay in their strings for `resolve`.

mod matrix;
mod outputs;
mod params;
mod substitute;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;
use jobc_schema::{Pointer, Scalar};

use crate::diagnostic::Sink;
use crate::document::Document;
use crate::expression::{CodeSpan, Engine};
use crate::source::{SourceId, Sources};

pub use matrix::MAX_COMBINATIONS;

/// Values of parameters from outside the job file; where several name one parameter, the last wins, and `set` wins
/// over `params`.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--set NAME=VALUE`, in order.
    pub set: Vec<(String, String)>,
    /// `--params FILE`, in order: each a map of names to values.
    pub params: Vec<(SourceId, Document)>,
}

/// One job of the file: with a matrix there are several.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The document with its early expressions filled in.
    pub document: Document,
    /// The number behind the job's name, in a matrix.
    pub suffix: Option<u32>,
    /// The combination of matrix values.
    pub matrix: IndexMap<String, Scalar>,
    /// The parameters with their values.
    pub params: IndexMap<String, Scalar>,
    /// How many jobs of the matrix may run at once.
    pub max_parallel: Option<u32>,
    /// Where strings stand whose expressions have been reported: what later passes find there is no news.
    pub broken: BTreeSet<Pointer>,
    /// Where the expressions that were left stand, by the pointer of their string, in order.
    pub late: BTreeMap<Pointer, Vec<CodeSpan>>,
}

impl Variant {
    /// The name of the job this variant is: `NAME`, or `NAME-<i>` in a matrix.
    pub fn job_name(&self, name: &str) -> String {
        match self.suffix {
            Some(suffix) => format!("{name}-{suffix}"),
            None => name.to_owned(),
        }
    }
}

/// Fills in parameters, matrix values and the job's name wherever `${{ … }}` asks for them.
///
/// There is always at least one variant, so that the passes behind find what else is wrong; where expressions of
/// one combination are wrong, the combinations behind it are not looked at.
pub fn expand(
    document: &Document,
    sources: &Sources,
    overrides: &Overrides,
    sink: &mut Sink,
) -> Vec<Variant> {
    let engine = Engine::new();
    let params = Arc::new(params::read(document, overrides, sink));
    let matrix = matrix::read(document, sink);
    let mut variants = Vec::with_capacity(matrix.combinations.len());
    for (number, combination) in matrix.combinations.iter().enumerate() {
        let errors = sink.error_count();
        let suffix = matrix.written.then(|| u32::try_from(number).unwrap_or(u32::MAX));
        let mut variant = Variant {
            document: Document { root: document.root.clone() },
            suffix,
            matrix: combination.clone(),
            params: (*params).clone(),
            max_parallel: matrix.max_parallel,
            broken: BTreeSet::new(),
            late: BTreeMap::new(),
        };
        substitute::substitute(document, sources, &engine, &params, &mut variant, sink);
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
