// Shows /openapi.json in a form that people can read. Text is only ever set as text.
const element = (name, text, className) => {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
};

const schemaOf = (content) => Object.values(content ?? {})[0]?.schema;

function described(method, path, operation) {
  const section = element("section");
  const title = element("h2");
  title.append(element("span", method.toUpperCase(), "method"), element("span", path, "path"));
  section.append(title, element("p", operation.summary));
  const query = operation.parameters.filter((it) => it.in === "query").map((it) => it.name);
  if (query.length) section.append(element("p", `Query: ${query.join(", ")}`));
  const body = schemaOf(operation.requestBody?.content);
  if (body) section.append(element("p", "Takes"), element("pre", JSON.stringify(body, null, 2)));
  for (const [status, response] of Object.entries(operation.responses)) {
    section.append(element("p", `${status}: ${response.description}`));
  }
  return section;
}

async function show() {
  // The page keeps this key when somebody signs in; the server wants it with the cookie.
  const key = localStorage.getItem("ostler-page-key");
  const answer = await fetch("/openapi.json", { headers: key === null ? {} : { "x-ostler-page-key": key } });
  if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
  const api = await answer.json();
  document.getElementById("about").textContent = `${api.info.description} Version ${api.info.version}.`;
  const list = document.getElementById("operations");
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) list.append(described(method, path, operation));
  }
}

show().catch((error) => {
  document.getElementById("about").textContent = `The description could not be loaded: ${error.message}`;
});
