use super::*;

fn names(word: &str) -> Vec<String> {
    find(word).iter().map(|field| field.name()).collect()
}

#[test]
fn a_path_is_found_as_it_is_written_in_a_file() {
    for (word, expected) in [
        ("roles.train.retry", "roles.<role>.retry"),
        ("roles.<role>.retry", "roles.<role>.retry"),
        ("roles.retry", "roles.<role>.retry"),
        ("train.retry", "roles.<role>.retry"),
        ("resources.memory", "roles.<role>.resources.memory"),
        ("roles.train.resources.gpu.share.memory", "roles.<role>.resources.gpu.share.memory"),
        ("roles.train", "roles.<role>"),
        ("params.lr", "params.<param>"),
        ("image.steps[0].apt", "image.steps.apt"),
        ("image.steps.0.apt", "image.steps.apt"),
        ("matrix.axes", "matrix.axes"),
        ("roles.train.env.OMP_NUM_THREADS", "roles.<role>.env.<name>"),
        ("image.labels.team", "image.labels"),
        ("targets.lab.kubernetes.namespace", "targets.<target>.kubernetes.namespace"),
    ] {
        assert_eq!(names(word), [expected], "{word}");
    }
    assert_eq!(names("retry"), ["retry", "roles.<role>.retry"]);
    for word in ["", ".", "nope", "roles.train.nope", "train", "<role>"] {
        assert_eq!(names(word), [""; 0], "{word}");
    }
}

#[test]
fn a_misspelled_path_is_corrected_where_it_is_wrong() {
    for (word, expected) in [
        ("roles.train.retri", "roles.train.retry"),
        ("resources.memry", "resources.memory"),
        ("memry", "memory"),
        ("rolls.train.retry", "roles.train.retry"),
        ("roles.train.retry.maxx", "roles.train.retry.max"),
    ] {
        assert_eq!(nearest(word).as_deref(), Some(expected), "{word}");
    }
    assert_eq!(nearest("xyzzyx"), None);
}

#[test]
fn every_field_has_a_page_with_an_example() {
    for field in Format::all().iter().flat_map(Format::fields) {
        let page = page(field);
        assert!(page.starts_with(&format!("# `{}` of the ", field.name())), "{page}");
        assert!(!field.text().is_empty() && page.contains(field.text()), "{}: {page}", field.name());
        // The names in a map have the example of the map.
        assert!(field.is_chosen() || page.contains("```yaml\n"), "{}: {page}", field.name());
        let found = find(&field.name());
        assert!(found.iter().any(|other| other.path == field.path), "{} is not found", field.name());
    }
}

#[test]
fn the_reference_has_the_text_of_every_page() {
    for format in Format::all() {
        let document = document(format);
        let types = document["types"].as_array().unwrap();
        for field in format.fields().iter().filter(|field| !field.is_chosen()) {
            let owner = types.iter().find(|each| each["name"].as_str() == field.owner).unwrap();
            let known = owner["fields"].as_array().unwrap();
            let key = field.path.last().map(String::as_str);
            let known = known.iter().find(|known| known["name"].as_str() == key).unwrap();
            assert_eq!(known["text"].as_str(), Some(field.text()), "{}", field.name());
        }
    }
}

#[test]
fn the_page_of_a_map_lists_its_fields() {
    assert_eq!(
        page(find("roles.train.retry")[0]),
        "# `roles.<role>.retry` of the job file\n\n\
         Type: map.\n\n\
         Retries after a failure, instead of `retry` of the job.\n\n\
         ```yaml\nretry:\n  max: 3\n```\n\n\
         Fields:\n\n\
         * `max` (required): Maximum number of retries, or `unlimited`.\n\
         * `scope`: What is restarted on a retry.\n\
         * `on_exit_codes`: Exit codes that are retried.\n\
         * `never_on_exit_codes`: Exit codes that are never retried; all others are.\n\
         * `backoff`: Time before a retry.\n\
         * `disruptions`: Whether a failure that the platform causes counts as a retry: an evicted or preempted task, \
         a drained or lost node.\n\
         * `on`: [preview] Kinds of failures that are retried, by the verdict on the attempt, in addition to \
         `on_exit_codes`.\n\
         * `memory`: [preview] Factor by which the memory of the next attempt is larger after one that ran out of it.\n\
         * `max_memory`: [preview] Most memory that an attempt gets by `memory`.\n",
    );
    let roles = page(find("roles")[0]);
    assert!(roles.contains("* `<role>.instances`: Number of instances.\n"), "{roles}");
}
