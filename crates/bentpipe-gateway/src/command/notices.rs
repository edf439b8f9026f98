//! The kernel's notifications of changes, received by netlink sockets.

use std::io::ErrorKind;

use netlink_sys::{Socket, SocketAddr as Netlink};

/// Notifications of some groups, in the network namespace of the thread that makes the first call.
#[derive(Debug)]
pub(super) struct Notices {
    protocol: isize,
    groups: u32,
    /// Opened by the first call.
    socket: Option<Socket>,
}

impl Notices {
    /// `groups`: one bit per group; the lowest bit is group 1.
    pub(super) fn new(protocol: isize, groups: u32) -> Self {
        Notices { protocol, groups, socket: None }
    }

    /// True if something may have changed since the last call, or if the kernel's notifications cannot be read.
    pub(super) fn has_news(&mut self) -> bool {
        let Some(socket) = &self.socket else {
            self.socket = self.listen().ok();
            return true;
        };
        let mut has_news = false;
        loop {
            match socket.recv(&mut Vec::with_capacity(4096), 0) {
                Ok(_) => has_news = true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return has_news,
                // ENOBUFS: there were more notifications than fit the socket's buffer.
                Err(_) => {
                    self.socket = None;
                    return true;
                }
            }
        }
    }

    fn listen(&self) -> std::io::Result<Socket> {
        let mut socket = Socket::new(self.protocol)?;
        socket.set_non_blocking(true)?;
        socket.bind(&Netlink::new(0, self.groups))?;
        Ok(socket)
    }
}
