//! OpenPAI's names in the letters of ours.

/// A job's or role's name as ours: lower case, `-` for other marks, a letter first where that is asked for, and at
/// most so many characters. Nothing where no letter or digit is left.
pub(super) fn converted(name: &str, longest: usize, letter_first: bool) -> Option<String> {
    let mut ours = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_ascii_alphanumeric() {
            ours.push(c.to_ascii_lowercase());
        } else if !ours.is_empty() && !ours.ends_with('-') {
            ours.push('-');
        }
    }
    if letter_first && ours.starts_with(|c: char| c.is_ascii_digit()) {
        ours.insert_str(0, "task-");
    }
    ours.truncate(longest);
    let ours = ours.trim_matches('-');
    (!ours.is_empty()).then(|| ours.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_letters() {
        let check = |name: &str, letter: bool, ours: Option<&str>| {
            assert_eq!(converted(name, 12, letter).as_deref(), ours, "{name}");
        };
        check("restnet", true, Some("restnet"));
        check("ResNet_50.v2", true, Some("resnet-50-v2"));
        check("_ps~", true, Some("ps"));
        check("1st", true, Some("task-1st"));
        check("1st", false, Some("1st"));
        check("a-very-long-name", true, Some("a-very-long"));
        check("...", true, None);
        check("训练", true, None);
    }
}
