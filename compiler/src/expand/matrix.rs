//! The matrix: its axes, the included and excluded combinations, and the resulting combinations.

use indexmap::IndexMap;
use jobc_schema::Scalar;

use crate::diagnostic::{Diagnostic, Location, Sink, codes, unquoted};
use crate::document::{Entry, Node, Value};
use crate::source::Span;
use crate::suggest;

/// The maximum number of jobs of one file, and of groups of tasks in all of them.
pub const MAX_COMBINATIONS: usize = 10_000;

/// The values of one combination, by axis.
pub(super) type Combination = IndexMap<String, Scalar>;

type Axes<'a> = IndexMap<&'a str, Vec<Scalar>>;

/// The combinations of a matrix.
pub(super) struct Matrix {
    /// One for each job, or for each group of tasks of a role.
    pub(super) combinations: Vec<Combination>,
    /// How many may run at once.
    pub(super) max_parallel: Option<u32>,
}

/// Reads the matrix of a job or role, if it has one. There is always at least one combination, of the values that can
/// be read.
pub(super) fn read(parent: &Node, sink: &mut Sink) -> Option<Matrix> {
    let node = parent.get("matrix")?;
    let Value::Mapping(entries) = &node.value else { return None };
    let key = parent.entries().iter().find(|e| e.key == "matrix").map_or(node.span, |e| e.key_span);
    // Same rule as in the type: `axes` with a map is the long form, `axes` with a list is an axis of that name.
    let rules = node.get("axes").filter(|axes| matches!(axes.value, Value::Mapping(_)));
    let axes = read_axes(rules.map_or(&entries[..], Node::entries), sink);
    let (include, exclude) = match rules {
        Some(_) => (node.get("include"), node.get("exclude")),
        None => (None, None),
    };
    let max_parallel = rules
        .and_then(|_| node.get("max_parallel"))
        .and_then(|n| if let Value::Number { number, .. } = &n.value { number.as_u64() } else { None })
        .and_then(|n| u32::try_from(n).ok());
    // An axis without values was reported; uses of it must not be reported again.
    let first = |values: &Vec<Scalar>| values.first().cloned().unwrap_or_else(|| Scalar::string("x"));
    let fallback: Combination =
        axes.iter().map(|(name, values)| ((*name).to_owned(), first(values))).collect();
    let matrix = |combinations| Some(Matrix { combinations, max_parallel });
    if axes.values().any(Vec::is_empty) {
        return matrix(vec![fallback]);
    }
    let size = axes.values().try_fold(1_usize, |size, values| size.checked_mul(values.len()));
    if size.is_none_or(|size| size > MAX_COMBINATIONS) {
        let size = size.map_or("too many".to_owned(), |size| size.to_string());
        sink.push(
            Diagnostic::error(codes::MATRIX_SIZE, format!("the matrix has {size} combinations"))
                .at_span(key, format!("at most {MAX_COMBINATIONS} are allowed"))
                .note("every combination runs by itself; list fewer values"),
        );
        return matrix(vec![fallback]);
    }
    let mut combinations = product(&axes);
    leave_out(exclude, &axes, &mut combinations, sink);
    add(include, &axes, &mut combinations, sink);
    if combinations.is_empty() {
        sink.push(
            Diagnostic::error(codes::MATRIX_EMPTY, "the matrix has no combinations").at_span(key, "").note(
                "give each axis at least one value, and leave at least one combination that `exclude` does not name",
            ),
        );
        combinations.push(fallback);
    }
    matrix(combinations)
}

fn read_axes<'a>(entries: &'a [Entry], sink: &mut Sink) -> Axes<'a> {
    let mut axes = Axes::new();
    for entry in entries {
        // The schema reports values that are not lists of scalars.
        let Value::Sequence(items) = &entry.value.value else { continue };
        if items.is_empty() {
            sink.push(
                Diagnostic::error(codes::MATRIX_EMPTY, format!("the axis `{}` has no values", entry.key))
                    .at_span(entry.value.span, "an empty list makes no jobs")
                    .note("list at least one value, or remove the axis"),
            );
        }
        axes.insert(&entry.key, items.iter().filter_map(Node::to_scalar).collect());
    }
    axes
}

/// All combinations; the last axis changes fastest. Without axes there are none.
fn product(axes: &Axes<'_>) -> Vec<Combination> {
    if axes.is_empty() {
        return Vec::new();
    }
    axes.iter().fold(vec![Combination::new()], |combinations, (name, values)| {
        let mut longer = Vec::with_capacity(combinations.len() * values.len());
        for combination in &combinations {
            for value in values {
                let mut next = combination.clone();
                next.insert((*name).to_owned(), value.clone());
                longer.push(next);
            }
        }
        longer
    })
}

fn leave_out(exclude: Option<&Node>, axes: &Axes<'_>, combinations: &mut Vec<Combination>, sink: &mut Sink) {
    for node in exclude.map_or(&[][..], Node::items) {
        let mut known = true;
        for entry in node.entries() {
            known &= axis_is_known(&entry.key, entry.key_span, axes, sink);
        }
        let wanted: Vec<(&str, Scalar)> =
            node.entries().iter().filter_map(|e| Some((e.key.as_str(), e.value.to_scalar()?))).collect();
        if wanted.is_empty() || !known {
            continue;
        }
        let before = combinations.len();
        combinations.retain(|combination| {
            !wanted.iter().all(|(name, value)| combination.get(*name).is_some_and(|found| same(found, value)))
        });
        if combinations.len() == before {
            sink.push(
                Diagnostic::error(codes::MATRIX_COMBINATION, "`exclude` leaves nothing out")
                    .at_span(node.span, "no combination matches these values")
                    .note("write values that the axes list, or remove the line"),
            );
        }
    }
}

fn add(include: Option<&Node>, axes: &Axes<'_>, combinations: &mut Vec<Combination>, sink: &mut Sink) {
    // Without axes the first entry defines them.
    let mut names: Vec<String> = axes.keys().map(|name| (*name).to_owned()).collect();
    for node in include.map_or(&[][..], Node::items) {
        let combination: Combination =
            node.entries().iter().filter_map(|e| Some((e.key.clone(), e.value.to_scalar()?))).collect();
        if names.is_empty() {
            names = combination.keys().cloned().collect();
        }
        let mut fits = true;
        for entry in node.entries() {
            if !names.contains(&entry.key) {
                fits = false;
                sink.push(unknown_axis(&entry.key, entry.key_span, names.iter().map(String::as_str)));
            }
        }
        for name in &names {
            if !combination.contains_key(name) {
                fits = false;
                sink.push(
                    Diagnostic::error(
                        codes::MATRIX_COMBINATION,
                        format!("`include` has no value for `{name}`"),
                    )
                    .at_span(node.span, "")
                    .note("an added combination must have a value for every axis"),
                );
            }
        }
        if fits {
            combinations
                .push(names.iter().filter_map(|n| Some((n.clone(), combination.get(n)?.clone()))).collect());
        }
    }
}

fn axis_is_known(name: &str, at: Span, axes: &Axes<'_>, sink: &mut Sink) -> bool {
    let known = axes.contains_key(name);
    if !known {
        sink.push(unknown_axis(name, at, axes.keys().copied()));
    }
    known
}

fn unknown_axis<'a>(name: &str, at: Span, axes: impl Iterator<Item = &'a str> + Clone) -> Diagnostic {
    let diagnostic =
        Diagnostic::error(codes::MATRIX_COMBINATION, format!("unknown axis `{name}` in the matrix"));
    match suggest::nearest(name, axes.clone()) {
        Some(near) => diagnostic
            .at_span(at, format!("did you mean `{near}`?"))
            .write(Location::Span(unquoted(at, name)), near),
        None => diagnostic.at_span(at, "").note(format!("its axes are {}", suggest::list(axes))),
    }
}

/// Whether two scalars are the same value: `0.10` equals `0.1`.
pub(super) fn same(a: &Scalar, b: &Scalar) -> bool {
    match (a.value.as_f64(), b.value.as_f64()) {
        (Some(a), Some(b)) => a.total_cmp(&b).is_eq(),
        _ => a.value == b.value,
    }
}
