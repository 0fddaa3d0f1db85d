import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { html } from "../text/markdown";
import { colour } from "../text/highlight";

/** Text of a model. Code is coloured when it is complete, so that nothing flickers while it comes. */
export function Markdown({ text, done }: { text: string; done: boolean }) {
  const place = useRef<HTMLDivElement>(null);
  const made = useMemo(() => html(text), [text]);
  useLayoutEffect(() => {
    if (done && place.current) void colour(place.current);
  }, [made, done]);
  return <div class="markdown" ref={place} dangerouslySetInnerHTML={{ __html: made }} />;
}
