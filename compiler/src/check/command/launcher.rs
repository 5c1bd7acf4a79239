//! Programs that start the processes of a training job.

use super::program::Command;

/// A program that starts other processes, here or on other hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Launcher {
    /// PyTorch's.
    Torchrun,
    /// Hugging Face's `accelerate launch`.
    Accelerate,
    /// DeepSpeed's.
    Deepspeed,
    /// `mpirun`, `mpiexec` and the like.
    Mpirun,
    /// Horovod's.
    Horovodrun,
    /// MosaicML's `composer`.
    Composer,
    /// `colossalai run`.
    Colossalai,
}

impl Launcher {
    /// The command as people write it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Torchrun => "torchrun",
            Self::Accelerate => "accelerate launch",
            Self::Deepspeed => "deepspeed",
            Self::Mpirun => "mpirun",
            Self::Horovodrun => "horovodrun",
            Self::Composer => "composer",
            Self::Colossalai => "colossalai run",
        }
    }

    /// Whether one of them starts processes on the other hosts, by ssh.
    pub(crate) fn starts_peers(self) -> bool {
        matches!(self, Self::Deepspeed | Self::Mpirun | Self::Horovodrun)
    }
}

impl Command {
    /// Whether it is PyTorch's launcher.
    pub(crate) fn is_torchrun(&self) -> bool {
        self.launcher() == Some(Launcher::Torchrun)
    }

    /// The script that it runs, itself or through a launcher: `python FILE.py`, `bash FILE.sh`, `./FILE.sh`, `torchrun
    /// FILE.py`.
    pub(crate) fn script_file(&self) -> Option<&str> {
        let launched = || {
            self.launcher()?;
            let is_script = |word: &&String| camino::Utf8Path::new(word.as_str()).extension() == Some("py");
            self.arguments().iter().find(is_script).map(String::as_str)
        };
        self.python_file().or_else(|| self.shell_file()).or_else(launched)
    }

    /// Which launcher it is.
    pub(crate) fn launcher(&self) -> Option<Launcher> {
        let module = self.python_module();
        Some(match (self.program(), module) {
            ("torchrun", _) | (_, Some("torch.distributed.run" | "torch.distributed.launch")) => {
                Launcher::Torchrun
            }
            ("accelerate", _) if self.arguments().first().is_some_and(|word| word == "launch") => {
                Launcher::Accelerate
            }
            ("accelerate-launch", _) | (_, Some("accelerate.commands.launch")) => Launcher::Accelerate,
            ("deepspeed" | "ds", _) | (_, Some("deepspeed.launcher.runner")) => Launcher::Deepspeed,
            ("mpirun" | "mpiexec" | "mpiexec.hydra" | "orterun" | "prterun", _) => Launcher::Mpirun,
            ("horovodrun", _) => Launcher::Horovodrun,
            ("composer", _) | (_, Some("composer.cli.launcher")) => Launcher::Composer,
            ("colossalai", _) if self.arguments().first().is_some_and(|word| word == "run") => {
                Launcher::Colossalai
            }
            _ => return None,
        })
    }
}
