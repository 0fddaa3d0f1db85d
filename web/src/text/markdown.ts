// Turns a model's Markdown into safe HTML: no scripts, no styles, no external images, and links without a referrer.
// In two steps: HTML in the text is not accepted, and the result is sanitized.

import DOMPurify from "dompurify";
import { Marked } from "marked";

const marked = new Marked({
  gfm: true,
  renderer: {
    // HTML of a model is shown as text. Only line breaks are accepted: tables have no other.
    html: ({ text }) => (/^<br\s*\/?>$/i.test(text.trim()) ? "<br>" : escaped(text)),
    // The address of an image could leak data.
    image: ({ text, href }) => escaped(text || href),
  },
});

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => ENTITIES[character]!);
}

const ALLOWED = {
  ALLOWED_TAGS: [
    ..."a b blockquote br code del details em h1 h2 h3 h4 h5 h6 hr i input li ol p pre s strong sub summary sup".split(" "),
    ..."table tbody td th thead tr ul".split(" "),
  ],
  ALLOWED_ATTR: ["href", "title", "class", "type", "checked", "disabled", "start", "align"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
};

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName === "A" && node.hasAttribute("href")) {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer");
  }
  // The only class is the language of a block of code.
  const name = node.getAttribute("class");
  if (name && !/^language-[\w+#-]+$/.test(name)) node.removeAttribute("class");
  if (node.tagName === "INPUT") {
    if (node.getAttribute("type") !== "checkbox") node.remove();
    else node.setAttribute("disabled", "");
  }
});

export function html(markdown: string): string {
  return DOMPurify.sanitize(marked.parse(markdown, { async: false }), ALLOWED);
}
