// Attaches files of this device to a prompt. A model reads images, PDF and text.

import type { Attachment } from "../agui/items";

const LARGEST = 5 << 20;
const PICTURES = ["image/png", "image/jpeg", "image/gif", "image/webp"];

export async function attachment(file: File): Promise<Attachment> {
  if (file.size > LARGEST) throw new Error(`${file.name} is larger than 5 MB; make it smaller first.`);
  const bytes = new Uint8Array(await file.arrayBuffer());
  const common = { data: base64(bytes), name: file.name };
  if (PICTURES.includes(file.type)) return { ...common, kind: "image", mime: file.type };
  if (file.type === "application/pdf") return { ...common, kind: "document", mime: file.type };
  // Browsers know the types of few text files; a file that decodes as text is one.
  if (isText(bytes)) return { ...common, kind: "document", mime: "text/plain" };
  throw new Error(`${file.name} is neither a picture, a PDF nor a text, so the model cannot read it.`);
}

export function isText(bytes: Uint8Array): boolean {
  if (bytes.includes(0)) return false;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function base64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}
