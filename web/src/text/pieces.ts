// A Markdown text that still grows, in pieces that are complete but the last: only that one has to be made again.

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const IN_LIST = /^(\s+\S|\s*([-*+]|\d+[.)])\s)/;

export function pieces(text: string): string[] {
  const found: string[] = [];
  let piece = "";
  let fence: string | undefined;
  for (const line of text.split(/(?<=\n)/)) {
    const isBegin = !fence && piece.endsWith("\n\n") && line.trim() !== "";
    // A list goes on behind an empty line, with what is indented in it.
    if (isBegin && !(IN_LIST.test(piece) && IN_LIST.test(line))) {
      found.push(piece);
      piece = "";
    }
    piece += line;
    const mark = FENCE.exec(line)?.[1];
    if (mark && !fence) fence = mark;
    else if (mark && fence && mark.startsWith(fence) && line.trim() === mark) fence = undefined;
  }
  if (piece) found.push(piece);
  return found;
}
