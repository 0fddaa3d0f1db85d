// Splits a growing Markdown text into parts of which only the last one changes.

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const IN_LIST = /^(\s+\S|\s*([-*+]|\d+[.)])\s)/;

export function pieces(text: string): string[] {
  const found: string[] = [];
  let piece = "";
  let fence: string | undefined;
  for (const line of text.split(/(?<=\n)/)) {
    const isBegin = !fence && piece.endsWith("\n\n") && line.trim() !== "";
    // A list continues after an empty line, with its indented content.
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
