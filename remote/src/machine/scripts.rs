//! Scripts on the host besides `jobc`, for any POSIX shell. Commands start in the home directory.

/// The exit code of a script that does not find `jobc`.
pub(super) const NO_PROGRAM: i32 = 97;

/// Runs `jobc` if it is there: `PROGRAM WORD...`.
pub(super) const RUN: &str = r#"command -v "$1" >/dev/null || exit 97
exec "$@"
"#;

/// Prints what the host lacks, the runs with the ids of their jobs, all names of runs, a line `jobs`, and what
/// `jobc ps` prints: `DIRECTORY PROGRAM`.
pub(super) const LIST: &str = r#"command -v "$2" >/dev/null || exit 97
for tool in tar sha256sum flock base64; do
  command -v $tool >/dev/null || echo "missing $tool"
done
for directory in "$1"/jobs/*/; do
  [ -d "$directory" ] || continue
  name=${directory%/}
  echo "name ${name##*/}"
  [ -s "$directory/run.json" ] || continue
  id=-
  if [ -s "$directory/id" ]; then read -r id <"$directory/id"; fi
  read -r text <"$directory/run.json" || true
  printf 'run %s %s\n' "$id" "$text"
done
echo jobs
exec "$2" ps --all --format json
"#;

/// Starts the job of a run, unless it was started, and prints its id: `RUN_DIRECTORY NAME PROGRAM`. `@SECRETS@` are
/// lines that export secrets.
///
/// A job that cannot start leaves nothing.
pub(super) const START: &str = r#"command -v "$3" >/dev/null || exit 97
set -eu
case $3 in /*) program=$3;; */*) program=$PWD/$3;; *) program=$3;; esac
cd "$1"
exec 9>lock
flock 9
if [ ! -s id ]; then
  id=$("$program" ps --all --quiet 9>&- | grep -x "$2\.[0-9]*" | tail -n 1) || true
  if [ -z "$id" ]; then
@SECRETS@
    id=$("$program" run --detach built 9>&- </dev/null) || {
      code=$?
      rm -rf "$PWD"
      exit $code
    }
  fi
  echo "$id" >id.partial
  mv id.partial id
fi
cat id
"#;

/// Removes a job that has ended, or ends it before, and its run; outputs stay: `RUN_DIRECTORY ID PROGRAM OUTPUT...`.
pub(super) const REMOVE: &str = r#"command -v "$3" >/dev/null || exit 97
run=$1 id=$2 program=$3
shift 3
if [ "$id" != - ]; then "$program" rm --force "$id" </dev/null || exit; fi
[ -n "$run" ] && cd "$run" 2>/dev/null || exit 0
rm -rf built id lock run.json
[ -d files ] || exit 0
for output; do
  if [ -e "files/$output" ]; then
    mkdir -p "kept/$(dirname "$output")" && mv "files/$output" "kept/$output"
  fi
done
rm -rf files
[ ! -d kept ] || mv kept files
cd .. && rmdir "$run" 2>/dev/null || true
"#;

/// Imports an image from a directory, which is removed: `PROGRAM DIRECTORY NAME`.
pub(super) const IMPORT: &str = r#"command -v "$1" >/dev/null || exit 97
"$1" image import --quiet --tag "$3" "$2" </dev/null
code=$?
rm -rf "$2"
exit $code
"#;
