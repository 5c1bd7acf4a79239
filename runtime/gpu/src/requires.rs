//! The requirements of an image for the host in its variables `NVIDIA_REQUIRE_*`, judged for each device that a task
//! has.
//!
//! NVIDIA's container toolkit does the same before it starts a container: every variable must hold for every device. An
//! unknown property, such as the brand without NVML, rejects nothing. Source: NVIDIA container toolkit,
//! `internal/config/image/cuda_image.go`.

use jobc_schema::Version;
use jobc_schema::gpu::{Facts, Require, Vendor, Verdict};

use super::inventory::{DeviceId, Inventory};
use jobc_sys::error::{Error, Kind, Result};

/// Checks the variables of a container for its devices; only NVIDIA devices are checked.
///
/// # Errors
///
/// A requirement that a device does not meet, or that cannot be read.
pub fn check(environment: &[String], inventory: &Inventory, devices: &[DeviceId]) -> Result<()> {
    let requirements = requirements(environment)?;
    for &device in devices.iter().filter(|device| device.vendor == Vendor::Nvidia) {
        let facts = facts(inventory, device);
        for (name, require) in &requirements {
            if require.evaluate(&facts) == Verdict::Unmet {
                let words =
                    format!("the image requires `{require}` by `{name}`, which this host does not meet");
                return Err(Error::new(Kind::System, words).help(format!(
                    "this host has {}; use an image for an older CUDA, or set `NVIDIA_DISABLE_REQUIRE: \"true\"` in `env` if \
                     the program does not need it",
                    describe_host(&facts, inventory, device)
                )));
            }
        }
    }
    Ok(())
}

/// The requirements among variables, each with its name.
fn requirements(environment: &[String]) -> Result<Vec<(String, Require)>> {
    let variables = || environment.iter().filter_map(|variable| variable.split_once('='));
    let value =
        |wanted: &str| variables().filter(|(name, _)| *name == wanted).map(|(_, value)| value).next_back();
    if value("NVIDIA_DISABLE_REQUIRE").is_some_and(Require::is_disabled) {
        return Ok(vec![]);
    }
    let read = |name: &str, text: &str| {
        Require::parse(text).map(|require| (name.to_owned(), require)).map_err(|why| {
            Error::new(Kind::Config, format!("`{name}` of the image cannot be read: {why}"))
                .help("set `NVIDIA_DISABLE_REQUIRE: \"true\"` in `env` to do without it")
        })
    };
    let mut all = vec![];
    for (name, text) in variables().filter(|(name, _)| Require::is_variable(name)) {
        all.push(read(name, text)?);
    }
    // Images from before these variables name the CUDA version that they were built with.
    if let (None, Some(version)) =
        (value("NVIDIA_REQUIRE_CUDA"), value("CUDA_VERSION").and_then(Version::parse))
    {
        let minor: Vec<String> = version.to_string().split('.').take(2).map(str::to_owned).collect();
        all.push(read("CUDA_VERSION", &format!("cuda>={}", minor.join(".")))?);
    }
    Ok(all)
}

fn facts(inventory: &Inventory, device: DeviceId) -> Facts {
    let gpu = inventory.gpu(device);
    let driver = inventory.driver.as_ref();
    Facts {
        cuda: driver.and_then(|driver| Version::parse(driver.cuda.as_deref()?)),
        driver: driver.and_then(|driver| Version::parse(&driver.version)),
        arch: gpu.and_then(|gpu| {
            let (major, minor) = gpu.compute_capability?;
            Version::parse(&format!("{major}.{minor}"))
        }),
        brand: gpu.and_then(|gpu| gpu.brand.clone()),
    }
}

/// The host's properties, as text: `driver 470.223.02, CUDA 11.4, Tesla T4 of compute capability 7.5`.
fn describe_host(facts: &Facts, inventory: &Inventory, device: DeviceId) -> String {
    let driver = facts.driver.as_ref().map(|driver| format!("driver {driver}"));
    let cuda = facts.cuda.as_ref().map(|cuda| format!("CUDA {cuda}"));
    let card = inventory.gpu(device).map(|gpu| match &facts.arch {
        Some(arch) => format!("{} of compute capability {arch}", gpu.name),
        None => gpu.name.clone(),
    });
    [driver, cuda, card].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inventory::{Driver, Gpu};

    const CARD: DeviceId = DeviceId { vendor: Vendor::Nvidia, gpu: 0, mig: None };

    fn machine(driver: &str, cuda: Option<&str>, brand: Option<&str>) -> Inventory {
        let gpu = Gpu {
            name: "Tesla T4".into(),
            brand: brand.map(str::to_owned),
            compute_capability: Some((7, 5)),
            ..Gpu::default()
        };
        let driver = Driver { version: driver.into(), cuda: cuda.map(str::to_owned) };
        Inventory { driver: Some(driver), gpus: vec![gpu], ..Inventory::default() }
    }

    fn check_requirements(environment: &[&str], inventory: &Inventory) -> String {
        let environment: Vec<String> = environment.iter().copied().map(str::to_owned).collect();
        match check(&environment, inventory, &[CARD]) {
            Ok(()) => "fine".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn every_variable_holds_for_every_device() {
        let old = machine("470.223.02", Some("11.4"), Some("tesla"));
        let image = "NVIDIA_REQUIRE_CUDA=cuda>=12.1 brand=tesla,driver>=470,driver<471";
        assert_eq!(check_requirements(&[image], &old), "fine");
        let geforce = machine("470.223.02", Some("11.4"), Some("geforce"));
        let refused = check_requirements(&[image], &geforce);
        assert!(refused.contains("cuda>=12.1") && refused.contains("NVIDIA_REQUIRE_CUDA"), "{refused}");
        let both = [image, "NVIDIA_REQUIRE_ARCH=arch>=8.0"];
        assert!(check_requirements(&both, &old).contains("arch>=8.0"));
        assert_eq!(
            check_requirements(&both[..1], &machine("470.223.02", None, None)),
            "fine",
            "what is not known refuses nothing"
        );
    }

    #[test]
    fn requirements_can_be_disabled() {
        let old = machine("470.223.02", Some("11.4"), Some("tesla"));
        assert_ne!(check_requirements(&["NVIDIA_REQUIRE_X=driver>500"], &old), "fine");
        assert_eq!(
            check_requirements(&["NVIDIA_REQUIRE_X=driver>500", "NVIDIA_DISABLE_REQUIRE=1"], &old),
            "fine"
        );
        // The last of two counts, as it does for the program.
        assert_ne!(
            check_requirements(
                &["NVIDIA_DISABLE_REQUIRE=1", "NVIDIA_DISABLE_REQUIRE=0", "NVIDIA_REQUIRE_X=driver>500"],
                &old
            ),
            "fine"
        );
    }

    #[test]
    fn old_images_require_the_cuda_they_were_made_with() {
        let old = machine("470.223.02", Some("11.4"), Some("tesla"));
        assert!(check_requirements(&["CUDA_VERSION=12.4.1"], &old).contains("cuda>=12.4"));
        assert_eq!(check_requirements(&["CUDA_VERSION=11.4.3"], &old), "fine");
        assert_eq!(
            check_requirements(&["CUDA_VERSION=12.4.1", "NVIDIA_REQUIRE_CUDA=driver>=450"], &old),
            "fine"
        );
    }

    #[test]
    fn unreadable_requirements_are_errors() {
        assert!(
            check_requirements(&["NVIDIA_REQUIRE_CUDA=cuda is new"], &machine("550.1", None, None))
                .contains("cannot be read")
        );
    }

    #[test]
    fn only_cards_of_nvidia_are_queried() {
        let environment = ["NVIDIA_REQUIRE_CUDA=driver>999".to_owned()];
        let amd = DeviceId { vendor: Vendor::Amd, ..CARD };
        assert!(check(&environment, &Inventory::default(), &[]).is_ok());
        assert!(check(&environment, &machine("550.1", None, None), &[amd]).is_ok());
    }
}
