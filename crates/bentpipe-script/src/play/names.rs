//! The names available to code.

/// The supported `tcpi_*` names.
const KNOWN: [&str; 20] = [
    "tcpi_state",
    "tcpi_snd_cwnd",
    "tcpi_snd_ssthresh",
    "tcpi_snd_mss",
    "tcpi_advmss",
    "tcpi_unacked",
    "tcpi_ca_state",
    "tcpi_sacked",
    "tcpi_lost",
    "tcpi_retrans",
    "tcpi_reordering",
    "tcpi_rtt",
    "tcpi_rto",
    "tcpi_total_retrans",
    "tcpi_delivered_ce",
    "tcpi_delivered_e0_bytes",
    "tcpi_delivered_ce_bytes",
    "tcpi_delivered_e1_bytes",
    "tcpi_last_data_recv",
    "tcpi_options",
];

/// True if the name has a value.
pub(crate) fn is_known(name: &str) -> bool {
    KNOWN.contains(&name)
}
