import type { ComponentChildren } from "preact";

export interface Bar {
  label: string;
  /** One value for each series, from below. */
  values: number[];
}

interface Props {
  title: string;
  series: string[];
  bars: Bar[];
  say: (value: number) => string;
  children?: ComponentChildren;
}

const HEIGHT = 140;
const WIDTH = 720;

/** Sums over time as columns, also available as a table. */
export function Bars({ title, series, bars, say, children }: Props) {
  const sums = bars.map((bar) => bar.values.reduce((sum, value) => sum + value, 0));
  const most = Math.max(...sums, 0);
  const room = WIDTH / Math.max(1, bars.length);
  const width = Math.min(room * 0.7, 48);
  const all = sums.reduce((sum, value) => sum + value, 0);
  return (
    <figure class="chart">
      <figcaption><b>{title}</b> {children}</figcaption>
      {most === 0 ? <p class="hint">Nothing in this time.</p> : (
        <>
          <p class="marks" aria-hidden="true">{say(most)}</p>
          <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${title}: ${say(all)} in all, at most ${say(most)} at once`}>
            {bars.map((bar, index) => (
              <g key={bar.label}>
                <title>{`${bar.label}: ${say(sums[index]!)}`}</title>
                {/* The whole height, so that a low column can be pointed at. */}
                <rect x={index * room} y="0" width={room} height={HEIGHT} class="ground" />
                {stacked(bar.values, most).map(({ from, height }, at) => height > 0 && (
                  <rect key={at} x={index * room + (room - width) / 2} y={HEIGHT - from - height} width={width} height={height} class={`series-${at}`} />
                ))}
              </g>
            ))}
          </svg>
          <p class="marks" aria-hidden="true"><span>{bars[0]?.label}</span><span>{bars.length > 1 && bars.at(-1)?.label}</span></p>
          {series.length > 1 && <Legend series={series} />}
          <Table title={title} series={series} bars={bars} say={say} />
        </>
      )}
    </figure>
  );
}

function stacked(values: number[], most: number): { from: number; height: number }[] {
  let from = 0;
  return values.map((value) => {
    const height = (value / most) * HEIGHT;
    const part = { from, height };
    from += height;
    return part;
  });
}

function Legend({ series }: { series: string[] }) {
  return (
    <ul class="legend">
      {series.map((name, index) => (
        <li key={name}><svg width="10" height="10" aria-hidden="true"><rect width="10" height="10" rx="2" class={`series-${index}`} /></svg> {name}</li>
      ))}
    </ul>
  );
}

function Table({ title, series, bars, say }: Props) {
  return (
    <details>
      <summary class="hint">As a table</summary>
      <div class="wide" tabIndex={0} role="region" aria-label={`${title}, as a table`}>
        <table>
          <thead><tr><th scope="col">When</th>{series.map((name) => <th key={name} scope="col">{name}</th>)}</tr></thead>
          <tbody>
            {bars.filter((bar) => bar.values.some(Boolean)).map((bar) => (
              <tr key={bar.label}><th scope="row">{bar.label}</th>{bar.values.map((value, index) => <td key={index}>{say(value)}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** Amounts as horizontal bars, the largest at full width. */
export function Lengths({ label, rows }: { label: string; rows: { name: string; value: number; says: string }[] }) {
  const most = Math.max(...rows.map((row) => row.value), 1);
  return (
    <ul class="lengths" aria-label={label}>
      {rows.map((row) => (
        <li key={row.name}>
          <span class="name">{row.name}</span>
          <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true"><rect width={Math.max(0.5, (row.value / most) * 100)} height="8" class="series-0" /></svg>
          <span class="hint">{row.says}</span>
        </li>
      ))}
    </ul>
  );
}
