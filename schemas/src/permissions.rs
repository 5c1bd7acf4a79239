//! Permission bits as chmod(1) takes them: `755`, `u=rwX,go=rX`.
//!
//! Octal digits replace the bits of a file. Clauses change the file's own bits, one after the other; no umask applies.
//! As with BuildKit, `X` looks at the bits that the file had before the first clause.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A pattern of both forms, for schemas.
pub(crate) const PATTERN: &str =
    "^((0o?)?[0-7]{3,4}|[ugoa]*([-+=][rwxXstugo]*)+(,[ugoa]*([-+=][rwxXstugo]*)+)*)$";

/// All bits that a mode can have.
const ALL_BITS: u32 = 0o7777;
const STICKY: u32 = 0o1000;
const SET_IDS: u32 = 0o6000;
const EXECUTE: u32 = 0o111;

/// New permission bits, or a change of bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Permissions {
    /// These bits, at most 07777.
    Bits(u32),
    /// Changes, in order.
    Changes(Vec<Change>),
}

/// A change of some bits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The classes of users, as bits; 0 if none is named, which means all of them.
    classes: u32,
    operator: Operator,
    /// The named bits, for all classes.
    bits: u32,
    /// Whether `X` is named.
    search: bool,
    /// The classes whose bits are copied, as the place of their lowest bit.
    copied: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Operator {
    Add,
    Remove,
    Assign,
}

/// Why a text is not a mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidPermissions;

impl Permissions {
    /// The bits of a file that had `bits` before.
    pub fn apply(&self, bits: u32, is_directory: bool) -> u32 {
        match self {
            Self::Bits(bits) => *bits,
            Self::Changes(changes) => {
                let searchable = is_directory || bits & EXECUTE != 0;
                changes.iter().fold(bits & ALL_BITS, |bits, change| change.apply(bits, searchable))
            }
        }
    }
}

impl Change {
    fn apply(&self, bits: u32, searchable: bool) -> u32 {
        let classes = if self.classes == 0 { ALL_BITS } else { self.classes };
        // The user and the group have the set-id bits; others have neither those nor the sticky bit.
        let only_others = classes & !0o007 == 0;
        let mut value = self.bits & (classes | if only_others { 0 } else { self.bits & STICKY });
        if self.search && (searchable || self.operator == Operator::Remove) {
            value |= EXECUTE & classes;
        }
        for place in &self.copied {
            let copy = (bits >> place) & 0o7;
            value |= (copy * EXECUTE) & classes;
        }
        match self.operator {
            Operator::Add => bits | value,
            Operator::Remove => bits & !value,
            // A directory keeps its sticky bit unless the bit is named, as with chmod(1).
            Operator::Assign => (bits & !(classes & !STICKY)) | value,
        }
    }
}

impl FromStr for Permissions {
    type Err = InvalidPermissions;

    fn from_str(text: &str) -> Result<Self, InvalidPermissions> {
        if text.starts_with(|c: char| c.is_ascii_digit()) {
            let digits = text.strip_prefix("0o").or_else(|| text.strip_prefix("0O")).unwrap_or(text);
            let is_octal = !digits.is_empty() && digits.bytes().all(|digit| matches!(digit, b'0'..=b'7'));
            return is_octal
                .then(|| u32::from_str_radix(digits, 8).ok())
                .flatten()
                .filter(|bits| *bits <= ALL_BITS)
                .map(Self::Bits)
                .ok_or(InvalidPermissions);
        }
        let mut changes = Vec::new();
        for clause in text.split(',') {
            let at = clause.find(['+', '-', '=']).ok_or(InvalidPermissions)?;
            let (who, mut rest) = clause.split_at(at);
            let classes = who.chars().try_fold(0, |bits, class| Some(bits | class_bits(class)?));
            let classes = classes.ok_or(InvalidPermissions)?;
            while !rest.is_empty() {
                let end = rest[1..].find(['+', '-', '=']).map_or(rest.len(), |end| end + 1);
                changes.push(Change::read(classes, &rest[..end])?);
                rest = &rest[end..];
            }
        }
        Ok(Self::Changes(changes))
    }
}

impl Change {
    /// Reads an operator, and the letters after it.
    fn read(classes: u32, text: &str) -> Result<Self, InvalidPermissions> {
        let operator = match text.as_bytes()[0] {
            b'+' => Operator::Add,
            b'-' => Operator::Remove,
            _ => Operator::Assign,
        };
        let mut change = Self { classes, operator, bits: 0, search: false, copied: Vec::new() };
        for letter in text[1..].chars() {
            match letter {
                'r' => change.bits |= 0o444,
                'w' => change.bits |= 0o222,
                'x' => change.bits |= EXECUTE,
                's' => change.bits |= SET_IDS,
                't' => change.bits |= STICKY,
                'X' => change.search = true,
                'u' => change.copied.push(6),
                'g' => change.copied.push(3),
                'o' => change.copied.push(0),
                _ => return Err(InvalidPermissions),
            }
        }
        Ok(change)
    }
}

/// The bits of a class of users.
fn class_bits(class: char) -> Option<u32> {
    Some(match class {
        'u' => 0o4700,
        'g' => 0o2070,
        'o' => 0o0007,
        'a' => 0o6777,
        _ => return None,
    })
}

impl fmt::Display for InvalidPermissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is neither octal digits, such as `755`, nor letters, such as `u=rwX,go=rX`")
    }
}

impl std::error::Error for InvalidPermissions {}

#[cfg(test)]
mod tests;
