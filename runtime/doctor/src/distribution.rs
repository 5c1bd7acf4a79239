//! How things are installed and set on the distribution that runs here.

use super::host::Host;

/// The distribution: its package manager and its boot loader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Distribution {
    family: Family,
    boot_loader: BootLoader,
}

/// A family of distributions, by its package manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Debian,
    Fedora,
    Suse,
    Arch,
    Alpine,
    Other,
}

/// How parameters of the kernel are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BootLoader {
    /// By grubby(8).
    Grubby,
    /// In /etc/default/grub, which update-grub(8) and grub-mkconfig(8) read.
    Grub,
    /// In some other way, as in a virtual machine that boots a kernel from outside.
    Other,
}

/// A package under the name each family gives it.
pub(super) struct Package {
    pub(super) debian: &'static str,
    pub(super) fedora: &'static str,
    pub(super) suse: &'static str,
    pub(super) arch: &'static str,
    pub(super) alpine: &'static str,
}

impl Package {
    /// A package with the same name in all distributions.
    pub(super) const fn same(name: &'static str) -> Self {
        Self { debian: name, fedora: name, suse: name, arch: name, alpine: name }
    }
}

impl Distribution {
    /// The distribution, from os-release(5) and from the programs and files of boot loaders.
    pub(super) fn of(machine: &dyn Host) -> Self {
        let release = machine.read("/etc/os-release").or_else(|| machine.read("/usr/lib/os-release"));
        let release = release.unwrap_or_default();
        let field = |name: &str| {
            let value = release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            value.unwrap_or_default().trim_matches('"').to_owned()
        };
        let words = format!("{} {}", field("ID"), field("ID_LIKE"));
        let family = words.split_whitespace().find_map(|word| match word {
            "debian" | "ubuntu" => Some(Family::Debian),
            "fedora" | "rhel" | "centos" => Some(Family::Fedora),
            "suse" | "opensuse" | "sles" => Some(Family::Suse),
            "arch" => Some(Family::Arch),
            "alpine" => Some(Family::Alpine),
            _ => None,
        });
        let start = match () {
            () if machine.program("grubby").is_some() => BootLoader::Grubby,
            () if machine.entry("/etc/default/grub").is_some() => BootLoader::Grub,
            () => BootLoader::Other,
        };
        Self { family: family.unwrap_or(Family::Other), boot_loader: start }
    }

    /// The command that installs a package, or what to install where no command is known.
    pub(super) fn install(self, package: &Package) -> String {
        self.install_command(package).unwrap_or_else(|| format!("install the package `{}`", package.debian))
    }

    /// The command that installs a package.
    pub(super) fn install_command(self, package: &Package) -> Option<String> {
        Some(match self.family {
            Family::Debian => format!("apt install {}", package.debian),
            Family::Fedora => format!("dnf install {}", package.fedora),
            Family::Suse => format!("zypper install {}", package.suse),
            Family::Arch => format!("pacman -S {}", package.arch),
            Family::Alpine => format!("apk add {}", package.alpine),
            Family::Other => return None,
        })
    }

    /// How the kernel gets a parameter at its next start.
    pub(super) fn kernel_parameter(self, parameter: &str) -> String {
        match self.boot_loader {
            BootLoader::Grubby => format!("grubby --update-kernel=ALL --args={parameter}, then reboot"),
            // Others may have no line that the command could change.
            BootLoader::Grub if matches!(self.family, Family::Alpine | Family::Other) => format!(
                "add `{parameter}` to GRUB_CMDLINE_LINUX in /etc/default/grub, run `grub-mkconfig -o /boot/grub/grub.cfg`, then reboot"
            ),
            BootLoader::Grub => {
                let update = match self.family {
                    Family::Debian => "update-grub",
                    Family::Fedora | Family::Suse => "grub2-mkconfig -o /boot/grub2/grub.cfg",
                    _ => "grub-mkconfig -o /boot/grub/grub.cfg",
                };
                format!(
                    "sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{parameter} /' /etc/default/grub && {update}, then reboot"
                )
            }
            BootLoader::Other => format!("add `{parameter}` to the kernel's command line, then reboot"),
        }
    }
}

/// How a kernel setting is made, now and for good.
///
/// [`is_sysctl`] finds it among other fixes.
pub(super) fn sysctl(name: &str, value: &str) -> String {
    format!("echo '{name} = {value}' >>/etc/sysctl.d/60-jobc.conf && sysctl --system")
}

/// Whether a fix is the command of a kernel setting.
pub(super) fn is_sysctl(fix: &str) -> bool {
    fix.ends_with("&& sysctl --system")
}
