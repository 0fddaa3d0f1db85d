// Sends an answer to an approval, once.

import { useState } from "preact/hooks";
import { type Decision, api } from "../api";
import { complain } from "../state/app";
import { answering } from "./focus";
import type { Approval } from "../types";

export function useDecide(approval: Approval): { isSent: boolean; decide: (decision: Decision) => Promise<void> } {
  const [isSent, sent] = useState(false);
  const decide = async (decision: Decision) => {
    if (isSent) return;
    sent(true);
    const answered = answering(approval.id);
    try {
      // Bound to what was shown: if the request changes meanwhile, this answer does not count.
      await api.decide(approval.id, { ...decision, digest: approval.digest });
      answered();
    } catch (error) {
      sent(false);
      complain(error);
    }
  };
  return { isSent, decide };
}
