//! Converts file modes to the only accepted form: a quoted zero and three octal digits.

use crate::diagnostic::Safety;

/// The intended mode; `None` if it is ambiguous.
///
/// A number can be octal as written (`644`, `0o644`) or a decimal value (420), which is how Kubernetes shows `0644`: it
/// is read as whichever of the two grants no class write permission without read permission.
pub(super) fn repair(text: &str) -> Option<(String, Safety)> {
    let digits = text.trim().trim_start_matches("0o").trim_start_matches('0');
    let mode = match digits.len() {
        1..=3 if digits.bytes().all(|b| (b'0'..=b'7').contains(&b)) => {
            format!("0{digits:0>3}")
        }
        1..=3 => String::new(),
        _ => return None,
    };
    if is_usual(&mode) {
        return Some((mode, Safety::Safe));
    }
    let decimal = text.bytes().all(|b| b.is_ascii_digit()) && !text.starts_with('0');
    let value = text.parse::<u32>().ok().filter(|value| decimal && *value <= 0o777)?;
    Some(format!("0{value:03o}")).filter(|mode| is_usual(mode)).map(|mode| (mode, Safety::Unsafe))
}

/// Whether every class that can write can also read.
fn is_usual(mode: &str) -> bool {
    mode.len() == 4 && mode.bytes().all(|digit| matches!(digit, b'0' | b'4'..=b'7')) && mode != "0000"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_are_converted_to_one_form() {
        let check = |text: &str, expected: Option<&str>| {
            assert_eq!(repair(text).map(|(mode, _)| mode).as_deref(), expected, "{text}");
        };
        check("644", Some("0644"));
        check("0o644", Some("0644"));
        check("00644", Some("0644"));
        check("755", Some("0755"));
        check("420", Some("0644"));
        check("493", Some("0755"));
        check("511", Some("0777"));
        check("384", Some("0600"));
        check("0o222", None);
        check("1777", None);
        check("rw", None);
        check("0", None);
    }
}
