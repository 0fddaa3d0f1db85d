// Sends an answer to an approval, once.

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Decision, api } from "../api";
import { complain, settle } from "../state/app";
import { answering } from "./focus";
import type { Approval } from "../types";

/**
 * Sends the answer of a card. The card leaves the page when the server has taken the answer; whether its reply or its
 * report to all browsers arrives first does not matter.
 */
export function useAnswer(id: string): { isSent: boolean; answer: (send: () => Promise<unknown>) => Promise<void> } {
  const [isSent, sent] = useState(false);
  const leave = useRef<(() => void) | undefined>(undefined);
  useLayoutEffect(() => () => leave.current?.(), []);
  const answer = async (send: () => Promise<unknown>) => {
    if (isSent) return;
    sent(true);
    leave.current = answering(id);
    try {
      await send();
      settle(id);
    } catch (error) {
      leave.current = undefined;
      sent(false);
      complain(error);
    }
  };
  return { isSent, answer };
}

export function useDecide(approval: Approval): { isSent: boolean; decide: (decision: Decision) => Promise<void> } {
  const { isSent, answer } = useAnswer(approval.id);
  // Bound to what was shown: if the request changes meanwhile, this answer does not count.
  const decide = (decision: Decision) => answer(() => api.decide(approval.id, { ...decision, digest: approval.digest }));
  return { isSent, decide };
}
