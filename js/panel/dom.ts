// Making and changing elements. Text is always text: keys and causes come from applications.

type Attributes = Readonly<Record<string, string | number | boolean | null | ((event: Event) => void)>>;
type Child = Node | string;

/** An HTML element: `on…` functions are listeners, `text` its text. */
export function el<K extends keyof HTMLElementTagNameMap>(name: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  return fill(document.createElement(name), attributes, children);
}

export function svg<K extends keyof SVGElementTagNameMap>(name: K, attributes: Attributes = {}, ...children: Child[]): SVGElementTagNameMap[K] {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (name === "text") element.textContent = String(value);
    else set(element, name, value);
  }
  element.append(...children);
  return element;
}

/** Changes what differs, so that nothing is laid out or announced again for the same words. */
export function say(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

export function set(element: Element, name: string, value: string | number | boolean | null): void {
  const text = value === true ? "" : String(value);
  if (value === null || value === false) element.removeAttribute(name);
  else if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}
