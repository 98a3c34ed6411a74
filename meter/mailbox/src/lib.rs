//! Questions to the firmware of a Raspberry Pi, as `vcgencmd` asks them: a property message through the
//! `ioctl` of a mailbox device. The message's form and its numbers are those of the makers' own program
//! (raspberrypi/utils, vcgencmd/vcgencmd.c) and driver (raspberrypi/linux, drivers/char/broadcom/vcio.c).
//!
//! A crate of its own, because an `ioctl` can't be called without unsafe code, which the rest of the
//! workspace forbids.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// The devices of a Raspberry Pi, below `/dev`: the first can ask nothing but this, and older kernels
/// have the second alone.
pub const DEVICES: [&str; 2] = ["vcio_gencmd", "vcio"];

/// `_IOWR(100, 0, char *)`, the driver's `IOCTL_MBOX_PROPERTY`.
const PROPERTY: libc::Ioctl = libc::_IOWR::<*const libc::c_char>(100, 0);
/// The tag `GET_GENCMD_RESULT`: a command as text, and the answer in its place.
const COMMAND_RESULT: u32 = 0x0003_0080;
/// What the firmware writes over the message's code once it has answered.
const ANSWERED: u32 = 0x8000_0000;

/// Bytes for the command and for the answer.
const LONGEST: u32 = 4096;
/// Words before the text: length and code of the message, the tag, its buffer's length, the length of the
/// request, and an error.
const HEAD: usize = 6;
const CODE: usize = 1;
const ERROR: usize = 5;
/// Words of the whole message, which one word ends.
const WORDS: usize = HEAD + LONGEST as usize / 4 + 1;
/// Its length in bytes.
const BYTES: u32 = LONGEST + 4 * (6 + 1);
// The driver writes as many: no more than there are.
const _: () = assert!(BYTES as usize == size_of::<[u32; WORDS]>());

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum MailboxError {
    /// The device can't be opened.
    #[error("cannot open {}: {source}", .device.display())]
    Closed {
        /// The device.
        device: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel didn't pass the message on.
    #[error("{} takes no messages: {source}", .device.display())]
    Untaken {
        /// The device.
        device: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The firmware doesn't know what was asked, or can't do it.
    #[error("the firmware refuses {command} with error {error}")]
    Refused {
        /// What was asked.
        command: String,
        /// The firmware's number for why.
        error: u32,
    },
    /// More than fits a message.
    #[error("{0} is too long a command")]
    Long(String),
}

/// Asks the firmware, as `vcgencmd COMMAND` does, and gives its answer. Waits for it, some milliseconds as a
/// rule; the kernel gives up after a second.
pub fn ask(device: &Path, command: &str) -> Result<String, MailboxError> {
    let mut message = message(command)?;
    let file = File::open(device).map_err(|source| MailboxError::Closed {
        device: device.to_owned(),
        source,
    })?;
    exchange(&file, &mut message).map_err(|source| MailboxError::Untaken {
        device: device.to_owned(),
        source,
    })?;
    match (message[CODE], message[ERROR]) {
        (ANSWERED, 0) => Ok(text(&message)),
        (ANSWERED, error) | (error, _) => Err(MailboxError::Refused {
            command: command.to_owned(),
            error,
        }),
    }
}

fn message(command: &str) -> Result<[u32; WORDS], MailboxError> {
    // A NUL ends it.
    if command.len() >= LONGEST as usize {
        return Err(MailboxError::Long(command.to_owned()));
    }
    let mut message = [0; WORDS];
    message[0] = BYTES;
    message[2] = COMMAND_RESULT;
    message[3] = LONGEST;
    for (word, bytes) in message[HEAD..].iter_mut().zip(command.as_bytes().chunks(4)) {
        let mut padded = [0; 4];
        padded[..bytes.len()].copy_from_slice(bytes);
        *word = u32::from_ne_bytes(padded);
    }
    Ok(message)
}

/// The answer, up to its NUL.
fn text(message: &[u32; WORDS]) -> String {
    let bytes: Vec<u8> = message[HEAD..WORDS - 1]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .take_while(|byte| *byte != 0)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[allow(unsafe_code)]
fn exchange(device: &File, message: &mut [u32; WORDS]) -> io::Result<()> {
    // SAFETY: with this request the mailbox's driver reads the message's length from its first word, which is
    // that of the whole array, and reads and writes no more than that. A driver of another kind that knew a
    // request of this number would, by its form, take 8 bytes, of which the array has more. The array
    // outlives the call, and nothing else refers to it meanwhile.
    let outcome = unsafe { libc::ioctl(device.as_raw_fd(), PROPERTY, message.as_mut_ptr()) };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_what_the_makers_program_sends() {
        let message = message("pmic_read_adc").unwrap();
        assert_eq!(message.len(), 1031);
        assert_eq!(message[..HEAD], [4124, 0, 0x30080, 4096, 0, 0]);
        assert_eq!(text(&message), "pmic_read_adc");
        assert_eq!(message[1030], 0, "the end");
        assert_eq!(PROPERTY, 0xC008_6400);
    }

    #[test]
    fn what_is_no_mailbox_is_told() {
        let told = |device| {
            ask(Path::new(device), "pmic_read_adc")
                .unwrap_err()
                .to_string()
        };
        assert!(told("/dev/null").starts_with("/dev/null takes no messages: "));
        assert!(told("/dev/no-such").starts_with("cannot open /dev/no-such: "));
        let long = "x".repeat(4096);
        assert!(matches!(
            ask(Path::new("/dev/null"), &long),
            Err(MailboxError::Long(_))
        ));
    }
}
