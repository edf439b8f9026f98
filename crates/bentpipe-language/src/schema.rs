//! The language as a JSON schema for editors, made from the tables that the reader also uses.

use serde_json::{Map, Value, json};

use crate::quantity::NUMBER;
use crate::shape::{Counted, Field, Shape};
use crate::tcp::{GROUPS, Kind, PROFILES, SETTINGS, Setting, TCP_HEAD, VARIANT};

/// A JSON schema, as JSON.
pub type Schema = Value;

/// A JSON schema (draft 2020-12) of files with the keys `fields`, of which `required` are required.
pub fn schema(title: &str, fields: &[Field], required: &[&str]) -> Schema {
    let mut schema = object(fields);
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!(title);
    schema["required"] = json!(required);
    schema
}

/// A table of exactly these keys.
fn object(fields: &[Field]) -> Value {
    let property = |field: &Field| (field.key.to_owned(), described(of(&field.shape), field.doc));
    let renamed = |field: &Field| {
        let mut schema = described(of(&field.shape), &format!("Renamed: `{}`.", field.key));
        schema["deprecated"] = json!(true);
        Some((field.old_key?.to_owned(), schema))
    };
    let properties: Map<_, _> = fields.iter().map(property).chain(fields.iter().filter_map(renamed)).collect();
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
    json!({ "anyOf": [number, { "type": "string", "pattern": format!(r"^\s*\+?[0-9][0-9_]*{unit}\s*$") }] })
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
            { "type": "string", "pattern": format!(r"^\s*{NUMBER}\s*%?\s*$") },
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

/// A table of TCP settings, with or without `sender` and `receiver`.
fn settings(head: &[Field], ends: bool) -> Value {
    let mut schema = object(head);
    for Setting { key, doc, words, kind, .. } in SETTINGS {
        let value = match kind {
            Kind::Words => json!({ "enum": words }),
            Kind::Flag => json!({ "type": "boolean" }),
            Kind::Count(counted) => with_words(count(counted), words),
            Kind::Span => with_words(of(&Shape::DURATION), words),
            Kind::Rate => with_words(of(&Shape::RATE), words),
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
