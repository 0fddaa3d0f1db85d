//! Opens, reads and replaces files safely: no reader waits for a pipe, and no crash leaves half a file.

mod passed_pipe;
mod regular;
mod replace;

pub use self::passed_pipe::read_passed_pipe;
pub use self::regular::{is_of_kernel, open, read_at_most, read_bytes, read_text};
pub use self::replace::{edit, replace, replace_with};
