//! One job of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use indexmap::IndexMap;
use jobc_schema::{Pointer, Scalar};

use super::groups::Groups;
use crate::document::Document;
use crate::expression::CodeSpan;

/// One job of the file; a matrix makes several.
#[derive(Clone, Debug)]
pub struct Variant {
    /// The document with its early expressions substituted.
    pub document: Document,
    /// The number appended to the job's name, in a matrix.
    pub suffix: Option<u32>,
    /// The combination of matrix values.
    pub matrix: IndexMap<String, Scalar>,
    /// The roles that were expanded from a role's matrix.
    pub groups: Arc<Groups>,
    /// The parameters with their values.
    pub params: IndexMap<String, Scalar>,
    /// The environment variables that values of parameters come from, by parameter.
    pub from_environment: IndexMap<String, String>,
    /// The roles that get all GPUs of the host, if the host is known.
    pub all_gpus: BTreeSet<String>,
    /// How many jobs of the matrix may run at the same time.
    pub max_parallel: Option<u32>,
    /// Pointers to strings whose expressions were reported: findings of later passes about them are redundant.
    pub broken: BTreeSet<Pointer>,
    /// The places of the remaining expressions of each string, by its pointer, in order.
    pub late: BTreeMap<Pointer, Vec<CodeSpan>>,
}

impl Variant {
    /// The value of `matrix` in a role: that of the job's combination and of the role's; `None` if neither has a
    /// matrix.
    pub fn matrix_values(&self, role: &str) -> Option<IndexMap<String, Scalar>> {
        let group = self.groups.get(role);
        if self.suffix.is_none() && group.is_none() {
            return None;
        }
        let of_role = group.into_iter().flat_map(|group| group.values.iter());
        let all = self.matrix.iter().chain(of_role);
        Some(all.map(|(axis, value)| (axis.clone(), value.clone())).collect())
    }

    /// The name of the job: `NAME`, or `NAME-<i>` in a matrix.
    pub fn job_name(&self, name: &str) -> String {
        match self.suffix {
            Some(suffix) => format!("{name}-{suffix}"),
            None => name.to_owned(),
        }
    }
}
