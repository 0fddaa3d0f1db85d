// Decodes server-sent events from the body of a response. Only `data` is used here.

/** Splits the received text into complete frames; `rest` waits for more. */
export function frames(text: string): { data: string[]; rest: string } {
  const parts = text.split("\n\n");
  const rest = parts.pop() ?? "";
  const data = parts.map(dataOf).filter((it) => it !== "");
  return { data, rest };
}

function dataOf(frame: string): string {
  const lines = frame.split("\n").filter((line) => line.startsWith("data:"));
  return lines.map((line) => line.slice(line[5] === " " ? 6 : 5)).join("\n");
}

/** The events of a response, in the portions in which they arrive. */
export async function* portions<T>(response: Response): AsyncGenerator<T[]> {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const found = frames(rest + value);
      rest = found.rest;
      if (found.data.length > 0) yield found.data.map((data) => JSON.parse(data) as T);
    }
  } finally {
    // The reader stopped and wants no more.
    await reader.cancel().catch(() => {});
  }
}
