//! A spare process (`--await-claim`): started ahead of time, it answers requests, and begins its real session once a
//! host claims it, in the folder and with the options of the claim.

use std::path::PathBuf;
use std::time::Instant;

use anyhow::Context as _;
use ostler::engine::{self as host, StartContext};
use ostler_engine::session::Connection;
use ostler_proto::build;
use ostler_proto::control::{
    AskEngine, ClaimSession, ClaimSessionReply, ControlRequest, ControlResponse, Failure,
    Initialize, Response, Success,
};
use ostler_proto::frame::{Frame as _, ToEngine, ToHost};
use ostler_proto::{Num, RequestId, SessionId};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::{connection, output};

/// The id of our `initialize` request, which repeats the host's request to the claimed session.
const AGAIN: &str = "spare-initialize";

/// A process that no host has claimed yet.
pub(crate) struct Spare {
    scene: StartContext,
    connection: Connection,
    /// The host's `initialize` request.
    introduced: Initialize,
    since: Instant,
}

impl Spare {
    pub(crate) fn new(scene: StartContext, connection: Connection) -> Self {
        Self { scene, connection, introduced: Initialize::default(), since: Instant::now() }
    }

    /// Waits for the claim; `None` when the host closes the input without one.
    pub(crate) async fn claimed(
        mut self,
        incoming: &mut mpsc::Receiver<ToEngine>,
    ) -> anyhow::Result<Option<Connection>> {
        loop {
            tokio::select! {
                Some(frame) = self.connection.from_engine.recv() => output::write(&frame.to_line())?,
                frame = incoming.recv() => match frame {
                    None => {
                        connection::end(self.connection).await;
                        return Ok(None);
                    }
                    Some(ToEngine::ControlRequest(request)) => {
                        if let AskEngine::ClaimSession(claim) = &request.request {
                            match self.scene_of(claim) {
                                Ok(scene) => return self.begin(scene, &request, claim).await.map(Some),
                                Err(error) => answer(request.request_id, Err(error))?,
                            }
                            continue;
                        }
                        if let AskEngine::Initialize(initialize) = &request.request {
                            self.introduced = (**initialize).clone();
                        }
                        self.pass(ToEngine::ControlRequest(request)).await?;
                    }
                    Some(frame) => self.pass(frame).await?,
                },
            }
        }
    }

    async fn pass(&self, frame: ToEngine) -> anyhow::Result<()> {
        self.connection.to_engine.send(frame).await.context("the engine has ended")
    }

    /// The start context of the session that the host claims.
    fn scene_of(&self, claim: &ClaimSession) -> Result<StartContext, String> {
        let odd = |reason: &str| format!("cannot work in {}: {reason}", claim.cwd);
        let cwd =
            PathBuf::from(&claim.cwd).canonicalize().map_err(|error| odd(&error.to_string()))?;
        if !cwd.is_dir() {
            return Err(odd("it is not a folder"));
        }
        let mut scene = self.scene.clone();
        scene.cwd = cwd;
        let launch = &mut scene.launch;
        if let Some(more) = &claim.append_system_prompt {
            launch.append_system_prompt = Some(more.clone());
        }
        if let Some(id) = &claim.session_id {
            launch.session.id = Some(id.to_string());
        }
        launch.permission_mode = claim.permission_mode.clone().or(launch.permission_mode.take());
        launch.add_dirs.extend(claim.additional_directories.iter().flatten().cloned());
        launch.agents.extend(claim.agents.clone().unwrap_or_default());
        scene.env.variables.extend(claim.env.clone().unwrap_or_default());
        crate::scene::refuse_root(&scene).map_err(|error| error.to_string())?;
        Ok(scene)
    }

    /// Ends the spare session and begins the claimed one. Its first request is the host's `initialize`.
    async fn begin(
        self,
        scene: StartContext,
        request: &ControlRequest<AskEngine>,
        claim: &ClaimSession,
    ) -> anyhow::Result<Connection> {
        connection::end(self.connection).await;
        let running = tokio::task::block_in_place(|| host::start(&scene));
        let mut connection = match running {
            Ok(running) => running.connection,
            Err(error) => {
                answer(request.request_id.clone(), Err(error.to_string()))?;
                return Err(error.into());
            }
        };
        let introduced = introduction(self.introduced, claim);
        let has_servers = introduced.sdk_mcp_servers.as_ref().is_some_and(|it| !it.is_empty());
        let again = AskEngine::Initialize(Box::new(introduced));
        let again = ControlRequest::new(RequestId::from(AGAIN), again);
        connection
            .to_engine
            .send(ToEngine::ControlRequest(again))
            .await
            .context("the engine has ended")?;
        let initialized = loop {
            let frame = connection.from_engine.recv().await.context("the engine has ended")?;
            match frame {
                ToHost::ControlResponse(answer)
                    if answer.response.request_id() == Some(AGAIN.into()) =>
                {
                    break answer.response;
                }
                frame => output::write(&frame.to_line())?,
            }
        };
        let Response::Success(Success { response, .. }) = initialized else {
            anyhow::bail!("the claimed session refuses the host's initialize request");
        };
        let reply = build!(ClaimSessionReply {
            status: "ok".to_owned(),
            cwd: Some(scene.cwd.display().to_string()),
            session_id: scene.launch.session.id.as_deref().map(SessionId::from),
            parked_ms: Some(Num::from(self.since.elapsed().as_millis() as u64)),
            // The first prompt waits for the servers inside the host.
            sdk_mcp_settled: Some(!has_servers),
            initialize: response
                .filter(|_| claim.include_initialize == Some(true))
                .and_then(|payload| serde_json::from_value(payload).ok()),
        });
        answer(request.request_id.clone(), Ok(serde_json::to_value(reply)?))?;
        Ok(connection)
    }
}

/// The host's `initialize` request, with the additions of the claim.
fn introduction(mut introduced: Initialize, claim: &ClaimSession) -> Initialize {
    let names = claim.sdk_mcp_servers.as_ref().and_then(Value::as_array).into_iter().flatten();
    let names: Vec<String> = names.filter_map(Value::as_str).map(str::to_owned).collect();
    if !names.is_empty() {
        introduced.sdk_mcp_servers = Some(names);
    }
    introduced.title = claim.title.clone().or(introduced.title);
    introduced
}

fn answer(request_id: Option<RequestId>, answer: Result<Value, String>) -> std::io::Result<()> {
    let response = match answer {
        Ok(payload) => {
            let response = Some(payload);
            Response::Success(build!(Success { request_id, response }))
        }
        Err(error) => Response::Error(build!(Failure { request_id, error })),
    };
    output::write(&ToHost::ControlResponse(ControlResponse::new(response)).to_line())
}
