// The heights of the rows of a long list: measured when drawn, estimated otherwise.
// Sums are kept in a Fenwick tree, so that one measurement in ten thousand rows costs a dozen additions.

const GUESS = 90;

export class Heights {
  private known = new Map<string, number>();
  private keys: string[] = [];
  private index = new Map<string, number>();
  private tree: number[] = [0];

  /** The rows in order. Appended rows cost only themselves. */
  list(keys: string[]): void {
    const isLonger = keys.length >= this.keys.length && this.keys.every((key, at) => key === keys[at]);
    if (isLonger && keys.length === this.keys.length) return;
    this.keys = keys;
    this.index = new Map(keys.map((key, at) => [key, at]));
    this.tree = new Array<number>(keys.length + 1).fill(0);
    keys.forEach((key, at) => {
      const place = at + 1;
      this.tree[place]! += this.known.get(key) ?? GUESS;
      const parent = place + (place & -place);
      if (parent < this.tree.length) this.tree[parent]! += this.tree[place]!;
    });
  }

  /** Records a measured row; returns whether its height changed. */
  set(key: string, height: number): boolean {
    const before = this.known.get(key) ?? GUESS;
    this.known.set(key, height);
    const at = this.index.get(key);
    if (at === undefined || Math.abs(before - height) < 0.5) return false;
    for (let place = at + 1; place < this.tree.length; place += place & -place) this.tree[place]! += height - before;
    return true;
  }

  /** The height of everything before a row. */
  before(row: number): number {
    let sum = 0;
    for (let place = Math.min(row, this.keys.length); place > 0; place -= place & -place) sum += this.tree[place]!;
    return sum;
  }

  after(row: number): number {
    return Math.max(0, this.before(this.keys.length) - this.before(row));
  }

  /** The row at a distance from the top. */
  at(distance: number): number {
    let place = 0;
    let left = Math.max(0, distance);
    for (let step = 1 << Math.floor(Math.log2(Math.max(1, this.keys.length))); step > 0; step >>= 1) {
      const next = place + step;
      if (next < this.tree.length && this.tree[next]! <= left) {
        place = next;
        left -= this.tree[next]!;
      }
    }
    return Math.min(place, this.keys.length);
  }
}
