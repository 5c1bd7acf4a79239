//! Names of nodes as Slurm shortens them: `n[0-2,07],login`.

/// The names, in order.
pub(crate) fn expand(list: &str) -> Vec<String> {
    let mut names = Vec::new();
    for part in split(list) {
        names.extend(expand_part(part));
    }
    names
}

/// The parts between commas that are not in brackets.
fn split(list: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_u32, 0);
    for (at, c) in list.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&list[start..]);
    parts.retain(|part| !part.is_empty());
    parts
}

fn expand_part(part: &str) -> Vec<String> {
    let Some((before, rest)) = part.split_once('[') else { return vec![part.to_owned()] };
    let Some((ranges, after)) = rest.split_once(']') else { return vec![part.to_owned()] };
    let after = expand_part(after);
    let numbers = ranges.split(',').flat_map(range);
    numbers.flat_map(|number| after.iter().map(move |after| format!("{before}{number}{after}"))).collect()
}

/// `08-10` as `08`, `09`, `10`.
fn range(text: &str) -> Vec<String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse::<u32>(), last.parse::<u32>()) {
        (Ok(low), Ok(high)) => {
            (low..=high).map(|number| format!("{number:0width$}", width = first.len())).collect()
        }
        _ => vec![text.to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_scontrol() {
        for (list, names) in [
            ("n0", "n0"),
            ("n[0-2]", "n0 n1 n2"),
            ("n[08-10,12],login", "n08 n09 n10 n12 login"),
            ("r[1-2]n[0-1]-ib", "r1n0-ib r1n1-ib r2n0-ib r2n1-ib"),
            ("", ""),
        ] {
            assert_eq!(expand(list).join(" "), names, "{list}");
        }
    }
}
