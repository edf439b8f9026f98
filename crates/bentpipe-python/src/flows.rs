//! Tables of results: a row per flow, link or channel of a run. Their numbers are those of `bentpipe run --json`.

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use bentpipe_sim::record::{ChannelSummary, FlowSummary, LinkSummary, VariantRow};

use crate::table::{Words, columns};

columns! {
    /// Flows.
    Flows {
        seed: Int64Builder, "Seed of the run; above 2^63 - 1 it is shown minus 2^64.";
        case: Words, "What was compared: the name given, or the scenario's.";
        flow: Words, "Name of the flow.";
        from: Words, "The node that sends, or requests.";
        to: Words, "The node that receives, or responds.";
        variant: Words, "TCP variant; null for UDP.";
        finished: BooleanBuilder, "False if the time limit or an abort ended a flow that has an end; null for one without an end.";
        time_s: Float64Builder, "From its start to the arrival of its last byte, seconds; null if it is endless or did not finish.";
        goodput_bit_s: Float64Builder, "Payload per second until then, or until the flow's or the run's end, bit/s.";
        limit_time_s: Float64Builder, "The minimum time that the links allow, seconds.";
        limit_goodput_bit_s: Float64Builder, "The maximum payload rate that they allow, bit/s.";
        x_limit: Float64Builder, "Time over the minimum time, or maximum goodput over goodput.";
        bytes: Int64Builder, "Payload at the receiver, bytes.";
        segments: Int64Builder, "Segments with data, SYN or FIN sent; for UDP datagrams.";
        retransmissions: Int64Builder, "Of these, those that had been sent before.";
        timeouts: Int64Builder, "Retransmission timeouts.";
        fast_retransmits: Int64Builder, "Losses found by duplicate ACKs or SACK.";
        spurious_timeouts: Int64Builder, "Timeouts found spurious.";
        ecn_reductions: Int64Builder, "Reductions of the window for marks (RFC 3168).";
        max_flight_bytes: Int64Builder, "The most outstanding data, bytes.";
        start_s: Float64Builder, "When it started, seconds.";
        aborted: StringBuilder, "Why it was aborted; null if it was not.";
        response_median_s: Float64Builder, "Median time of the responses to its requests, seconds; null if it has made none, or if it falls on one without a response.";
        response_p95_s: Float64Builder, "Their 95th percentile, seconds.";
        response_p99_s: Float64Builder, "Their 99th percentile, seconds.";
    }
}

/// A count; no run reaches 2^63.
pub(crate) fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

impl Flows {
    pub(crate) fn push(&mut self, case: &str, seed: u64, flow: &FlowSummary) {
        self.seed.append_value(seed as i64);
        self.case.append_value(case);
        self.flow.append_value(&flow.name);
        self.from.append_value(&flow.from);
        self.to.append_value(&flow.to);
        self.variant.append_option(flow.variant.as_deref());
        // An endless flow has no minimum time.
        self.finished.append_option(flow.limit_time_s.map(|_| flow.time_s.is_some()));
        self.time_s.append_option(flow.time_s);
        self.goodput_bit_s.append_option(flow.goodput_bit_s);
        self.limit_time_s.append_option(flow.limit_time_s);
        self.limit_goodput_bit_s.append_option(flow.limit_goodput_bit_s);
        self.x_limit.append_option(flow.x_limit);
        self.bytes.append_value(whole(flow.bytes));
        self.segments.append_value(whole(flow.segments));
        self.retransmissions.append_value(whole(flow.retransmissions));
        self.timeouts.append_value(whole(flow.timeouts));
        self.fast_retransmits.append_value(whole(flow.fast_retransmits));
        self.spurious_timeouts.append_value(whole(flow.spurious_timeouts));
        self.ecn_reductions.append_value(whole(flow.ecn_reductions));
        self.max_flight_bytes.append_value(whole(flow.max_flight_bytes));
        self.start_s.append_value(flow.start_s);
        self.aborted.append_option(flow.aborted);
        self.response_median_s.append_option(flow.response.and_then(|response| response.median_s));
        self.response_p95_s.append_option(flow.response.and_then(|response| response.p95_s));
        self.response_p99_s.append_option(flow.response.and_then(|response| response.p99_s));
    }
}

columns! {
    /// Links.
    Links {
        seed: Int64Builder, "Seed of the run; above 2^63 - 1 it is shown minus 2^64.";
        case: Words, "What was compared: the name given, or the scenario's.";
        link: Words, "Name of the link, with its direction.";
        rate_bit_s: Int64Builder, "Line rate, bit/s, or the mean of one that changes; null if the line takes no time.";
        utilisation: Float64Builder, "Delivered bytes, as a share of what the line could send during the run, 0 to 1.";
        offered_packets: Int64Builder, "Packets offered.";
        delivered_packets: Int64Builder, "Packets delivered.";
        delivered_bytes: Int64Builder, "Bytes delivered.";
        marked_packets: Int64Builder, "Packets marked instead of dropped (RFC 3168).";
        dropped_queue_full: Int64Builder, "Packets lost since the queue was full.";
        dropped_early: Int64Builder, "Packets dropped by RED, CoDel, FQ-CoDel or DualPI2.";
        dropped_channel: Int64Builder, "Packets lost or damaged on the channel.";
        dropped_listed: Int64Builder, "Packets on the scenario's drop list.";
        dropped_too_long: Int64Builder, "Packets longer than the MTU.";
        max_queue_packets: Int64Builder, "The most waiting packets.";
    }
}

impl Links {
    pub(crate) fn push(&mut self, case: &str, seed: u64, link: &LinkSummary) {
        self.seed.append_value(seed as i64);
        self.case.append_value(case);
        self.link.append_value(&link.name);
        self.rate_bit_s.append_option(link.rate_bit_s.map(whole));
        self.utilisation.append_option(link.utilisation);
        self.offered_packets.append_value(whole(link.offered_packets));
        self.delivered_packets.append_value(whole(link.delivered_packets));
        self.delivered_bytes.append_value(whole(link.delivered_bytes));
        self.marked_packets.append_value(whole(link.marked_packets));
        self.dropped_queue_full.append_value(whole(link.dropped.queue_full));
        self.dropped_early.append_value(whole(link.dropped.early));
        self.dropped_channel.append_value(whole(link.dropped.channel));
        self.dropped_listed.append_value(whole(link.dropped.listed));
        self.dropped_too_long.append_value(whole(link.dropped.too_long));
        self.max_queue_packets.append_value(i64::from(link.max_queue_packets));
    }
}

columns! {
    /// Channels of link layers.
    Channels {
        seed: Int64Builder, "Seed of the run; above 2^63 - 1 it is shown minus 2^64.";
        layer: Words, "Name of the link layer.";
        link: Words, "The link that it sends on.";
        channel: Words, "Name of the channel.";
        packets: Int64Builder, "Packets from above.";
        delivered: Int64Builder, "Packets delivered at the far end.";
        lost_frames: Int64Builder, "Frames that the line lost.";
        resent_frames: Int64Builder, "Frames sent again.";
        copied_frames: Int64Builder, "Frames sent again into an idle line, before their fate was known.";
        repair_frames: Int64Builder, "Repair frames sent.";
        recovered: Int64Builder, "Packets recovered from repair frames.";
        skipped: Int64Builder, "Packets given up.";
        mean_wait_s: Float64Builder, "Mean wait for the first transmission, seconds.";
        longest_wait_s: Float64Builder, "The longest, seconds.";
        mean_hold_s: Float64Builder, "Mean time between arrival and release at the far end, seconds.";
        longest_hold_s: Float64Builder, "The longest, seconds.";
    }
}

impl Channels {
    pub(crate) fn push(&mut self, seed: u64, channel: &ChannelSummary) {
        self.seed.append_value(seed as i64);
        self.layer.append_value(&channel.layer);
        self.link.append_value(&channel.link);
        self.channel.append_value(&channel.channel);
        self.packets.append_value(whole(channel.packets));
        self.delivered.append_value(whole(channel.delivered));
        self.lost_frames.append_value(whole(channel.lost_frames));
        self.resent_frames.append_value(whole(channel.resent_frames));
        self.copied_frames.append_value(whole(channel.copied_frames));
        self.repair_frames.append_value(whole(channel.repair_frames));
        self.recovered.append_value(whole(channel.recovered));
        self.skipped.append_value(whole(channel.skipped));
        self.mean_wait_s.append_value(channel.mean_wait_s);
        self.longest_wait_s.append_value(channel.longest_wait_s);
        self.mean_hold_s.append_value(channel.mean_hold_s);
        self.longest_hold_s.append_value(channel.longest_hold_s);
    }
}

columns! {
    /// Variants side by side, as `bentpipe compare` prints them.
    Compared {
        case: StringBuilder, "What was compared.";
        finished: Int64Builder, "Runs whose transfers all finished.";
        unfinished: Int64Builder, "Runs with a transfer that did not finish; they rank last.";
        aborted: Int64Builder, "How many of those had an aborted flow; the others reached the time limit.";
        p25: Float64Builder, "First quartile of the measure; null, like the other two, if it falls on an unfinished run.";
        median: Float64Builder, "Median.";
        p75: Float64Builder, "Third quartile.";
        mean: Float64Builder, "Mean; null if a run did not finish.";
        mean_low: Float64Builder, "Lower end of its 95 % confidence interval (Student's t); null for fewer than two runs.";
        mean_high: Float64Builder, "Upper end.";
        ratio: Float64Builder, "Geometric mean of the ratio to the first case, pair by pair; null for the first, and if a run of either did not finish.";
        ratio_low: Float64Builder, "Lower end of its 95 % interval (bootstrap of pairs).";
        ratio_high: Float64Builder, "Upper end.";
        x_limit: Float64Builder, "Median of the ratio to the physical limit.";
    }
}

impl Compared {
    pub(crate) fn push(&mut self, row: &VariantRow) {
        let count = |count: usize| whole(count as u64);
        self.case.append_value(&row.variant);
        self.finished.append_value(count(row.finished));
        self.unfinished.append_value(count(row.unfinished));
        self.aborted.append_value(count(row.aborted.values().sum()));
        self.p25.append_option(row.p25);
        self.median.append_option(row.median);
        self.p75.append_option(row.p75);
        self.mean.append_option(row.mean);
        self.mean_low.append_option(row.mean_low);
        self.mean_high.append_option(row.mean_high);
        self.ratio.append_option(row.ratio_to_first.map(|ratio| ratio.estimate));
        self.ratio_low.append_option(row.ratio_to_first.and_then(|ratio| ratio.low));
        self.ratio_high.append_option(row.ratio_to_first.and_then(|ratio| ratio.high));
        self.x_limit.append_option(row.x_limit);
    }
}
