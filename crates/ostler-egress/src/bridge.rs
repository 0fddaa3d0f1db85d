//! The other end, inside the sandbox: passes TCP connections on to the proxy's Unix socket. Threads and the standard library
//! only, because it runs in a small process that must start at once and has no tokio runtime.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// A number of connections that is enough for package managers; each needs two threads.
pub const CONNECTIONS: usize = 64;

const BUFFER: usize = 16 * 1024;
/// A buffer and some calls.
const STACK: usize = 64 * 1024;

/// Passes connections on for ever, at most `most` at a time; further ones wait in the kernel's queue.
///
/// A connection ends when both sides have closed their direction, or one fails. If the proxy cannot be reached, the
/// client's connection is closed.
///
/// The listener belongs into the sandbox's own network. Where there are no network namespaces (macOS), every program of the
/// machine can reach it, so the proxy needs a token.
pub fn serve(listener: &TcpListener, socket: &Path, most: usize) -> ! {
    let slots = Slots::new(most);
    let socket: Arc<Path> = socket.into();
    loop {
        let slot = Slots::take(&slots);
        let Ok((client, _)) = listener.accept() else {
            // The process has no free file descriptor, most likely; a busy loop would not free one.
            thread::sleep(Duration::from_millis(10));
            continue;
        };
        let socket = Arc::clone(&socket);
        // Without a free thread the client is disconnected, and the next one may be luckier.
        _ = spawn(move || {
            _ = pass_on(client, &socket);
            drop(slot);
        });
    }
}

fn spawn<F: FnOnce() + Send + 'static>(run: F) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().stack_size(STACK).spawn(run)
}

fn pass_on(client: TcpStream, socket: &Path) -> io::Result<()> {
    let proxy = UnixStream::connect(socket)?;
    client.set_nodelay(true)?;
    let (from, to) = (client.try_clone()?, proxy.try_clone()?);
    let up = spawn(move || {
        if copy(&from, &to).is_err() {
            end(&from, &to);
        }
        // Passes the end on; the other direction may still be open.
        _ = to.shutdown(Shutdown::Write);
    })?;
    if copy(&proxy, &client).is_err() {
        end(&client, &proxy);
    }
    _ = client.shutdown(Shutdown::Write);
    _ = up.join();
    Ok(())
}

/// Ends both directions, so that no thread waits for one.
fn end(client: &TcpStream, proxy: &UnixStream) {
    _ = client.shutdown(Shutdown::Both);
    _ = proxy.shutdown(Shutdown::Both);
}

fn copy(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut buffer = [0; BUFFER];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(&buffer[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// A semaphore, which the standard library does not have.
struct Slots {
    free: Mutex<usize>,
    freed: Condvar,
}

/// Room for one connection.
struct Slot(Arc<Slots>);

impl Slots {
    fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { free: Mutex::new(most.max(1)), freed: Condvar::new() })
    }

    /// Waits for a free slot.
    fn take(slots: &Arc<Self>) -> Slot {
        let free = slots.free.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = slots.freed.wait_while(free, |free| *free == 0);
        *waited.unwrap_or_else(PoisonError::into_inner) -= 1;
        Slot(Arc::clone(slots))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.freed.notify_one();
    }
}
