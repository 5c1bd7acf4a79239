//! Values of `RUN --mount` that are not text. Those with variables are known only at their line of a stage.

use super::super::forms::{Mount, MountField, MountKind, Sharing, Word};
use super::super::refusal::Refusal;

impl Mount {
    /// Fills in a value whose variables are expanded.
    pub(crate) fn fill(&mut self, field: MountField, word: &Word) -> Result<(), Refusal> {
        match field {
            MountField::Mode => set(&mut self.kind, field, number(word, 8)?),
            MountField::Uid | MountField::Gid => set(&mut self.kind, field, number(word, 10)?),
            MountField::Size => {
                let value = size(word)?;
                if let MountKind::Tmpfs { size } = &mut self.kind {
                    *size = Some(value);
                }
            }
            MountField::Sharing => {
                let value = sharing(word)?;
                if let MountKind::Cache { sharing, .. } = &mut self.kind {
                    *sharing = value;
                }
            }
            MountField::Env => {
                if let MountKind::Secret { env, .. } = &mut self.kind {
                    *env = Some(word.text.clone());
                }
            }
            MountField::Required => {
                let value = boolean("required", word)?;
                if let MountKind::Secret { required, .. } | MountKind::Ssh { required, .. } = &mut self.kind {
                    *required = value;
                }
            }
            MountField::ReadOnly => self.read_only = boolean("readonly", word)?,
            MountField::ReadWrite => self.read_only = !boolean("readwrite", word)?,
        }
        Ok(())
    }
}

/// Sets the permissions or an owner.
fn set(kind: &mut MountKind, field: MountField, value: u32) {
    if let MountKind::Cache { mode, uid, gid, .. }
    | MountKind::Secret { mode, uid, gid, .. }
    | MountKind::Ssh { mode, uid, gid, .. } = kind
    {
        match field {
            MountField::Mode => *mode = Some(value),
            MountField::Uid => *uid = Some(value),
            _ => *gid = Some(value),
        }
    }
}

/// A number of a base.
pub(super) fn number(word: &Word, radix: u32) -> Result<u32, Refusal> {
    u32::from_str_radix(&word.text, radix).map_err(|_| {
        let what = if radix == 8 { "mode in octal digits" } else { "number" };
        Refusal::new(word.span.clone(), format!("`{}` is not a valid {what}", word.text))
            .help("such as `mode=0755`, `uid=1000`")
    })
}

/// `true` or `false`.
pub(super) fn boolean(key: &str, word: &Word) -> Result<bool, Refusal> {
    match word.text.as_str() {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(Refusal::new(word.span.clone(), format!("`{key}` must be `true` or `false`"))
            .help("without a value it is `true`")),
    }
}

/// How a cache is shared.
pub(super) fn sharing(word: &Word) -> Result<Sharing, Refusal> {
    match word.text.to_ascii_lowercase().as_str() {
        "shared" => Ok(Sharing::Shared),
        "private" => Ok(Sharing::Private),
        "locked" => Ok(Sharing::Locked),
        other => Err(Refusal::new(word.span.clone(), format!("unknown value `sharing={other}`"))
            .help("write `shared`, `private` or `locked`")),
    }
}

/// A size in bytes: `64m`, `1GiB`, `1.5g`, with units of 1024.
pub(super) fn size(word: &Word) -> Result<u64, Refusal> {
    bytes(&word.text).ok_or_else(|| {
        Refusal::new(word.span.clone(), format!("`{}` is not a size", word.text)).help("such as `size=64m`")
    })
}

fn bytes(text: &str) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let shift = match text[end..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        "p" | "pb" | "pib" => 50,
        _ => return None,
    };
    let (whole, fraction) = text[..end].split_once('.').unwrap_or((&text[..end], ""));
    let whole = whole.parse::<u64>().ok()?.checked_mul(1 << shift)?;
    if fraction.is_empty() {
        return Some(whole);
    }
    // Nine digits are exact in 128 bits, and enough for a size.
    let digits = &fraction[..fraction.len().min(9)];
    let part = u128::from(digits.parse::<u64>().ok()?) << shift;
    let part = part / 10_u128.pow(u32::try_from(digits.len()).ok()?);
    whole.checked_add(u64::try_from(part).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024() {
        for (text, expected) in [
            ("64", Some(64)),
            ("64m", Some(64 << 20)),
            ("1GiB", Some(1 << 30)),
            ("1.5g", Some(3 << 29)),
            ("0.5 k", Some(512)),
            ("16777216p", None),
            ("", None),
            ("m", None),
            ("1x", None),
            ("1.2.3", None),
            ("-1", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
