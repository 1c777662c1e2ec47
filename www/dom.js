// Making and changing elements, for HTML and SVG alike.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element: attributes by name, `on…` functions as listeners, `text` as its text. */
export function el(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") element.textContent = value;
    else if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function set(element, attributes) {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
}

/** Sets text only when it differs, so that nothing is laid out or announced again for the same words. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function find(selector, root = document) {
  const element = root.querySelector(selector);
  if (!element) throw new Error(`The page has no ${selector}`);
  return element;
}

/** Calls back with the element's width now and whenever it changes. */
export function onWidth(element, listener) {
  let known = 0;
  const observer = new ResizeObserver(() => {
    const width = Math.floor(element.clientWidth);
    if (width > 0 && width !== known) listener((known = width));
  });
  observer.observe(element);
}

const still = matchMedia("(prefers-reduced-motion: reduce)");
export const reducedMotion = () => still.matches;
