//! The ids that root grants a user: /etc/subuid and /etc/subgid (subuid(5)).

use std::path::Path;

use crate::accounts::{GrantEntry, grants, id, name_of, read_file};
use crate::error::{Error, Kind, Result};

/// A run of ids of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first id.
    pub first: u32,
    /// How many ids.
    pub length: u32,
}

/// The ranges that a file grants a user, whose lines have a number or a name. A file that does not exist grants
/// nothing.
pub(super) fn granted(path: &Path, uid: u32, name: Option<&str>) -> Result<Vec<Range>> {
    Ok(ranges(&text(path)?, uid, name))
}

/// The ranges of the lines `USER:FIRST:LENGTH` that are the user's. Id 0 is never granted, even if a line has it, and
/// neither is a range that meets the user's own id or an earlier range: the kernel would refuse the whole map.
pub fn ranges(text: &str, uid: u32, name: Option<&str>) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    for GrantEntry { owner, first, count: length } in grants(text) {
        let own = Some(owner) == name || id(owner) == Some(uid);
        let fits = first != 0 && length != 0 && first.checked_add(length).is_some();
        if own
            && fits
            && !super::overlap(first, length, uid, 1)
            && !ranges.iter().any(|range| super::overlap(range.first, range.length, first, length))
        {
            ranges.push(Range { first, length });
        }
    }
    ranges
}

/// The name of a user of the host.
pub(super) fn name(passwd: &Path, uid: u32) -> Result<Option<String>> {
    Ok(name_of(&text(passwd)?, uid))
}

fn text(path: &Path) -> Result<String> {
    read_file(path)
        .map_err(|error| Error::new(Kind::System, format!("cannot read {}", path.display())).because(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_user_s_by_name_or_by_number() {
        let text = "ann:100000:65536\nbob:165536:65536\n1001:300000:10\nann:400000:5\n";
        let check = |uid, name| -> Vec<(u32, u32)> {
            ranges(text, uid, name).iter().map(|range| (range.first, range.length)).collect()
        };
        assert_eq!(check(1001, Some("ann")), [(100_000, 65536), (300_000, 10), (400_000, 5)]);
        assert_eq!(check(1002, Some("bob")), [(165_536, 65536)]);
        assert_eq!(check(1002, None), []);
        assert_eq!(check(1003, Some("an")), []);
    }

    #[test]
    fn lines_that_grant_what_cannot_be_granted_are_passed_over() {
        let check = |text: &str| ranges(text, 1001, Some("ann")).len();
        assert_eq!(check("ann:0:65536\n"), 0, "the host's root");
        assert_eq!(check("ann:5:0\n"), 0, "nothing");
        assert_eq!(check("ann:4294967000:1000\n"), 0, "past the last id");
        assert_eq!(check("ann:1:2:3\nann:x:2\nann\n\n#ann:5:5\n"), 0, "no such lines");
        assert_eq!(check("ann:-5:5\n"), 0, "negative");
        assert_eq!(check("ann:100:50\nann:149:5\nann:150:5\n"), 2, "the second meets the first");
        assert_eq!(check("ann:1001:5\n"), 0, "begins with the user's own id, which is mapped already");
    }

    #[test]
    fn a_range_around_the_user_s_own_id_is_not_granted_twice() {
        assert_eq!(ranges("ann:1000:5\n", 1001, Some("ann")), []);
    }
}
