//! Secrets in `ARG` and `ENV`, which remain in the image.

use indexmap::IndexMap;

use super::super::build::Inspection;
use super::super::forms::{Instruction, Kind, Word};
use super::super::rules::Lint;
use super::super::variables::Variables;
use super::findings::Findings;

/// Reports variables whose names suggest a secret.
pub(super) fn check(file: &Inspection, findings: &mut Findings) {
    let plain = Variables::without_base(file, IndexMap::new());
    let plain = |word: &Word| plain.expand(word).unwrap_or_else(|_| word.text.clone());
    let stages = file.stages.iter().flat_map(|stage| &stage.instructions);
    for instruction in file.globals.iter().chain(stages) {
        for (keyword, name, value) in values(instruction) {
            let (key, text) = (plain(name), plain(value));
            // A path or another variable reveals nothing.
            if !is_secret(&key) || text.is_empty() || text.starts_with(['/', '$']) {
                continue;
            }
            findings.add(
                Lint::SecretsUsedInArgOrEnv,
                name.span.start..value.span.end,
                format!("`{keyword} {key}` keeps a secret in the image, where everyone who pulls it can read it"),
                "read it in `RUN --mount=type=secret,id=…`, or pass it to the role: `env: {…: ${{ secrets.… }}}`",
            );
        }
    }
}

/// The names and values that an instruction sets.
fn values(instruction: &Instruction) -> Vec<(&'static str, &Word, &Word)> {
    match &instruction.kind {
        Kind::Env(pairs) => pairs.iter().map(|(name, value)| ("ENV", name, value)).collect(),
        Kind::Arg(args) => {
            args.iter().filter_map(|arg| Some(("ARG", &arg.name, arg.default.as_ref()?))).collect()
        }
        _ => Vec::new(),
    }
}

/// Suffixes of names that suggest a secret.
fn is_secret(name: &str) -> bool {
    const ENDINGS: &[&str] = &["TOKEN", "PASSWORD", "PASSWD", "SECRET", "KEY", "CREDENTIALS"];
    const OTHERS: &[&str] = &["PUBLIC_KEY", "SSH_KEY", "GPG_KEY", "HOST_KEY"];
    let name = name.to_ascii_uppercase();
    let word =
        |ending: &str| name.strip_suffix(ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'));
    ENDINGS.iter().any(|ending| word(ending)) && name != "KEY" && !OTHERS.iter().any(|other| word(other))
}
