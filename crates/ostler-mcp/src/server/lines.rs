//! A session over byte streams, one message per line, as stand-alone MCP programs use.

use std::io;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use ostler_proto::codec::LineDecoder;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Connection;
use crate::rpc::{self, Failure};

/// The size limit of a message, in bytes.
const LINE_LIMIT: usize = 64 * 1024 * 1024;
/// How many requests may run at once; further ones are refused.
const MOST_AT_ONCE: usize = 1024;
/// How long pending answers may take after the input has ended. A program must not outlive its client.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// Reads, answers and writes in one task, so that dropping the future drops everything.
pub(super) async fn serve<R, W>(
    connection: Connection,
    mut reader: R,
    mut writer: W,
) -> io::Result<()>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut lines = LineDecoder::with_limit(LINE_LIMIT);
    let mut buffer = vec![0; 64 * 1024];
    let mut running = FuturesUnordered::new();
    loop {
        let read = tokio::select! {
            biased;
            notification = connection.next_notification() => {
                write(&mut writer, Some(notification)).await?;
                continue;
            }
            Some(answer) = running.next(), if !running.is_empty() => {
                finish(&connection, &mut writer, answer).await?;
                continue;
            }
            read = reader.read(&mut buffer) => read?,
        };
        match read {
            0 => lines.finish(),
            read => lines.push(&buffer[..read]),
        }
        while let Some(line) = lines.next_line() {
            let message = line
                .map_err(|error| Failure { code: -32600, message: error.to_string() })
                .and_then(|line| {
                    serde_json::from_str::<Value>(line).map_err(|error| not_json(&error))
                });
            match message {
                Ok(message) if running.len() < MOST_AT_ONCE => {
                    running.push(connection.handle(message))
                }
                Ok(message) => write(&mut writer, too_many(&message)).await?,
                Err(failure) => {
                    write(&mut writer, Some(rpc::answer(&Value::Null, Err(failure)))).await?
                }
            }
        }
        if read == 0 {
            break;
        }
    }
    let rest = async {
        while let Some(answer) = running.next().await {
            finish(&connection, &mut writer, answer).await?;
        }
        Ok(())
    };
    tokio::time::timeout(LAST_ANSWERS, rest).await.unwrap_or(Ok(()))
}

/// Writes an answer after its pending notifications: progress is useless after the end.
async fn finish<W: AsyncWrite + Unpin>(
    connection: &Connection,
    writer: &mut W,
    answer: Option<Value>,
) -> io::Result<()> {
    while let Some(notification) = connection.waiting_notification() {
        write(writer, Some(notification)).await?;
    }
    write(writer, answer).await
}

fn not_json(error: &serde_json::Error) -> Failure {
    Failure { code: -32700, message: format!("the line is not JSON: {error}") }
}

fn too_many(message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let message = format!("more than {MOST_AT_ONCE} requests at once");
    Some(rpc::answer(id, Err(Failure { code: -32000, message })))
}

async fn write<W: AsyncWrite + Unpin>(writer: &mut W, message: Option<Value>) -> io::Result<()> {
    let Some(message) = message else { return Ok(()) };
    let mut line = message.to_string();
    line.push('\n');
    writer.write_all(line.as_bytes()).await?;
    writer.flush().await
}
