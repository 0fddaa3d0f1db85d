//! Logins against a strict token endpoint: a refresh token can be used once, as with the vendor's.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::spawn_blocking;

use super::*;

/// A token endpoint. `access-N` and `refresh-N` follow `refresh-(N-1)`; everything else is refused.
async fn endpoint() -> (String, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1/oauth/token", listener.local_addr().unwrap());
    let issued = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&issued);
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut text = String::new();
            let body = loop {
                let mut bytes = [0; 4096];
                let n = socket.read(&mut bytes).await.unwrap();
                text.push_str(std::str::from_utf8(&bytes[..n]).unwrap());
                let Some((_, body)) = text.split_once("\r\n\r\n") else { continue };
                if let Ok(body) = serde_json::from_str::<Value>(body) {
                    break body;
                }
            };
            let n = count.load(Ordering::SeqCst);
            let is_good = text.starts_with("POST /v1/oauth/token ")
                && body["grant_type"] == "refresh_token"
                && body["client_id"].is_string()
                && body["refresh_token"] == format!("refresh-{n}");
            let (status, answer) = match is_good {
                true => {
                    count.fetch_add(1, Ordering::SeqCst);
                    let (access, refresh) =
                        (format!("access-{}", n + 1), format!("refresh-{}", n + 1));
                    let answer = json!({"access_token": access, "refresh_token": refresh,
                        "expires_in": 3600, "scope": "user:inference"});
                    ("200 OK", answer)
                }
                false => ("400 Bad Request", json!({"error": "invalid_grant"})),
            };
            let answer = answer.to_string();
            let length = answer.len();
            let head = format!(
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
            );
            socket.write_all(format!("{head}{answer}").as_bytes()).await.unwrap();
        }
    });
    (address, issued)
}

fn write(file: &Path, expires: Duration) {
    let entry = json!({"accessToken": "access-0", "refreshToken": "refresh-0",
        "expiresAt": u64::try_from(expires.as_millis()).unwrap(), "scopes": ["user:inference"],
        "subscriptionType": "max", "rateLimitTier": "x"});
    std::fs::write(file, json!({"claudeAiOauth": entry, "mcpOAuth": {"a": 1}}).to_string())
        .unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}

async fn token(login: &Login, refused: Option<&str>) -> Result<String, String> {
    let (login, refused) = (login.clone(), refused.map(|it| Credential::Login(it.to_owned())));
    let given = spawn_blocking(move || login.credential(refused.as_ref())).await.unwrap();
    given.map(|credential| credential.secrets()[0].to_owned())
}

fn soon() -> Duration {
    now() + Duration::from_secs(60)
}

fn later() -> Duration {
    now() + Duration::from_secs(3600)
}

// Mutants: expiry is not looked at; a refused token is given again; the other entries of the file are dropped; it is
// written for every user.
#[tokio::test]
async fn a_token_is_renewed_when_it_is_about_to_expire_or_was_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(".claude/.credentials.json");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    let (address, issued) = endpoint().await;
    let login = Login::new(&file, Some(&address)).unwrap();
    assert!(token(&login, None).await.unwrap_err().contains("logged out"));
    write(&file, later());
    // The program that wrote it left it open to every user.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(token(&login, None).await.unwrap(), "access-0");
    assert_eq!(token(&login, Some("access-0")).await.unwrap(), "access-1");
    assert_eq!(token(&login, Some("access-0")).await.unwrap(), "access-1", "it is another one");
    let root: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(root["mcpOAuth"], json!({"a": 1}));
    let entry = &root["claudeAiOauth"];
    assert_eq!(
        (&entry["refreshToken"], &entry["rateLimitTier"]),
        (&json!("refresh-1"), &json!("x"))
    );
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let expires = Duration::from_millis(entry["expiresAt"].as_u64().unwrap());
    assert!(expires > now() + MARGIN && expires <= later());

    issued.store(0, Ordering::SeqCst);
    write(&file, soon());
    assert_eq!(token(&login, None).await.unwrap(), "access-1");
}

// Mutants: no lock; the file is not read again under the lock.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_requests_at_once_renew_a_token_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(".credentials.json");
    let (address, issued) = endpoint().await;
    write(&file, soon());
    let asked: Vec<_> = (0..8)
        .map(|_| {
            // As separate programs: each has its own value.
            let login = Login::new(&file, Some(&address)).unwrap();
            tokio::spawn(async move { token(&login, None).await })
        })
        .collect();
    for asked in asked {
        assert_eq!(asked.await.unwrap().unwrap(), "access-1");
    }
    assert_eq!(issued.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn what_cannot_be_renewed_or_read_is_an_error_without_a_token() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(".credentials.json");
    let (address, issued) = endpoint().await;
    let login = Login::new(&file, Some(&address)).unwrap();
    write(&file, soon());
    // The refresh token was used already.
    issued.store(7, Ordering::SeqCst);
    let error = token(&login, None).await.unwrap_err();
    assert!(error.contains("log in with Claude Code again"), "{error}");
    assert!(!error.contains("refresh-") && !error.contains("access-"), "{error}");
    std::fs::write(&file, "{\"claudeAiOauth\": {\"accessToken\": access-0").unwrap();
    let error = token(&login, None).await.unwrap_err();
    assert!(error.contains("line 1") && !error.contains("access-0"), "{error}");
    for empty in ["", "{}", "{\"claudeAiOauth\": null}", "{\"claudeAiOauth\": {}}"] {
        std::fs::write(&file, empty).unwrap();
        assert_eq!(login.tokens(), Ok(None), "{empty}");
    }
    for address in ["http://example.com/token", "ftp://127.0.0.1.example.com"] {
        assert!(Login::new(&file, Some(address)).is_err(), "{address}");
    }
    // A long-lived token has no refresh token, and is used as long as the API accepts it.
    let long = json!({"claudeAiOauth": {"accessToken": "long", "expiresAt": 1}});
    std::fs::write(&file, long.to_string()).unwrap();
    assert_eq!(token(&login, None).await.unwrap(), "long");
    assert!(!format!("{login:?} {:?}", login.tokens()).contains("long"));
}
