//! The processes of a pid namespace, as /proc of this one shows them (pid_namespaces(7)).

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::{fs, io};

/// A process of a pid namespace, with its PID in this one.
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
    Ok(select(first, namespace, &list()?))
}

/// For each of several processes: itself, if it exists, with the processes in the pid namespace of which it is the
/// first process and in namespaces below, in ascending order. For a process without its own pid namespace, its
/// descendants.
///
/// # Errors
///
/// /proc cannot be read.
pub fn members(firsts: &[u32]) -> io::Result<BTreeMap<u32, Vec<u32>>> {
    let own = namespace_of(std::process::id()).unwrap_or_default();
    let firsts: BTreeSet<u32> = firsts.iter().copied().collect();
    let namespace = |first: u32| namespace_of(first).ok().filter(|&namespace| namespace != own);
    let namespaces = firsts.iter().filter_map(|&first| Some((namespace(first)?, first))).collect();
    Ok(assign(&firsts, &namespaces, &list()?))
}

/// The descendants of a process, in ascending order.
///
/// # Errors
///
/// /proc cannot be read.
pub fn descendants(first: u32) -> io::Result<Vec<Member>> {
    let all = list()?;
    let is_below = |pid| chain(pid, &all).any(|(ancestor, _)| ancestor == first);
    let below = all.iter().filter(|&(&pid, _)| pid != first && is_below(pid));
    Ok(below.map(|(&pid, listed)| Member { pid, parent: listed.parent }).collect())
}

/// Every process.
fn list() -> io::Result<BTreeMap<u32, Listed>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // It may be gone by now.
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let Some(parent) = parent_of(&stat) else { continue };
        all.insert(pid, Listed { parent, namespace: namespace_of(pid).unwrap_or_default() });
    }
    Ok(all)
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

/// The number that a process has in its own pid namespace; `None` if it has ended.
pub fn number(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    line.split_ascii_whitespace().last()?.parse().ok()
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
    let is_inside =
        |pid| chain(pid, all).any(|(ancestor, listed)| listed.namespace == namespace || ancestor == first);
    let inside = all.iter().filter(|&(&pid, _)| pid != first && is_inside(pid));
    inside.map(|(&pid, listed)| Member { pid, parent: listed.parent }).collect()
}

/// Which process each one belongs to: the nearest among itself and its ancestors that is one of `firsts`, or in one of
/// their namespaces.
fn assign(
    firsts: &BTreeSet<u32>,
    namespaces: &BTreeMap<u64, u32>,
    all: &BTreeMap<u32, Listed>,
) -> BTreeMap<u32, Vec<u32>> {
    let mut members = BTreeMap::<u32, Vec<u32>>::new();
    for &pid in all.keys() {
        let owner = chain(pid, all).find_map(|(ancestor, listed)| {
            let is_first = firsts.contains(&ancestor).then_some(ancestor);
            is_first.or_else(|| namespaces.get(&listed.namespace).copied())
        });
        if let Some(owner) = owner {
            members.entry(owner).or_default().push(pid);
        }
    }
    members
}

/// A process and its ancestors.
fn chain(pid: u32, all: &BTreeMap<u32, Listed>) -> impl Iterator<Item = (u32, Listed)> {
    let next = move |pid: u32| Some((pid, *all.get(&pid)?));
    // A parent is older, but numbers wrap around; a process that ended meanwhile ends the chain.
    std::iter::successors(next(pid), move |(_, listed)| next(listed.parent)).take(all.len())
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
            // Entered by setns(2), with its own child; and a process whose parent has ended.
            (40, member(20, 8)),
            (41, member(40, 0)),
            (50, member(49, 0)),
        ]);
        let inside = select(30, 8, &all);
        assert_eq!(inside.iter().map(|member| member.pid).collect::<Vec<_>>(), [31, 32, 33, 40, 41]);
        assert_eq!(inside[1], Member { pid: 32, parent: 31 });
    }

    #[test]
    fn every_process_belongs_to_the_nearest_first_one() {
        let member = |parent, namespace| Listed { parent, namespace };
        let all = BTreeMap::from([
            (1, member(0, 7)),
            (30, member(1, 8)),
            (31, member(30, 8)),
            (32, member(31, 0)),
            (40, member(1, 9)),
            (41, member(1, 9)),
            // A task that was started by a process of another task.
            (50, member(31, 10)),
            (51, member(50, 0)),
            (60, member(1, 7)),
            (61, member(60, 7)),
        ]);
        let namespaces = BTreeMap::from([(8, 30), (9, 40), (10, 50)]);
        let members = assign(&BTreeSet::from([30, 40, 50, 60, 70]), &namespaces, &all);
        let expected = [(30, vec![30, 31, 32]), (40, vec![40, 41]), (50, vec![50, 51]), (60, vec![60, 61])];
        assert_eq!(members, BTreeMap::from(expected));
    }

    #[test]
    fn a_process_without_a_namespace_of_its_own_has_its_descendants() {
        let mut shell =
            std::process::Command::new("sh").args(["-c", "sleep 60; true"]).spawn().expect("sh starts");
        let (mut found, mut below) = (vec![], vec![]);
        for _ in 0..500 {
            found = members(&[shell.id()]).expect("/proc is there").remove(&shell.id()).unwrap_or_default();
            below = descendants(shell.id()).expect("/proc is there");
            if found.len() > 1 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        for pid in &found {
            crate::signals::Signal::KILL.send_to(*pid).expect("it is ours");
        }
        shell.wait().expect("it has ended");
        assert!(found.len() == 2 && found.contains(&shell.id()), "{found:?}");
        assert!(below.len() == 1 && below[0].parent == shell.id(), "{below:?}");
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
