//! Fields that a cluster silently drops: their feature gate is off, or the release is older.

use jobc_schema::pointer;
use serde_json::Value;

/// The JSON Pointers of fields that were sent and are not in the answer to a dry run. Only the topmost of each is named.
pub(crate) fn dropped_fields(sent: &Value, answered: &Value) -> Vec<String> {
    let mut found = Vec::new();
    if let (Some(sent), Some(answered)) = (sent.get("spec"), answered.get("spec")) {
        compare("/spec", sent, answered, &mut found);
    }
    found
}

fn compare(at: &str, sent: &Value, answered: &Value, found: &mut Vec<String>) {
    match (sent, answered) {
        (Value::Object(sent), Value::Object(answered)) => {
            for (key, value) in sent.iter().filter(|(_, value)| !is_empty(value)) {
                let at = format!("{at}/{}", pointer::escape(key));
                match answered.get(key) {
                    Some(there) => compare(&at, value, there, found),
                    None => found.push(at),
                }
            }
        }
        // Lists of another length were changed by a webhook.
        (Value::Array(sent), Value::Array(answered)) if sent.len() == answered.len() => {
            for (index, (value, there)) in sent.iter().zip(answered).enumerate() {
                compare(&format!("{at}/{index}"), value, there, found);
            }
        }
        _ => {}
    }
}

/// Fields that an API server leaves out of its responses.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) => false,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_of_a_gate_that_is_off_are_found() {
        let sent = json!({"metadata": {"name": "x"}, "spec": {
            "successPolicy": {"rules": [{"succeededCount": 1}]}, "suspend": false,
            "template": {"spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "1000m"}}, "restartPolicyRules": [1]}]}},
        }});
        let answered = json!({"metadata": {}, "spec": {"backoffLimit": 6,
            "template": {"spec": {"dnsPolicy": "ClusterFirst", "containers": [{"name": "main", "resources": {"limits": {"cpu": "1"}}}]}},
        }});
        assert_eq!(
            dropped_fields(&sent, &answered),
            ["/spec/successPolicy", "/spec/template/spec/containers/0/restartPolicyRules"]
        );
        assert!(dropped_fields(&sent, &sent).is_empty());
    }

    #[test]
    fn lists_that_a_webhook_changed_are_not_compared() {
        let sent = json!({"spec": {"containers": [{"a": 1}]}});
        assert!(dropped_fields(&sent, &json!({"spec": {"containers": [{}, {"a": 1}]}})).is_empty());
    }
}
