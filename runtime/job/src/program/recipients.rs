//! Chooses the processes of a task that get a signal which its first process does not handle.

use std::collections::{BTreeMap, BTreeSet};

use jobc_sys::pid_namespace::Member;

/// The processes to send a signal to, among all but the first of a task.
///
/// Where some of them catch the signal, it goes to those alone: the shells that wait for them, and what reads from them
/// through a pipe, would be ended by it, and with a shell the whole task, while a trainer still saves its state. Of two
/// that catch it, one below the other, only the upper one gets it: a program's handler passes on what its own workers,
/// which inherit the handler, need to know. Where none catches it, all get it.
pub(super) fn recipients(others: &[Member], catches: impl Fn(u32) -> bool) -> Vec<u32> {
    let parents: BTreeMap<u32, u32> = others.iter().map(|member| (member.pid, member.parent)).collect();
    let catching: BTreeSet<u32> = parents.keys().copied().filter(|&pid| catches(pid)).collect();
    let is_below_another = |pid: u32| {
        let above = std::iter::successors(parents.get(&pid), |&pid| parents.get(pid));
        // Numbers that were read while processes came and went may name each other.
        above.take(parents.len()).any(|above| catching.contains(above))
    };
    let upper: Vec<u32> = catching.iter().copied().filter(|&pid| !is_below_another(pid)).collect();
    if upper.is_empty() { parents.into_keys().collect() } else { upper }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(others: &[(u32, u32)], catching: &[u32], expected: &[u32]) {
        let others: Vec<Member> = others.iter().map(|&(pid, parent)| Member { pid, parent }).collect();
        assert_eq!(recipients(&others, |pid| catching.contains(&pid)), expected);
    }

    #[test]
    fn a_handler_keeps_the_signal_from_those_without() {
        // The first process is 1. A shell (2) waits for a trainer (3) that writes to tee (4); a worker (5).
        let pipeline = [(2, 1), (3, 2), (4, 2), (5, 3)];
        check(&pipeline, &[3, 5], &[3]);
        check(&pipeline, &[4, 5], &[4, 5]);
        check(&pipeline, &[], &[2, 3, 4, 5]);
        check(&[], &[], &[]);
        // The PID may have been reused.
        check(&[(2, 3), (3, 2)], &[], &[2, 3]);
        check(&[(2, 3), (3, 2), (4, 3)], &[4], &[4]);
    }
}
