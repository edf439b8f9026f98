//! The network settings of a host, in the namespace of the calling thread.

use std::io;
use std::path::Path;

use bentpipe_io::ip;

/// Queue length of a device in trains: more than a second at 64 kB each and 1 Gbit/s.
const QUEUE: &str = "4096";

/// Maximum number of packets per train from the kernel.
const TRAIN: &str = "128";

/// Configures a host.
pub(crate) fn settle(forwards: bool) -> io::Result<()> {
    ip(&["link", "set", "lo", "up"])?;
    let forwards = if forwards { "1" } else { "0" };
    for (setting, value) in [
        ("ipv4/ip_forward", forwards),
        ("ipv6/conf/all/forwarding", forwards),
        // The emulation's routers send packets back through the device on which they arrived.
        ("ipv4/conf/all/send_redirects", "0"),
        ("ipv4/conf/default/send_redirects", "0"),
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/default/rp_filter", "0"),
        // Nobody answers router solicitations: they would only count as unroutable packets.
        ("ipv6/conf/default/router_solicitations", "0"),
    ] {
        let path = Path::new("/proc/sys/net").join(setting);
        // A kernel without IPv6 has no settings for it.
        if path.exists() {
            std::fs::write(path, value)?;
        }
    }
    Ok(())
}

/// Sets the queue length and the trains of a device. The ioctl for the queue does not work for root in a user
/// namespace.
pub(crate) fn tune(device: &str) -> io::Result<()> {
    ip(&["link", "set", "dev", device, "txqueuelen", QUEUE, "gso_max_segs", TRAIN])
}

/// Routes everything else to the device.
pub(crate) fn routes(device: &str, has_v6: bool) -> io::Result<()> {
    tune(device)?;
    ip(&["route", "add", "default", "dev", device])?;
    if has_v6 {
        ip(&["-6", "route", "add", "default", "dev", device])?;
    }
    Ok(())
}
