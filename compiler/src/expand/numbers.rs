//! The numbers of a matrix's combinations, which are part of the jobs' names.

use std::collections::BTreeMap;

use jobc_schema::matrix::combination_key;

use super::matrix::Combination;

/// The number of each combination: the known number of a combination with the same values, else the next after
/// the largest. So a job keeps its name, and its outputs their place, when the matrix changes.
pub(super) fn of(combinations: &[Combination], known: &[(Combination, u32)]) -> Vec<u32> {
    let numbers: BTreeMap<String, u32> =
        known.iter().map(|(values, number)| (combination_key(values), *number)).collect();
    let mut next = known.iter().map(|(_, number)| number.saturating_add(1)).max().unwrap_or(0);
    let number = |values: &Combination| {
        let number = numbers.get(&combination_key(values)).copied();
        number.unwrap_or_else(|| {
            next += 1;
            next - 1
        })
    };
    combinations.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use jobc_schema::Scalar;

    use super::*;

    fn combinations(text: &[&str]) -> Vec<Combination> {
        text.iter().map(|value| Combination::from([("lr".to_owned(), Scalar::string(*value))])).collect()
    }

    #[test]
    fn a_known_combination_keeps_its_number() {
        assert_eq!(of(&combinations(&["a", "b", "c"]), &[]), [0, 1, 2]);
        let known: Vec<(Combination, u32)> =
            combinations(&["a", "b", "c"]).into_iter().zip([0, 1, 7]).collect();
        assert_eq!(of(&combinations(&["new", "c", "a", "newer"]), &known), [8, 7, 0, 9]);
    }
}
