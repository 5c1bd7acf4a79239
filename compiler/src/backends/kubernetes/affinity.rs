//! Node affinity: the target's own, joined with the labels that a role's GPUs ask for.

use k8s_openapi::api::core::v1::{Affinity, NodeSelector, NodeSelectorRequirement, NodeSelectorTerm};

use super::gpu::Requirement;

/// Adds to an affinity the requirement that a node meets one of the alternatives.
///
/// Terms of a node selector are alternatives and the expressions of one all hold, so every term the target has is
/// joined with every alternative.
pub(super) fn require(affinity: Option<Affinity>, alternatives: &[Vec<Requirement>]) -> Option<Affinity> {
    if alternatives.is_empty() {
        return affinity;
    }
    let mut affinity = affinity.unwrap_or_default();
    let mut node = affinity.node_affinity.take().unwrap_or_default();
    let selector = node.required_during_scheduling_ignored_during_execution.take().unwrap_or_default();
    let own = if selector.node_selector_terms.is_empty() {
        vec![NodeSelectorTerm::default()]
    } else {
        selector.node_selector_terms
    };
    let mut terms = vec![];
    for term in &own {
        for all in alternatives {
            let mut term = term.clone();
            let expressions = all.iter().map(|requirement| NodeSelectorRequirement {
                key: requirement.key.to_owned(),
                operator: requirement.operator.to_owned(),
                values: Some(requirement.values.clone()),
            });
            term.match_expressions.get_or_insert_with(Vec::new).extend(expressions);
            terms.push(term);
        }
    }
    node.required_during_scheduling_ignored_during_execution =
        Some(NodeSelector { node_selector_terms: terms });
    affinity.node_affinity = Some(node);
    Some(affinity)
}
