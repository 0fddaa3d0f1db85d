//! The instructions for plan mode. They go with the prompt: the system prompt stays the same for the whole session.

/// Our own text; a host may bring another.
pub(crate) const OWN_PLANNING: &str = "Plan mode is on: change nothing, whatever the tools would let you do. Look at \
what there is, ask the user where only they can decide, and work out how you would do what is asked: which files, \
which steps, how to check them. When the plan is good, hand it in with ExitPlanMode and wait for the answer.";
