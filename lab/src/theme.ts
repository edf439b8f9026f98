// Light, dark, or as the system has it.
const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const KEY = "bentpipe-lab-theme";
const SIGNS: Record<Theme, string> = { system: "◐", light: "○", dark: "●" };

export function setUpTheme(button: HTMLButtonElement, changed: () => void): void {
  let theme = stored();
  const show = () => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.setAttribute("aria-label", theme === "system" ? "Theme: as the system" : `Theme: ${theme}`);
    button.title = button.getAttribute("aria-label")!;
    button.firstElementChild!.textContent = SIGNS[theme];
  };
  show();
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // A file's page may have no storage: the choice then lasts as long as the page.
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
