//! Opens, reads and replaces files without surprises: no reader or writer waits for a pipe, and no crash leaves half a file.
//! Other crates open files through this one; `cargo xtask tidy` checks it and lists the exceptions.

mod passed_pipe;
mod regular;
mod replace;

pub use self::passed_pipe::read_passed_pipe;
pub use self::regular::{
    append, copy, is_of_kernel, open, read_at_most, read_bytes, read_bytes_unless_link, read_text,
};
pub use self::replace::{edit, replace, replace_with};
