use super::*;

/// Modes, the bits of a file and what becomes of them, the bits of a directory and what becomes of them.
const CASES: &[(&str, u32, u32, u32, u32)] = &[
    ("755", 0o644, 0o755, 0o700, 0o755),
    ("0o755", 0o644, 0o755, 0o700, 0o755),
    ("0755", 0o644, 0o755, 0o700, 0o755),
    ("4711", 0o644, 0o4711, 0o700, 0o4711),
    ("0", 0o644, 0, 0o700, 0),
    ("+x", 0o644, 0o755, 0o600, 0o711),
    ("u+x", 0o644, 0o744, 0o755, 0o755),
    ("a+rX", 0o600, 0o644, 0o700, 0o755),
    ("a+rX", 0o700, 0o755, 0o600, 0o755),
    ("go=u", 0o640, 0o666, 0o750, 0o777),
    ("u=rwX,go=rX", 0o600, 0o644, 0o700, 0o755),
    ("u=rwX,go=rX", 0o777, 0o755, 0o777, 0o755),
    ("u=rwX,go=rX", 0o001, 0o755, 0o000, 0o755),
    ("a=", 0o777, 0, 0o777, 0),
    ("go=", 0o755, 0o700, 0o755, 0o700),
    ("a=rX", 0o640, 0o444, 0o750, 0o555),
    ("go=u-w", 0o640, 0o644, 0o750, 0o755),
    ("u+rw-x", 0o111, 0o611, 0o111, 0o611),
    ("a-X", 0o755, 0o644, 0o755, 0o644),
    ("a-x,a+X", 0o755, 0o755, 0o755, 0o755),
    ("-x", 0o755, 0o644, 0o755, 0o644),
    ("+w", 0o444, 0o666, 0o555, 0o777),
    ("u+s,g+s", 0o755, 0o6755, 0o755, 0o6755),
    ("o+s", 0o755, 0o755, 0o755, 0o755),
    ("a-s", 0o6755, 0o755, 0o6755, 0o755),
    ("+t", 0o755, 0o1755, 0o755, 0o1755),
    ("o+t", 0o755, 0o755, 0o755, 0o755),
    ("u=rwx", 0o1644, 0o1744, 0o1755, 0o1755),
    ("u=g,g=o", 0o754, 0o544, 0o754, 0o544),
    ("g=u,u=", 0o754, 0o074, 0o754, 0o074),
    ("ug+rw,o-r", 0o004, 0o660, 0o004, 0o660),
];

#[test]
fn modes_change_the_bits_of_files_and_directories() {
    for (text, file, file_after, directory, directory_after) in CASES {
        let mode: Permissions = text.parse().unwrap();
        assert_eq!(mode.apply(*file, false), *file_after, "{text} of a file {file:o}");
        assert_eq!(mode.apply(*directory, true), *directory_after, "{text} of a directory {directory:o}");
    }
}

#[test]
fn what_is_not_a_mode_is_rejected() {
    for text in [
        "",
        "888",
        "10000",
        "0o",
        "0o8",
        "0x755",
        "7 5",
        "77777777777",
        "u",
        "x",
        "u+x,",
        ",u+x",
        "u+q",
        "z+x",
        "u+x g+x",
        "U+x",
        "rwxr-xr-x",
        "u+r/w",
        "755,u+x",
        "+u+x,é",
    ] {
        assert_eq!(text.parse::<Permissions>(), Err(InvalidPermissions), "{text}");
    }
}
