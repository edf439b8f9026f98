//! The times of responses in a few numbers: of a flow, and of flows whose names differ only in a number.

use bentpipe_engine::units::Duration;
use bentpipe_study::scenario::{FlowSpec, Scenario, Workload};
use bentpipe_study::stats::Sample;
use serde::Serialize;

use crate::responses::Responses;
use crate::world::FlowResult;

/// The times from requests to the last bytes of their responses. The first request of a flow is made when it starts, so its
/// time includes the opening of the connection. A request without a response ranks after all others; a percentile that falls
/// on one is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ResponseSummary {
    /// Requests made.
    pub requests: u64,
    /// Responses that arrived completely.
    pub answered: u64,
    /// The mean in seconds; `None` if a request has no response.
    pub mean_s: Option<f64>,
    /// The median, seconds.
    pub median_s: Option<f64>,
    /// The 95th percentile, seconds.
    pub p95_s: Option<f64>,
    /// The 99th percentile, seconds.
    pub p99_s: Option<f64>,
    /// The maximum, seconds.
    pub longest_s: Option<f64>,
}

/// The responses of the flows of an [entry](asking).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntrySummary {
    /// Its name.
    pub name: String,
    /// Its flows that have made a request.
    pub flows: usize,
    /// Their responses.
    #[serde(flatten)]
    pub response: ResponseSummary,
}

impl ResponseSummary {
    /// Of several flows together; `None` without a request.
    pub(super) fn new(flows: &[&Responses]) -> Option<Self> {
        let seconds = |time: &Duration| Some(time.as_secs_f64());
        let answers = flows.iter().flat_map(|one| one.times()).map(seconds);
        let waiting = flows.iter().filter(|one| one.is_waiting()).map(|_| None);
        let (answered, waits) = (answers.clone().count(), waiting.clone().count());
        let sample = Sample::with_unfinished(answers.chain(waiting)).ok()?;
        Some(ResponseSummary {
            requests: (answered + waits) as u64,
            answered: answered as u64,
            mean_s: sample.finite_mean(),
            median_s: sample.finite_quantile(0.5),
            p95_s: sample.finite_quantile(0.95),
            p99_s: sample.finite_quantile(0.99),
            longest_s: sample.finite_quantile(1.0),
        })
    }
}

/// The flows with requests, in the scenario's order: those in a row whose names differ only in a number at the end are one entry, such
/// as `web` for `web-1` and `web-2`. Each entry has its name and its flows' places.
pub fn asking(scenario: &Scenario) -> Vec<(&str, Vec<usize>)> {
    let asks = |(_, flow): &(usize, &FlowSpec)| matches!(flow.kind.workload(), Some(Workload::RequestResponse { .. }));
    let flows: Vec<_> = scenario.flows.iter().enumerate().filter(asks).collect();
    let entries = flows.chunk_by(|(_, a), (_, b)| a.family().is_some() && a.family() == b.family());
    let named = entries.map(|one| {
        let name = if one.len() > 1 { one[0].1.family() } else { None };
        (name.unwrap_or(&one[0].1.name), one.iter().map(|&(place, _)| place).collect())
    });
    named.collect()
}

/// The responses of each entry that has made a request.
pub(super) fn entries(scenario: &Scenario, flows: &[FlowResult]) -> Vec<EntrySummary> {
    let of_entry = |(name, places): (&str, Vec<usize>)| {
        let asks: Vec<_> = places.into_iter().filter_map(|place| flows[place].responses.as_deref()).collect();
        let response = ResponseSummary::new(&asks)?;
        Some(EntrySummary { name: name.to_owned(), flows: asks.len(), response })
    };
    asking(scenario).into_iter().filter_map(of_entry).collect()
}
