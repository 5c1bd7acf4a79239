//! For which jobs, targets and roles a change holds, shortly.

pub(super) use crate::changes::summary::ChangedJob as Place;
use crate::changes::summary::ChangedRole;

/// Maximum number of names in a list.
const MAX_NAMES: usize = 3;

/// Some names: `a, b, c, and 9 more`.
pub(super) fn few(names: &[&str]) -> String {
    match names.len().checked_sub(MAX_NAMES).filter(|more| *more > 0) {
        Some(more) => format!("{}, and {more} more", names[..MAX_NAMES].join(", ")),
        None => names.join(", "),
    }
}

/// Names, with their number if there are many: `a, b` or `12 jobs (a, b, c, and 9 more)`.
fn counted(names: &[&str], noun: &str) -> String {
    if names.len() > MAX_NAMES { format!("{} {noun} ({})", names.len(), few(names)) } else { few(names) }
}

/// Jobs and targets: `hello at here, lab`.
pub(super) fn heading(places: &[Place]) -> String {
    let (mut jobs, mut targets): (Vec<&str>, Vec<&str>) = (vec![], vec![]);
    for place in places {
        if !jobs.contains(&place.job.as_str()) {
            jobs.push(&place.job);
        }
        if !targets.contains(&place.target.as_str()) {
            targets.push(&place.target);
        }
    }
    let noun = if places.iter().all(|place| place.is_combination) { "combinations" } else { "jobs" };
    if jobs.len() * targets.len() == places.len() {
        return format!("{} at {}", counted(&jobs, noun), counted(&targets, "targets"));
    }
    let pairs: Vec<String> =
        places.iter().map(|place| format!("{} at {}", place.job, place.target)).collect();
    few(&pairs.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A field of roles: `roles.train.instances`, `roles.train.instances in 3 of 8 combinations (...)`,
/// `instances of 4 roles (...)`.
pub(super) fn field(field: &str, roles: &[ChangedRole]) -> String {
    let below =
        |role: &str| if field.is_empty() { format!("roles.{role}") } else { format!("roles.{role}.{field}") };
    let names: Vec<&str> = roles.iter().map(|role| role.name.as_str()).collect();
    match roles {
        [] => field.to_owned(),
        [role] => below(&role.name),
        [first, ..] => match &first.matrix {
            Some((declared, all)) if roles.iter().all(|role| role.matrix == first.matrix) => {
                let declared = below(declared);
                if names.len() == *all {
                    format!("{declared} in all {all} combinations")
                } else {
                    format!("{declared} in {} of {all} combinations ({})", names.len(), few(&names))
                }
            }
            _ => {
                let of = if field.is_empty() { String::new() } else { format!("{field} of ") };
                format!("{of}{} roles ({})", names.len(), few(&names))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(name: &str, matrix: Option<(&str, usize)>) -> ChangedRole {
        ChangedRole { name: name.to_owned(), matrix: matrix.map(|(role, all)| (role.to_owned(), all)) }
    }

    #[test]
    fn fields_name_their_roles() {
        assert_eq!(field("network", &[]), "network");
        assert_eq!(field("instances", &[role("a", None)]), "roles.a.instances");
        let two = [role("a", None), role("b", None)];
        assert_eq!(field("instances", &two), "instances of 2 roles (a, b)");
        assert_eq!(field("", &two), "2 roles (a, b)");
        let of_two = [role("a-m0", Some(("a", 2))), role("a-m1", Some(("a", 2)))];
        assert_eq!(field("instances", &of_two), "roles.a.instances in all 2 combinations");
        let of_five = [role("a-m0", Some(("a", 5))), role("a-m3", Some(("a", 5)))];
        assert_eq!(field("instances", &of_five), "roles.a.instances in 2 of 5 combinations (a-m0, a-m3)");
    }

    #[test]
    fn headings_name_jobs_and_targets() {
        let place = |(job, target): &(&str, &str)| Place {
            job: (*job).to_owned(),
            target: (*target).to_owned(),
            is_combination: false,
        };
        let check = |places: &[(&str, &str)], shown: &str| {
            assert_eq!(heading(&places.iter().map(place).collect::<Vec<_>>()), shown);
        };
        check(&[("a", "x"), ("a", "y")], "a at x, y");
        check(&[("a", "x"), ("b", "y")], "a at x, b at y");
        check(&[("a", "x"), ("b", "x"), ("c", "x"), ("d", "x")], "4 jobs (a, b, c, and 1 more) at x");
    }
}
