//! `[[gateways]]`.

use bentpipe_language::quantity::{SIZE, format_rate};
use toml::{Table, Value};

use super::values::{duration, integer, text};
use crate::scenario::model::{Carries, PairSpec, Scenario};

pub(super) fn pair(spec: &PairSpec, scenario: &Scenario) -> Value {
    let [near, far] = spec.satellite;
    let mut gateway = Table::new();
    let mut put = |key: &str, value: Value| {
        gateway.insert(key.to_owned(), value);
    };
    put("name", text(&spec.name));
    put("shape", text(spec.carries.shape()));
    put("near", text(&scenario[spec.nodes[0]]));
    put("far", text(&scenario[spec.nodes[1]]));
    put("over", Value::Array(spec.over.iter().map(|&link| text(&scenario[link].name)).collect()));
    put("rate", Value::Array([near.rate, far.rate].map(|rate| text(format_rate(rate))).into()));
    put("round_trip", duration(near.round_trip));
    put("reordering", integer(near.reordering));
    put("shared", Value::Boolean(near.shared));
    put("mtu", text(SIZE.format(u64::from(near.path_mtu))));
    if let Carries::Streams { max_streams } = spec.carries {
        put("max_streams", integer(u64::from(max_streams)));
    }
    put("memory", text(SIZE.format(spec.memory.get())));
    Value::Table(gateway)
}
