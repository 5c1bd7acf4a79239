//! The OpenAPI 3.1 document, made of the table of endpoints and the schemas of their types.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

use crate::endpoint::{Endpoint, schema};
use crate::openpai;
use crate::problem::Document;
use crate::routes::{BASE, Login, endpoints};

/// The document.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut generator = settings.into_generator();
    let problem = schema::<Document>(&mut generator).to_value();
    let refusal = schema::<openpai::Refusal>(&mut generator).to_value();
    let mut paths = Map::new();
    for (base, endpoint) in endpoints()
        .iter()
        .map(|endpoint| (BASE, endpoint))
        .chain(openpai::endpoints().iter().map(|endpoint| (openpai::BASE, endpoint)))
    {
        let path = format!("{base}{}", endpoint.path.replace("{*", "{"));
        let operation = operation(endpoint, &mut generator);
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        methods[endpoint.method.to_lowercase()] = operation;
    }
    paths.insert(format!("{BASE}/openapi.json"), own_document());
    merge(&mut paths, &format!("{BASE}/session"), login(&mut generator));
    let definitions = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "jobc serve",
            "description": "Write, submit and watch jobs. Documents are those of `jobc` with `--format json`.",
            "version": "1",
            "license": {"name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": definitions,
            "responses": {
                "Problem": {
                    "description": "What is wrong, and what to do (RFC 9457)",
                    "content": {"application/problem+json": {"schema": problem}},
                },
                "OpenPaiError": {
                    "description": "What is wrong, as OpenPAI says it; as elsewhere, what is wrong with the request itself",
                    "content": {
                        "application/json": {"schema": refusal},
                        "application/problem+json": {"schema": problem},
                    },
                },
            },
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "The token of the link that `jobc serve` prints"},
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": crate::server::COOKIE_NAME,
                    "description": "For browsers; what changes something needs the header `X-Jobc-Request: 1` too",
                },
            },
        },
    })
}

fn operation(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Value {
    let mut parameters: Vec<Value> = endpoint
        .path
        .split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| name.trim_start_matches('*'))
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string", "minLength": 1}}))
        .collect();
    if let Some(query) = endpoint.query {
        parameters.extend(query_parameters(&query(generator).to_value(), generator));
    }
    if matches!(endpoint.name, "submit" | "rerun") {
        let schema = json!({"type": "string", "minLength": 1, "maxLength": 200});
        parameters
            .push(json!({"name": "Idempotency-Key", "in": "header", "required": false, "schema": schema,
            "description": "Makes the request count once."}));
    }
    if endpoint.media.contains(&"text/event-stream") {
        parameters.push(
            json!({"name": "Last-Event-ID", "in": "header", "required": false, "schema": {"type": "string"},
            "description": "The event after which a stream goes on."}),
        );
    }
    let mut content = Map::new();
    if endpoint.name == "openpai_list" {
        let list = json!({"type": "array", "items": {"type": "object"}});
        content
            .insert("application/json".to_owned(), json!({"schema": {"anyOf": [list, {"type": "object"}]}}));
    }
    if let Some(answer) = endpoint.answer {
        content.insert("application/json".to_owned(), json!({"schema": answer(generator).to_value()}));
    }
    for media in endpoint.media {
        // The schema of a stream is that of one event, as JSON.
        let is_text = media.starts_with("text/") && *media != "text/event-stream";
        let schema = if is_text { json!({"type": "string"}) } else { json!({}) };
        content.insert((*media).to_owned(), json!({ "schema": schema }));
    }
    let mut success = json!({"description": endpoint.summary});
    if !content.is_empty() {
        success["content"] = Value::Object(content);
    }
    let mut responses = Map::new();
    responses.insert(endpoint.status.to_string(), success.clone());
    if endpoint.status == 201 {
        responses.insert("200".to_owned(), success);
    }
    let error = if endpoint.name.starts_with("openpai_") { "OpenPaiError" } else { "Problem" };
    responses.insert("default".to_owned(), json!({"$ref": format!("#/components/responses/{error}")}));
    let mut operation = json!({
        "operationId": endpoint.name,
        "summary": endpoint.summary,
        "tags": [endpoint.path.split('/').nth(1).unwrap_or_default()],
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(body) = endpoint.body {
        let is_required = endpoint.name != "kill";
        operation["requestBody"] = json!({"required": is_required, "content": {"application/json": {"schema": body(generator).to_value()}}});
    } else if endpoint.method == "PUT" {
        operation["requestBody"] =
            json!({"required": true, "content": {"application/octet-stream": {"schema": {}}}});
    } else if endpoint.name == "openpai_submit" {
        operation["requestBody"] =
            json!({"required": true, "content": {"text/yaml": {"schema": {"type": "string"}}}});
    }
    operation
}

/// The parameters of a type that a query is read as.
fn query_parameters(reference: &Value, generator: &SchemaGenerator) -> Vec<Value> {
    let name = reference["$ref"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let definition = generator.definitions().get(name).cloned().unwrap_or_default();
    let properties = definition["properties"].as_object().cloned().unwrap_or_default();
    properties
        .into_iter()
        .map(|(name, mut schema)| {
            let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            plain(&mut schema);
            json!({"name": name, "in": "query", "required": false, "description": description, "schema": schema})
        })
        .collect()
}

/// A parameter is there or not, never null.
fn plain(schema: &mut Value) {
    if let Some(kinds) = schema["type"].as_array() {
        let kind = kinds.iter().find(|kind| *kind != "null").cloned().unwrap_or_default();
        schema["type"] = kind;
    }
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("default");
    }
}

fn merge(paths: &mut Map<String, Value>, path: &str, operation: Value) {
    paths.entry(path.to_owned()).or_insert_with(|| json!({}))["post"] = operation;
}

fn own_document() -> Value {
    json!({"get": {
        "operationId": "openapi",
        "summary": "Show this document",
        "tags": ["openapi.json"],
        "security": [],
        "responses": {"200": {
            "description": "The document",
            "content": {"application/json": {"schema": {"type": "object"}}},
        }},
    }})
}

fn login(generator: &mut SchemaGenerator) -> Value {
    let body = schema::<Login>(generator).to_value();
    json!({
        "operationId": "login",
        "summary": "Exchange a token for a cookie",
        "tags": ["session"],
        "security": [],
        "requestBody": {"required": true, "content": {"application/json": {"schema": body}}},
        "responses": {
            "204": {"description": "The cookie is set"},
            "default": {"$ref": "#/components/responses/Problem"},
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_have_names_of_their_own_and_references_lead_somewhere() {
        let document = document();
        let mut names = std::collections::BTreeSet::new();
        for methods in document["paths"].as_object().unwrap().values() {
            for operation in methods.as_object().unwrap().values() {
                let name = operation["operationId"].as_str().unwrap();
                assert!(names.insert(name.to_owned()), "{name}");
            }
        }
        assert!(names.len() > 35, "{names:?}");
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert!(document.pointer(reference).is_some(), "{reference}");
        }
    }
}
