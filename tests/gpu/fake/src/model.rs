//! The simulated hosts: three generations of NVIDIA's cards, AMD's, Intel's, and a mixture.

/// A simulated host.
#[derive(Clone, Debug, Default)]
pub struct FakeHost {
    /// The release of NVIDIA's driver.
    pub driver: &'static str,
    /// The newest CUDA it runs, as NVML counts: 12040 for 12.4.
    pub cuda: u32,
    /// NVIDIA's cards.
    pub nvidia: Vec<Nvidia>,
    /// Pairs of NVIDIA's cards with the NVLinks between them.
    pub nvlinks: Vec<(usize, usize, u32)>,
    /// How many NVLinks each card has to switches.
    pub to_switches: u32,
    /// AMD's cards.
    pub amd: Vec<Card>,
    /// Intel's cards.
    pub intel: Vec<Card>,
}

/// A card of NVIDIA's.
#[derive(Clone, Debug)]
pub struct Nvidia {
    /// What all cards have.
    pub card: Card,
    /// Compute capability.
    pub compute: (u32, u32),
    /// NVML's number of the brand: 2 Tesla, 14 NVIDIA, 5 GeForce.
    pub brand: u32,
    /// Whether it is partitioned by MIG; `None` for a card without MIG.
    pub mig: Option<bool>,
    /// Its MIG instances: the profile, its memory in MiB, the GPU instance.
    pub instances: Vec<(&'static str, u64, u32)>,
}

/// What all cards have.
#[derive(Clone, Debug)]
pub struct Card {
    /// As its driver calls it.
    pub name: &'static str,
    /// The device's number on the PCI bus.
    pub device: &'static str,
    /// Memory in MiB.
    pub memory: u64,
    /// The NUMA node.
    pub node: u32,
    /// The PCI switch below the node's bridge that it is at.
    pub switch: u32,
    /// Which of that switch's cards it is.
    pub port: u32,
}

impl Card {
    /// Its bus: a node has 64 of them, a switch 16.
    pub(crate) fn bus(&self) -> u32 {
        self.node * 64 + self.switch * 16 + 4 + self.port
    }

    /// Its place on the PCI bus.
    pub fn pci(&self) -> String {
        format!("0000:{:02x}:00.0", self.bus())
    }
}

impl Nvidia {
    /// A name that is the same each time, of the card with this number.
    pub fn uuid(number: usize) -> String {
        format!("GPU-{number:08x}-aaaa-4bbb-8ccc-{:012x}", 0xfa_0000 + number)
    }

    /// The name of a card's MIG instance.
    pub fn mig_uuid(number: usize, instance: usize) -> String {
        format!("MIG-{number:04x}{instance:04x}-aaaa-5bbb-8ccc-{:012x}", 0xfb_0000 + number)
    }
}

/// Their names.
pub const NAMES: [&str; 8] = ["v100", "a100", "h100", "h200", "amd", "intel", "mixed", "none"];

/// The host of that name.
pub fn named(name: &str) -> Option<FakeHost> {
    Some(match name {
        "v100" => v100(),
        "a100" => a100(),
        "h100" => h100(),
        "h200" => h200(),
        "amd" => FakeHost { amd: (0..4).map(|n| mi300x(n / 2, n % 2)).collect(), ..FakeHost::default() },
        "intel" => FakeHost { intel: (0..2).map(|n| flex170(0, n)).collect(), ..FakeHost::default() },
        "mixed" => mixed(),
        "none" => FakeHost::default(),
        _ => return None,
    })
}

/// Eight V100 as in a DGX-1: two at a switch, six NVLinks each in the mesh of its two halves.
fn v100() -> FakeHost {
    let card = |n: u32| Nvidia {
        card: Card {
            name: "Tesla V100-SXM2-32GB",
            device: "0x1db5",
            memory: 32510,
            node: n / 4,
            switch: n / 2 % 2,
            port: n % 2,
        },
        compute: (7, 0),
        brand: 2,
        mig: None,
        instances: vec![],
    };
    let half = [(0, 1, 1), (0, 2, 1), (0, 3, 2), (1, 2, 2), (1, 3, 1), (2, 3, 2)];
    let other = [(4, 5, 1), (4, 6, 1), (4, 7, 2), (5, 6, 2), (5, 7, 1), (6, 7, 2)];
    let across = [(0, 4, 2), (1, 5, 2), (2, 6, 1), (3, 7, 1)];
    FakeHost {
        driver: "470.223.02",
        cuda: 11040,
        nvidia: (0..8).map(card).collect(),
        nvlinks: [&half[..], &other, &across].concat(),
        ..FakeHost::default()
    }
}

/// Four A100 linked to each other, of which the last two are partitioned.
fn a100() -> FakeHost {
    let card = |n: u32, instances: Vec<(&'static str, u64, u32)>| Nvidia {
        card: Card {
            name: "NVIDIA A100-SXM4-80GB",
            device: "0x20b2",
            memory: 81920,
            node: n / 2,
            switch: n % 2,
            port: 0,
        },
        compute: (8, 0),
        brand: 14,
        mig: Some(!instances.is_empty()),
        instances,
    };
    let parts =
        vec![("3g.40gb", 40192, 2), ("2g.20gb", 19968, 3), ("1g.10gb", 9856, 9), ("1g.10gb", 9856, 10)];
    let seventh = (7..14).map(|instance| ("1g.10gb", 9856, instance)).collect();
    let pairs = (0..4).flat_map(|one| (one + 1..4).map(move |other| (one, other, 4)));
    FakeHost {
        driver: "535.104.05",
        cuda: 12020,
        nvidia: vec![card(0, vec![]), card(1, vec![]), card(2, parts), card(3, seventh)],
        nvlinks: pairs.collect(),
        ..FakeHost::default()
    }
}

/// Eight H100 behind NVSwitches.
fn h100() -> FakeHost {
    let card = |n: u32| Nvidia {
        card: Card {
            name: "NVIDIA H100 80GB HBM3",
            device: "0x2330",
            memory: 81559,
            node: n / 4,
            switch: n % 4,
            port: 0,
        },
        compute: (9, 0),
        brand: 14,
        mig: Some(false),
        instances: vec![],
    };
    FakeHost {
        driver: "550.54.15",
        cuda: 12040,
        nvidia: (0..8).map(card).collect(),
        to_switches: 18,
        ..FakeHost::default()
    }
}

/// One H200.
fn h200() -> FakeHost {
    let card = Card { name: "NVIDIA H200", device: "0x2335", memory: 143_771, node: 0, switch: 0, port: 0 };
    let card = Nvidia { card, compute: (9, 0), brand: 14, mig: Some(false), instances: vec![] };
    FakeHost { driver: "570.124.06", cuda: 12080, nvidia: vec![card], ..FakeHost::default() }
}

/// A T4, an MI210 and a Flex 170.
fn mixed() -> FakeHost {
    let card = Card { name: "Tesla T4", device: "0x1eb8", memory: 15360, node: 0, switch: 0, port: 0 };
    let card = Nvidia { card, compute: (7, 5), brand: 2, mig: None, instances: vec![] };
    let mi210 =
        Card { name: "AMD Instinct MI210", device: "0x740f", memory: 65520, node: 0, switch: 1, port: 0 };
    FakeHost {
        driver: "550.54.15",
        cuda: 12040,
        nvidia: vec![card],
        amd: vec![mi210],
        intel: vec![flex170(0, 2)],
        ..FakeHost::default()
    }
}

fn mi300x(node: u32, switch: u32) -> Card {
    Card { name: "AMD Instinct MI300X OAM", device: "0x74a1", memory: 196_592, node, switch, port: 0 }
}

fn flex170(node: u32, switch: u32) -> Card {
    Card { name: "Intel Data Center GPU Flex 170", device: "0x56c0", memory: 14_248, node, switch, port: 0 }
}
