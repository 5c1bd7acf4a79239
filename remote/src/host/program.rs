//! A copy of this program on another host, once per build.

use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::time::Duration;

use jobc_sys::error::{AtPath as _, Error, Kind, Result};

use super::{Host, SendFile};

/// How long the host may take to answer.
const TIMEOUT: Duration = Duration::from_mins(2);
/// Digits of the build in the name of the file.
const DIGITS: usize = 16;
/// Where the note with the number of the build is at the latest.
const NOTES: usize = 64 << 10;
/// The beginning of a note with a number of 20 bytes, `NT_GNU_BUILD_ID` of elf(5).
const BUILD_ID: &[u8] = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";

/// Makes a program of the store available under its name: `STORE FILE NAME`. `~` is the home directory.
const INSTALL: &str = r#"set -eu
case $1 in '~/'*) set -- "$HOME/${1#??}" "$2" "$HOME/${3#??}" ;; esac
mkdir -p "$(dirname "$3")"
ln -f "$1/sha256/$2" "$3" 2>/dev/null || { cp "$1/sha256/$2" "$3.$$" && mv "$3.$$" "$3"; }
exec "$3" --version
"#;

/// This program, which other hosts get a copy of.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The file.
    pub path: PathBuf,
    /// What `--version` prints.
    pub version: String,
}

impl Program {
    /// The name of the file there: `jobc-VERSION-BUILD`.
    pub(crate) fn file_name(&self) -> Result<String> {
        let number = self.version.rsplit(' ').next().unwrap_or_default();
        Ok(format!("jobc-{number}-{}", &self.build()?[..DIGITS]))
    }

    /// The number that its linker gave it, or else the digest of the file, which takes longer to read.
    fn build(&self) -> Result<String> {
        let mut start = Vec::new();
        let read = File::open(&self.path).and_then(|file| file.take(NOTES as u64).read_to_end(&mut start));
        read.at_path("read", &self.path)?;
        let at = start.windows(BUILD_ID.len()).position(|window| window == BUILD_ID);
        let number = at.and_then(|at| start.get(at + BUILD_ID.len()..)?.get(..DIGITS / 2));
        Ok(match number {
            Some(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            None => SendFile::read(&self.path)?.digest.hex().to_owned(),
        })
    }

    /// Puts it at a path of a host: an absolute one, or one below the home directory. `setting` of the target selects
    /// another one.
    pub(crate) fn install(&self, host: &Host, store: &str, path: &str, setting: &str) -> Result<()> {
        let unsupported =
            |message: String, help: String| Err(Error::new(Kind::Unsupported, message).help(help));
        let name = host.name();
        let machine = host.run(&["uname", "-sm"], None, TIMEOUT)?.text();
        let own = std::env::consts::ARCH;
        if machine.trim() != format!("Linux {own}") {
            let message =
                format!("`{name}` is a machine of another kind ({}), not Linux {own}", machine.trim());
            return unsupported(
                message,
                format!("install jobc for it there, and set `{setting}` to its path"),
            );
        }
        let mut file = SendFile::read(&self.path)?;
        file.is_executable = true;
        host.send(store, std::slice::from_ref(&file))?;
        let output = host.run(&["sh", "-c", INSTALL, "sh", store, &file.name(), path], None, TIMEOUT)?;
        if output.status == 0 && output.text().trim() == self.version {
            return Ok(());
        }
        unsupported(
            format!("this program does not run there: {}", output.reason()),
            format!(
                "use the static `jobc` of a release, or install jobc there and set `{setting}` to its path"
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_build_has_another_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("jobc");
        let program = Program { path: path.clone(), version: "jobc 1.2.3".to_owned() };
        let mut names = vec![];
        for id in [Some(1_u8), Some(2), None] {
            let id = id.map(|id| [BUILD_ID, &[id; 20]].concat()).unwrap_or_default();
            std::fs::write(&path, [b"\x7fELF".as_slice(), &id, &[0; 100]].concat()).unwrap();
            names.push(program.file_name().unwrap());
        }
        assert_eq!(names[0], "jobc-1.2.3-0101010101010101");
        assert_eq!(names[1], "jobc-1.2.3-0202020202020202");
        assert_eq!(names[2].len(), names[0].len());
    }
}
