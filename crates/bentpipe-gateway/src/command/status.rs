//! The status of a gateway as JSON.

use crate::{Readings, Value};
use serde_json::{Map, Value as Json, json};

pub(super) fn json(readings: &Readings) -> String {
    let mut all = Map::new();
    all.insert("name".into(), readings.name().into());
    all.insert("shape".into(), readings.shape().into());
    for reading in readings.list() {
        let value = match &reading.value {
            Value::Total(count) | Value::Level(count) => json!(count),
            Value::Flag(flag) => json!(flag),
            Value::Millis(span) => json!(span.map(|span| span.as_nanos() / 1_000_000)),
            Value::Spent(span) => json!(span.as_nanos() / 1_000_000),
            Value::Micros(span) => json!(span.as_nanos() / 1000),
            Value::Text(text) => json!(text),
        };
        let of = match &reading.peer {
            None => &mut all,
            Some(peer) => inner(inner(&mut all, "peers"), peer),
        };
        let table = match reading.table {
            "" => of,
            table => inner(of, table),
        };
        let sum = table.entry(reading.key).or_insert(Json::Null);
        *sum = match (sum.as_u64(), value.as_u64()) {
            (Some(sum), Some(more)) => json!(sum + more),
            _ => value,
        };
    }
    format!("{:#}\n", Json::Object(all))
}

fn inner<'a>(table: &'a mut Map<String, Json>, name: &str) -> &'a mut Map<String, Json> {
    table.entry(name).or_insert_with(|| json!({})).as_object_mut().expect("a table's name is no key")
}
