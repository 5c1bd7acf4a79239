//! Descriptions of the schemas' patterns; a test finds any pattern without one.

/// A pattern and its description.
pub(super) struct PatternForm {
    /// The pattern, as the schema has it.
    pattern: &'static str,
    /// What matches it, with an article: `a duration such as \`90s\``; empty if only an expression matches.
    pub(super) what: &'static str,
    /// How to write it.
    pub(super) rule: &'static str,
    /// The words that match it besides numbers and expressions.
    pub(super) words: &'static [&'static str],
    /// Whether it is an amount with a parser of its own.
    pub(super) amount: bool,
}

/// The whole-expression pattern of integer fields.
pub(super) const WHOLE_EXPRESSION: &str = r"^\$\{\{[ -~]*\}\}$";
/// Memory and disk.
pub(super) const BYTES: &str =
    r"^([0-9]+(\.[0-9]+)? ?(KiB|MiB|GiB|TiB|KB|MB|GB|TB|Ki|Mi|Gi|Ti)|[ -~]*\$\{\{[ -~]*\}\}[ -~]*)$";
/// Logical CPUs.
pub(super) const CPUS: &str = r"^([0-9]+(\.[0-9]+)?|[0-9]+m|[ -~]*\$\{\{[ -~]*\}\}[ -~]*)$";
/// Durations.
pub(super) const DURATION: &str = r"^([0-9]+(s|m|h|d)|[ -~]*\$\{\{[ -~]*\}\}[ -~]*)$";

/// Energy.
pub(super) const ENERGY: &str = r"^([0-9]+(\.[0-9]+)? ?(Wh|kWh|MWh|J|kJ|MJ)|[ -~]*\$\{\{[ -~]*\}\}[ -~]*)$";

const fn text(pattern: &'static str, what: &'static str, rule: &'static str) -> PatternForm {
    PatternForm { pattern, what, rule, words: &[], amount: false }
}

const fn amount(pattern: &'static str, what: &'static str) -> PatternForm {
    PatternForm { pattern, what, rule: "", words: &[], amount: true }
}

const fn number(pattern: &'static str, words: &'static [&'static str]) -> PatternForm {
    PatternForm { pattern, what: "", rule: "", words, amount: false }
}

/// Every pattern of the job and targets schemas.
pub(super) static FORMS: &[PatternForm] = &[
    number(WHOLE_EXPRESSION, &[]),
    number(r"^(all|none|\$\{\{[ -~]*\}\})$", &["all", "none"]),
    number(r"^(none|\$\{\{[ -~]*\}\})$", &["none"]),
    number(r"^(all|\$\{\{[ -~]*\}\})$", &["all"]),
    number(r"^(auto|\$\{\{[ -~]*\}\})$", &["auto"]),
    number(r"^(unlimited|\$\{\{[ -~]*\}\})$", &["unlimited"]),
    amount(BYTES, "an amount with its unit, such as `8GiB`"),
    amount(CPUS, "a number of CPUs, such as `4`, `0.5` or `500m`"),
    amount(DURATION, "a duration with its unit, such as `90s` or `12h`"),
    amount(ENERGY, "an amount of energy with its unit, such as `10kWh`"),
    text(
        r"^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$",
        "a job name",
        "use at most 40 lower-case letters, digits and `-`, with no `-` at either end",
    ),
    text(
        r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$",
        "the name of a backend",
        "use at most 40 lower-case letters, digits and `-`, a letter first and no `-` at the end",
    ),
    text(r"^/dev/[^\x00-\x1f]+$", "a device", "write a path below /dev, such as `/dev/fuse`"),
    text(r"^(/[^/]*)+$", "a JSON Pointer", "begin it with `/`, as in `/metadata/labels/team`"),
    text(
        r"^([A-Za-z_][A-Za-z0-9_]*\*?|\*)$",
        "a variable name",
        "use letters, digits and `_`, not a digit first; `*` at the end stands for any rest, and alone for all",
    ),
    text(
        r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$",
        "a time zone",
        "write its name, such as `Europe/Berlin` or `UTC`",
    ),
    text(
        r"^[a-z]([a-z0-9-]{0,30}[a-z0-9])?$",
        "a name",
        "use at most 32 lower-case letters, digits and `-`; begin with a letter and do not end with `-`",
    ),
    text(
        r"^[a-z]([a-z0-9-]{0,13}[a-z0-9])?$",
        "a port's label",
        "use at most 15 lower-case letters, digits and `-`; begin with a letter and do not end with `-`",
    ),
    text(
        r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
        "a namespace",
        "use at most 63 lower-case letters, digits and `-`, with no `-` at either end",
    ),
    text(
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        "a DNS name",
        "use lower-case letters, digits, `-` and `.`; begin and end each part with a letter or digit",
    ),
    text(r"^[A-Za-z_][A-Za-z0-9_]*$", "a name", "use letters, digits and `_`, and do not begin with a digit"),
    text(
        r"^[A-Za-z_][A-Za-z0-9_-]{0,62}$",
        "a secret's name",
        "use at most 63 letters, digits, `_` and `-`; begin with a letter or `_`",
    ),
    text(
        r"^[A-Za-z_][A-Za-z0-9_./-]{0,62}$",
        "a metric's name",
        "use at most 63 letters, digits, `_`, `.`, `/` and `-`; begin with a letter or `_`",
    ),
    text(
        r"^(/[^\x00-\x1f]*|[0-9]{1,4}:[0-9]{1,7})$",
        "a device",
        "write its path or number, or a path on its file system, such as `/dev/nvme0n1`, `259:0` or `/data`",
    ),
    text("^/", "an absolute path", "begin with `/`"),
    text(r"^(/|\$\{\{)", "an absolute path", "begin with `/`"),
    text("^0?[0-7]{3}$", "a file mode", "write three octal digits as a string, such as `\"0644\"`"),
    text(
        "^((0o?)?[0-7]{3,4}|[ugoa]*([-+=][rwxXstugo]*)+(,[ugoa]*([-+=][rwxXstugo]*)+)*)$",
        "a file mode",
        "write octal digits, or changes as for chmod(1), as a string: `\"0644\"`, `\"u=rwX,go=rX\"`",
    ),
    text(
        r"^([A-Za-z_][A-Za-z0-9_.-]*|[0-9]+)(:([A-Za-z_][A-Za-z0-9_.-]*|[0-9]+))?$",
        "a user",
        "write a name or a number, with an optional group after `:`, such as `trainer` or `1000:1000`",
    ),
    text(r"^[0-9]+\.[0-9]+$", "a version", "write two numbers, such as `\"8.0\"`"),
    text(r"^[0-9]+\.[0-9]+(\.[0-9]+)?$", "a version", "write two or three numbers, such as `\"12.4\"`"),
    text(
        r"^([0-9]+\.[0-9]+(\.[0-9]+)?|[ -~]*\$\{\{[ -~]*\}\}[ -~]*)$",
        "a version",
        "write two or three numbers, such as `\"3.11\"`; ranges go under `packages`",
    ),
    text(r"^[0-9]+(\.[0-9]+){0,2}$", "a driver version", "write one to three numbers, such as `550.54.15`"),
    text(
        r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$",
        "a list of numbers",
        "write numbers and ranges with `,` between, such as `0-3,8`",
    ),
    text(r"^1\.[0-9]+$", "a release of Kubernetes", "write its first two numbers, such as `\"1.36\"`"),
    text(r"^[!-~]+$", "a word", "write one word without spaces"),
    text(r"^/[^\x00-\x1f]*$", "an absolute path", "begin with `/`"),
    text(
        r"^(~/|/)[^\x00-\x1f]*$",
        "an absolute path",
        "begin with `/`, or with `~/` for the home directory there",
    ),
    text(
        r"^(auto|none|(~/|/)[^\x00-\x1f]*)$",
        "`auto`, `none` or a path",
        "write `auto`, `none`, or a path that begins with `/` or `~/`",
    ),
    text(
        r"^[!-,.-~][!-~]*$",
        "the name of a machine",
        "write a name of the ssh configuration, `user@host` or `ssh://user@host:port`",
    ),
    text(r"^[!-,.-~][^\x00-\x1f]*$", "a path", "write one that begins with neither `-` nor a space"),
    text(r"^[a-z][a-z0-9-]*$", "an option", "write it without `--`, such as `mail-type`"),
    text(
        r"^2[0-9]\.[0-9]{2}(\.[0-9]+)?$",
        "a release of Slurm",
        "write its first two numbers, such as `\"23.11\"`",
    ),
    text(
        r"^[0-9]+(@[0-9:-]+)?$",
        "a number of switches",
        "write a number, and `@` with a time, such as `1@60`",
    ),
    text(
        r"^[A-Za-z0-9/][A-Za-z0-9._/+:-]*$",
        "the name of a module",
        "write it as `module avail` prints it, such as `cuda/12.4`, or a directory with modules",
    ),
    text(
        r"^[a-z0-9]+/[a-z0-9]+(/v[0-9]+)?$",
        "a platform",
        "write the system and the architecture, such as `linux/amd64`",
    ),
];

/// The description of a pattern.
pub(super) fn find(pattern: &str) -> Option<&'static PatternForm> {
    FORMS.iter().find(|form| form.pattern == pattern)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value as Json;

    use super::*;

    fn patterns<'a>(schema: &'a Json, found: &mut BTreeSet<&'a str>) {
        match schema {
            Json::Object(map) => {
                if let Some(Json::String(pattern)) = map.get("pattern") {
                    found.insert(pattern);
                }
                for child in map.values() {
                    patterns(child, found);
                }
            }
            Json::Array(items) => {
                for child in items {
                    patterns(child, found);
                }
            }
            _ => {}
        }
    }

    #[test]
    fn patterns_and_descriptions_are_complete() {
        let schemas: Vec<Json> = [jobc_schema::JOB_SCHEMA, jobc_schema::TARGETS_SCHEMA]
            .iter()
            .map(|text| serde_json::from_str(text).unwrap())
            .collect();
        let mut found = BTreeSet::new();
        for schema in &schemas {
            patterns(schema, &mut found);
        }
        let known: BTreeSet<&str> = FORMS.iter().map(|form| form.pattern).collect();
        assert_eq!(found, known);
        assert_eq!(known.len(), FORMS.len(), "a pattern stands twice");
    }
}
