//! AG-UI over real HTTP: the endpoint, the SDK, the engine and a scripted model.

mod answers;
mod connect;
mod conversation;
mod lifecycle;
mod peers;
pub(crate) mod served;
pub(crate) mod stage;
mod transport;
