//! NVML's report through nvidia-smi, NVIDIA's own program: used if the library cannot be loaded.
//!
//! A statically linked program, as the released `jobc` is, can load only libraries for the C library that it was linked
//! with, and `jobc-nvml` may be missing. nvidia-smi is installed with the driver. Its XML has everything except the
//! name of a MIG instance and the compute capability, which two shorter lists have; it prints NVLink only as prose, so
//! that is not queried.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use jobc_nvml::{Card, NvmlReport};

use super::search;
use crate::host::Host;
use crate::paths;
use jobc_nvml::{CardState, Mig, MigDevice, Process};
use jobc_sys::run_with_timeout;

/// Runs nvidia-smi, and also returns its path; `None` if it is missing or its output is not understood.
pub(super) fn query(machine: &Host) -> Option<(NvmlReport, PathBuf)> {
    let programs =
        paths::PROGRAM_DIRECTORIES.map(|directory| machine.path(format!("{directory}/nvidia-smi")));
    let program = programs.into_iter().find(|path| path.exists())?;
    let directories = library_path(machine);
    let run = |words: &[&str]| {
        let mut command = Command::new(&program);
        let report = run_with_timeout::run(
            command.args(words).env("LD_LIBRARY_PATH", &directories),
            machine.nvml.timeout,
        );
        report.ok().filter(|report| report.status.success()).map(|report| report.text)
    };
    let whole = run(&["-q", "-x"])?;
    let list = run(&["-L"]).unwrap_or_default();
    // Drivers before 510 do not know the question.
    let capabilities = run(&["--query-gpu=uuid,compute_cap", "--format=csv,noheader"]).unwrap_or_default();
    Some((parse(&whole, &list, &capabilities)?, program))
}

/// Its search path for the library: this process's, then the directories that loaders do not search by default.
fn library_path(machine: &Host) -> OsString {
    let own = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let found = search::existing_files(machine).filter_map(|file| file.parent().map(Path::to_owned));
    let unknown = found.filter(|directory| !machine.is_own() || !paths::is_loader_directory(directory));
    let own = std::env::split_paths(&own).filter(|directory| !directory.as_os_str().is_empty());
    std::env::join_paths(own.chain(unknown)).unwrap_or_default()
}

fn parse(whole: &str, list: &str, capabilities: &str) -> Option<NvmlReport> {
    let blocks = whole.split("<gpu id=\"").skip(1);
    let mut cards: Vec<Card> = blocks.filter_map(card).collect();
    for (index, card) in (0..).zip(&mut cards) {
        card.index = index;
        let uuid = card.uuid.as_deref().unwrap_or_default();
        card.compute_capability = capability(capabilities, uuid);
        for device in card.mig.iter_mut().flat_map(|mig| &mut mig.devices) {
            (device.profile, device.uuid) = profile_and_uuid(list, uuid, device.index);
        }
    }
    let driver = element_text(whole, "driver_version")?;
    Some(NvmlReport { driver: Some(driver), cuda: element_text(whole, "cuda_version"), cards, notes: vec![] })
}

/// A card of the XML, from its place on: `00000000:3B:00.0">…`.
fn card(block: &str) -> Option<Card> {
    let (place, text) = block.split_once('"')?;
    // MIG instances have their own memory element, which comes before the card's.
    let cut = text_between(text, "<mig_devices>", "</mig_devices>").unwrap_or_default();
    let text = text.replacen(cut, "", usize::from(!cut.is_empty()));
    let mode =
        text_between(&text, "<mig_mode>", "</mig_mode>").and_then(|mode| element_text(mode, "current_mig"));
    let memory = text_between(&text, "<fb_memory_usage>", "</fb_memory_usage>").unwrap_or_default();
    let processes = text_between(&text, "<processes>", "</processes>").unwrap_or_default();
    Some(Card {
        uuid: element_text(&text, "uuid"),
        name: element_text(&text, "product_name").unwrap_or_else(|| "NVIDIA GPU".to_owned()),
        brand: element_text(&text, "product_brand").map(|brand| brand.to_lowercase().replace(' ', "")),
        // Eight digits of the domain, where the kernel writes four.
        pci: Some(place.to_lowercase().get(4..)?.to_owned()),
        minor: element_text(&text, "minor_number").and_then(|minor| minor.parse().ok()),
        memory_bytes: mebibytes(memory, "total"),
        memory_used: mebibytes(memory, "used"),
        mig: mode.map(|mode| Mig {
            enabled: mode == "Enabled",
            devices: cut.split("<mig_device>").skip(1).filter_map(mig_instance).collect(),
        }),
        processes: processes.split("<process_info>").skip(1).filter_map(process).collect(),
        state: state(&text),
        ..Card::default()
    })
}

/// Temperature, power and settings. Newer drivers name the element with the power draw `gpu_power_readings`, in which
/// `power_draw` became `instant_power_draw`.
fn state(text: &str) -> CardState {
    let number =
        |text: &str, name: &str| element_text(text, name)?.split_whitespace().next().map(str::to_owned);
    let whole = |text: &str, name: &str| number(text, name)?.parse::<u32>().ok();
    let within = |name: &str| text_between(text, &format!("<{name}>"), &format!("</{name}>"));
    let power = within("gpu_power_readings").or_else(|| within("power_readings")).unwrap_or_default();
    // Watts with two decimals.
    let milliwatts = |name: &str| {
        let watts = number(power, name)?;
        let (watts, decimals) = watts.split_once('.').unwrap_or((&watts, ""));
        format!("{watts}{decimals:0<3.3}").parse::<u32>().ok()
    };
    let is_enabled = |text: &str, name: &str| element_text(text, name).map(|state| state == "Enabled");
    let clocks = within("clocks").unwrap_or_default();
    let volatile = within("ecc_errors").and_then(|errors| text_between(errors, "<volatile>", "</volatile>"));
    let errors = |name: &str| element_text(volatile?, name)?.parse::<u64>().ok();
    CardState {
        temperature: whole(text, "gpu_temp"),
        fan_percent: whole(text, "fan_speed"),
        power_milliwatts: milliwatts("power_draw").or_else(|| milliwatts("instant_power_draw")),
        power_limit_milliwatts: milliwatts("current_power_limit").or_else(|| milliwatts("power_limit")),
        graphics_clock_mhz: whole(clocks, "graphics_clock"),
        memory_clock_mhz: whole(clocks, "mem_clock"),
        ecc: within("ecc_mode").and_then(|mode| is_enabled(mode, "current_ecc")),
        ecc_uncorrected_errors: errors("dram_uncorrectable").map(|dram| {
            dram + ["sram_uncorrectable", "sram_uncorrectable_parity", "sram_uncorrectable_secded"]
                .iter()
                .filter_map(|name| errors(name))
                .sum::<u64>()
        }),
        compute_mode: element_text(text, "compute_mode"),
        persistence: is_enabled(text, "persistence_mode"),
    }
}

fn mig_instance(text: &str) -> Option<MigDevice> {
    let number = |name: &str| element_text(text, name)?.parse().ok();
    Some(MigDevice {
        index: number("index")?,
        uuid: None,
        profile: None,
        memory_bytes: text_between(text, "<fb_memory_usage>", "</fb_memory_usage>")
            .and_then(|memory| mebibytes(memory, "total")),
        gi: number("gpu_instance_id")?,
        ci: number("compute_instance_id")?,
        caps: vec![],
    })
}

fn process(text: &str) -> Option<Process> {
    let pid = element_text(text, "pid")?.parse().ok()?;
    Some(Process { pid, name: None, memory_bytes: mebibytes(text, "used_memory") })
}

/// The profile and the UUID of a card's MIG instance in a list of lines: `GPU 0: … (UUID: GPU-…)`, and below it
/// `  MIG 1g.10gb     Device  0: (UUID: MIG-…)`.
fn profile_and_uuid(list: &str, card: &str, index: u32) -> (Option<String>, Option<String>) {
    let below = list.lines().skip_while(|line| !line.starts_with("GPU ") || !line.contains(card)).skip(1);
    for line in below.take_while(|line| !line.starts_with("GPU ")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["MIG", profile, "Device", number, "(UUID:", uuid] = words[..]
            && number.trim_end_matches(':').parse() == Ok(index)
        {
            return (Some(profile.to_owned()), Some(uuid.trim_end_matches(')').to_owned()));
        }
    }
    (None, None)
}

/// The compute capability of a card in a list of lines: `GPU-…, 9.0`.
fn capability(list: &str, card: &str) -> Option<(u32, u32)> {
    let mut lines = list.lines().filter_map(|line| line.split_once(", "));
    let (major, minor) =
        lines.find_map(|(uuid, text)| (uuid == card).then(|| text.trim().split_once('.')))??;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The text of the first element with a name; `None` for `N/A`.
fn element_text(text: &str, name: &str) -> Option<String> {
    let value = text_between(text, &format!("<{name}>"), &format!("</{name}>"))?.trim();
    (!value.is_empty() && !value.contains("N/A")).then(|| value.to_owned())
}

fn mebibytes(text: &str, name: &str) -> Option<u64> {
    element_text(text, name)?.strip_suffix(" MiB")?.parse::<u64>().ok()?.checked_mul(1 << 20)
}

fn text_between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(begin)?;
    Some(rest.split_once(end)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"<?xml version="1.0" ?>
<nvidia_smi_log>
	<driver_version>550.54.15</driver_version>
	<cuda_version>12.4</cuda_version>
	<attached_gpus>2</attached_gpus>
	<gpu id="00000000:3B:00.0">
		<product_name>NVIDIA A100-SXM4-80GB</product_name>
		<product_brand>NVIDIA</product_brand>
		<mig_mode><current_mig>Enabled</current_mig><pending_mig>Enabled</pending_mig></mig_mode>
		<mig_devices>
			<mig_device>
				<index>0</index>
				<gpu_instance_id>2</gpu_instance_id>
				<compute_instance_id>0</compute_instance_id>
				<fb_memory_usage><total>40192 MiB</total><reserved>0 MiB</reserved><used>37 MiB</used></fb_memory_usage>
			</mig_device>
			<mig_device>
				<index>1</index>
				<gpu_instance_id>9</gpu_instance_id>
				<compute_instance_id>0</compute_instance_id>
				<fb_memory_usage><total>9728 MiB</total></fb_memory_usage>
			</mig_device>
		</mig_devices>
		<uuid>GPU-aaaa</uuid>
		<minor_number>3</minor_number>
		<fb_memory_usage><total>81920 MiB</total><reserved>500 MiB</reserved><used>87 MiB</used></fb_memory_usage>
		<processes>
			<process_info><pid>4711</pid><process_name>python3</process_name><used_memory>1024 MiB</used_memory></process_info>
			<process_info><pid>4712</pid><used_memory>N/A</used_memory></process_info>
		</processes>
	</gpu>
	<gpu id="00000000:AF:00.0">
		<product_name>Quadro RTX 6000</product_name>
		<product_brand>Quadro RTX</product_brand>
		<mig_mode><current_mig>N/A</current_mig></mig_mode>
		<mig_devices>None</mig_devices>
		<uuid>GPU-bbbb</uuid>
		<minor_number>0</minor_number>
		<fb_memory_usage><total>24576 MiB</total><used>0 MiB</used></fb_memory_usage>
		<processes>
		</processes>
	</gpu>
</nvidia_smi_log>"#;

    const LIST: &str = "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-aaaa)\n\
                        \x20 MIG 3g.40gb     Device  0: (UUID: MIG-0000)\n\
                        \x20 MIG 1g.10gb     Device  1: (UUID: MIG-1111)\n\
                        GPU 1: Quadro RTX 6000 (UUID: GPU-bbbb)\n";

    #[test]
    fn its_three_answers_are_put_together() {
        let report = parse(WHOLE, LIST, "GPU-aaaa, 8.0\nGPU-bbbb, 7.5\n").unwrap();
        assert_eq!((report.driver.as_deref(), report.cuda.as_deref()), (Some("550.54.15"), Some("12.4")));
        let [one, other] = &report.cards[..] else { panic!("two cards") };
        assert_eq!((one.pci.as_deref(), one.minor, one.index), (Some("0000:3b:00.0"), Some(3), 0));
        assert_eq!((one.memory_bytes, one.memory_used), (Some(81920 << 20), Some(87 << 20)));
        assert_eq!((one.compute_capability, other.compute_capability), (Some((8, 0)), Some((7, 5))));
        let mig = one.mig.as_ref().unwrap();
        let instances: Vec<_> = mig
            .devices
            .iter()
            .map(|device| (device.gi, device.profile.as_deref(), device.uuid.as_deref(), device.memory_bytes))
            .collect();
        assert_eq!(
            instances,
            [
                (2, Some("3g.40gb"), Some("MIG-0000"), Some(40192 << 20)),
                (9, Some("1g.10gb"), Some("MIG-1111"), Some(9728 << 20))
            ]
        );
        let processes: Vec<_> =
            one.processes.iter().map(|process| (process.pid, process.memory_bytes)).collect();
        assert_eq!(processes, [(4711, Some(1 << 30)), (4712, None)]);
        assert_eq!((other.brand.as_deref(), &other.mig, other.index), (Some("quadrortx"), &None, 1));
    }

    #[test]
    fn other_output_is_ignored() {
        for text in [
            "",
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            "<gpu id=\"3",
        ] {
            assert_eq!(parse(text, "", ""), None, "{text}");
        }
    }
}
