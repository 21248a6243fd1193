/** Light, dark, or as the system has it; kept in this browser. */

export type Theme = "system" | "light" | "dark";
const KEY = "headgate.theme";

const system = window.matchMedia("(prefers-color-scheme: dark)");

class ThemeChoice {
  chosen = $state<Theme>((localStorage.getItem(KEY) as Theme | null) ?? "system");
  #isSystemDark = $state(system.matches);

  constructor() {
    system.addEventListener("change", () => (this.#isSystemDark = system.matches));
  }

  get isDark(): boolean {
    return this.chosen === "system" ? this.#isSystemDark : this.chosen === "dark";
  }

  apply(): void {
    const root = document.documentElement;
    if (this.chosen === "system") root.removeAttribute("data-theme");
    else root.dataset.theme = this.chosen;
  }

  choose(theme: Theme): void {
    this.chosen = theme;
    localStorage.setItem(KEY, theme);
    this.apply();
  }
}

export const theme = new ThemeChoice();
