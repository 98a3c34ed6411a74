//! The power of a FRITZ!DECT plug, from its FRITZ!Box (AVM, "AHA-HTTP-Interface").
//!
//! The meter logs in by challenge and response (AVM, "Session-ID", version 2): the password does not leave the
//! meter, and the answer to one challenge does not fit another challenge. The box then gives a session,
//! which goes over the network without encryption. The box ends a session that is not used for 20 minutes.
//!
//! The plug reports its power to the box about every two minutes. The box repeats the last report in between.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use hyper::StatusCode;
use pbkdf2::pbkdf2_hmac_array;
use sha2::Sha256;
use tokio::task;

use super::remote::{DeviceEndpoint, REFUSED_PAUSE, percent_encoded, secret};
use super::{InstrumentError, PowerOrEnergy, valid};

/// Time between two of the plug's reports. AVM, "AHA-HTTP-Interface", `powermeter`: the power is refreshed
/// about every two minutes.
pub(crate) const REFRESH: Duration = Duration::from_secs(120);
/// Time between two questions. A router has other work, and more questions bring no more reports.
pub(crate) const INTERVAL: Duration = Duration::from_secs(10);
const LOGIN: &str = "/login_sid.lua?version=2";
/// The session of a client that is not logged in.
const NO_SESSION: &str = "0000000000000000";
/// A box asks for less than a tenth of this. More iterations would keep the node busy.
const MOST_ITERATIONS: u32 = 1_000_000;
const MILLIWATTS_PER_WATT: f64 = 1e3;

/// Why a FRITZ!Box gives no power, or can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FritzError {
    /// The plug's number can't be used.
    #[error(
        "the meter cannot use the AIN {0:?}: write it as the box's page shows it, such as 11657 0000001"
    )]
    Ain(String),
    /// A box has no other authentication.
    #[error("a FRITZ!Box needs username with passwordFile, and no tokenFile and no caFile")]
    Credentials,
    /// The box only offers the login of old versions, which derives the response with MD5.
    #[error("{url}: the box offers no login with PBKDF2: install FRITZ!OS 7.24 or later")]
    Old {
        /// Box and plug.
        url: String,
    },
    /// The box has refused the login or the session.
    #[error("{url}: {}", .reason.text(.username, *.seconds))]
    Refused {
        /// Box and plug.
        url: String,
        /// Why.
        reason: LoginRefusal,
        /// The user's name.
        username: String,
        /// The pause until the meter tries again, in seconds.
        seconds: u64,
    },
    /// The box answers with an error status.
    #[error("{url} answers {status}{}", hint(*.status))]
    Status {
        /// Box and plug.
        url: String,
        /// The status of the answer.
        status: StatusCode,
    },
}

fn hint(status: StatusCode) -> &'static str {
    if status == StatusCode::BAD_REQUEST {
        ": check the AIN"
    } else {
        ""
    }
}

/// Why the box has refused a login or a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LoginRefusal {
    /// The box does not accept the response.
    Password,
    /// The box accepts no login because earlier logins failed.
    Blocked,
    /// The box accepts the login, and refuses the question.
    NoRight,
}

impl LoginRefusal {
    fn text(self, username: &str, seconds: u64) -> String {
        let what = match self {
            Self::Password => format!("the box refuses user {username:?} with this password"),
            Self::Blocked => {
                "the box accepts no login now, because earlier logins failed".to_owned()
            }
            Self::NoRight => format!(
                "the box answers 403 Forbidden: give user {username:?} the right Smart Home on the box's page"
            ),
        };
        format!(
            "{what}; the meter tries again after {seconds} s, or if the file has another password"
        )
    }
}

/// The last login that the box has refused. Devices lock out clients that keep trying.
struct Refusal {
    password: String,
    at: Instant,
    pause: Duration,
    reason: LoginRefusal,
}

/// The question for the power of a plug: path and query without the session. The box's page shows the number
/// with blanks, and the box knows it without them.
pub(crate) fn question(ain: &str) -> Result<String, FritzError> {
    let number = ain.replace(' ', "");
    if number.is_empty() {
        return Err(FritzError::Ain(ain.to_owned()));
    }
    let number = percent_encoded(&number);
    Ok(format!(
        "/webservices/homeautoswitch.lua?ain={number}&switchcmd=getswitchpower"
    ))
}

/// A plug to ask for.
pub(crate) struct Plug {
    endpoint: DeviceEndpoint,
    question: String,
    username: String,
    password_file: PathBuf,
    session: Option<String>,
    refusal: Option<Refusal>,
}

impl std::fmt::Debug for Plug {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Plug").field(&self.endpoint).finish()
    }
}

impl Plug {
    /// The plug of a [`question`], at a box whose URL is `endpoint`.
    pub(crate) fn new(
        endpoint: DeviceEndpoint,
        question: String,
        username: String,
        password_file: PathBuf,
    ) -> Self {
        Self {
            endpoint,
            question,
            username,
            password_file,
            session: None,
            refusal: None,
        }
    }

    /// The plug's power, and how long the box took to answer. If the session has ended, the meter logs in
    /// again.
    pub(crate) async fn get(&mut self) -> Result<(PowerOrEnergy, Duration), InstrumentError> {
        let password = secret(&self.password_file)?;
        loop {
            let (session, is_new) = match self.session.clone() {
                Some(session) => (session, false),
                None => (self.log_in(&password).await?, true),
            };
            let path = format!("{}&sid={session}", self.question);
            let (status, text, took) = self.endpoint.get_at(&path).await?;
            if status == StatusCode::FORBIDDEN {
                self.session = None;
                if is_new {
                    return Err(self.refuse(password, LoginRefusal::NoRight, Duration::ZERO));
                }
                continue;
            }
            self.session = Some(session);
            if status != StatusCode::OK {
                let url = self.url();
                return Err(FritzError::Status { url, status }.into());
            }
            let watts = text
                .trim()
                .parse()
                .ok()
                .and_then(|milliwatts: f64| valid(milliwatts / MILLIWATTS_PER_WATT));
            return match watts {
                Some(watts) => Ok((PowerOrEnergy::Watts(watts), took)),
                None => Err(InstrumentError::malformed(
                    self.url(),
                    text.trim(),
                    "power in mW: the box does not reach the plug, or the device measures no power",
                )),
            };
        }
    }

    async fn log_in(&mut self, password: &str) -> Result<String, InstrumentError> {
        if let Some(refusal) = &self.refusal
            && refusal.password == password
            && refusal.at.elapsed() < refusal.pause
        {
            let left = refusal.pause.saturating_sub(refusal.at.elapsed());
            return Err(self.refused(refusal.reason, left).into());
        }
        let offer = self.session_info(LOGIN).await?;
        if !offer.pause.is_zero() {
            return Err(self.refuse(password.to_owned(), LoginRefusal::Blocked, offer.pause));
        }
        let Some(challenge) = offer.challenge.strip_prefix("2$") else {
            return Err(FritzError::Old { url: self.url() }.into());
        };
        let challenge = Challenge::parse(challenge).ok_or_else(|| {
            InstrumentError::malformed(self.url(), &offer.challenge, "challenge of a login")
        })?;
        // In another thread: the meter would miss its next reading of CPU time.
        let secret = password.to_owned();
        let response = task::spawn_blocking(move || challenge.response(&secret)).await;
        let response = response.map_err(|source| InstrumentError::Unreadable {
            path: self.url(),
            source: source.into(),
        })?;
        let (username, response) = (percent_encoded(&self.username), percent_encoded(&response));
        let path = format!("{LOGIN}&username={username}&response={response}");
        let answer = self.session_info(&path).await?;
        if answer.session == NO_SESSION {
            return Err(self.refuse(password.to_owned(), LoginRefusal::Password, answer.pause));
        }
        self.refusal = None;
        Ok(answer.session)
    }

    async fn session_info(&self, path: &str) -> Result<SessionInfo, InstrumentError> {
        let (status, text, _) = self.endpoint.get_at(path).await?;
        if status != StatusCode::OK {
            let url = self.url();
            return Err(FritzError::Status { url, status }.into());
        }
        SessionInfo::parse(&text)
            .ok_or_else(|| InstrumentError::malformed(self.url(), &text, "session of a FRITZ!Box"))
    }

    /// Pauses for at least as long as with other devices.
    fn refuse(
        &mut self,
        password: String,
        reason: LoginRefusal,
        pause: Duration,
    ) -> InstrumentError {
        let pause = pause.max(REFUSED_PAUSE);
        self.refusal = Some(Refusal {
            password,
            at: Instant::now(),
            pause,
            reason,
        });
        self.refused(reason, pause).into()
    }

    fn refused(&self, reason: LoginRefusal, pause: Duration) -> FritzError {
        FritzError::Refused {
            url: self.url(),
            reason,
            username: self.username.clone(),
            seconds: pause.as_secs(),
        }
    }

    fn url(&self) -> String {
        self.endpoint.url().to_owned()
    }
}

/// The box's answer about a session.
#[derive(Debug, PartialEq)]
struct SessionInfo {
    session: String,
    challenge: String,
    /// For how long the box accepts no login.
    pause: Duration,
}

impl SessionInfo {
    /// Takes three elements of a small XML document without attributes.
    fn parse(text: &str) -> Option<Self> {
        let element = |name: &str| {
            let (_, rest) = text.split_once(&format!("<{name}>"))?;
            let (content, _) = rest.split_once(&format!("</{name}>"))?;
            Some(content.trim())
        };
        let session = element("SID")?;
        let is_session = session.len() == NO_SESSION.len()
            && session.bytes().all(|byte| byte.is_ascii_hexdigit());
        Some(Self {
            session: is_session.then(|| session.to_owned())?,
            challenge: element("Challenge")?.to_owned(),
            pause: Duration::from_secs(element("BlockTime")?.parse().ok()?),
        })
    }
}

/// One application of PBKDF2.
#[derive(Debug)]
struct Round {
    iterations: u32,
    salt: Vec<u8>,
}

/// What a response is derived from: the key of the first round is the password of the second round.
#[derive(Debug)]
struct Challenge {
    first: Round,
    second: Round,
    second_salt: String,
}

impl Challenge {
    /// Takes iterations and salt of both rounds, joined by `$`.
    fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('$').collect();
        let [iterations, salt, more_iterations, second_salt] = parts.as_slice() else {
            return None;
        };
        let round = |iterations: &str, salt: &str| {
            let iterations = iterations.parse().ok()?;
            (1..=MOST_ITERATIONS).contains(&iterations).then_some(())?;
            let salt = bytes(salt)?;
            Some(Round { iterations, salt })
        };
        Some(Self {
            first: round(iterations, salt)?,
            second: round(more_iterations, second_salt)?,
            second_salt: (*second_salt).to_owned(),
        })
    }

    fn response(&self, password: &str) -> String {
        let key = self.first.key(password.as_bytes());
        let key = self.second.key(&key);
        key.iter()
            .fold(format!("{}$", self.second_salt), |text, byte| {
                format!("{text}{byte:02x}")
            })
    }
}

impl Round {
    fn key(&self, password: &[u8]) -> [u8; 32] {
        pbkdf2_hmac_array::<Sha256, 32>(password, &self.salt, self.iterations)
    }
}

/// The bytes of a text such as `5a18`.
fn bytes(hexadecimal: &str) -> Option<Vec<u8>> {
    let digits = hexadecimal.as_bytes();
    digits
        .chunks(2)
        .map(|pair| match pair {
            [high, low] => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()
            }
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests;
