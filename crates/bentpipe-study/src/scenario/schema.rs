//! The scenario language as a JSON schema for editors, made from the same tables by which the reader refuses unknown
//! keys.

use serde_json::Value;

use super::grammar::SCENARIO;

/// A JSON schema (draft 2020-12) of scenario files.
pub fn schema() -> Value {
    bentpipe_language::schema("bentpipe scenario", SCENARIO, &["name", "links"])
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
        let profiles = &schema["properties"]["tcp"]["properties"]["profile"]["enum"];
        assert!(profiles.as_array().is_some_and(|all| all.contains(&"ns2".into())), "{profiles}");
        let node = &schema["properties"]["nodes"]["additionalProperties"]["properties"];
        assert_eq!(
            node.as_object().map(serde_json::Map::len),
            Some(2),
            "processing, forwarding, and no settings of TCP"
        );
    }
}
