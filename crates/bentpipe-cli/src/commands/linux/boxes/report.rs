//! What the gateways of an emulation have done.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::output;

/// A gateway in a summary.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct BoxLine {
    /// Its name in the scenario.
    gateway: String,
    /// The node of its box.
    node: String,
    /// Its file, while it runs.
    file: PathBuf,
    /// How it ended, if it has ended by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<String>,
    /// What `bentpipe gateway status` would have printed at the end, if it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Value>,
}

impl BoxLine {
    pub(super) fn new(gateway: &str, node: &str, file: &Path) -> Self {
        BoxLine { gateway: gateway.to_owned(), node: node.to_owned(), file: file.to_owned(), ended: None, status: None }
    }

    /// The same at the end.
    pub(super) fn at_the_end(self, ended: Option<String>, status: Option<Value>) -> Self {
        BoxLine { ended, status, ..self }
    }

    /// True if it ended by itself.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// A sum of counters.
    fn count(&self, keys: &[(&str, &str)]) -> Option<u64> {
        let status = self.status.as_ref()?;
        keys.iter().filter_map(|&(table, key)| status[table][key].as_u64()).reduce(|sum, more| sum + more)
    }

    fn row(&self) -> Vec<String> {
        let connections = self.count(&[("split", "accepted"), ("split", "connected"), ("uplink", "total")]);
        let sent = self.count(&[("satellite", "frame_bytes"), ("satellite", "bytes"), ("uplink", "bytes_sent")]);
        let again = self.count(&[("satellite", "resent"), ("satellite", "retransmits")]);
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "\u{2013}".to_owned());
        let state = match (&self.ended, &self.status) {
            (Some(ended), _) => ended.clone(),
            (None, None) => "does not answer".to_owned(),
            (None, Some(status)) if status["up"] == true => "up".to_owned(),
            (None, Some(_)) => "down".to_owned(),
        };
        vec![
            self.gateway.clone(),
            self.node.clone(),
            state,
            or_dash(connections.map(|count| count.to_string())),
            or_dash(sent.map(output::bytes)),
            or_dash(again.map(|count| count.to_string())),
        ]
    }
}

/// The gateways as a table: what each sent over the satellite, and what of that it sent again.
pub(crate) fn table(lines: &[BoxLine]) -> String {
    let header = ["gateway", "node", "state", "connections", "sent", "sent again"];
    output::table(&header, 3, lines.iter().map(BoxLine::row))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_shape_counts_its_own() {
        let line = |status: Option<Value>, ended: Option<&str>| {
            let line = BoxLine::new("b", "n", Path::new("f")).at_the_end(ended.map(str::to_owned), status);
            line.row()[2..].join(" ")
        };
        let split =
            json!({"up": true, "split": {"accepted": 2, "connected": 1}, "satellite": {"frame_bytes": 5, "resent": 3}});
        assert_eq!(line(Some(split), None), "up 3 5 B 3");
        let uplink = json!({"up": false, "uplink": {"total": 4}, "satellite": {"bytes": 6, "retransmits": 1}});
        assert_eq!(line(Some(uplink), None), "down 4 6 B 1");
        assert_eq!(line(None, Some("killed by SIGKILL")), "killed by SIGKILL \u{2013} \u{2013} \u{2013}");
        assert_eq!(line(None, None), "does not answer \u{2013} \u{2013} \u{2013}");
    }
}
