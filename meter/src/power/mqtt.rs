//! Messages of a device on one topic of an MQTT broker.
//!
//! A device either publishes by itself, or answers a request that the meter publishes. A message counts as
//! true when it arrives, or in the middle between request and answer. The broker keeps the last **retained**
//! message of a topic for any time, and its age is unknown. Such a message is therefore no reading. The
//! subscription has QoS 0 in a clean session, so the broker delivers no old messages after a reconnection.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use hyper::http::uri::Authority;
use rumqttc::{
    AsyncClient, ConnectReturnCode, ConnectionError, Event, EventLoop, MqttOptions, Packet, QoS,
    SubscribeReasonCode,
};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant as Deadline;

use super::config::MqttRequest;
use super::remote::{REFUSED_PAUSE, RemoteError, secret};

const PORT: u16 = 1883;
/// If a broker's connection is lost without a notice, the meter notices it after two pings.
const PING_EVERY: Duration = Duration::from_secs(5);
/// Pause before a lost connection is tried again.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Larger than the messages of any plug.
const LARGEST_MESSAGE: usize = 64 << 10;
/// Messages that wait for the meter. The meter takes each message when it arrives, or skips old messages before
/// it publishes a request.
const QUEUE: usize = 16;

/// Why a topic gives no reading, or can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MqttError {
    /// The broker's name can't be used.
    #[error(
        "the meter cannot use the broker {0:?}: write a name or an address, with a port if it is not 1883"
    )]
    Broker(String),
    /// The topic can't be used.
    #[error("the meter cannot use the topic {0:?}: write one topic without + and #")]
    Topic(String),
    /// MQTT has no such authentication.
    #[error(
        "the meter speaks MQTT without TLS and without tokens: write username with passwordFile, and no \
         tokenFile and no caFile"
    )]
    Credentials,
    /// A message that is a number has no time.
    #[error("timePath is for JSON messages: write path too")]
    TimeWithoutPath,
    /// There is no connection to the broker.
    #[error("{from}: {reason}")]
    Disconnected {
        /// Broker and topic.
        from: String,
        /// The error.
        reason: String,
    },
    /// No message in time.
    #[error("{from} has had no new message for {seconds} s{retained}{hint}")]
    Silent {
        /// Broker and topic.
        from: String,
        /// The time, in seconds.
        seconds: f64,
        /// Whether there was a retained message.
        retained: &'static str,
        /// What may be wrong.
        hint: &'static str,
    },
}

/// The state of the connection.
#[derive(Clone, Debug, PartialEq)]
enum Standing {
    /// Not connected yet, or not any more.
    Down(String),
    /// The subscription is active.
    Up {
        /// Whether the broker has sent a retained message, and no other message yet.
        only_retained: bool,
    },
}

/// A message, and when it arrived.
#[derive(Debug)]
struct Message {
    at: Instant,
    text: String,
}

/// The user's settings for a topic.
#[derive(Clone, Debug)]
struct Settings {
    host: String,
    port: u16,
    topic: String,
    request: Option<MqttRequest>,
    /// User name, and the file with the password.
    login: Option<(String, PathBuf)>,
    /// How long to wait for a message.
    patience: Duration,
}

/// A connection to the broker. It ends when dropped.
#[derive(Debug)]
struct Link {
    client: AsyncClient,
    messages: mpsc::Receiver<Message>,
    standing: watch::Receiver<Standing>,
    task: JoinHandle<()>,
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A topic that the meter subscribes to.
#[derive(Debug)]
pub(crate) struct Topic {
    settings: Settings,
    /// Connected at the first question.
    link: Option<Link>,
    /// When the last request was published, if it had no answer in time. Its answer may still come.
    unanswered: Option<Instant>,
}

impl Topic {
    /// A topic of a broker. `patience` is how long a message may take.
    pub(crate) fn new(
        broker: &str,
        topic: &str,
        request: Option<&MqttRequest>,
        login: Option<(String, PathBuf)>,
        patience: Duration,
    ) -> Result<Self, MqttError> {
        let authority: Authority = super::in_url(broker)
            .parse()
            .ok()
            .filter(|it: &Authority| !it.host().is_empty() && !broker.contains('@'))
            .ok_or_else(|| MqttError::Broker(broker.to_owned()))?;
        let topics = std::iter::once(topic).chain(request.map(|it| it.topic.as_str()));
        for topic in topics {
            if topic.is_empty() || rumqttc::has_wildcards(topic) {
                return Err(MqttError::Topic(topic.to_owned()));
            }
        }
        Ok(Self {
            settings: Settings {
                host: authority.host().to_owned(),
                port: authority.port_u16().unwrap_or(PORT),
                topic: topic.to_owned(),
                request: request.cloned(),
                login,
                patience,
            },
            link: None,
            unanswered: None,
        })
    }

    /// Broker and topic as a URL, without secrets.
    pub(crate) fn url(&self) -> String {
        self.settings.url()
    }

    /// Whether the device publishes by itself.
    pub(crate) fn is_pushed(&self) -> bool {
        self.settings.request.is_none()
    }

    /// The first message that `read` understands, and its age. If no message comes in time that it understands, the
    /// error of the last one that it did not understand.
    pub(crate) async fn next<T, E: From<MqttError>>(
        &mut self,
        read: impl Fn(&str) -> Result<T, E>,
    ) -> Result<(T, Duration), E> {
        let deadline = Deadline::now() + self.settings.patience;
        let settings = &self.settings;
        let link = self.link.get_or_insert_with(|| Link::start(settings));
        let mut asked = None;
        if let Some(request) = &settings.request {
            // A request that waits for a connection would be answered too late.
            let up = |standing: &Standing| matches!(standing, Standing::Up { .. });
            let ready = tokio::time::timeout_at(deadline, link.standing.wait_for(up));
            let is_up = matches!(ready.await, Ok(Ok(_)));
            if !is_up {
                return Err(link.silence(settings).into());
            }
            // These came without a request, or too late.
            while link.messages.try_recv().is_ok() {}
            let now = Instant::now();
            let (topic, payload) = (request.topic.as_str(), request.payload.as_bytes());
            let sent = link
                .client
                .try_publish(topic, QoS::AtMostOnce, false, payload);
            sent.map_err(|error| settings.disconnected(&error))?;
            // A late answer to the request before looks the same.
            asked = Some((now, self.unanswered.take().unwrap_or(now)));
        }
        let mut misread = None;
        loop {
            let arrived = tokio::time::timeout_at(deadline, link.messages.recv()).await;
            let Ok(Some(message)) = arrived else {
                // If the connection's task has ended, the next question must not come at once.
                tokio::time::sleep_until(deadline).await;
                self.unanswered = asked.map(|(at, _)| at);
                return Err(misread.unwrap_or_else(|| link.silence(settings).into()));
            };
            match read(&message.text) {
                Ok(value) => {
                    let since = asked.map_or(message.at, |(_, since)| since);
                    let delay = message.at.saturating_duration_since(since);
                    return Ok((value, message.at.elapsed() + delay / 2));
                }
                Err(error) => misread = Some(error),
            }
        }
    }
}

impl Settings {
    fn url(&self) -> String {
        format!("mqtt://{}:{}/{}", self.host, self.port, self.topic)
    }

    fn disconnected(&self, reason: &dyn std::fmt::Display) -> MqttError {
        MqttError::Disconnected {
            from: self.url(),
            reason: reason.to_string(),
        }
    }

    fn password(&self) -> Result<Option<(&str, String)>, RemoteError> {
        let Some((username, file)) = &self.login else {
            return Ok(None);
        };
        Ok(Some((username, secret(file)?)))
    }
}

impl Link {
    /// Must be called within a runtime.
    fn start(settings: &Settings) -> Self {
        let mut options = MqttOptions::new(client_id(), settings.host.as_str(), settings.port);
        options.set_keep_alive(PING_EVERY);
        options.set_clean_session(true);
        options.set_max_packet_size(LARGEST_MESSAGE, LARGEST_MESSAGE);
        let (client, events) = AsyncClient::new(options, QUEUE);
        let (send, messages) = mpsc::channel(QUEUE);
        let (stand, standing) =
            watch::channel(Standing::Down("the connection is not ready".to_owned()));
        let receiver = Subscriber {
            settings: settings.clone(),
            client: client.clone(),
            messages: send,
            standing: stand,
        };
        Self {
            client,
            messages,
            standing,
            task: tokio::spawn(receiver.run(events)),
        }
    }

    /// Why there is no message.
    fn silence(&self, settings: &Settings) -> MqttError {
        match &*self.standing.borrow() {
            Standing::Down(reason) => settings.disconnected(reason),
            Standing::Up { only_retained } => MqttError::Silent {
                from: settings.url(),
                seconds: settings.patience.as_secs_f64(),
                retained: if *only_retained {
                    "; its retained message is of unknown age and therefore no reading"
                } else {
                    ""
                },
                hint: if settings.request.is_some() {
                    ": the device does not answer the request"
                } else {
                    ": the device publishes less often than polling.intervalSeconds says, or the user may not \
                     read the topic"
                },
            },
        }
    }
}

/// Receives messages for a [`Link`].
struct Subscriber {
    settings: Settings,
    client: AsyncClient,
    messages: mpsc::Sender<Message>,
    standing: watch::Sender<Standing>,
}

impl Subscriber {
    /// Connects again and again until aborted. The password's file is read for each connection.
    async fn run(self, mut events: EventLoop) {
        loop {
            let (reason, refused) = match self.settings.password() {
                Ok(login) => {
                    let password = login.as_ref().map(|(_, password)| password.clone());
                    if let Some((username, password)) = login {
                        events.mqtt_options.set_credentials(username, password);
                    }
                    let error = self.receive(&mut events).await;
                    let is_refused = matches!(
                        error,
                        ConnectionError::ConnectionRefused(
                            ConnectReturnCode::BadUserNamePassword
                                | ConnectReturnCode::NotAuthorized
                        )
                    );
                    (reported(&error), is_refused.then_some(password))
                }
                Err(error) => (error.to_string(), None),
            };
            self.standing.send_replace(Standing::Down(reason));
            tokio::time::sleep(RETRY_AFTER).await;
            if let Some(refused) = refused {
                self.wait_for_another(refused.as_deref()).await;
            }
        }
    }

    /// Waits until the password is another one, or for a minute: brokers may lock out clients that keep trying.
    async fn wait_for_another(&self, refused: Option<&str>) {
        let until = Instant::now() + REFUSED_PAUSE;
        while Instant::now() < until {
            let is_same = matches!(
                &self.settings.password(),
                Ok(now) if now.as_ref().map(|(_, password)| password.as_str()) == refused
            );
            if !is_same {
                return;
            }
            tokio::time::sleep(RETRY_AFTER).await;
        }
    }

    /// Receives until the connection ends.
    async fn receive(&self, events: &mut EventLoop) -> ConnectionError {
        let topic = &self.settings.topic;
        loop {
            match events.poll().await {
                Ok(Event::Incoming(Packet::ConnAck(_))) => {
                    // The queue is empty: the meter publishes no request before the subscription is active.
                    let _ = self.client.try_subscribe(topic.as_str(), QoS::AtMostOnce);
                }
                Ok(Event::Incoming(Packet::SubAck(answer))) => {
                    let standing = if answer.return_codes.contains(&SubscribeReasonCode::Failure) {
                        Standing::Down("the broker refuses the subscription".to_owned())
                    } else {
                        Standing::Up {
                            only_retained: false,
                        }
                    };
                    self.standing.send_replace(standing);
                }
                Ok(Event::Incoming(Packet::Publish(message))) => {
                    self.standing.send_replace(Standing::Up {
                        only_retained: message.retain,
                    });
                    if !message.retain {
                        // A full queue means that the meter waits for none of these messages.
                        let _ = self.messages.try_send(Message {
                            at: Instant::now(),
                            text: String::from_utf8_lossy(&message.payload).into_owned(),
                        });
                    }
                }
                Ok(_) => {}
                Err(error) => return error,
            }
        }
    }
}

/// The broker's reason, for people.
fn reported(error: &ConnectionError) -> String {
    match error {
        ConnectionError::ConnectionRefused(
            ConnectReturnCode::BadUserNamePassword | ConnectReturnCode::NotAuthorized,
        ) => "the broker refuses the user: write polling.username with passwordFile".to_owned(),
        other => other.to_string(),
    }
}

/// A name that no other client has: a broker ends the connection of a client whose name another client uses. At
/// most 23 letters and digits, which every broker accepts (MQTT 3.1.1, 3.1.3.1).
fn client_id() -> String {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    format!("frugality{:014x}", now.as_nanos() & ((1 << 56) - 1))
}

#[cfg(test)]
mod tests;
