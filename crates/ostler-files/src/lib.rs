//! Opens, reads and replaces files without surprises: no reader or writer waits for a pipe, no crash leaves half a file,
//! and no link that appears after a path was checked is followed ([`RealPath`]).
//! Other crates open files through this one; `cargo xtask tidy` checks it and lists the exceptions.

mod lock;
pub mod openat;
mod passed_pipe;
mod placeholder;
mod real_path;
mod regular;
mod replace;

pub use self::lock::FileLock;
pub use self::passed_pipe::read_passed_pipe;
pub use self::placeholder::{PLACEHOLDER_MODE, is_placeholder};
pub use self::real_path::{RealPath, is_link_appeared};
pub use self::regular::{is_of_kernel, open, read_at_most, read_bytes, read_text};
pub use self::replace::replace_with;
