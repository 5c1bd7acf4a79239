//! The processes of a pid namespace, as /proc of this one shows them (pid_namespaces(7)).

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::{fs, io};

/// A process of a pid namespace, by the numbers of this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its number.
    pub pid: u32,
    /// Its parent's number.
    pub parent: u32,
}

/// A process as /proc shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Listed {
    parent: u32,
    /// The inode of its pid namespace; 0 where this user may not know.
    namespace: u64,
}

/// The processes in the pid namespace that a process is the first of, and in namespaces below it, except for the process
/// itself; in ascending order.
///
/// A process that ends meanwhile may still be listed, and one that is born meanwhile may not be.
///
/// # Errors
///
/// The process is gone, or /proc cannot be read.
pub fn others(first: u32) -> io::Result<Vec<Member>> {
    let namespace = namespace_of(first)?;
    let mut all = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // It may be gone by now.
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let Some(parent) = parent_of(&stat) else { continue };
        all.insert(pid, Listed { parent, namespace: namespace_of(pid).unwrap_or_default() });
    }
    Ok(select(first, namespace, &all))
}

/// The processes of this host that are in the pid namespaces of some processes, by the namespace's inode.
///
/// # Errors
///
/// /proc cannot be read. A process that is gone is left out.
pub fn members_of(firsts: &[u32]) -> io::Result<BTreeMap<u64, Vec<u32>>> {
    let mut members: BTreeMap<u64, Vec<u32>> =
        firsts.iter().filter_map(|&pid| Some((namespace_of(pid).ok()?, Vec::new()))).collect();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if let Some(inside) = namespace_of(pid).ok().and_then(|namespace| members.get_mut(&namespace)) {
            inside.push(pid);
        }
    }
    Ok(members)
}

/// The inode of a process's pid namespace.
///
/// # Errors
///
/// The process is gone, or this user may not know.
pub fn namespace_of(pid: u32) -> io::Result<u64> {
    fs::metadata(format!("/proc/{pid}/ns/pid")).map(|file| file.ino())
}

/// The fourth field; the second is the program's name, which may contain anything (proc_pid_stat(5)).
fn parent_of(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(1)?.parse().ok()
}

/// Which of `all` are in a namespace, or descend from a process that is: those of namespaces below, and those whose
/// namespace this user may not know. Who entered it has a parent outside.
fn select(first: u32, namespace: u64, all: &BTreeMap<u32, Listed>) -> Vec<Member> {
    let is_inside = |mut pid: u32| {
        // A parent is older, but numbers wrap around; a process that ended meanwhile ends the chain.
        for _ in 0..all.len() {
            match all.get(&pid) {
                Some(listed) if listed.namespace == namespace || pid == first => return true,
                Some(listed) => pid = listed.parent,
                None => return false,
            }
        }
        false
    };
    let inside = all.iter().filter(|&(&pid, _)| pid != first && is_inside(pid));
    inside.map(|(&pid, listed)| Member { pid, parent: listed.parent }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_in_the_namespace_or_descend_from_it() {
        let member = |parent, namespace| Listed { parent, namespace };
        let all = BTreeMap::from([
            (1, member(0, 7)),
            (20, member(1, 7)),
            // The first process, its child, a namespace below it, a process that may not be looked at.
            (30, member(20, 8)),
            (31, member(30, 8)),
            (32, member(31, 9)),
            (33, member(31, 0)),
            // Entered by setns(2), with a child of its own; and a process whose parent is gone.
            (40, member(20, 8)),
            (41, member(40, 0)),
            (50, member(49, 0)),
        ]);
        let inside = select(30, 8, &all);
        assert_eq!(inside.iter().map(|member| member.pid).collect::<Vec<_>>(), [31, 32, 33, 40, 41]);
        assert_eq!(inside[1], Member { pid: 32, parent: 31 });
    }

    #[test]
    fn a_name_may_look_like_fields() {
        assert_eq!(parent_of("7 (a) S 9 (b) S 12 7 7 0"), Some(12));
        assert_eq!(parent_of("7 (sh) S 3 7 7 0"), Some(3));
        assert_eq!(parent_of("7"), None);
    }

    #[test]
    fn a_process_of_the_same_namespace_is_listed() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("sleep starts");
        let listed = others(std::process::id()).expect("/proc is there");
        let listed: Vec<u32> = listed.iter().map(|member| member.pid).collect();
        child.kill().expect("it runs");
        child.wait().expect("it has ended");
        assert!(listed.contains(&child.id()) && !listed.contains(&std::process::id()), "{listed:?}");
    }
}
