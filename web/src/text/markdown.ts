// Markdown of a model made into HTML that can do nothing: no scripts, no styles, no pictures from elsewhere, and links
// that tell nobody where one came from. Twice: no HTML of its own is let in, and what is made is cleaned.

import DOMPurify from "dompurify";
import { Marked } from "marked";

const marked = new Marked({
  gfm: true,
  renderer: {
    // HTML of a model is shown as the text that it is. Only line breaks are meant as such: tables have no other.
    html: ({ text }) => (/^<br\s*\/?>$/i.test(text.trim()) ? "<br>" : escaped(text)),
    // A picture would carry away what stands in its address.
    image: ({ text, href }) => escaped(text || href),
  },
});

const ENTITIES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (letter) => ENTITIES[letter]!);
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
