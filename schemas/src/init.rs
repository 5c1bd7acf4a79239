//! Programs that are an init themselves: as process 1 they forward signals and reap orphaned processes.

/// Whether a command's first word names such a program.
pub fn is_init(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    matches!(
        name,
        "tini"
            | "tini-static"
            | "docker-init"
            | "catatonit"
            | "dumb-init"
            | "dinit"
            | "init"
            | "my_init"
            | "pid1"
            | "runit"
            | "runit-init"
            | "s6-svscan"
            | "s6-overlay-suexec"
            | "systemd"
    )
}

#[cfg(test)]
mod tests {
    use super::is_init;

    #[test]
    fn inits_are_known_by_their_names() {
        let words =
            ["/usr/bin/tini", "dumb-init", "/sbin/init", "/init", "/lib/systemd/systemd", "s6-svscan"];
        assert!(words.into_iter().all(is_init));
        assert!(!["bash", "/init/run", "python3", ""].into_iter().any(is_init));
    }
}
