import type { ComponentChildren, RefObject } from "preact";
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Heights } from "./heights";

/** Drawn beyond both edges of what is seen, in pixels. */
const MORE = 800;

interface Props<T> {
  items: T[];
  keyOf: (item: T) => string;
  render: (item: T) => ComponentChildren;
  /** What scrolls. */
  scroller: RefObject<HTMLElement | null>;
  label: string;
}

/**
 * A list that draws only the part near the viewport, however long it is. Heights are measured when drawn and
 * estimated otherwise; while the reader is at the end, the end stays in view as it grows.
 */
export function VirtualList<T>({ items, keyOf, render, scroller, label }: Props<T>) {
  const heights = useRef(new Heights()).current;
  const isAtEnd = useRef(true);
  const [view, look] = useState({ top: 0, height: 800 });
  const [measured, remeasured] = useState(0);
  const keys = useMemo(() => items.map(keyOf), [items, items.length, keyOf]);
  heights.list(keys);

  const see = useCallback(() => {
    const box = scroller.current;
    if (!box) return;
    isAtEnd.current = box.scrollHeight - box.scrollTop - box.clientHeight < 60;
    look((old) => (Math.abs(old.top - box.scrollTop) < MORE / 4 && old.height === box.clientHeight
      ? old : { top: box.scrollTop, height: box.clientHeight }));
  }, [scroller]);

  useEffect(() => {
    const box = scroller.current;
    if (!box) return;
    see();
    box.addEventListener("scroll", see, { passive: true });
    const watch = new ResizeObserver(see);
    watch.observe(box);
    return () => {
      box.removeEventListener("scroll", see);
      watch.disconnect();
    };
  }, [scroller, see]);

  const sizes = useMemo(
    () =>
      new ResizeObserver((entries) => {
        let isNew = false;
        for (const { target, borderBoxSize } of entries) {
          const height = borderBoxSize[0]?.blockSize ?? target.getBoundingClientRect().height;
          if (heights.set((target as HTMLElement).dataset.key ?? "", height)) isNew = true;
        }
        if (isNew) remeasured((count) => count + 1);
      }),
    [heights],
  );
  useEffect(() => () => sizes.disconnect(), [sizes]);

  // After every drawing: new items are at the end, where the reader is.
  useLayoutEffect(() => {
    const box = scroller.current;
    if (box && isAtEnd.current) box.scrollTop = box.scrollHeight;
  });

  const from = heights.at(view.top - MORE);
  const to = Math.min(items.length, heights.at(view.top + view.height + MORE) + 1);
  // `measured` is read so that a change of it draws again.
  void measured;
  return (
    <div role="log" aria-label={label} class="list" style={{ paddingTop: `${heights.before(from)}px`, paddingBottom: `${heights.after(to)}px` }}>
      {items.slice(from, to).map((item) => (
        <Row key={keyOf(item)} name={keyOf(item)} sizes={sizes}>{render(item)}</Row>
      ))}
    </div>
  );
}

function Row({ name, sizes, children }: { name: string; sizes: ResizeObserver; children: ComponentChildren }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const row = place.current;
    if (!row) return;
    sizes.observe(row);
    return () => sizes.unobserve(row);
  }, [sizes]);
  return <div ref={place} class="row" data-key={name}>{children}</div>;
}
