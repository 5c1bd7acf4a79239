//! How things are installed and set on the distribution that runs here.

use super::Machine;

/// A family of distributions, by its package manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distribution {
    Debian,
    Fedora,
    Suse,
    Arch,
    Alpine,
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
    /// A package that all call the same.
    pub(super) const fn same(name: &'static str) -> Self {
        Self { debian: name, fedora: name, suse: name, arch: name, alpine: name }
    }
}

impl Distribution {
    /// The one that os-release(5) tells of.
    pub(super) fn of(machine: &dyn Machine) -> Self {
        let release = machine.read("/etc/os-release").or_else(|| machine.read("/usr/lib/os-release"));
        let release = release.unwrap_or_default();
        let field = |name: &str| {
            let value = release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            value.unwrap_or_default().trim_matches('"').to_owned()
        };
        let words = format!("{} {}", field("ID"), field("ID_LIKE"));
        let family = words.split_whitespace().find_map(|word| match word {
            "debian" | "ubuntu" => Some(Self::Debian),
            "fedora" | "rhel" | "centos" => Some(Self::Fedora),
            "suse" | "opensuse" | "sles" => Some(Self::Suse),
            "arch" => Some(Self::Arch),
            "alpine" => Some(Self::Alpine),
            _ => None,
        });
        family.unwrap_or(Self::Other)
    }

    /// The command that installs a package.
    pub(super) fn install(self, package: &Package) -> String {
        match self {
            Self::Debian => format!("apt install {}", package.debian),
            Self::Fedora => format!("dnf install {}", package.fedora),
            Self::Suse => format!("zypper install {}", package.suse),
            Self::Arch => format!("pacman -S {}", package.arch),
            Self::Alpine => format!("apk add {}", package.alpine),
            Self::Other => format!("install the package `{}`", package.debian),
        }
    }

    /// How the kernel gets a parameter at its next start.
    pub(super) fn boot_with(self, parameter: &str) -> String {
        match self {
            Self::Fedora => format!("grubby --update-kernel=ALL --args={parameter}, then reboot"),
            Self::Debian => format!(
                "add `{parameter}` to GRUB_CMDLINE_LINUX in /etc/default/grub, run update-grub, then reboot"
            ),
            _ => format!("add `{parameter}` to the kernel's command line, then reboot"),
        }
    }
}

/// How a kernel setting is made, now and for good.
pub(super) fn sysctl(name: &str, value: &str) -> String {
    format!("echo '{name} = {value}' >>/etc/sysctl.d/60-jobc.conf && sysctl --system")
}
