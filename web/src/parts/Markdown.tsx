import { memo } from "preact/compat";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { colour } from "../text/highlight";
import { html } from "../text/markdown";
import { pieces } from "../text/pieces";

/** Text of a model. Code is coloured when it is complete, so that nothing flickers while it streams. */
export function Markdown({ text, done }: { text: string; done: boolean }) {
  return done ? <Whole text={text} /> : <div class="markdown">{pieces(text).map((piece, index) => <Piece key={index} text={piece} />)}</div>;
}

function Whole({ text }: { text: string }) {
  const place = useRef<HTMLDivElement>(null);
  const made = useMemo(() => html(text), [text]);
  useLayoutEffect(() => {
    if (place.current) void colour(place.current);
  }, [made]);
  return <div class="markdown" ref={place} dangerouslySetInnerHTML={{ __html: made }} />;
}

const Piece = memo(({ text }: { text: string }) => <div dangerouslySetInnerHTML={{ __html: html(text) }} />);
