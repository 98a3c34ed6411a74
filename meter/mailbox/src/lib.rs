//! Requests to the firmware of a Raspberry Pi, as `vcgencmd` sends them: a property message through the
//! `ioctl` of a mailbox device. The message's form and its numbers are from Raspberry Pi's own program
//! (raspberrypi/utils, vcgencmd/vcgencmd.c) and driver (raspberrypi/linux, drivers/char/broadcom/vcio.c).
//!
//! This is a separate crate, because an `ioctl` needs unsafe code and the rest of the workspace forbids
//! unsafe code.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

/// The mailbox devices of a Raspberry Pi, below `/dev`. The first accepts only this request. Older kernels
/// have only the second.
pub const DEVICES: [&str; 2] = ["vcio_gencmd", "vcio"];

/// `_IOWR(100, 0, char *)`, the driver's `IOCTL_MBOX_PROPERTY`.
const PROPERTY: libc::Ioctl = libc::_IOWR::<*const libc::c_char>(100, 0);
/// The tag `GET_GENCMD_RESULT`: a command as text. The firmware writes the answer over the command.
const COMMAND_RESULT: u32 = 0x0003_0080;
/// The firmware writes this over the message's code once it has answered.
const ANSWERED: u32 = 0x8000_0000;

/// Bytes for the command and for the answer.
const LONGEST: u32 = 4096;
/// Words before the text: length and code of the message, the tag, its buffer's length, the length of the
/// request, and an error.
const HEAD: usize = 6;
const CODE: usize = 1;
const ERROR: usize = 5;
/// Words of the whole message. One word ends the message.
const WORDS: usize = HEAD + LONGEST as usize / 4 + 1;
/// Length of the whole message in bytes.
const BYTES: u32 = LONGEST + 4 * (6 + 1);
// The driver writes `BYTES` bytes: the array must have exactly this size.
const _: () = assert!(BYTES as usize == size_of::<[u32; WORDS]>());

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum MailboxError {
    /// The device can't be opened.
    #[error("cannot open {}: {source}", .device.display())]
    Closed {
        /// The device.
        device: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel rejects the message.
    #[error("{} takes no messages: {source}", .device.display())]
    Untaken {
        /// The device.
        device: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The firmware doesn't know the command, or can't execute it.
    #[error("the firmware refuses {command} with error {error}")]
    Refused {
        /// The command.
        command: String,
        /// The firmware's error number.
        error: u32,
    },
    /// The command does not fit into a message.
    #[error("the command {0} is longer than 4095 bytes")]
    Long(String),
}

/// Sends a command to the firmware, as `vcgencmd COMMAND` does, and returns the answer. Blocks until the
/// firmware answers, usually for some milliseconds. The kernel gives up after one second.
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
    // A NUL byte must fit after the command.
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
    // SAFETY: for this request the mailbox's driver reads the message's length from its first word, which
    // holds the length of the whole array. The driver reads and writes only within this length. Another
    // driver with a request of this number would take 8 bytes by the request's encoding, and the array is
    // longer. The array outlives the call, and no other reference to the array exists during the call.
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
    fn a_message_equals_the_one_that_vcgencmd_sends() {
        let message = message("pmic_read_adc").unwrap();
        assert_eq!(message.len(), 1031);
        assert_eq!(message[..HEAD], [4124, 0, 0x30080, 4096, 0, 0]);
        assert_eq!(text(&message), "pmic_read_adc");
        assert_eq!(message[1030], 0, "the end");
        assert_eq!(PROPERTY, 0xC008_6400);
    }

    #[test]
    fn an_error_names_the_device_that_is_no_mailbox() {
        let reported = |device| {
            ask(Path::new(device), "pmic_read_adc")
                .unwrap_err()
                .to_string()
        };
        assert!(reported("/dev/null").starts_with("/dev/null takes no messages: "));
        assert!(reported("/dev/no-such").starts_with("cannot open /dev/no-such: "));
        let long = "x".repeat(4096);
        assert!(matches!(
            ask(Path::new("/dev/null"), &long),
            Err(MailboxError::Long(_))
        ));
    }
}
