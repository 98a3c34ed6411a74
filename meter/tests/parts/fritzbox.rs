//! A stand-in for a FRITZ!Box with one plug. It speaks the login of version 2 and answers `getswitchpower`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use sha2::Sha256;

pub(crate) const AIN: &str = "11657 0000001";
pub(crate) const USER: &str = "meter";
pub(crate) const PASSWORD: &str = "1example!";
const NO_SESSION: &str = "0000000000000000";
/// Few iterations, because tests are not optimized.
const ITERATIONS: [u32; 2] = [60, 6];

/// The state of a box.
pub(crate) struct State {
    /// The plug's power as the box's text, in milliwatts.
    pub(crate) power: String,
    /// The password that the box accepts.
    pub(crate) password: String,
    /// Seconds for which the box accepts no login.
    pub(crate) block_time: u64,
    /// Whether the user may use Smart Home.
    pub(crate) may_use_smart_home: bool,
    /// Whether the box only knows the login of old versions.
    pub(crate) is_old: bool,
    /// Whether the box hangs.
    pub(crate) hangs: bool,
    /// Logins so far.
    pub(crate) logins: u32,
    /// Refused logins so far.
    pub(crate) refusals: u32,
    /// Session and open challenge.
    session: Option<String>,
    challenges: u64,
}

/// A box on the loopback interface.
pub(crate) struct Fritzbox {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

impl Fritzbox {
    pub(crate) fn start(power: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State {
            power: power.to_owned(),
            password: PASSWORD.to_owned(),
            block_time: 0,
            may_use_smart_home: true,
            is_old: false,
            hangs: false,
            logins: 0,
            refusals: 0,
            session: None,
            challenges: 0,
        }));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let Some(request) = lines.next() else {
                    continue;
                };
                while lines.next().is_some_and(|line| !line.is_empty()) {}
                let path = request.split(' ').nth(1).unwrap();
                let mut state = shared.lock().unwrap();
                if state.hangs {
                    drop(state);
                    // Until the client gives up.
                    lines.next();
                    continue;
                }
                let (status, body) = state.answer(path);
                let length = body.len();
                let _ = write!(
                    &stream,
                    "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
                );
            }
        });
        Self { address, state }
    }

    pub(crate) fn address(&self) -> String {
        self.address.to_string()
    }

    /// Changes the state, or reads it.
    pub(crate) fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }
}

impl State {
    /// Ends the session, as after 20 minutes without a request.
    pub(crate) fn end_session(&mut self) {
        self.session = None;
    }

    fn answer(&mut self, path: &str) -> (u16, String) {
        let (path, query) = path.split_once('?').unwrap();
        let query: BTreeMap<&str, String> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (name, decoded(value)))
            .collect();
        let value = |name: &str| query.get(name).map_or("", String::as_str);
        match path {
            "/login_sid.lua" => (200, self.log_in(value("version"), &query)),
            "/webservices/homeautoswitch.lua" => {
                assert_eq!(value("switchcmd"), "getswitchpower");
                if self.session.as_deref() != Some(value("sid")) || !self.may_use_smart_home {
                    (403, String::new())
                } else if value("ain") != AIN.replace(' ', "") {
                    (400, String::new())
                } else {
                    (200, format!("{}\n", self.power))
                }
            }
            _ => (404, String::new()),
        }
    }

    /// A new challenge, or the result of a response to the last challenge.
    fn log_in(&mut self, version: &str, query: &BTreeMap<&str, String>) -> String {
        assert_eq!(version, "2");
        let mut session = NO_SESSION.to_owned();
        if let Some(response) = query.get("response") {
            let (salt, second_salt) = self.salts();
            let key = key_of(self.password.as_bytes(), &salt, ITERATIONS[0]);
            let key = key_of(&key, &second_salt, ITERATIONS[1]);
            let expected = format!("{}${}", hex(&second_salt), hex(&key));
            let is_right = *response == expected && query["username"] == USER;
            if is_right && self.block_time == 0 {
                self.logins += 1;
                session = format!("{:016x}", 0x5e55_1010_0000_0000 + u64::from(self.logins));
                self.session = Some(session.clone());
            } else {
                self.refusals += 1;
            }
        }
        self.challenges += 1;
        let (salt, second_salt) = self.salts();
        let challenge = if self.is_old {
            "1234567z".to_owned()
        } else {
            let [first, second] = ITERATIONS;
            format!("2${first}${}${second}${}", hex(&salt), hex(&second_salt))
        };
        format!(
            "<?xml version=\"1.0\" encoding=\"utf-8\"?><SessionInfo><SID>{session}</SID><Challenge>{challenge}\
             </Challenge><BlockTime>{}</BlockTime><Rights></Rights><Users><User last=\"1\">{USER}</User></Users>\
             </SessionInfo>",
            self.block_time
        )
    }

    fn salts(&self) -> (Vec<u8>, Vec<u8>) {
        let number = self.challenges.to_be_bytes();
        ([&number[..], &[1]].concat(), [&number[..], &[2]].concat())
    }
}

fn key_of(password: &[u8], salt: &[u8], iterations: u32) -> [u8; 32] {
    pbkdf2::pbkdf2_hmac_array::<Sha256, 32>(password, salt, iterations)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn decoded(value: &str) -> String {
    let mut parts = value.split('%');
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| {
        let (code, rest) = part.split_at(2);
        let byte = u8::from_str_radix(code, 16).unwrap();
        format!("{text}{}{rest}", char::from(byte))
    })
}
