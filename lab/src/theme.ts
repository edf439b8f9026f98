// The theme: light, dark, or that of the system.
const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const KEY = "bentpipe-lab-theme";
const SIGNS: Record<Theme, string> = { system: "◐", light: "○", dark: "●" };

export function setUpTheme(button: HTMLButtonElement, changed: () => void): void {
  let theme = stored();
  const show = () => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.setAttribute("aria-label", theme === "system" ? "Theme: system" : `Theme: ${theme}`);
    button.title = button.getAttribute("aria-label")!;
    button.firstElementChild!.textContent = SIGNS[theme];
  };
  show();
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // A page opened as a file may have no storage. The choice then lasts until the page is closed.
    }
    show();
    changed();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

function stored(): Theme {
  try {
    return THEMES.find((theme) => theme === localStorage.getItem(KEY)) ?? "system";
  } catch {
    return "system";
  }
}
