//! The language as a JSON schema, for editors: written from the same tables that the reader refuses keys by.

use serde_json::{Map, Value, json};

use super::grammar::{SCENARIO, TCP_HEAD, VARIANT};
use super::profile::PROFILES;
use super::settings::{GROUPS, Kind, SETTINGS, Setting};
use super::shape::{Counted, Field, Shape};

/// A JSON schema (draft 2020-12) of scenario files.
pub fn schema() -> Value {
    of_file("bentpipe scenario", SCENARIO, &["name", "links", "flows"])
}

/// A JSON schema (draft 2020-12) of files with these keys.
pub(crate) fn of_file(title: &str, fields: &[Field], required: &[&str]) -> Value {
    let mut schema = object(fields);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(title);
    schema["required"] = json!(required);
    schema
}

/// A table of these keys and no others.
fn object(fields: &[Field]) -> Value {
    let properties: Map<_, _> =
        fields.iter().map(|field| (field.key.to_owned(), described(of(&field.shape), field.doc))).collect();
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}

fn described(mut schema: Value, doc: &str) -> Value {
    schema["description"] = json!(doc);
    schema
}

fn count(counted: &Counted) -> Value {
    let mut number = json!({ "type": "integer", "minimum": counted.min });
    if counted.max <= i64::MAX as u64 {
        number["maximum"] = json!(counted.max);
    }
    let singular = counted.what.strip_suffix('s').unwrap_or("");
    let unit = if counted.what.is_empty() { String::new() } else { format!(r"(\s*({}|{singular}))?", counted.what) };
    json!({ "anyOf": [number, { "type": "string", "pattern": format!(r"^\s*[0-9][0-9_]*{unit}\s*$") }] })
}

fn of(shape: &Shape) -> Value {
    match shape {
        Shape::Text => json!({ "type": "string" }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Count(counted) => count(counted),
        Shape::Quantity(dimension) => {
            json!({ "type": "string", "pattern": dimension.pattern(), "examples": [dimension.example] })
        }
        Shape::Probability => json!({ "anyOf": [
            { "type": "number", "minimum": 0, "maximum": 1 },
            { "type": "string", "pattern": r"^\s*[0-9][0-9_]*(\.[0-9_]+)?([eE][+-]?[0-9]+)?\s*%?\s*$" },
        ] }),
        Shape::Weight => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }),
        Shape::Choice(words) => json!({ "enum": words }),
        Shape::Table(fields) => object(fields),
        Shape::List(inner) => json!({ "type": "array", "items": of(inner) }),
        Shape::Pair(inner) => json!({ "type": "array", "items": of(inner), "minItems": 2, "maxItems": 2 }),
        Shape::Named(inner) => json!({ "type": "object", "additionalProperties": of(inner) }),
        Shape::Any(shapes) => json!({ "anyOf": shapes.iter().map(of).collect::<Vec<_>>() }),
        Shape::TcpSettings { head, base } => settings(
            match (head, base) {
                (true, _) => TCP_HEAD,
                (_, true) => VARIANT,
                _ => &[],
            },
            true,
        ),
    }
}

/// A table of TCP settings, with `sender` and `receiver` below it or without.
fn settings(head: &[Field], ends: bool) -> Value {
    let mut schema = object(head);
    for Setting { key, doc, words, kind, .. } in SETTINGS {
        let value = match kind {
            Kind::Words => json!({ "enum": words }),
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Count(counted) => with_words(count(counted), words),
            Kind::Span => with_words(of(&Shape::DURATION), words),
            Kind::Size { .. } => of(&Shape::SIZE),
        };
        let value = described(value, doc);
        match key.split_once('.') {
            None => schema["properties"][*key] = value,
            Some((group, key)) => {
                let about = GROUPS.iter().find(|(name, _)| *name == group).map_or("", |(_, about)| about);
                let group = &mut schema["properties"][group];
                group["type"] = json!("object");
                group["description"] = json!(about);
                group["additionalProperties"] = json!(false);
                group["properties"][key] = value;
            }
        }
    }
    if ends {
        let end = settings(&[], false);
        schema["properties"]["sender"] = described(end.clone(), "Settings of the end at `from` only.");
        schema["properties"]["receiver"] = described(end, "Settings of the end at `to` only.");
    }
    if let Some(profile) = schema["properties"].get_mut("profile") {
        profile["enum"] = json!(PROFILES.iter().map(|profile| profile.name).collect::<Vec<_>>());
    }
    schema
}

fn with_words(value: Value, words: &[&str]) -> Value {
    if words.is_empty() { value } else { json!({ "anyOf": [value, { "enum": words }] }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_knows_the_keys() {
        let schema = schema();
        let link = &schema["properties"]["links"]["items"]["properties"];
        assert_eq!(link["delay"]["type"], "string");
        assert_eq!(link["forward"]["properties"]["bursts"]["properties"]["extra_delay"]["examples"][0], "255 ms");
        assert_eq!(schema["properties"]["tcp"]["properties"]["rto"]["properties"]["min"]["type"], "string");
        assert_eq!(schema["properties"]["tcp"]["properties"]["receiver"]["properties"]["sack"]["type"], "boolean");
        assert_eq!(schema["properties"]["tcp"]["properties"]["profile"]["enum"][1], "ns2");
        let node = &schema["properties"]["nodes"]["additionalProperties"]["properties"];
        assert_eq!(node.as_object().map(Map::len), Some(2), "processing, forwarding, and no settings of TCP");
    }

    /// An editor shows the description of the key under the cursor, so each key has one.
    #[test]
    fn every_key_is_described() {
        fn undescribed(path: &str, schema: &Value, found: &mut Vec<String>) -> usize {
            let mut seen = 0;
            if let Some(properties) = schema["properties"].as_object() {
                for (key, value) in properties {
                    let path = format!("{path}.{key}");
                    if value["description"].as_str().is_none_or(|text| !text.ends_with('.')) {
                        found.push(path.clone());
                    }
                    seen += 1 + undescribed(&path, value, found);
                }
            }
            let list = schema["anyOf"].as_array().into_iter().flatten();
            let below = list.chain(schema.get("items")).chain(schema.get("additionalProperties"));
            seen + below.map(|inner| undescribed(path, inner, found)).sum::<usize>()
        }
        for schema in [schema(), crate::gateway::schema()] {
            let mut found = Vec::new();
            let seen = undescribed("", &schema, &mut found);
            assert!(seen > 100, "{seen} keys");
            assert_eq!(found, Vec::<String>::new(), "{} of {seen}", found.len());
        }
    }
}
