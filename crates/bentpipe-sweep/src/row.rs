//! The results of a run: one row, with a part for each of its flows.

use std::sync::Arc;

use bentpipe_sim::RunResult;
use bentpipe_sim::record::{FlowSummary, Measure, Summary};
use bentpipe_study::scenario::Scenario;

use crate::key::Key;

/// The results of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Which run.
    pub key: Key,
    /// When it ended, seconds.
    pub end_s: f64,
    /// True if the time limit ended it while a finite flow was not done.
    pub timed_out: bool,
    /// Events of the simulation.
    pub events: u64,
    /// The compared quantity ([`Measure`]): the time of the slowest transfer in seconds, or goodput in bit/s; `None` if a
    /// transfer did not finish.
    pub value: Option<f64>,
    /// Its ratio to the physical limit.
    pub x_limit: Option<f64>,
    /// The flows, in the scenario's order.
    pub flows: Vec<FlowRow>,
}

/// The results of a flow; [`FlowSummary`] describes the values.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowRow {
    /// Its name.
    pub name: Arc<str>,
    /// Its TCP variant, `stp`, or `quic-` and the congestion control; `None` for UDP.
    pub variant: Option<Arc<str>>,
    /// Payload at the receiver, bytes.
    pub bytes: u64,
    /// Time of the transfer, seconds.
    pub time_s: Option<f64>,
    /// Payload per second, bits.
    pub goodput_bit_s: Option<f64>,
    /// Ratio to the physical limit.
    pub x_limit: Option<f64>,
    /// Segments sent.
    pub segments: u64,
    /// Those that had been sent before.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Losses found by duplicate ACKs or SACK.
    pub fast_retransmits: u64,
    /// Timeouts found spurious.
    pub spurious_timeouts: u64,
    /// Max outstanding bytes.
    pub max_flight_bytes: u64,
    /// Median one-way delay of datagrams, seconds.
    pub delay_median_s: Option<f64>,
    /// Their 99th percentile, seconds.
    pub delay_p99_s: Option<f64>,
    /// Why it was aborted.
    pub aborted: Option<Arc<str>>,
    /// Median time of the responses to its requests, seconds.
    pub response_median_s: Option<f64>,
    /// Their 95th percentile, seconds.
    pub response_p95_s: Option<f64>,
    /// Their 99th percentile, seconds.
    pub response_p99_s: Option<f64>,
}

impl Row {
    /// The row of a run of this scenario.
    pub(crate) fn new(key: Key, scenario: &Scenario, result: &RunResult) -> Row {
        let summary = Summary::new(scenario, result);
        let taken = Measure::of(scenario).take(&summary);
        Row {
            key,
            end_s: summary.end_s,
            timed_out: summary.timed_out,
            events: summary.events,
            value: taken.map(|(value, _)| value),
            x_limit: taken.and_then(|(_, x_limit)| x_limit),
            flows: summary.flows.into_iter().map(FlowRow::from).collect(),
        }
    }

    /// The row as bytes: numbers in little-endian order, doubles bit for bit.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Out(Vec::with_capacity(64 + 160 * self.flows.len()));
        out.0.extend(self.key.scenario.to_le_bytes());
        out.number(self.key.seed);
        out.real(self.end_s);
        // The second bit is new, so that rows of earlier versions can be read.
        let has_responses = self.flows.iter().any(|flow| flow.responses() != [None; 3]);
        out.0.push(u8::from(self.timed_out) | u8::from(has_responses) << 1);
        out.number(self.events);
        out.maybe(self.value);
        out.maybe(self.x_limit);
        out.number(self.flows.len() as u64);
        for flow in &self.flows {
            out.text(&flow.name);
            out.maybe_text(flow.variant.as_deref());
            out.number(flow.bytes);
            out.maybe(flow.time_s);
            out.maybe(flow.goodput_bit_s);
            out.maybe(flow.x_limit);
            for count in
                [flow.segments, flow.retransmissions, flow.timeouts, flow.fast_retransmits, flow.spurious_timeouts]
            {
                out.number(count);
            }
            out.number(flow.max_flight_bytes);
            out.maybe(flow.delay_median_s);
            out.maybe(flow.delay_p99_s);
            out.maybe_text(flow.aborted.as_deref());
        }
        if has_responses {
            self.flows.iter().flat_map(FlowRow::responses).for_each(|time| out.maybe(time));
        }
        out.0
    }

    /// The row of these bytes.
    ///
    /// # Errors
    /// Fails if they are not exactly one row.
    pub fn from_bytes(bytes: &[u8]) -> Result<Row, RowError> {
        let mut input = In(bytes);
        let row = input.row().ok_or(RowError)?;
        if input.0.is_empty() { Ok(row) } else { Err(RowError) }
    }
}

/// The bytes are not a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the bytes of one row")]
pub struct RowError;

impl From<FlowSummary> for FlowRow {
    fn from(flow: FlowSummary) -> Self {
        FlowRow {
            name: flow.name.into(),
            variant: flow.variant.map(Into::into),
            bytes: flow.bytes,
            time_s: flow.time_s,
            goodput_bit_s: flow.goodput_bit_s,
            x_limit: flow.x_limit,
            segments: flow.segments,
            retransmissions: flow.retransmissions,
            timeouts: flow.timeouts,
            fast_retransmits: flow.fast_retransmits,
            spurious_timeouts: flow.spurious_timeouts,
            max_flight_bytes: flow.max_flight_bytes,
            delay_median_s: flow.delay.map(|delay| delay.median_s),
            delay_p99_s: flow.delay.map(|delay| delay.p99_s),
            aborted: flow.aborted.map(Into::into),
            response_median_s: flow.response.and_then(|response| response.median_s),
            response_p95_s: flow.response.and_then(|response| response.p95_s),
            response_p99_s: flow.response.and_then(|response| response.p99_s),
        }
    }
}

impl FlowRow {
    /// The times of responses.
    fn responses(&self) -> [Option<f64>; 3] {
        [self.response_median_s, self.response_p95_s, self.response_p99_s]
    }
}

struct Out(Vec<u8>);

impl Out {
    fn number(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }

    fn real(&mut self, value: f64) {
        self.number(value.to_bits());
    }

    fn maybe(&mut self, value: Option<f64>) {
        self.0.push(u8::from(value.is_some()));
        if let Some(value) = value {
            self.real(value);
        }
    }

    fn text(&mut self, value: &str) {
        self.number(value.len() as u64);
        self.0.extend(value.as_bytes());
    }

    fn maybe_text(&mut self, value: Option<&str>) {
        self.0.push(u8::from(value.is_some()));
        if let Some(value) = value {
            self.text(value);
        }
    }
}

struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn real(&mut self) -> Option<f64> {
        self.number().map(f64::from_bits)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.take(1)? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn maybe(&mut self) -> Option<Option<f64>> {
        if self.flag()? { self.real().map(Some) } else { Some(None) }
    }

    fn text(&mut self) -> Option<Arc<str>> {
        let length = usize::try_from(self.number()?).ok()?;
        std::str::from_utf8(self.take(length)?).ok().map(Arc::from)
    }

    fn maybe_text(&mut self) -> Option<Option<Arc<str>>> {
        if self.flag()? { self.text().map(Some) } else { Some(None) }
    }

    fn row(&mut self) -> Option<Row> {
        let scenario = u128::from_le_bytes(self.take(16)?.try_into().ok()?);
        let key = Key { scenario, seed: self.number()? };
        let (end_s, flags, events) = (self.real()?, self.take(1)?[0], self.number()?);
        if flags > 3 {
            return None;
        }
        let (value, x_limit) = (self.maybe()?, self.maybe()?);
        let count = self.number()?;
        let mut flows = (0..count).map(|_| self.flow()).collect::<Option<Vec<_>>>()?;
        if flags & 2 != 0 {
            for flow in &mut flows {
                flow.response_median_s = self.maybe()?;
                flow.response_p95_s = self.maybe()?;
                flow.response_p99_s = self.maybe()?;
            }
        }
        Some(Row { key, end_s, timed_out: flags & 1 != 0, events, value, x_limit, flows })
    }

    fn flow(&mut self) -> Option<FlowRow> {
        Some(FlowRow {
            name: self.text()?,
            variant: self.maybe_text()?,
            bytes: self.number()?,
            time_s: self.maybe()?,
            goodput_bit_s: self.maybe()?,
            x_limit: self.maybe()?,
            segments: self.number()?,
            retransmissions: self.number()?,
            timeouts: self.number()?,
            fast_retransmits: self.number()?,
            spurious_timeouts: self.number()?,
            max_flight_bytes: self.number()?,
            delay_median_s: self.maybe()?,
            delay_p99_s: self.maybe()?,
            aborted: self.maybe_text()?,
            response_median_s: None,
            response_p95_s: None,
            response_p99_s: None,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row(n: u64) -> Row {
        let flow = |name: &str, done: bool| FlowRow {
            name: name.into(),
            variant: done.then(|| "sack".into()),
            bytes: 1_000_000 + n,
            // A double that decimal text would have to spell with 17 digits.
            time_s: done.then_some(0.1 + 0.2 + n as f64),
            goodput_bit_s: Some(1e6 / 3.0),
            x_limit: done.then_some(1.5),
            segments: 685,
            retransmissions: n,
            timeouts: 0,
            fast_retransmits: 1,
            spurious_timeouts: 0,
            max_flight_bytes: 14_600,
            delay_median_s: (!done).then_some(0.28),
            delay_p99_s: None,
            aborted: (!done).then(|| "retries exhausted".into()),
            response_median_s: (done && n % 2 == 1).then_some(1.25),
            response_p95_s: (done && n % 2 == 1).then_some(2.5),
            response_p99_s: None,
        };
        Row {
            key: Key { scenario: 0x0123_4567_89ab_cdef_0011_2233_4455_6677 + u128::from(n % 3), seed: u64::MAX - n },
            end_s: 3.25,
            timed_out: n.is_multiple_of(2),
            events: 4711,
            value: (n % 2 == 1).then_some(0.1 + 0.2),
            x_limit: Some(f64::MIN_POSITIVE),
            flows: vec![flow("first", true), flow("zweiter Fluß", false)],
        }
    }

    /// Delays vary from 10 ms to 110 ms, so that the median and the 99th percentile differ.
    #[test]
    fn a_row_has_the_values_of_the_summary() {
        let text = "name = \"t\"\n[[links]]\nname = \"l\"\nbetween = [\"A\", \"B\"]\nrate = \"1 Mbit/s\"\ndelay = \"10 ms\"\n\
                    forward.jitter = { delay = { uniform = [\"0 ms\", \"100 ms\"] } }\n[[flows]]\nname = \"f\"\nfrom = \"A\"\nto = \"B\"\n\
                    type = \"udp\"\nrate = \"100 kbit/s\"\npacket = \"100 B\"\nstop = \"5 s\"\n";
        let scenario = Scenario::parse(text, "t.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
        let result = crate::run::run_whole(&scenario, 1, || true).expect("it runs").expect("to its end");
        let flow = Summary::new(&scenario, &result).flows.remove(0);
        let row = Row::new(Key { scenario: 1, seed: 1 }, &scenario, &result);
        let delay = flow.delay.as_ref().expect("datagrams came");
        assert_eq!((row.flows[0].delay_median_s, row.flows[0].delay_p99_s), (Some(delay.median_s), Some(delay.p99_s)));
        assert!(delay.p99_s > delay.median_s + 0.01, "{delay:?}");
        assert_eq!((row.flows[0].segments, row.flows[0].bytes), (flow.segments, flow.bytes));
    }

    #[test]
    fn bytes_read_back_as_the_row() {
        for n in 0..4 {
            let bytes = row(n).to_bytes();
            assert_eq!(Row::from_bytes(&bytes), Ok(row(n)));
            for length in 0..bytes.len() {
                assert_eq!(Row::from_bytes(&bytes[..length]), Err(RowError), "{length} of {}", bytes.len());
            }
            assert_eq!(Row::from_bytes(&[bytes, vec![0]].concat()), Err(RowError));
        }
    }
}
