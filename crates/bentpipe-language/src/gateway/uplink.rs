//! Settings of `uplink`: the sender towards the clients.

use std::ops::RangeInclusive;

use bentpipe_engine::tcp::variant::Startup;
use bentpipe_engine::tcp::{TcbSharing, TcpConfig};
use bentpipe_engine::units::Bytes;

use crate::error::Problems;
use crate::reader::{Item, View};
use crate::shape::{Field, Shape, field};
use crate::tcp::{self, Cell, TcpOverrides, TcpTable, UnknownName, Variants, lacks_rack, resolve_tcp};

/// Values of `sender`.
pub const SENDER: &[&str] = &["engine", "kernel"];
/// A constant window, since the box knows the link's rate, and RACK, which also finds retransmissions that are lost.
pub(crate) const VARIANT_DEFAULT: &str = "constant-rack";
/// BBR is made for links whose losses are not congestion.
pub const CONGESTION_DEFAULT: &str = "bbr";
/// A segment, and half of what sequence numbers can tell apart (RFC 7323 §2.3).
const WINDOWS: RangeInclusive<u64> = 1460..=1 << 30;

/// The key `variant`.
pub const VARIANT: Field = field(
    "variant",
    Shape::Text,
    "`sender = \"engine\"`: TCP variant, one of `bentpipe variants`. Default: constant-rack.",
);
/// The key `window`.
pub const WINDOW: Field = field(
    "window",
    Shape::SIZE,
    "`sender = \"engine\"`: maximum window of a connection. Default: one bandwidth-delay product for variants with a fixed window, unlimited for the others.",
);
/// The key `early_accept`.
pub const EARLY_ACCEPT: Field = field(
    "early_accept",
    Shape::Flag,
    "`sender = \"engine\"`: accept a client's connection before the server has accepted. This saves one round trip to the server; if the server refuses, the client sees a reset. Default: false.",
);
/// The key `tcp`.
pub const TCP: Field = field(
    "tcp",
    Shape::TcpSettings { head: false, base: false },
    "`sender = \"engine\"`: TCP settings, as in a scenario's `[tcp]`.",
);

/// The settings of the engine's sender.
#[derive(Clone, Debug, PartialEq)]
pub struct Engine {
    /// Name of its variant.
    pub variant: String,
    /// All settings of a connection.
    pub tcp: TcpConfig,
    /// The settings in the file.
    pub explicit: TcpOverrides,
    /// Maximum window.
    pub window: Option<Bytes>,
    /// True if a client is answered before the server has accepted.
    pub early_accept: bool,
}

/// The base settings: segments as long as the path allows, all options, and SACK for data from clients. The file's settings override them.
fn base(mtu: u16) -> TcpOverrides {
    let mss = u64::from(mtu.saturating_sub(40));
    let both = [("mss", Cell::Size(mss)), ("timestamps", Cell::Flag(true)), ("sack", Cell::Flag(true))];
    TcpOverrides { both: both.into(), ..TcpOverrides::default() }
}

/// The settings of a connection of the engine's sender.
///
/// # Errors
/// Fails if there is no such variant.
pub fn sender(variant: &str, explicit: &TcpOverrides, mtu: u16) -> Result<TcpConfig, UnknownName> {
    resolve_tcp("rfc", variant, &Variants::new(), &base(mtu).overlaid(explicit)).map(|(sender, _)| sender)
}

/// Reads the settings of the engine's sender; `product` is the link's bandwidth-delay product in bytes.
pub fn engine(
    view: &View<'_>,
    item: &Item<'_>,
    mtu: Option<u16>,
    product: u64,
    problems: &mut Problems,
) -> Option<Engine> {
    let settings = view.get("tcp").map(|item| tcp::settings(&item, problems)).unwrap_or_default();
    let explicit = settings.settings.overrides.clone();
    let named = named(view, item, mtu, settings, problems);
    let given = match view.get("window") {
        Some(item) => {
            let window = item.size(problems)?;
            if !WINDOWS.contains(&window.get()) {
                let expected = format!("{} B to 1 GiB", WINDOWS.start());
                item.refuse(problems, format!("a window cannot be {} B", window.get()), Some(expected));
            }
            Some(window)
        }
        None => None,
    };
    let early_accept = view.get("early_accept").map_or(Some(false), |item| item.flag(problems));
    let (variant, tcp, has_window) = named?;
    if let (true, Some(_), Some(item)) = (has_window, given, view.get("window")) {
        let message = "`window` and `tcp.fixed_window` say the same thing twice";
        item.refuse(problems, message, Some("one of the two".to_owned()));
    }
    let is_fixed = matches!(tcp.variant.startup, Startup::FixedWindow(_)) && !has_window;
    let window = given.or(is_fixed.then(|| Bytes::new(product.max(*WINDOWS.start()))));
    Some(Engine { variant, tcp, explicit, window, early_accept: early_accept? })
}

/// The name of the sender's variant, its settings, and whether they set its window.
fn named(
    view: &View<'_>,
    item: &Item<'_>,
    mtu: Option<u16>,
    settings: TcpTable,
    problems: &mut Problems,
) -> Option<(String, TcpConfig, bool)> {
    let mut table = TcpTable::of(base(mtu.unwrap_or(super::MTU_DEFAULT))).overlaid(&settings);
    let (name, span, path) = match view.get("variant") {
        Some(item) => (item.text(problems)?.to_owned(), item.node.span, item.path.clone()),
        None => (VARIANT_DEFAULT.to_owned(), item.node.span, item.path.clone()),
    };
    table.variant = Some((name.clone(), span, path));
    let (tcp, _) = table.resolve(&Variants::new(), (item.node.span, &item.path), problems)?;
    if !tcp.is_wire_true() {
        let message = "real hosts cannot be served by ns-2's forms of TCP";
        let expected = "no variant, recovery, handshake, units or shortcuts of ns-2".to_owned();
        view.get("tcp").or(view.get("variant")).as_ref().unwrap_or(item).refuse(problems, message, Some(expected));
    }
    if tcp.tcb_sharing != TcbSharing::Off {
        let message = "the connections of a box share nothing";
        let expected = "no `tcb_sharing`; `resume` says what is known of the path".to_owned();
        view.get("tcp").as_ref().unwrap_or(item).refuse(problems, message, Some(expected));
    }
    for (_, message) in lacks_rack(&tcp) {
        view.get("tcp").as_ref().unwrap_or(item).refuse(problems, message, None);
    }
    Some((name, tcp, table.gives("fixed_window")))
}

/// Reads the sender, and refuses the keys of the other one: `kernels` are those of `sender = "kernel"`, `engines` those of
/// `"engine"`.
pub fn which(view: &View<'_>, engines: &[&str], kernels: &[&str], problems: &mut Problems) -> Option<&'static str> {
    let sender = match view.get("sender") {
        Some(item) => item.choice(SENDER, problems)?,
        None => SENDER[0],
    };
    let (others, other) = if sender == SENDER[0] { (kernels, SENDER[1]) } else { (engines, SENDER[0]) };
    for item in others.iter().filter_map(|key| view.get(key)) {
        let message = format!("`{}` is for `sender = \"{other}\"`", item.path);
        item.refuse(problems, message, Some(format!("no such key: the sender is the {sender}'s")));
    }
    Some(sender)
}
