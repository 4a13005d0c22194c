// Elements. Text goes in as text, never as markup.

export const at = (id) => document.getElementById(id);

/** Make an element: attributes and on… handlers, then children (text or elements). */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== ""));
  return element;
}

/** Put children in the place of all that an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null));
}

/** Text with its URLs as links. */
export function linked(text) {
  return text.split(/(https:\/\/[^\s;,()]+)/).map((part, index) =>
    index % 2 ? make("a", { href: part, rel: "noreferrer noopener", target: "_blank" }, part) : part,
  );
}
