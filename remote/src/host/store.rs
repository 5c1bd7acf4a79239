//! The scripts that keep files by their digest on a host, for any POSIX shell with `tar` and `sha256sum`.
//!
//! A file gets its name when all of it is there and has the digest. What a connection that broke left behind has another
//! name, and is removed a day later. Files that no directory has links to go 30 days after their last use.

use jobc_schema::shell;

/// Sets `store` to the first argument; `~` is the home directory. `has` says whether a directory has a file of the
/// store: it is not empty unless the digest is that of nothing, as a file can be after a power failure.
const STORE: &str = r#"set -eu
has() {
  [ -s "$1/$2" ] ||
    { [ "${2%-x}" = e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 ] && [ -e "$1/$2" ]; }
}
case $1 in '~') store=$HOME;; '~/'*) store=$HOME/${1#??};; /*) store=$1;; *) store=$PWD/$1;; esac
"#;

/// Prints the names that the store does not have, of those in standard input. Those that it has are marked as used.
const ASK: &str = r#"
while read -r name; do
  if has "$store/sha256" "$name"; then set -- "$@" "$store/sha256/$name"; else echo "$name"; fi
done
shift
[ $# -eq 0 ] || touch -c "$@"
"#;

/// Takes a tar archive of files that have their names in the store.
const RECEIVE: &str = r#"
umask 077
mkdir -p "$store/sha256"
incoming=$(mktemp -d "$store/incoming.XXXXXX")
trap 'rm -rf "$incoming"' EXIT
trap 'exit 1' HUP INT TERM
tar -xpmof - -C "$incoming"
cd "$incoming"
for file in *; do echo "${file%-x}  $file"; done | sha256sum -c >/dev/null
mv -f -- * "$store/sha256/"
cd "$store"
find sha256 -type f -links 1 -mtime +30 -exec rm -f {} +
find . -maxdepth 1 -name 'incoming.*' -mtime +1 -exec rm -rf {} +
"#;

/// The exit code of a script that misses files of the store; their names are its output.
pub(super) const MISSING: i32 = 98;

/// The beginning of the script that makes a directory: if it is not there, the function `look` says which files of the
/// store are missing.
const LOOK: &str = r#"
directory=$2
case $directory in '~/'*) directory=$HOME/${directory#??};; /*) ;; *) directory=$PWD/$directory;; esac
missing=
look() {
  for name; do
    shift
    if has "$store/sha256" "$name"; then set -- "$@" "$store/sha256/$name"; else echo "$name"; missing=yes; fi
  done
  [ $# -eq 0 ] || touch -c "$@"
}
if [ ! -d "$directory" ]; then
"#;

/// The part that makes the directory, in a shell of its own. The end is [`FINISH`].
const MAKE: &str = r#"
[ -z "$missing" ] || exit 98
(
umask 022
mkdir -p "$(dirname "$directory")"
partial=$(mktemp -d "$directory.partial.XXXXXX")
trap 'rm -rf "$partial"' EXIT
trap 'exit 1' HUP INT TERM
cd "$partial"
chmod 755 .
blobs=$store/sha256
link() { ln "$blobs/$1" "$2" 2>/dev/null || cp "$blobs/$1" "$2"; }
"#;

const FINISH: &str = r#"
mv -T "$partial" "$directory" 2>/dev/null || [ -d "$directory" ]
)
fi
"#;

/// The command that asks for missing names.
pub(super) fn ask() -> String {
    format!("{STORE}{ASK}")
}

/// The command that takes an archive.
pub(super) fn receive() -> String {
    format!("{STORE}{RECEIVE}")
}

/// The script that makes a directory of files of the store by lines of [`link`], [`copy`] and so on, and then does
/// something else; it is a shell's standard input.
pub(super) fn make(names: &[String], lines: &str, then: &str) -> String {
    let looks: String = names.chunks(500).map(|names| format!("look {}\n", names.join(" "))).collect();
    format!("{STORE}{LOOK}{looks}{MAKE}{lines}{FINISH}{then}")
}

/// The line that makes a file of the store visible under a path.
pub(super) fn link(name: &str, path: &str) -> String {
    format!("link {name} {}\n", path_word(path))
}

/// The line that copies a file of the store.
pub(super) fn copy(name: &str, path: &str) -> String {
    format!("cp \"$blobs/{name}\" {}\n", path_word(path))
}

/// The line that makes a symbolic link.
pub(super) fn symlink(target: &str, path: &str) -> String {
    format!("ln -s -- {} {}\n", shell::quote(target), path_word(path))
}

/// The line that makes directories.
pub(super) fn directories(paths: &[&str]) -> String {
    many("mkdir -p", paths)
}

/// The line that sets the mode of files.
pub(super) fn modes(mode: u32, paths: &[&str]) -> String {
    many(&format!("chmod {mode:o}"), paths)
}

/// A command with many paths, as few times as command lines allow.
fn many(command: &str, paths: &[&str]) -> String {
    paths
        .chunks(500)
        .map(|paths| {
            let words: Vec<String> = paths.iter().map(|path| path_word(path)).collect();
            format!("{command} {}\n", words.join(" "))
        })
        .collect()
}

/// A path that no program takes for an option.
fn path_word(path: &str) -> String {
    shell::quote(&format!("./{path}"))
}
