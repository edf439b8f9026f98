//! Tells systemd that the gateway is ready (sd_notify(3)), so that later units, and reloads, wait for its rules.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Notifies the service manager that started the process, if any.
pub(super) fn ready() {
    if let Some(name) = std::env::var_os("NOTIFY_SOCKET") {
        // Failure needs no handling: systemd times out and reports it.
        let _ = tell(&name, b"READY=1");
    }
}

fn tell(name: &OsStr, what: &[u8]) -> io::Result<()> {
    let address = match name.as_bytes() {
        [b'@', rest @ ..] => SocketAddr::from_abstract_name(rest)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(what, &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_kinds_of_names_are_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("notify");
        let hidden = format!("bentpipe-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&hidden).expect("short enough");
        let sockets =
            [UnixDatagram::bind(&path), UnixDatagram::bind_addr(&address)].map(|bound| bound.expect("a free name"));
        for (socket, name) in sockets.iter().zip([path.into_os_string(), format!("@{hidden}").into()]) {
            tell(&name, b"READY=1").expect("it listens");
            let mut text = [0; 16];
            assert_eq!(socket.recv(&mut text).map(|length| text[..length].to_vec()).expect("it came"), b"READY=1");
        }
        assert!(tell(OsStr::new("/nonexistent/notify"), b"READY=1").is_err());
    }
}
