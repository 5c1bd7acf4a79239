//! Hooks that run inside the container's namespaces, started by the container's first process.
//!
//! A `createContainer` hook runs when the mounts are made and the host's root is still `/`; a `startContainer` hook
//! inside the root, with the rights of the program (OCI runtime specification, POSIX-platform hooks). The process that
//! starts them may not allocate, so their state lies ready in a file in memory that becomes their standard input.

use std::ffi::CString;
use std::fmt;
use std::os::fd::{AsRawFd as _, OwnedFd};

use oci_spec::runtime::Hook;
use rustix::io::Errno;

use super::program::Program;
use crate::child::Child;
use crate::seccomp::Program as Filter;
use crate::trampoline;
use crate::trampoline::birth::ProgramProcess;
use jobc_schema::plural;
use jobc_sys::c_list::CList;
use jobc_sys::error::{Error, Kind, Result};
use jobc_sys::syscall::Kernel;
use jobc_sys::syscall::hook::{HookProgram, Occupied};
use jobc_sys::syscall::stack::Stack;

/// A hook of the stages `createContainer` and `startContainer`, ready to be executed without allocating.
#[derive(Debug)]
pub struct ContainerHook {
    /// `createContainer` or `startContainer`.
    pub stage: &'static str,
    /// The program, with the container's state. A hook of the image's files is executed by a [`crate::trampoline`]: the
    /// file of who starts it, which would be `/proc/self/exe` until then, is the host's, and the hook may be a
    /// script with `#!/proc/self/exe` (CVE-2019-5736).
    pub program: HookProgram,
    /// Where in the state the process id is written: a run of spaces.
    pid_offset: u64,
}

/// The signal that ends a process for a syscall that its filter forbids.
const SIGSYS: u32 = linux_raw_sys::general::SIGSYS;

/// The default timeout of a hook, in seconds.
pub const DEFAULT_TIMEOUT_SECS: i64 = 300;

/// Room for a process id in the state.
const PID_WIDTH: usize = 10;

impl ContainerHook {
    /// A hook of config.json, with the container's state but for the process id, which is `"pid":` and room.
    ///
    /// A hook of the image's files gets the program's `filter`, and so its capabilities: the right to load the filter
    /// goes with it. Where it names no environment, as with runc it is `environment`.
    pub fn new(
        stage: &'static str,
        hook: &Hook,
        state: &StateText,
        filter: Option<&Filter>,
        environment: &[CString],
    ) -> Result<Self> {
        let text = |text: &str| {
            CString::new(text).map_err(|_| Error::new(Kind::Config, "a hook contains a NUL byte"))
        };
        let list = |list: &[String]| list.iter().map(|item| text(item)).collect::<Result<Vec<_>>>();
        let path = text(&hook.path().to_string_lossy())?;
        let arguments = match hook.args().as_deref() {
            Some(arguments) if !arguments.is_empty() => list(arguments)?,
            _ => vec![path.clone()],
        };
        let milliseconds = super::timeout(hook)?.as_millis();
        if stage == "createContainer" {
            // Executed by name, later and elsewhere: its directories must be safe too, whatever it is.
            Program::open(hook.path())?.check_directories()?;
        }
        let state_file = state.file()?;
        let image = match stage {
            // It reports its failures to a file descriptor that must be open; nothing reads it here.
            "startContainer" => Some(trampoline::build(
                std::slice::from_ref(&path),
                filter.map(Filter::without_listener).as_ref(),
                None,
                state_file.as_raw_fd(),
                None,
                ProgramProcess::Same,
            )?),
            _ => None,
        };
        Ok(Self {
            stage,
            pid_offset: state.pid_offset,
            program: HookProgram {
                path,
                arguments: CList::new(arguments),
                environment: CList::new(match hook.env() {
                    Some(own) => list(own)?,
                    None => environment.to_vec(),
                }),
                state: state_file,
                image,
                timeout_ms: i32::try_from(milliseconds).unwrap_or(i32::MAX),
                stack: Stack::new()?,
                occupied: Occupied::default(),
            },
        })
    }

    /// Runs it and waits for its end.
    pub fn carry_out<K: Kernel>(&self, child: &mut Child<'_, K>) -> std::result::Result<(), Errno> {
        let mut digits = [b' '; PID_WIDTH];
        let mut rest = child.kernel.getpid();
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        child.kernel.write_at(self.program.state.as_raw_fd(), &digits, self.pid_offset)?;
        if self.stage == "createContainer" {
            // As with runc: such hooks name what they mount by paths below the root.
            child.change_directory(child.root)?;
        }
        match child.kernel.run_hook(&self.program)? {
            0 => Ok(()),
            code => {
                child.report.add_detail(code);
                Err(Errno::CHILD)
            }
        }
    }

    /// What it means that the hook did not end well: `detail` is its exit code, or [`HookProgram::SIGNAL`] and the
    /// signal that ended it.
    pub(crate) fn explain(&self, errno: Errno, detail: u32) -> Error {
        let path = self.program.path.to_string_lossy();
        let (stage, seconds) = (self.stage, self.program.timeout_ms.unsigned_abs() / 1000);
        match errno {
            Errno::TIMEDOUT => Error::new(
                Kind::Hook,
                format!("the {stage} hook `{path}` was killed after {}", plural(seconds, "second")),
            )
            .help("set a longer `timeout`"),
            Errno::CHILD if matches!(detail, 126 | 127) => {
                Error::new(Kind::Hook, format!("the {stage} hook `{path}` cannot be executed")).help(
                    if stage == "startContainer" {
                        "its path is a path inside the container"
                    } else {
                        "its path is a path on the host"
                    },
                )
            }
            Errno::CHILD => {
                let how = match detail.checked_sub(HookProgram::SIGNAL_BASE) {
                    Some(SIGSYS) => {
                        "was ended by SIGSYS: the container's seccomp filter forbids a syscall of it"
                            .to_owned()
                    }
                    Some(signal) => format!("was ended by signal {signal}"),
                    None => format!("ended with exit code {detail}"),
                };
                Error::new(Kind::Hook, format!("the {stage} hook `{path}` {how}"))
            }
            errno => Error::system(format!("run the {stage} hook `{path}`"), errno),
        }
    }
}

impl fmt::Display for ContainerHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "run the {} hook `{}`", self.stage, self.program.path.to_string_lossy())
    }
}

/// A container's state as hooks read it, with room for the process id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateText {
    text: String,
    pid_offset: u64,
}

impl StateText {
    /// The state of a container (OCI runtime specification, runtime.md, "State").
    pub fn new(
        version: &str,
        id: &str,
        status: &str,
        bundle: &std::path::Path,
        annotations: &serde_json::Value,
    ) -> Self {
        let bundle = bundle.to_string_lossy();
        let mut text = format!(
            "{{\"ociVersion\":{},\"id\":{},\"status\":{},\"pid\":",
            serde_json::json!(version),
            serde_json::json!(id),
            serde_json::json!(status)
        );
        let pid_at = text.len() as u64;
        text.push_str(&" ".repeat(PID_WIDTH));
        text.push_str(&format!(",\"bundle\":{},\"annotations\":{annotations}}}", serde_json::json!(bundle)));
        Self { text, pid_offset: pid_at }
    }

    /// The state in a file in memory, to be read from its beginning.
    fn file(&self) -> Result<OwnedFd> {
        let machine = |errno| Error::system("make a file in memory for a hook's state", errno);
        let file =
            rustix::fs::memfd_create(c"jobc-state", rustix::fs::MemfdFlags::CLOEXEC).map_err(machine)?;
        rustix::io::pwrite(&file, self.text.as_bytes(), 0).map_err(machine)?;
        Ok(file)
    }
}
