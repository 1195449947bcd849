// Runs before the first paint, so that a dark page never flashes white: the chosen colors, or else the system's.
const system = matchMedia("(prefers-color-scheme: dark)");

function applyTheme() {
  let chosen = null;
  try {
    chosen = localStorage.getItem("askwise.theme");
  } catch {
    // storage is blocked: the page follows the system
  }
  document.documentElement.dataset.theme = chosen ?? (system.matches ? "dark" : "light");
}

applyTheme();
system.addEventListener("change", applyTheme);
