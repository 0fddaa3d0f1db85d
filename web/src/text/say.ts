// Formats times, sums and sizes.

export function ago(at: number, now = Date.now()): string {
  const minutes = Math.max(0, now - at) / 60_000;
  if (minutes < 1) return "just now";
  if (minutes < 60) return `${Math.floor(minutes)} min ago`;
  if (minutes < 24 * 60) return `${Math.floor(minutes / 60)} h ago`;
  const days = Math.floor(minutes / (24 * 60));
  return days <= 30 ? `${days} d ago` : new Date(at).toLocaleDateString();
}

export function lasted(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 1) return `${Math.round(milliseconds)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

export function dollars(amount: number): string {
  if (amount === 0) return "$0";
  return amount < 0.01 ? "< $0.01" : `$${amount.toFixed(2)}`;
}

export function tokens(count: number): string {
  if (count < 1000) return String(count);
  if (count >= 1_000_000) return `${(count / 1_000_000).toFixed(1).replace(/\.0$/, "")}M`;
  return count < 100_000 ? `${(count / 1000).toFixed(1)}k` : `${Math.round(count / 1000)}k`;
}

export function moment(at: number): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** All days from one to another, as the server writes them. */
export function days(from: string, to: string): string[] {
  const found = [];
  for (let at = Date.parse(from); at <= Date.parse(to); at += 86_400_000) found.push(new Date(at).toISOString().slice(0, 10));
  return found;
}
