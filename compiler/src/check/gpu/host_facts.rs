//! Known facts about the GPUs of a target's hosts: `gpus` of the target, else `kubernetes.gpu` of it.

use indexmap::IndexMap;
use jobc_schema::Bytes;
use jobc_schema::gpu::{Vendor, is_at_least};
use jobc_schema::target::TargetCard;

use crate::check::view::View;
use crate::diagnostic::{Diagnostic, Location};
use crate::stdlib::{Version, cuda, mig, models};

/// The known facts about the GPUs of a target's hosts; `None` means unknown.
pub(crate) struct HostGpuFacts<'a> {
    /// Their origin, as text: ``target `lab` ``, `this machine`.
    pub(crate) who: String,
    /// The driver of NVIDIA's cards.
    pub(crate) driver: Option<Version>,
    /// Where the driver is declared; absent where it was found on the host.
    pub(crate) driver_at: Option<Location>,
    /// The newest CUDA that the driver supports without compatibility libraries.
    pub(crate) cuda: Option<Version>,
    /// The kinds of cards; empty where there is none.
    pub(crate) cards: Option<Vec<Card<'a>>>,
    /// Where the cards are declared; absent where they were found on the host.
    pub(crate) cards_at: Option<Location>,
    /// Whether a host was inspected, so that absence is certain.
    pub(crate) found: bool,
}

/// Cards of one kind.
pub(crate) struct Card<'a> {
    /// The name as it was declared.
    pub(crate) name: &'a str,
    /// The vendor.
    pub(crate) vendor: Vendor,
    /// How many one host has.
    pub(crate) count: Option<u32>,
    /// Its MIG instances.
    pub(crate) mig: Option<&'a IndexMap<String, u32>>,
    /// The model of that name.
    pub(crate) model: Option<models::ModelMatch>,
    memory: Option<u64>,
    capability: Option<Version>,
}

impl<'a> HostGpuFacts<'a> {
    /// The declaration of the target of a job, or the inventory of this host.
    pub(crate) fn of(view: &View<'a>) -> Self {
        let settings = &view.plan.target.settings;
        let gpus = settings.gpus.as_ref();
        let short = settings.kubernetes.as_ref().and_then(|kubernetes| kubernetes.gpu.as_ref());
        let found = gpus.is_some_and(|gpus| gpus.found);
        let place = |keys: &[&str]| (!found).then(|| Location::target(&view.target_at(keys)));
        let read = |text: &'a Option<String>| text.as_deref().and_then(Version::parse);
        let own_driver = gpus.and_then(|gpus| read(&gpus.driver));
        let driver_at = place(match own_driver {
            Some(_) => &["gpus", "driver"],
            None => &["kubernetes", "gpu", "driver"],
        });
        let driver = own_driver.or_else(|| short.and_then(|gpu| read(&gpu.driver)));
        let listed = gpus.and_then(|gpus| gpus.cards.as_ref());
        let models = short.map(|gpu| &gpu.models).filter(|models| !models.is_empty());
        let (cards, cards_at) = match (listed, models) {
            (Some(cards), _) => {
                (Some(cards.iter().map(Card::from_target).collect()), place(&["gpus", "cards"]))
            }
            (None, Some(models)) => {
                let cards = models.iter().map(|name| Card::named(name)).collect();
                (Some(cards), place(&["kubernetes", "gpu", "models"]))
            }
            (None, None) => (None, None),
        };
        Self {
            who: if found { "this host".to_owned() } else { format!("target `{}`", view.plan.target.name) },
            cuda: gpus.and_then(|gpus| read(&gpus.cuda)).or_else(|| driver.as_ref().and_then(cuda::newest)),
            driver,
            driver_at,
            cards,
            cards_at,
            found,
        }
    }

    /// The cards of a vendor; nothing where no card is declared.
    pub(crate) fn cards_of(&self, vendor: Vendor) -> Option<Vec<&Card<'a>>> {
        self.cards.as_ref().map(|cards| cards.iter().filter(|card| card.vendor == vendor).collect())
    }

    /// Adds the label of a place that is in a file.
    pub(crate) fn label(diagnostic: Diagnostic, place: Option<&Location>, text: &str) -> Diagnostic {
        match place {
            Some(place) => diagnostic.at_place(place.clone(), text),
            None => diagnostic,
        }
    }
}

impl<'a> Card<'a> {
    fn from_target(card: &'a TargetCard) -> Self {
        Self {
            vendor: card.vendor,
            count: card.count,
            mig: card.mig.as_ref(),
            memory: card.memory.map(|bytes| bytes.0),
            capability: card.compute_capability.as_deref().and_then(Version::parse),
            ..Self::named(&card.model)
        }
    }

    fn named(name: &'a str) -> Self {
        let model = models::find(name);
        Self { name, vendor: Vendor::Nvidia, count: None, mig: None, model, memory: None, capability: None }
    }

    /// Whether it may be the card that a job file names.
    pub(crate) fn is(&self, wanted: &str) -> bool {
        match (models::find(wanted), self.model) {
            (Some(wanted), Some(has)) => {
                let gigabytes = has.memory_gb.or_else(|| self.gigabytes(&has));
                let memory = wanted.memory_gb.zip(gigabytes);
                wanted.model == has.model && memory.is_none_or(|(a, b)| a == b)
            }
            _ => fold(self.name).contains(&fold(wanted)),
        }
    }

    /// The nominal size, derived from its memory.
    fn gigabytes(&self, model: &models::ModelMatch) -> Option<u64> {
        let memory = self.memory?;
        model.variants().map(|size| size.memory_gb).filter(|gb| is_at_least(memory, gb << 30)).max()
    }

    /// Whether it has less memory than that, by its nominal class, and whether that is certain; `None` if its memory is
    /// unknown.
    pub(crate) fn is_smaller(&self, bytes: u64) -> Option<(bool, bool)> {
        if let Some(memory) = self.memory {
            return Some((!is_at_least(memory, bytes), true));
        }
        let model = self.model?;
        Some((is_smaller(&model, bytes)?, model.model.verified))
    }

    /// Its compute capability.
    pub(crate) fn capability(&self) -> Option<Version> {
        self.capability.clone().or_else(|| Version::parse(&self.model?.model.cc))
    }

    /// What it is, in words: `` 4 `V100` of 32GiB and compute capability 7.0 ``, `` `A100` cut into 7 `1g.10gb` ``.
    pub(crate) fn words(&self) -> String {
        let count = self.count.map_or(String::new(), |count| format!("{count} "));
        let known = [
            self.memory.map(|bytes| Bytes(bytes).to_string()),
            self.capability().map(|has| format!("compute capability {has}")),
        ];
        let known = known.into_iter().flatten().collect::<Vec<_>>().join(" and ");
        let known = if known.is_empty() { known } else { format!(" of {known}") };
        let cut = self.mig.filter(|there| !there.is_empty()).map_or(String::new(), |there| {
            let each = there.iter().map(|(profile, count)| format!("{count} `{profile}`"));
            format!(" cut into {}", each.collect::<Vec<_>>().join(" and "))
        });
        format!("{count}`{}`{known}{cut}", self.name)
    }

    /// Whether it supports the MIG profile according to the tables; `None` if its kind is unknown.
    pub(crate) fn has_profile(&self, profile: &str) -> Option<bool> {
        let model = self.model?;
        let whole = mig::whole_instance(profile);
        let tables = model.variants().filter_map(|size| size.mig.as_deref()).filter_map(mig::profiles);
        Some(tables.flatten().any(|known| known.name() == whole))
    }
}

fn fold(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether a card has less memory than that, by its nominal class; `None` if its memory is unknown.
pub(crate) fn is_smaller(card: &models::ModelMatch, bytes: u64) -> Option<bool> {
    card.max_memory_gb().map(|gb| gb << 30 < bytes)
}
