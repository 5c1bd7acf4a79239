//! `FROM`: names of stages, platforms, and images that depend on arguments.

use jobc_schema::Reference;

use super::super::build::Inspection;
use super::super::expand;
use super::super::forms::Kind;
use super::super::line::{Line, Part};
use super::super::rules::Lint;
use super::super::split::{self, Flag};
use super::findings::{Findings, keyword};

/// Names that have another meaning in `COPY --from` or `FROM`.
const RESERVED: [&str; 2] = ["context", "scratch"];

/// Reports problems in `FROM` lines.
pub(super) fn check(lines: &[Line], file: &Inspection, findings: &mut Findings) {
    for line in lines.iter().filter(|line| keyword(line) == "FROM") {
        let (flags, rest) = split::flags(line.part().split_first().1);
        let words = split::by_blanks(rest);
        let name = match words.as_slice() {
            [_, word, name] if word.text().eq_ignore_ascii_case("AS") => Some(name),
            _ => None,
        };
        if let Some(name) = name {
            stage_name(name, findings);
        }
        for flag in flags.iter().filter(|flag| flag.name == "platform") {
            platform(flag, name.map_or("", |name| name.text()), findings);
        }
        if let Some(base) = words.first() {
            default_image(base, file, findings);
        }
    }
}

fn stage_name(name: &Part<'_>, findings: &mut Findings) {
    let lower = name.text().to_ascii_lowercase();
    if RESERVED.contains(&lower.as_str()) {
        findings.add(
            Lint::ReservedStageName,
            name.span(),
            format!("the stage name `{}` is reserved", name.text()),
            "use another name",
        );
    }
    if lower != name.text() {
        findings.fix(
            Lint::StageNameCasing,
            name.span(),
            format!("the stage name `{}` has upper-case letters", name.text()),
            format!("write `{lower}`: stage names are compared without case"),
            lower,
        );
    }
}

fn platform(flag: &Flag<'_>, stage: &str, findings: &mut Findings) {
    let Some(value) = flag.value.as_deref() else { return };
    if matches!(value, "$TARGETPLATFORM" | "${TARGETPLATFORM}") {
        findings.add(
            Lint::RedundantTargetPlatform,
            flag.part.span(),
            "`--platform=$TARGETPLATFORM` is the default",
            "leave it out",
        );
        return;
    }
    let stage = stage.to_ascii_lowercase();
    // A stage named after its platform is one of several, selected by `FROM base-$TARGETARCH`.
    let named = value.split('/').skip(1).take(1).any(|arch| !arch.is_empty() && stage.contains(arch));
    if !value.contains('$') && !value.is_empty() && !named {
        findings.add(
            Lint::FromPlatformFlagConstDisallowed,
            flag.part.span(),
            format!("`--platform={value}` fixes the platform of the image"),
            "leave it out and build with `--platform`, write `$BUILDPLATFORM`, or name the stage after the platform",
        );
    }
}

/// Reports a `FROM` that names an image only if a build argument is given.
fn default_image(base: &Part<'_>, file: &Inspection, findings: &mut Findings) {
    if !base.text().contains('$') {
        return;
    }
    // A base without a value in this build was reported when the line was parsed.
    let reported = |span: &std::ops::Range<usize>| span.start == base.span().start;
    if file.refusals.iter().any(|refusal| reported(&refusal.span)) {
        return;
    }
    let mut defaults: Vec<(String, String)> = Vec::new();
    let mut without = Vec::new();
    for global in &file.globals {
        let Kind::Arg(args) = &global.kind else { continue };
        for arg in args {
            let known = |name: &str| value(&defaults, file, name);
            match arg.default.as_ref().map(|word| expand::expand(&word.text, file.escape, &known)) {
                Some(Ok(default)) => defaults.push((arg.name.text.clone(), default)),
                _ => without.push(arg.name.text.clone()),
            }
        }
    }
    let known = |name: &str| value(&defaults, file, name);
    let missing = expand::missing(base.text(), file.escape, &known);
    let Some(name) = missing.iter().find(|name| without.contains(name)) else { return };
    let Ok(reference) = expand::expand(base.text(), file.escape, &known) else { return };
    let is_stage =
        file.stages.iter().any(|stage| stage.name.as_deref() == Some(&reference.to_ascii_lowercase()));
    if is_stage || reference.parse::<Reference>().is_ok() {
        return;
    }
    findings.add(
        Lint::InvalidDefaultArgInFrom,
        base.span(),
        format!("`{}` names no image unless the build argument `{name}` is given", base.text()),
        format!("give it a default: `ARG {name}=…`"),
    );
}

/// The value of an `ARG` before the first `FROM`, if none is given for the build.
fn value(defaults: &[(String, String)], file: &Inspection, name: &str) -> Option<String> {
    let own = defaults.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let builtin = || {
        let platform = name.starts_with("TARGET") || name.starts_with("BUILD");
        platform.then(|| file.arguments.globals.get(name).cloned()).flatten()
    };
    own.or_else(builtin)
}
