//! Copies this program to a file.

use std::{
    env,
    fs::{self, Permissions},
    io,
    os::unix::fs::PermissionsExt,
    path::Path,
};

/// Copies this program to `file`, executable by all users. It replaces an existing file, even one that is being
/// executed, because a restarted pod keeps its volume.
pub(crate) fn install(file: &Path) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    let new = file.with_extension("new");
    fs::copy(env::current_exe()?, &new)?;
    fs::set_permissions(&new, Permissions::from_mode(0o555))?;
    fs::rename(new, file)
}
