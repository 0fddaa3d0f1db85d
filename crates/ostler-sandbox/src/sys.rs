//! System calls that no crate wraps.
#![expect(unsafe_code, reason = "no crate has safe functions for these calls")]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// Makes every descriptor above standard error close when another program replaces this one.
pub(crate) fn close_others_on_exec() -> io::Result<()> {
    // SAFETY: takes three numbers, and changes only a flag of descriptors.
    let failed =
        unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Makes the files of a detached mount and of those below it appear with the owners that a user namespace maps theirs to.
pub(crate) fn map_owners(mount: BorrowedFd<'_>, namespace: BorrowedFd<'_>) -> io::Result<()> {
    let namespace = u64::try_from(namespace.as_raw_fd()).map_err(io::Error::other)?;
    set_attributes(mount, libc::MOUNT_ATTR_IDMAP, namespace, libc::AT_RECURSIVE)
}

/// Takes from a detached mount and from those below it that files start programs as other users and that there are devices,
/// and, if it is read-only, that it can be written.
pub(crate) fn restrict_mount(mount: BorrowedFd<'_>, is_read_only: bool) -> io::Result<()> {
    let read_only = if is_read_only { libc::MOUNT_ATTR_RDONLY } else { 0 };
    let attributes = read_only | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    set_attributes(mount, attributes, 0, libc::AT_RECURSIVE)
}

/// Makes a mount read-only, but not those below it.
pub(crate) fn seal_mount(mount: BorrowedFd<'_>) -> io::Result<()> {
    set_attributes(mount, libc::MOUNT_ATTR_RDONLY, 0, 0)
}

/// Takes from a detached mount of a device that it could start programs.
pub(crate) fn restrict_device(mount: BorrowedFd<'_>) -> io::Result<()> {
    set_attributes(mount, libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC, 0, 0)
}

/// A path that leads to an open file or folder, in this process.
pub(crate) fn path_of(file: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

fn set_attributes(
    mount: BorrowedFd<'_>,
    attributes: u64,
    namespace: u64,
    flags: libc::c_int,
) -> io::Result<()> {
    let attributes = libc::mount_attr {
        attr_set: attributes,
        attr_clr: 0,
        propagation: 0,
        userns_fd: namespace,
    };
    // SAFETY: the descriptors are open, the path is empty and ends with 0, and the structure lives during the call and
    // has the given size.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH | flags,
            &raw const attributes,
            size_of_val(&attributes),
        )
    };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Starts the loopback interface of this process's network.
pub(crate) fn start_loopback() -> io::Result<()> {
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))?;
    let flags =
        libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).map_err(io::Error::other)?;
    let mut request = libc::ifreq {
        ifr_name: [0; libc::IFNAMSIZ],
        ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags },
    };
    for (to, from) in request.ifr_name.iter_mut().zip(*b"lo") {
        *to = from.cast_signed();
    }
    // SAFETY: the descriptor is open, and the structure has a name that ends with 0 and lives during the call.
    let failed = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The version of the kernel's rules about files (Landlock); 0 if it has none.
pub(crate) fn landlock_version() -> i32 {
    const ASK_FOR_VERSION: u32 = 1;
    let (no_rules, size) = (std::ptr::null::<u8>(), 0_usize);
    // SAFETY: with this flag the kernel reads nothing and returns a number.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, no_rules, size, ASK_FOR_VERSION)
    };
    i32::try_from(version).unwrap_or_default().max(0)
}
