import { useEffect, useState } from "preact/hooks";
import { ApprovalCard } from "../parts/ApprovalCard";
import { approvals, say } from "../state/app";

export function Inbox() {
  const list = approvals.value;
  return (
    <main class="page" id="main">
      <header class="bar"><h1 tabIndex={-1}>Inbox</h1><Notify /></header>
      {list.length === 0 ? (
        <div class="empty">
          <h2>No pending approvals</h2>
          <p>Approvals and questions of agents in all sessions appear here.</p>
          <p><a href="#/chat">Start a session</a></p>
        </div>
      ) : (
        <>
          <p class="hint keys"><kbd>j</kbd> <kbd>k</kbd> move between cards; <kbd>y</kbd> <kbd>s</kbd> <kbd>a</kbd> <kbd>n</kbd> answer; <kbd>?</kbd> shows all keys.</p>
          <div class="cards">
            {list.map((approval) => <ApprovalCard key={approval.id} approval={approval} />)}
          </div>
        </>
      )}
    </main>
  );
}

/** Enables browser notifications of pending approvals. */
function Notify() {
  const [state, change] = useState(() => ("Notification" in window ? Notification.permission : "denied"));
  useEffect(() => {
    if (state === "granted") localStorage.setItem("ostler-notify", "yes");
  }, [state]);
  if (state !== "default") return null;
  const ask = async () => {
    const given = await Notification.requestPermission();
    change(given);
    say(given === "granted" ? "You will be notified when an agent waits for you." : "The browser does not allow notifications.");
  };
  return <button type="button" onClick={() => void ask()}>Enable notifications</button>;
}
