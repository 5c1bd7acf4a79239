//! Substitutes early expressions in a document, and leaves the others for `resolve`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use indexmap::IndexMap;
use jobc_schema::{Pointer, Scalar};
use minijinja::Value as EngineValue;

use super::stand_in::{declare, stand_in};
use super::variant::Variant;
use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::document::{Document, Entry, Node, Value};
use crate::expression::{
    CodeSpan, Engine, Expression, Names, Part, Path, Scope, has_expression, keeps_type, paths, scopes_at,
    split,
};
use crate::source::Sources;
use crate::suggest;

/// Substitutes the early expressions of a variant.
pub(super) fn substitute(
    document: &Document,
    sources: &Sources,
    engine: &Engine,
    params: &Arc<IndexMap<String, Scalar>>,
    variant: &mut Variant,
    sink: &mut Sink,
) {
    let mut names = Names::default();
    names.insert_written(Scope::Params, params);
    if let Some(values) = variant.matrix_values("") {
        names.insert_written(Scope::Matrix, &Arc::new(values));
    }
    // The name comes first, since the others may use it. Its errors are reported later.
    if let Some(node) = document.root.get("name") {
        let mut quiet = Sink::new();
        let mut walk = Walk::new(sources, engine, names.clone(), &mut quiet);
        walk.path.push("name");
        if let Some(name) = walk.node(node).as_str() {
            let job = [("name", EngineValue::from(variant.job_name(name)))];
            names.insert(Scope::Job, EngineValue::from_pairs(job));
        }
    }
    let by_role = variant.groups.iter().map(|(name, _)| {
        let mut names = names.clone();
        names.insert_written(Scope::Matrix, &Arc::new(variant.matrix_values(name).unwrap_or_default()));
        (name.to_owned(), names)
    });
    let by_role = by_role.collect();
    let groups = variant.groups.clone();
    let matrix_roles = groups.roles().collect();
    let mut walk = Walk { by_role, matrix_roles, ..Walk::new(sources, engine, names, sink) };
    variant.document = Document { root: walk.node(&document.root) };
    variant.late = walk.late;
    variant.broken = walk.broken;
}

struct Walk<'a, 's> {
    sources: &'a Sources,
    engine: &'a Engine,
    names: Names,
    /// Names of roles that were expanded from a matrix.
    by_role: BTreeMap<String, Names>,
    /// The roles with a matrix.
    matrix_roles: Vec<&'a str>,
    /// The keys from the root, with `*` for list items.
    path: Vec<&'a str>,
    /// The indices of the list items in `path`, in order.
    items: Vec<usize>,
    late: BTreeMap<Pointer, Vec<CodeSpan>>,
    broken: BTreeSet<Pointer>,
    sink: &'s mut Sink,
}

impl<'a, 's> Walk<'a, 's> {
    fn new(sources: &'a Sources, engine: &'a Engine, names: Names, sink: &'s mut Sink) -> Self {
        Self {
            sources,
            engine,
            names,
            by_role: BTreeMap::new(),
            matrix_roles: vec![],
            path: vec![],
            items: vec![],
            late: BTreeMap::new(),
            broken: BTreeSet::new(),
            sink,
        }
    }

    fn node(&mut self, node: &'a Node) -> Node {
        let value = match &node.value {
            Value::String(text) if has_expression(text) => {
                let errors = self.sink.error_count();
                let filled = self.string(node, text);
                if self.sink.error_count() == errors {
                    return filled;
                }
                self.broken.insert(self.pointer());
                stand_in(&self.path)
            }
            Value::Sequence(items) => Value::Sequence(self.sequence(items)),
            Value::Mapping(entries) => Value::Mapping(self.mapping(entries)),
            other => other.clone(),
        };
        Node { span: node.span, value }
    }

    fn sequence(&mut self, items: &'a [Node]) -> Vec<Node> {
        self.path.push("*");
        let filled = items
            .iter()
            .enumerate()
            .map(|(number, item)| {
                self.items.push(number);
                let filled = self.node(item);
                self.items.pop();
                filled
            })
            .collect();
        self.path.pop();
        filled
    }

    fn mapping(&mut self, entries: &'a [Entry]) -> Vec<Entry> {
        entries
            .iter()
            .map(|entry| {
                if has_expression(&entry.key) {
                    self.sink.push(
                        Diagnostic::error(codes::EXPRESSION_PLACE, "an expression is not allowed in a key")
                            .at_span(entry.key_span, "")
                            .note("keys are taken as they are; use the expression in the value"),
                    );
                    return entry.clone();
                }
                // Keys that begin with `x-` are the user's own, and `openpai` is passed through unchanged.
                if self.path.is_empty() && (entry.key.starts_with("x-") || entry.key == "openpai") {
                    return entry.clone();
                }
                let of_role = match self.path[..] {
                    ["roles"] => self.by_role.remove(&entry.key),
                    _ => None,
                };
                let outside = of_role.map(|names| std::mem::replace(&mut self.names, names));
                self.path.push(&entry.key);
                let value = self.node(&entry.value);
                self.path.pop();
                if let Some(names) = outside {
                    self.names = names;
                }
                Entry { key: entry.key.clone(), key_span: entry.key_span, value }
            })
            .collect()
    }

    fn string(&mut self, node: &'a Node, text: &'a str) -> Node {
        if let Some(place @ ("params" | "matrix" | "version")) = self.path.first().copied() {
            self.sink.push(not_evaluated(node, place));
            return node.clone();
        }
        let parts = match split(text) {
            Ok(parts) => parts,
            Err(unclosed) => {
                let at = CodeSpan::open(self.sources, node.span, text, unclosed.start);
                self.sink.push(
                    Diagnostic::error(codes::EXPRESSION_SYNTAX, "`${{` has no closing `}}`")
                        .at_span(at, "the expression begins here")
                        .note("close it with `}}`; to have `${{` in the text, write `${{ \"${{\" }}`"),
                );
                return node.clone();
            }
        };
        let expressions: Vec<&Expression<'_>> = parts
            .iter()
            .filter_map(|part| if let Part::Expression(e) = part { Some(e) } else { None })
            .collect();
        let errors = self.sink.error_count();
        let allowed = scopes_at(&self.path);
        let mut late = false;
        for expression in &expressions {
            late |= self.read(node, text, expression, allowed, parts.len() == 1);
        }
        if self.sink.error_count() > errors {
            return node.clone();
        }
        if !late && let Some(filled) = self.fill(node, text, &parts, !allowed.is_empty()) {
            return filled;
        }
        if self.sink.error_count() == errors {
            let spans =
                expressions.iter().map(|e| CodeSpan::find(self.sources, node.span, text, e)).collect();
            let pointer = self.pointer();
            self.late.insert(pointer, spans);
        }
        node.clone()
    }

    /// Checks one expression and whether it is allowed here; returns whether it must be resolved later.
    fn read(
        &mut self,
        node: &Node,
        text: &str,
        expression: &Expression<'_>,
        allowed: &[Scope],
        alone: bool,
    ) -> bool {
        let code = expression.code;
        let at = CodeSpan::find(self.sources, node.span, text, expression);
        if let Err(failure) = self.engine.check(code) {
            self.sink.push(failure.diagnose(code, Some(at), Location::Span(node.span)));
            return false;
        }
        let used = paths(code);
        let mut late = used.is_empty() && !allowed.is_empty();
        for path in &used {
            let scope = Scope::parse(path.root());
            let problem = match scope {
                Some(Scope::Secrets) if !allowed.contains(&Scope::Secrets) => Some(secret_place()),
                Some(Scope::Secrets) if !alone || code.trim() != &code[path.range.clone()] => {
                    Some(secret_inside(path))
                }
                Some(scope) if scope.is_early() => {
                    if let Err(mut failure) = self.names.check(path) {
                        if scope == Scope::Matrix && !self.names.has(scope) && !self.matrix_roles.is_empty() {
                            let roles = suggest::list(self.matrix_roles.iter().copied());
                            failure.notes =
                                vec![format!("the matrix of a role is known in that role alone: {roles}")];
                        }
                        let diagnostic = failure.diagnose(code, Some(at), Location::Span(node.span));
                        self.sink.push(match path.name(1) {
                            Some(name) if scope == Scope::Params && path.steps.len() == 2 => {
                                declare(diagnostic, name, alone.then_some(&self.path[..]))
                            }
                            _ => diagnostic,
                        });
                    }
                    None
                }
                Some(scope) if allowed.contains(&scope) => {
                    late = true;
                    None
                }
                Some(scope) => Some(self.not_here(scope, allowed)),
                None => Some(self.not_defined(path, allowed)),
            };
            if let Some((diagnostic, label)) = problem {
                let range = &path.steps[0].range;
                let near = scope.is_none().then(|| self.near(path, allowed)).flatten();
                let mut diagnostic = diagnostic.at_span(at.part(code, Some(range)), label);
                if let Some((range, near)) = near
                    && let Some(place) = at.name(code, &range)
                {
                    diagnostic = diagnostic.write(place, &near);
                }
                self.sink.push(diagnostic);
            }
        }
        late
    }

    /// The value of a string whose expressions are all early; `None` if one must be resolved later, or was reported.
    fn fill(&mut self, node: &Node, text: &str, parts: &[Part<'_>], may_wait: bool) -> Option<Node> {
        let mut out = String::new();
        for part in parts {
            let expression = match part {
                Part::Text(text) => {
                    out.push_str(text);
                    continue;
                }
                Part::Expression(expression) => expression,
            };
            let whole = parts.len() == 1;
            let scalar = self.engine.evaluate(expression.code, &self.names).and_then(|value| value.scalar());
            match scalar {
                Ok(scalar) if whole && keeps_type(&self.path) => return Some(with_scalar(node, scalar)),
                Ok(scalar) => out.push_str(&scalar.text),
                Err(failure) => {
                    let at = CodeSpan::find(self.sources, node.span, text, expression);
                    self.sink.push(failure.diagnose(expression.code, Some(at), Location::Span(node.span)));
                    return None;
                }
            }
        }
        if has_expression(&out) {
            // A value that looks like an expression must never be evaluated.
            if !may_wait {
                self.sink.push(
                    Diagnostic::error(
                        codes::EXPRESSION_VALUE,
                        "the value contains `${{`, which is not allowed here",
                    )
                    .at_span(node.span, "")
                    .note("values of parameters are not evaluated again"),
                );
            }
            return None;
        }
        Some(Node { span: node.span, value: Value::String(out) })
    }

    fn not_here(&self, scope: Scope, allowed: &[Scope]) -> (Diagnostic, String) {
        let name = scope.as_str();
        let why = match scope {
            Scope::Args => "`args` are known only in the block of the image",
            Scope::Instance if self.path.last() == Some(&"source") => {
                "a source is the same for all instances: `instance:100GiB` under `data` is an empty directory of each, and other volumes have room for a directory of each `$JOBC_INDEX`"
            }
            Scope::Instance => "the instance is known only at run time: in `run`, `env` and `files`",
            Scope::Hosts | Scope::Ports => "addresses and ports are known only when the job runs",
            _ => "this value is needed before the job is known",
        };
        let diagnostic = Diagnostic::error(codes::EXPRESSION_PLACE, format!("`{name}` cannot be used here"))
            .note(format!("{why}; known here: {}", self.known(allowed)));
        (diagnostic, String::new())
    }

    fn not_defined(&self, path: &Path, allowed: &[Scope]) -> (Diagnostic, String) {
        let name = path.root();
        let diagnostic = Diagnostic::error(codes::EXPRESSION_NAME, format!("`{name}` is not defined"));
        if let Some((_, near)) = self.near(path, allowed) {
            return (diagnostic, format!("did you mean `{near}`?"));
        }
        let list = self.known(allowed);
        let note = format!("names begin with {list}; text goes in quotes: `\"{name}\"`");
        (diagnostic.note(note), "not defined".to_owned())
    }

    /// The parameter, matrix value or instance's number that a name alone is, else the scope whose name is most similar to
    /// a path's first step, else the value with the name of its second; with the part of the code to replace.
    fn near(&self, path: &Path, allowed: &[Scope]) -> Option<(Range<usize>, String)> {
        if path.steps.len() == 1 {
            let instance = || {
                (path.root() == "index" && allowed.contains(&Scope::Instance))
                    .then(|| "instance.index".to_owned())
            };
            if let Some(whole) = self.names.with_scope(path.root()).or_else(instance) {
                return Some((path.range.clone(), whole));
            }
        }
        let scope = suggest::nearest(path.root(), self.scopes(allowed).map(Scope::as_str));
        let scope = scope.map(|near| (path.steps[0].range.clone(), near.to_owned()));
        scope.or_else(|| self.names.in_other_scope(path))
    }

    fn known(&self, allowed: &[Scope]) -> String {
        suggest::list(self.scopes(allowed).map(Scope::as_str))
    }

    fn scopes<'b>(&self, allowed: &'b [Scope]) -> impl Iterator<Item = Scope> + 'b {
        let matrix = self.names.has(Scope::Matrix).then_some(Scope::Matrix);
        [Scope::Params].into_iter().chain(matrix).chain([Scope::Job]).chain(allowed.iter().copied())
    }

    fn pointer(&self) -> Pointer {
        let mut items = self.items.iter();
        self.path.iter().fold(Pointer::ROOT, |at, key| match *key {
            "*" => at.index(items.next().copied().unwrap_or_default()),
            key => at.key(key),
        })
    }
}

/// Reports an expression in a field that is read before expressions are evaluated.
pub(super) fn not_evaluated(node: &Node, place: &str) -> Diagnostic {
    Diagnostic::error(codes::EXPRESSION_PLACE, format!("expressions are not evaluated in `{place}`"))
        .at_span(node.span, "")
        .note("write the value itself")
}

fn secret_place() -> (Diagnostic, String) {
    let diagnostic = Diagnostic::error(codes::SECRET_PLACE, "a secret cannot be used here").note(
        "use secrets as whole `env` values and `files`, and by name in `secret:` of `registries`, `data`, `outputs` and in `image.secrets`",
    );
    (diagnostic, "its value would be seen".to_owned())
}

fn secret_inside(path: &Path) -> (Diagnostic, String) {
    let name = path.name(1).unwrap_or("name");
    let diagnostic = Diagnostic::error(codes::SECRET_PLACE, "a secret cannot be part of a longer value")
        .note(format!("put it into a separate variable, `TOKEN: ${{{{ secrets.{name} }}}}`, and write `$TOKEN` in the command"));
    (diagnostic, "must be the whole value".to_owned())
}

/// The node of an expression whose type is kept.
fn with_scalar(node: &Node, scalar: Scalar) -> Node {
    let value = match scalar.value {
        serde_json::Value::Bool(b) => Value::Bool(b),
        // `${{ params.gpus / 8 }}` is 2.0 to the engine, but must be 2.
        serde_json::Value::Number(number) => match whole(&number) {
            Some(whole) => Value::Number { number: whole.into(), text: whole.to_string() },
            None => Value::Number { number, text: scalar.text },
        },
        _ => Value::String(scalar.text),
    };
    Node { span: node.span, value }
}

#[allow(clippy::cast_possible_truncation)] // checked to be whole and small
fn whole(number: &serde_json::Number) -> Option<i64> {
    let float = number.as_f64().filter(|_| number.is_f64())?;
    (float.fract() == 0.0 && float.abs() < 9e15).then_some(float as i64)
}
