use super::KINDS;

#[test]
fn kinds_are_unique_and_their_parts_name_groups() {
    for (at, kind) in KINDS.iter().enumerate() {
        assert!(!kind.places.is_empty(), "{} has no pods", kind.name);
        assert!(KINDS[at + 1..].iter().all(|other| other.name != kind.name || other.groups != kind.groups));
    }
}
