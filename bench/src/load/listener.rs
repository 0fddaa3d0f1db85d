//! Subscribers: each a bare socket that reads server-sent events, so that the client takes little time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};

use super::desk::Desk;

const PATIENCE: Duration = Duration::from_secs(180);

/// The shared state of all listeners.
#[derive(Clone)]
pub(crate) struct Audience(Arc<Shared>);

struct Shared {
    heard: AtomicUsize,
    /// Runs that were seen to end, each by every listener of its session.
    completed: watch::Sender<usize>,
    trouble: watch::Sender<Option<String>>,
    asked: mpsc::UnboundedSender<String>,
    questions: Mutex<Option<mpsc::UnboundedReceiver<String>>>,
    /// When each session got its prompt, and the time until its command had run.
    waiting: Mutex<HashMap<String, Instant>>,
    ran: Mutex<Vec<Duration>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Audience {
    pub(crate) fn new() -> Self {
        let (asked, questions) = mpsc::unbounded_channel();
        Self(Arc::new(Shared {
            heard: AtomicUsize::new(0),
            completed: watch::channel(0).0,
            trouble: watch::channel(None).0,
            asked,
            questions: Mutex::new(Some(questions)),
            waiting: Mutex::default(),
            ran: Mutex::default(),
        }))
    }

    pub(crate) fn heard(&self) -> usize {
        self.0.heard.load(Ordering::Relaxed)
    }

    /// Waits until `count` ends of runs were received.
    pub(crate) async fn until_completed(&self, count: usize) -> Result<()> {
        let (mut completed, mut trouble) =
            (self.0.completed.subscribe(), self.0.trouble.subscribe());
        let waited = async {
            tokio::select! {
                _ = completed.wait_for(|completed| *completed >= count) => Ok(()),
                Ok(why) = trouble.wait_for(Option::is_some) => {
                    Err(anyhow::anyhow!("{}", why.clone().unwrap_or_default()))
                }
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waited).await;
        waited
            .with_context(|| format!("received {} ends of {count}", *self.0.completed.borrow()))?
    }

    /// Allows all approvals from now on.
    pub(crate) fn answer_with(&self, desk: Arc<Desk>) -> Answering {
        let shared = Arc::clone(&self.0);
        let questions = locked(&self.0.questions).take();
        let task = tokio::spawn(async move {
            let Some(mut questions) = questions else { return };
            while let Some(id) = questions.recv().await {
                let (desk, shared) = (Arc::clone(&desk), Arc::clone(&shared));
                tokio::spawn(async move {
                    if let Err(error) = desk.allow(&id).await {
                        shared.trouble.send_replace(Some(format!("answering {id}: {error:#}")));
                    }
                });
            }
        });
        Answering { shared: Arc::clone(&self.0), task }
    }
}

/// A task that allows approvals.
pub(crate) struct Answering {
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

impl Answering {
    /// The time of each round trip.
    pub(crate) fn finish(self) -> Vec<Duration> {
        self.task.abort();
        std::mem::take(&mut *locked(&self.shared.ran))
    }
}

/// A subscriber of a session.
pub(crate) struct Listener {
    arrivals: Arc<Mutex<Vec<(u64, Duration)>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Listener {
    /// Attaches to a session; when this returns, the server has answered.
    pub(crate) async fn attach(
        desk: &Desk,
        session: &str,
        audience: &Audience,
        reports_approvals: bool,
    ) -> Result<Self> {
        let mut socket = connect(desk, session).await?;
        let mut bytes = Vec::new();
        let head = loop {
            ensure!(socket.read_buf(&mut bytes).await? > 0, "the server closed the connection");
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break bytes.drain(..end + 4).collect::<Vec<u8>>();
            }
        };
        let head = String::from_utf8_lossy(&head);
        ensure!(head.starts_with("HTTP/1.1 200 "), "{head}");
        let arrivals = Arc::new(Mutex::new(Vec::new()));
        let mut following = Following {
            shared: Arc::clone(&audience.0),
            session: session.to_owned(),
            arrivals: Arc::clone(&arrivals),
            last: 0,
            reports_approvals,
        };
        let task = tokio::spawn(async move {
            let mut stream = Vec::new();
            loop {
                if let Err(error) = following.take(&mut bytes, &mut stream) {
                    following.shared.trouble.send_replace(Some(format!("{error:#}")));
                    return;
                }
                match socket.read_buf(&mut bytes).await {
                    Ok(read) if read > 0 => {}
                    // The server is gone; the waiting functions report it.
                    _ => return,
                }
            }
        });
        Ok(Self { arrivals, task })
    }

    /// The numbers of events so far, and when they came, since 1970.
    pub(crate) fn arrivals(&self) -> Vec<(u64, Duration)> {
        locked(&self.arrivals).clone()
    }
}

async fn connect(desk: &Desk, session: &str) -> Result<TcpStream> {
    loop {
        let mut socket = TcpStream::connect(desk.address).await?;
        let request = format!(
            "GET /api/sessions/{session}/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
            desk.address, desk.token
        );
        socket.write_all(request.as_bytes()).await?;
        let mut first = [0; 16];
        let peeked = socket.peek(&mut first).await?;
        // The server limits the rate.
        if !first[..peeked].starts_with(b"HTTP/1.1 429") {
            return Ok(socket);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

struct Following {
    shared: Arc<Shared>,
    session: String,
    arrivals: Arc<Mutex<Vec<(u64, Duration)>>>,
    last: u64,
    reports_approvals: bool,
}

impl Following {
    /// Takes complete chunks out of the buffer, and complete events out of those.
    fn take(&mut self, bytes: &mut Vec<u8>, stream: &mut Vec<u8>) -> Result<()> {
        while let Some(line) = bytes.windows(2).position(|pair| pair == b"\r\n") {
            let size = std::str::from_utf8(&bytes[..line])?;
            let size =
                usize::from_str_radix(size, 16).with_context(|| format!("chunk {size:?}"))?;
            if bytes.len() < line + 2 + size + 2 {
                break;
            }
            stream.extend_from_slice(&bytes[line + 2..line + 2 + size]);
            bytes.drain(..line + 2 + size + 2);
        }
        let now = UNIX_EPOCH.elapsed()?;
        let mut begun = 0;
        while let Some(length) = stream[begun..].windows(2).position(|pair| pair == b"\n\n") {
            let event = std::str::from_utf8(&stream[begun..begun + length])?;
            self.hear(event, now)?;
            begun += length + 2;
        }
        stream.drain(..begun);
        Ok(())
    }

    fn hear(&mut self, event: &str, now: Duration) -> Result<()> {
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name));
        let Some(id) = field("id: ") else { return Ok(()) };
        let seq: u64 = id.parse()?;
        ensure!(seq == self.last + 1, "{} came after {} in {}", seq, self.last, self.session);
        self.last = seq;
        self.shared.heard.fetch_add(1, Ordering::Relaxed);
        locked(&self.arrivals).push((seq, now));
        let (kind, data) =
            (field("event: ").unwrap_or_default(), field("data: ").unwrap_or_default());
        if kind == "run" && data.contains(r#""state":"completed""#) {
            self.shared.completed.send_modify(|count| *count += 1);
        }
        if self.reports_approvals {
            self.tell(kind, data)?;
        }
        Ok(())
    }

    fn tell(&self, kind: &str, data: &str) -> Result<()> {
        if kind == "approval" && data.contains(r#""state":"pending""#) {
            let payload: Value = serde_json::from_str(data)?;
            let id = payload["approval"]["id"].as_str().context("an approval has an id")?;
            locked(&self.shared.waiting).insert(self.session.clone(), Instant::now());
            // The answering task may have ended.
            let _ = self.shared.asked.send(id.to_owned());
        } else if kind == "message"
            && data.contains(r#""type":"tool_result""#)
            && let Some(asked) = locked(&self.shared.waiting).remove(&self.session)
        {
            locked(&self.shared.ran).push(asked.elapsed());
        }
        Ok(())
    }
}
