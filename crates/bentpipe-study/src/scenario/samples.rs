//! Settings of TCP that would have no effect, because the sender lacks what they need.

use bentpipe_language::tcp::lacks_rack;

use super::model::{FlowKind, Scenario};

/// A setting that has no effect in the final variant of a connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("flow `{flow}`: {message}")]
pub struct Lacking {
    /// Name of the flow.
    pub flow: String,
    /// The setting and what it needs.
    pub message: String,
}

impl Scenario {
    /// Checks that the senders of all connections give their controls the samples that these need. Reading a text does
    /// not check this, since another variant may follow ([`Scenario::with_variant`]).
    ///
    /// # Errors
    /// Fails for the first control, or end of slow start, that needs RACK or timestamps, and does not get them.
    pub fn check_samples(&self) -> Result<(), Lacking> {
        for flow in &self.flows {
            let FlowKind::Tcp(tcp) = &flow.kind else { continue };
            let first = tcp.stp.is_none().then_some([&tcp.sender, &tcp.receiver]);
            let others = tcp.splits.iter().filter(|leg| leg.stp.is_none()).map(|leg| [&leg.sender, &leg.receiver]);
            for end in first.into_iter().chain(others).flatten() {
                if let Some((_, message)) = lacks_rack(end).into_iter().next() {
                    return Err(Lacking { flow: flow.name.clone(), message });
                }
            }
        }
        Ok(())
    }
}
