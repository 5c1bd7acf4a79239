//! `# check=skip=NAME,…;error=true;experimental=NAME,…`: which rules apply to a file, and how.

use super::line::Line;
use super::refusal::{Refusal, Span};
use super::rules::Lint;

/// The `# check=` directive of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Rules that are skipped, by name; `all` means every rule.
    skipped: Vec<String>,
    /// Whether a finding of a rule fails the build.
    error: bool,
    /// Experimental rules to apply, by name; `all` means every rule.
    experimental: Vec<String>,
    /// Rules that are skipped for one instruction.
    local: Vec<(Span, Vec<String>)>,
}

impl Checks {
    /// Parses the value of the directive, or returns what is wrong with it.
    pub(super) fn read(value: &str) -> Result<Self, String> {
        let mut checks = Self::default();
        for option in value.split(';').map(str::trim).filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let names = || value.split(',').map(|name| name.trim().to_owned()).collect();
            match (name.trim(), value.trim()) {
                ("skip", _) => checks.skipped = names(),
                ("experimental", _) => checks.experimental = names(),
                ("error", "true" | "1") => checks.error = true,
                ("error", "false" | "0") => checks.error = false,
                ("error", other) => return Err(format!("`error={other}` is neither `true` nor `false`")),
                (other, _) => return Err(format!("unknown option `{other}` of `check`")),
            }
        }
        Ok(checks)
    }

    /// Whether a rule is applied.
    pub fn applies(&self, lint: Lint) -> bool {
        !names(&self.skipped, lint) && (!lint.is_experimental() || names(&self.experimental, lint))
    }

    /// Reads the comments directly above instructions: `# check=skip=NAME,… // why`, for that instruction alone.
    pub(super) fn read_comments(&mut self, text: &str, lines: &[Line]) {
        for line in lines {
            let mut above = &text[..line_start(text, line.span.start)];
            while let Some(rest) = above.strip_suffix('\n') {
                let start = line_start(rest, rest.len());
                let Some(comment) = rest[start..].trim().strip_prefix('#') else { break };
                let value = comment.trim_start().strip_prefix("check").map(str::trim_start);
                let value = value.and_then(|rest| rest.strip_prefix('=')).unwrap_or_default();
                let value = value.trim_start().split(' ').next().unwrap_or_default();
                if let Ok(Self { skipped, .. }) = Self::read(value)
                    && !skipped.is_empty()
                {
                    self.local.push((line.span.clone(), skipped));
                }
                above = &rest[..start];
            }
        }
    }

    /// Whether a finding of a rule is wanted.
    fn wants(&self, found: &Refusal) -> bool {
        let Some(lint) = found.rule.lint() else { return true };
        let skipped =
            |(span, skipped): &(Span, Vec<String>)| span.contains(&found.span.start) && names(skipped, lint);
        self.applies(lint) && !self.local.iter().any(skipped)
    }

    /// Splits findings into errors and warnings, and drops those of skipped rules.
    pub fn sort(&self, found: Vec<Refusal>) -> (Vec<Refusal>, Vec<Refusal>) {
        let wanted = found.into_iter().filter(|found| self.wants(found));
        wanted.partition(|found| self.error && found.rule.lint().is_some())
    }
}

/// Whether a list names a rule, or all rules.
fn names(rules: &[String], lint: Lint) -> bool {
    rules.iter().any(|name| name.eq_ignore_ascii_case(lint.name()) || name.eq_ignore_ascii_case("all"))
}

/// Where the line of a place begins.
fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal::Rule;

    #[test]
    fn rules_are_skipped_by_name() {
        let checks = Checks::read("skip=StageNameCasing, jsonargsrecommended;error=true").unwrap();
        assert!(!checks.applies(Lint::StageNameCasing) && !checks.applies(Lint::JsonArgsRecommended));
        assert!(checks.applies(Lint::FromAsCasing));
        let found = |rule| Refusal::new(0..1, "x").rule(rule);
        let (errors, remarks) = checks.sort(vec![
            found(Rule::Lint(Lint::StageNameCasing)),
            found(Rule::Lint(Lint::FromAsCasing)),
            found(Rule::Syntax),
        ]);
        assert_eq!((errors.len(), remarks.len()), (1, 1));
        assert!(Lint::ALL.iter().all(|lint| !Checks::read("skip=all").unwrap().applies(*lint)));
    }

    #[test]
    fn experimental_rules_are_enabled_by_name() {
        assert!(!Checks::default().applies(Lint::InvalidDefinitionDescription));
        for value in ["experimental=all", "experimental=InvalidDefinitionDescription"] {
            assert!(Checks::read(value).unwrap().applies(Lint::InvalidDefinitionDescription), "{value}");
        }
    }

    #[test]
    fn unknown_options_are_reported() {
        for (value, words) in
            [("skipped=x", "unknown option `skipped`"), ("error=maybe", "`error=maybe` is neither")]
        {
            let why = Checks::read(value).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
    }
}
