//! Converts strings of the job file to texts with placeholders.

use jobc_schema::Pointer;
use jobc_schema::plan::{Reference, Text};

use super::context::Context;
use super::scope::RoleScope;
use crate::diagnostic::{Diagnostic, Location, Sink, codes};
use crate::expression::holes::{TextSegment, stretches};
use crate::expression::{CodeSpan, Expression, Part, Path, Scope, has_expression, paths, split};

/// Converts the strings of one role to texts.
pub(super) struct Texts<'a> {
    context: &'a Context<'a>,
    scope: &'a RoleScope<'a>,
}

impl<'a> Texts<'a> {
    pub(super) fn new(context: &'a Context<'a>, scope: &'a RoleScope<'a>) -> Self {
        Self { context, scope }
    }

    /// The text of a string; reports and omits what cannot be evaluated.
    pub(super) fn text(&self, source: &str, at: &Pointer, sink: &mut Sink) -> Text {
        if !has_expression(source) {
            return Text::literal(source);
        }
        let mut text = Text::default();
        // `expand` has reported unclosed ones.
        for part in split(source).unwrap_or_default() {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Expression(expression) => self.expression(&expression, at, &mut text, sink),
            }
        }
        text
    }

    /// The texts of a list of strings.
    pub(super) fn texts(&self, sources: &[String], at: &Pointer, sink: &mut Sink) -> Vec<Text> {
        sources
            .iter()
            .enumerate()
            .map(|(number, source)| self.text(source, &at.index(number), sink))
            .collect()
    }

    /// The text of a string that must not contain placeholders.
    pub(super) fn literal(&self, source: &str, at: &Pointer, sink: &mut Sink) -> String {
        let text = self.text(source, at, sink);
        if let Some(literal) = text.as_literal() {
            return literal.to_owned();
        }
        let message = match text.references().next() {
            Some(Reference::Index {} | Reference::Rank { .. }) => {
                "the index of the instance cannot be used here"
            }
            _ => "addresses and ports cannot be used here",
        };
        sink.push(
            Diagnostic::error(codes::EXPRESSION_PLACE, message)
                .at(at, "known only when the job runs")
                .note("use them in `run`, `env` and `files`"),
        );
        source.to_owned()
    }

    /// The name of the secret, if a string is a single `${{ secrets.NAME }}`.
    pub(super) fn secret(&self, source: &str, at: &Pointer, sink: &mut Sink) -> Option<String> {
        let expression = match &split(source).ok()?[..] {
            [Part::Expression(expression)] => expression.clone(),
            _ => return None,
        };
        let [path] = &paths(expression.code)[..] else { return None };
        if Scope::parse(path.root()) != Some(Scope::Secrets) {
            return None;
        }
        let name = path.name(1)?;
        let secrets = &self.context.job.secrets;
        if !secrets.contains_key(name) {
            let (code, range) = (expression.code, &path.steps[1].range);
            let span = self.span(&expression, at);
            let place =
                span.map_or_else(|| Location::value(at), |span| Location::Span(span.part(code, Some(range))));
            let text = span.and_then(|span| span.name(code, range));
            super::secrets::report_unknown(self.context, name, place, text, sink);
        }
        Some(name.to_owned())
    }

    fn expression(&self, expression: &Expression<'_>, at: &Pointer, text: &mut Text, sink: &mut Sink) {
        let code = expression.code;
        if let Some(found) = self.names_combinations(expression, at) {
            sink.push(found);
            return;
        }
        let value = self.context.engine.evaluate(code, self.scope.names()).and_then(|value| value.text());
        let value = match value {
            Ok(value) => value,
            Err(mut failure) => {
                if code.contains("instance.index") && failure.code == codes::EXPRESSION_VALUE {
                    failure.notes.push(
                        "the index is known only at run time; calculate in the shell, as in `$((JOBC_INDEX + 1))`".to_owned(),
                    );
                }
                sink.push(failure.diagnose(code, self.span(expression, at), Location::value(at)));
                return;
            }
        };
        for stretch in stretches(&value) {
            match stretch {
                TextSegment::Text(literal) => text.push_str(literal),
                TextSegment::Mark(mark) => match self.scope.reference(mark) {
                    Some(reference) => text.push_reference(reference),
                    None => sink.push(
                        Diagnostic::error(
                            codes::EXPRESSION_VALUE,
                            "the expression splits an address or number that is known only at run time",
                        )
                        .at(at, "")
                        .note("use the whole value, and split it in the program"),
                    ),
                },
            }
        }
    }

    /// The finding for an expression that needs the addresses or the number of a role with a matrix: each of its
    /// combinations has its own, and the matrix determines which ones exist.
    fn names_combinations(&self, expression: &Expression<'_>, at: &Pointer) -> Option<Diagnostic> {
        let groups = &self.context.variant.groups;
        let own = |name: &str| self.scope.ports().iter().any(|port| port.label == name);
        let is_wrong = |path: &&Path| {
            let Some(name) = path.name(1) else { return false };
            let scope = Scope::parse(path.root());
            matches!(scope, Some(Scope::Hosts | Scope::Roles | Scope::Ports))
                && !(scope == Some(Scope::Ports) && own(name))
                && (groups.of_role(name).is_some() || groups.get(name).is_some())
        };
        let code = expression.code;
        let all = if groups.is_empty() { vec![] } else { paths(code) };
        let path = all.iter().find(is_wrong)?;
        let role = groups.declared(path.name(1)?);
        let range = path.range.start..path.steps.get(1)?.range.end;
        let place = self
            .span(expression, at)
            .map_or_else(|| Location::value(at), |span| Location::Span(span.part(code, Some(&range))));
        let count = groups.of_role(role).map_or(0, <[String]>::len);
        let what = if path.root() == "roles" { "number of instances" } else { "address" };
        Some(
            Diagnostic::error(
                codes::MATRIX_ADDRESS,
                format!("`{role}` has a matrix, and no {what} of its own"),
            )
            .at_place(place, format!("it is {count} groups of tasks"))
            .note("let the combinations write to data or an output, and read it from there"),
        )
    }

    fn span(&self, expression: &Expression<'_>, at: &Pointer) -> Option<CodeSpan> {
        self.context.variant.late.get(at)?.get(expression.number).copied()
    }
}
