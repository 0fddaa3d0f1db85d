//! Sockets that keep the place of a file which programs in a sandbox must not create (`ostler-sandbox`). Tools of
//! the agent take them for missing files.

use rustix::fs::FileType;

/// The permissions of a placeholder. The sticky bit, which means nothing here, tells it from other sockets.
pub const PLACEHOLDER_MODE: u32 = 0o1644;

/// Whether something with this type and these permissions (`st_mode`) is a placeholder.
pub fn is_placeholder(mode: u32) -> bool {
    // The mask of new files may have removed some permissions.
    let (kind, permissions) = (FileType::from_raw_mode(mode), mode & 0o7777);
    kind == FileType::Socket && permissions & 0o1000 != 0 && permissions & !PLACEHOLDER_MODE == 0
}
