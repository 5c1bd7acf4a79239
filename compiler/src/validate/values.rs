//! Converts values of other tools: a number instead of a map, `8080:80`, a probe of Kubernetes.

use serde_json::{Map, Value as Json, json};

use crate::document::{Entry, Node, Value};

use super::compose;
use super::report::source_text;
use crate::suggest;

/// The equivalent of another tool's entry.
pub(super) struct Translation {
    /// The path of our key.
    pub(super) path: String,
    /// Its value; `None` if it does not change.
    pub(super) value: Option<Json>,
}

/// Converts an entry of another tool, with its key in the original spelling. `role` is the map that contains
/// it.
pub(super) fn translate(path: &str, spelled: &str, node: &Node, role: &Node) -> Translation {
    let spelled = spelled.to_ascii_lowercase();
    let last = path.rsplit('.').next().unwrap_or_default();
    let value = match last {
        "retry" => retry(node),
        "timeout" | "grace_period" | "grace" | "backoff" | "delay" | "every" | "try_timeout" => {
            duration(&spelled, node)
        }
        "memory" | "shm" | "disk" => bytes(&spelled, node),
        "ports" => compose::ports(node),
        "ready" => ready(node, role),
        "needs" if spelled == "depends_on" => needs(node),
        "run" => lines(&spelled, node),
        "security" => {
            if let Some(user) = user(node) {
                return Translation { path: path.replace("security", "user"), value: Some(user) };
            }
            None
        }
        "data" if path == "roles.*.data" => {
            if let Some(volumes) = volumes(node) {
                return Translation { path: "data".to_owned(), value: Some(volumes) };
            }
            None
        }
        "data" => volumes(node),
        _ => None,
    };
    Translation { path: path.to_owned(), value }
}

/// `4`, `on-failure` and `on-failure:3`, the policies of Docker and Kubernetes; without a number there is no limit.
fn retry(node: &Node) -> Option<Json> {
    let text = match &node.value {
        Value::Number { number, .. } => return number.as_u64().map(|max| json!({ "max": max })),
        Value::String(text) => text.to_ascii_lowercase(),
        _ => return None,
    };
    let (word, count) = text.split_once(':').map_or((&text[..], None), |(word, count)| (word, Some(count)));
    match word {
        "no" | "never" => Some(json!({ "max": 0 })),
        "on-failure" | "onfailure" | "always" | "unless-stopped" => {
            let Some(count) = count else { return Some(json!({ "max": "unlimited" })) };
            count.parse::<u64>().ok().map(|max| json!({ "max": max }))
        }
        _ => word.parse::<u64>().ok().map(|max| json!({ "max": max })),
    }
}

/// A number whose unit is in the name of its key, otherwise in seconds.
fn duration(spelled: &str, node: &Node) -> Option<Json> {
    let Value::Number { number, .. } = &node.value else { return None };
    let unit = if spelled.contains("minute") {
        "m"
    } else if spelled.contains("hour") {
        "h"
    } else if spelled.contains("second") || matches!(spelled, "delay" | "retrydelay" | "retry_delay") {
        "s"
    } else {
        return None;
    };
    number.as_u64().map(|count| json!(format!("{count}{unit}")))
}

/// A number whose unit is in the name of its key.
fn bytes(spelled: &str, node: &Node) -> Option<Json> {
    let Value::Number { number, .. } = &node.value else { return None };
    let unit = if spelled.contains("mb") {
        "MiB"
    } else if spelled.contains("gb") {
        "GiB"
    } else {
        return None;
    };
    number.as_u64().map(|count| json!(format!("{count}{unit}")))
}

/// `depends_on` of Compose: the names of services that must have started, or a map with a `condition` for each.
fn needs(node: &Node) -> Option<Json> {
    if let Value::Sequence(items) = &node.value {
        let started = |item: &Node| Some((item.as_str()?.to_owned(), json!("started")));
        return items.iter().map(started).collect::<Option<Map<_, _>>>().map(Json::Object);
    }
    let state = |entry: &Entry| {
        let state = match entry.value.get("condition")?.as_str()? {
            "service_started" => "started",
            "service_healthy" => "ready",
            "service_completed_successfully" => "succeeded",
            _ => return None,
        };
        Some((entry.key.clone(), json!(state)))
    };
    let needs = node.entries().iter().map(state).collect::<Option<Map<_, _>>>()?;
    (!needs.is_empty()).then_some(Json::Object(needs))
}

/// A probe of Kubernetes with a port that has a label in the role, or a command.
fn ready(node: &Node, role: &Node) -> Option<Json> {
    let ports = role.get("resources").and_then(|resources| resources.get("ports"));
    let label = |port: &Node| -> Option<Json> {
        let wanted = source_text(port);
        let entries = ports.map_or(&[][..], Node::entries);
        let numbers = |node: &Node| {
            let inner =
                ["port", "containerPort"].into_iter().filter_map(|key| node.get(key)).map(source_text);
            std::iter::once(source_text(node)).chain(inner).collect::<Vec<_>>()
        };
        let same = |node: &Node| numbers(node).contains(&wanted);
        entries.iter().find(|entry| entry.key == wanted || same(&entry.value)).map(|entry| json!(entry.key))
    };
    let mut ready = Map::new();
    if let Some(get) = node.get("httpGet") {
        let mut http = Map::new();
        http.insert("port".to_owned(), label(get.get("port")?)?);
        if let Some(path) = get.get("path").and_then(Node::as_str) {
            http.insert("path".to_owned(), json!(path));
        }
        ready.insert("http".to_owned(), Json::Object(http));
    } else if let Some(socket) = node.get("tcpSocket") {
        ready.insert("port".to_owned(), label(socket.get("port")?)?);
    } else {
        let command = node.get("exec").and_then(|exec| exec.get("command")).or_else(|| node.get("test"))?;
        let words: Option<Vec<&str>> = command.items().iter().map(Node::as_str).collect();
        let mut words = words.filter(|words| !words.is_empty())?;
        match words[0] {
            "CMD" => drop(words.remove(0)),
            "CMD-SHELL" => words.splice(..1, ["sh", "-c"]).for_each(drop),
            _ => {}
        }
        ready.insert("exec".to_owned(), json!(words));
    }
    for (theirs, ours) in
        [("initialDelaySeconds", "delay"), ("periodSeconds", "every"), ("timeoutSeconds", "try_timeout")]
    {
        if let Some(Value::Number { number, .. }) = node.get(theirs).map(|node| &node.value) {
            ready.insert(ours.to_owned(), json!(format!("{}s", number.as_u64()?)));
        }
    }
    Some(Json::Object(ready))
}

/// A list of commands as lines of a script; a list of words is kept, since it is one command.
fn lines(spelled: &str, node: &Node) -> Option<Json> {
    if let Some(words) = flattened(node) {
        return Some(json!(words));
    }
    let commands: Option<Vec<&str>> = node.items().iter().map(Node::as_str).collect();
    let commands = commands.filter(|commands| !commands.is_empty())?;
    let several = matches!(spelled, "commands" | "script" | "before_script");
    (several || commands.iter().any(|command| command.contains(' ')) && commands.len() == 1)
        .then(|| json!(commands.join("\n")))
}

/// The scalars of a list with lists in it, as one list.
pub(super) fn flattened(node: &Node) -> Option<Vec<Json>> {
    fn take(items: &[Node], words: &mut Vec<Json>) -> bool {
        items.iter().all(|item| match &item.value {
            Value::Sequence(items) => take(items, words),
            Value::Mapping(_) | Value::Null => false,
            _ => {
                words.push(item.to_json());
                true
            }
        })
    }
    let has_list = node.items().iter().any(|item| matches!(item.value, Value::Sequence(_)));
    let mut words = vec![];
    (has_list && take(node.items(), &mut words)).then_some(words)
}

/// The user of a security context without other settings.
fn user(node: &Node) -> Option<Json> {
    let known = |key: &str| matches!(key, "runAsUser" | "runAsGroup" | "runAsNonRoot");
    let number = |key: &str| match node.get(key).map(|node| &node.value) {
        Some(Value::Number { number, .. }) => number.as_u64(),
        _ => None,
    };
    if !node.entries().iter().all(|entry| known(&entry.key)) {
        return None;
    }
    let user = number("runAsUser")?;
    Some(
        number("runAsGroup")
            .map_or_else(|| json!(user.to_string()), |group| json!(format!("{user}:{group}"))),
    )
}

/// `["./notebooks:/work", "/data:/data:ro"]` as entries of `data`.
fn volumes(node: &Node) -> Option<Json> {
    let mut data = Map::new();
    for item in node.items() {
        let mut parts = item.as_str()?.split(':');
        let (source, mount, options) = (parts.next()?, parts.next()?, parts.next());
        if !mount.starts_with('/') || parts.next().is_some() {
            return None;
        }
        let name = name_of(mount).or_else(|| name_of(source))?;
        let mut entry = Map::new();
        entry.insert("source".to_owned(), json!(source));
        entry.insert("mount".to_owned(), json!(mount));
        if options != Some("ro") {
            entry.insert("writable".to_owned(), json!(true));
        }
        if data.insert(name, Json::Object(entry)).is_some() {
            return None;
        }
    }
    (!data.is_empty()).then_some(Json::Object(data))
}

/// `./in:/data` and `./in:/data:rw` as an entry of `data`; without a mount point that of the entry's name.
fn volume(name: &str, text: &str) -> Option<Json> {
    let (text, is_writable) = match text.strip_suffix(":rw") {
        Some(text) => (text, true),
        None => (text.strip_suffix(":ro").unwrap_or(text), false),
    };
    // A source may be a URL.
    let cut = text.rfind(":/").filter(|at| !text[at + 1..].starts_with("//"));
    let (source, mount) = match cut {
        Some(at) => (&text[..at], text[at + 1..].to_owned()),
        None => (text, format!("/{name}")),
    };
    let mut entry = json!({ "source": source, "mount": mount });
    if is_writable {
        entry["writable"] = json!(true);
    }
    (!source.is_empty()).then_some(entry)
}

/// `["./in:/data"]` as entries of `data`.
fn volume_list(node: &Node) -> Option<Json> {
    let mut all = Map::new();
    for item in node.items() {
        let text = item.as_str()?;
        let name = name_of(text.trim_end_matches(":ro").trim_end_matches(":rw"))?;
        let entry = volume(&name, text)?;
        if all.insert(name, entry).is_some() {
            return None;
        }
    }
    (!all.is_empty()).then_some(Json::Object(all))
}

/// Whether a name is near a key of `matrix`, which then was meant.
fn is_matrix_key(name: &str) -> bool {
    suggest::nearest(name, ["max_parallel", "exclude", "include", "axes"]).is_some()
}

/// `3`, `0.1, 0.01` and `0 1 2` as the list of the values of an axis, and what Python calls a range.
fn axis(node: &Node) -> Option<Json> {
    let text = match &node.value {
        Value::String(text) => text.trim(),
        Value::Number { .. } | Value::Bool(_) => return Some(json!([node.to_json()])),
        _ => return None,
    };
    if text.starts_with("range(") {
        return range(text);
    }
    let number = |word: &str| serde_json::from_str::<serde_json::Number>(word).ok().map(Json::Number);
    let parts: Vec<&str> = if text.contains(',') {
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect()
    } else {
        text.split_whitespace().collect()
    };
    let numbers: Option<Vec<Json>> = parts.iter().map(|part| number(part)).collect();
    match numbers {
        Some(numbers) => Some(Json::Array(numbers)),
        None if text.contains(',') => Some(json!(parts)),
        // `0..2` ends before 2 in some languages, and after it in others.
        None if text.contains("..") => None,
        None => Some(json!([text])),
    }
}

/// `range(3)` and `range(2, 4)` of Python as the list of their numbers, if it is short.
fn range(text: &str) -> Option<Json> {
    let inside = text.trim().strip_prefix("range(")?.strip_suffix(')')?;
    let (from, to) = inside.split_once(',').unwrap_or(("0", inside));
    let (from, to): (u64, u64) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    (from < to && to - from <= 100).then(|| json!((from..to).collect::<Vec<_>>()))
}

/// `yes` and `no` as the words of `gang`.
fn gang(node: &Node) -> Option<Json> {
    let text = source_text(node).to_ascii_lowercase();
    match text.as_str() {
        "true" | "yes" | "on" => Some(json!("required")),
        "false" | "no" | "off" => Some(json!("none")),
        _ => None,
    }
}

/// A name derived from the last component of a path: `imagenet` for `/data/ImageNet`.
pub(super) fn name_of(path: &str) -> Option<String> {
    let last = path.trim_end_matches('/').rsplit(['/', ':']).next()?;
    let letters = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let name: String = last.chars().map(letters).collect();
    let name = name.trim_start_matches(|c: char| !c.is_ascii_alphabetic()).trim_matches('-');
    (!name.is_empty() && name.len() <= 32).then(|| name.to_owned())
}

/// Converts a value of the wrong type to the map, list or number that its place requires.
pub(super) fn as_meant(segments: &[String], node: &Node) -> Option<Json> {
    let steps: Vec<&str> = segments.iter().map(String::as_str).collect();
    let text = node.as_str();
    match &steps[..] {
        ["retry"] | ["roles", _, "retry"] => retry(node),
        [.., "on_exit_codes" | "never_on_exit_codes"] => {
            let Value::Number { number, .. } = &node.value else { return None };
            Some(json!([number]))
        }
        // One string would be one argument with blanks.
        ["roles", _, "args"] => {
            let text = text.filter(|text| !text.contains(['"', '\'', '\\']))?;
            Some(json!(text.split_whitespace().collect::<Vec<_>>()))
        }
        ["image", "python"] | ["images", _, "python"] => match &node.value {
            Value::String(text) => Some(json!({ "packages": [text] })),
            Value::Sequence(_) => Some(json!({ "packages": node.to_json() })),
            _ => None,
        },
        ["image", "copy", _] | ["images", _, "copy", _] => {
            let text = text?;
            let (from, to) = text.split_once(':').or_else(|| text.split_once(' '))?;
            (!from.is_empty() && to.starts_with('/')).then(|| json!({ "from": from, "to": to }))
        }
        ["data" | "outputs"] => volume_list(node),
        // `/ckpt` is where the job writes; users cannot write to the root directory of a host.
        ["outputs", name] if text.is_some_and(|text| text.rfind('/') == Some(0)) => {
            Some(json!({ "source": format!("./{name}"), "mount": text? }))
        }
        ["data" | "outputs", name] => volume(name, text?),
        ["roles", _, "data" | "outputs", _] => {
            text.filter(|text| text.starts_with('/')).map(|mount| json!({ "mount": mount }))
        }
        ["matrix", _]
        | ["matrix", "axes", _]
        | ["roles", _, "matrix", _]
        | ["roles", _, "matrix", "axes", _]
            if !steps.last().is_some_and(|key| is_matrix_key(key)) =>
        {
            axis(node)
        }
        ["gang"] => gang(node),
        ["roles", _, "files", _] => text.map(|text| json!({ "content": text })),
        ["roles", _, "resources", "gpu"] => {
            let text = text?;
            let (model, count) = text.split_once(':').unwrap_or((text, "1"));
            let count = count.trim().parse::<u64>().ok()?;
            let model_like = model.chars().any(|c| c.is_ascii_digit())
                && model.starts_with(|c: char| c.is_ascii_alphabetic());
            model_like.then(|| json!({ "count": count, "model": model.trim() }))
        }
        ["roles", _, "resources", "ports", _] => text.and_then(|_| compose::port(node)),
        ["roles", _, "resources", "ports"] => compose::ports(node),
        _ => text.and_then(number_word).map(|number| json!(number)),
    }
}

/// `one` to `twelve`.
fn number_word(text: &str) -> Option<u64> {
    const WORDS: [&str; 12] =
        ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
    let text = text.trim().to_ascii_lowercase();
    WORDS.iter().position(|word| *word == text).and_then(|at| u64::try_from(at + 1).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::Sink;
    use crate::parse::parse;
    use crate::source::{Source, Sources};

    fn node(text: &str) -> Node {
        let mut sources = Sources::new();
        let id = sources.add(Source::new("job.yaml", format!("a: {text}\n")));
        parse(&sources, id, &mut Sink::new()).unwrap().root.get("a").unwrap().clone()
    }

    #[track_caller]
    fn check(path: &str, spelled: &str, text: &str, (ours, value): (&str, &Json)) {
        let role = node("{resources: {ports: {http: {port: 8080}}}}");
        let found = translate(path, spelled, &node(text), &role);
        assert_eq!((found.path.as_str(), &found.value.unwrap_or_default()), (ours, value));
    }

    #[test]
    fn values_of_other_tools_are_converted() {
        check("retry", "restart", "on-failure:5", ("retry", &json!({"max": 5})));
        check("retry", "restartPolicy", "OnFailure", ("retry", &json!({"max": "unlimited"})));
        check("retry", "restart", "never", ("retry", &json!({"max": 0})));
        check("roles.*.timeout", "timeout-minutes", "90", ("roles.*.timeout", &json!("90m")));
        check("roles.*.timeout", "time", "90", ("roles.*.timeout", &Json::Null));
        check(
            "roles.*.resources.memory",
            "memoryMB",
            "2048",
            ("roles.*.resources.memory", &json!("2048MiB")),
        );
        check("p.ports", "ports", "[8888, 6006]", ("p.ports", &json!({"http": 8888, "port-2": 6006})));
        check(
            "roles.*.ready",
            "readinessProbe",
            "{httpGet: {path: /healthz, port: 8080}, periodSeconds: 5}",
            ("roles.*.ready", &json!({"http": {"port": "http", "path": "/healthz"}, "every": "5s"})),
        );
        check(
            "roles.*.ready",
            "healthcheck",
            "{test: [CMD-SHELL, 'curl localhost']}",
            ("roles.*.ready", &json!({"exec": ["sh", "-c", "curl localhost"]})),
        );
        check("roles.*.ready", "readinessProbe", "{tcpSocket: {port: 9}}", ("roles.*.ready", &Json::Null));
        check("roles.*.run", "commands", "[cd /x, make]", ("roles.*.run", &json!("cd /x\nmake")));
        check("roles.*.run", "command", "[make, -j2]", ("roles.*.run", &Json::Null));
        check("roles.*.security", "securityContext", "{runAsUser: 1000}", ("roles.*.user", &json!("1000")));
        check(
            "roles.*.data",
            "volumes",
            "['./books:/home/me/work', '/d:/Data:ro']",
            (
                "data",
                &json!({
                    "work": {"source": "./books", "mount": "/home/me/work", "writable": true},
                    "data": {"source": "/d", "mount": "/Data"},
                }),
            ),
        );
        check("roles.*.data", "volumes", "[cache]", ("roles.*.data", &Json::Null));
    }

    #[test]
    fn values_of_the_wrong_type_are_converted() {
        let check = |path: &str, text: &str, expected: Json| {
            let segments: Vec<String> = path.split('.').map(str::to_owned).collect();
            assert_eq!(as_meant(&segments, &node(text)).unwrap_or_default(), expected, "{path}: {text}");
        };
        check("roles.a.retry", "3", json!({"max": 3}));
        check("image.python", "torch==2.4", json!({"packages": ["torch==2.4"]}));
        check("image.copy.0", "./src:/work", json!({"from": "./src", "to": "/work"}));
        check("image.copy.0", "./src", Json::Null);
        check("roles.a.resources.gpu", "H100:8", json!({"count": 8, "model": "H100"}));
        check("roles.a.resources.gpu", "many", Json::Null);
        check("roles.a.resources.ports.http", "'8080:80'", json!({"port": 80, "publish": "host"}));
        check("roles.a.resources.ports.http", "'80/tcp'", json!(80));
        check("roles.a.instances", "two", json!(2));
        check("data.d", "./in:/data", json!({"source": "./in", "mount": "/data"}));
        check("data.d", "./in:/data:rw", json!({"source": "./in", "mount": "/data", "writable": true}));
        check("data.d", "nfs://h/d:/data:ro", json!({"source": "nfs://h/d", "mount": "/data"}));
        check("data.d", "s3://bucket/d", json!({"source": "s3://bucket/d", "mount": "/d"}));
        check(
            "data",
            "['./in:/data', /d/set]",
            json!({"data": {"source": "./in", "mount": "/data"}, "set": {"source": "/d/set", "mount": "/set"}}),
        );
        check("data", "[{source: /d}]", Json::Null);
        check("outputs.out", "/results", json!({"source": "./out", "mount": "/results"}));
        check("outputs.out", "/nfs/results", json!({"source": "/nfs/results", "mount": "/out"}));
        check("outputs.out", "./results", json!({"source": "./results", "mount": "/out"}));
        check("roles.a.outputs.d", "/d", json!({"mount": "/d"}));
        check("roles.a.outputs.d", "d", Json::Null);
        check("gang", "yes", json!("required"));
        check("gang", "false", json!("none"));
        check("gang", "auto", Json::Null);
        check("matrix.seed", "range(3)", json!([0, 1, 2]));
        check("matrix.axes.seed", "range(2, 4)", json!([2, 3]));
        check("matrix.seed", "range(1000)", Json::Null);
        check("roles.a.files./etc/x", "text", json!({"content": "text"}));
    }

    #[test]
    fn names_are_derived_from_paths() {
        assert_eq!(name_of("/data/ImageNet_21k/").as_deref(), Some("imagenet-21k"));
        assert_eq!(name_of("pvc:work").as_deref(), Some("work"));
        assert_eq!(name_of("/"), None);
    }
}
