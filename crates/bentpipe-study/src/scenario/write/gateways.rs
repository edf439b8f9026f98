//! `[[gateways]]`.

use bentpipe_language::quantity::{SIZE, format_rate};
use toml::{Table, Value};

use super::tcp::overrides;
use super::values::{duration, integer, text};
use crate::scenario::model::{Carries, PairSpec, Scenario, SenderOf, UplinkSpec};

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
    if let [Some(near), Some(far)] = spec.advice {
        put("throughput_advice", Value::Array([near, far].map(|rate| text(format_rate(rate))).into()));
    }
    Value::Table(gateway)
}

pub(super) fn uplink(spec: &UplinkSpec, scenario: &Scenario) -> Value {
    let mut gateway = Table::new();
    let mut put = |key: &str, value: Value| {
        gateway.insert(key.to_owned(), value);
    };
    put("name", text(&spec.name));
    put("shape", text("uplink"));
    put("at", text(&scenario[spec.at]));
    put("over", Value::Array(spec.over.iter().map(|&link| text(&scenario[link].name)).collect()));
    put("rate", text(format_rate(spec.sender.rate)));
    put("round_trip", duration(spec.sender.round_trip));
    match &spec.by {
        SenderOf::Kernel { congestion } => {
            put("sender", text("kernel"));
            put("congestion", text(*congestion));
        }
        SenderOf::Engine { variant, explicit, early_accept } => {
            put("variant", text(variant));
            put("early_accept", Value::Boolean(*early_accept));
            put("mtu", text(SIZE.format(u64::from(spec.sender.mtu))));
            if let Some(window) = spec.sender.window {
                put("window", text(SIZE.format(window)));
            }
            if !explicit.is_empty() {
                put("tcp", Value::Table(overrides(explicit)));
            }
        }
    }
    Value::Table(gateway)
}

impl UplinkSpec {
    /// The explicit settings of the engine's sender as the table `[uplink.tcp]` of a gateway's file. Empty without any.
    pub fn tcp_toml(&self) -> String {
        let SenderOf::Engine { explicit, .. } = &self.by else { return String::new() };
        if explicit.is_empty() {
            return String::new();
        }
        let within = |key: &str, table: Table| Table::from_iter([(key.to_owned(), Value::Table(table))]);
        let table = within("uplink", within("tcp", overrides(explicit)));
        toml::to_string(&table).expect("text, numbers and tables can always be written")
    }
}
