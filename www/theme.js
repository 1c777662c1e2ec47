// Light, dark, or as the system has it.

const KEY = "tripcurve-demo.theme";

export function createTheme(root) {
  const apply = (theme) => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
  };
  let known = "auto";
  try {
    known = localStorage.getItem(KEY) ?? "auto";
  } catch {
    // Storage is forbidden: the theme lasts as long as the page.
  }
  apply(known);
  for (const radio of root.querySelectorAll("input[name=theme]")) radio.checked = radio.value === known;
  root.addEventListener("change", ({ target }) => {
    apply(target.value);
    try {
      localStorage.setItem(KEY, target.value);
    } catch {
      // As above.
    }
  });
}
