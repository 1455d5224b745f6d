// Runs before the page is drawn, so that a chosen theme never flashes the other one. No choice
// means the system's own.
{
  const root = document.documentElement;
  const order = ["auto", "light", "dark"];
  const read = () => {
    try {
      return localStorage.getItem("millrace.theme") ?? "auto";
    } catch {
      return "auto";  // storage is blocked
    }
  };
  const show = (theme) => {
    root.dataset.theme = order.includes(theme) ? theme : "auto";
    const button = document.getElementById("theme");
    button?.setAttribute("aria-label", `Theme: ${root.dataset.theme}`);
    button?.setAttribute("title", `Theme: ${root.dataset.theme}`);
  };
  show(read());
  document.addEventListener("DOMContentLoaded", () => {
    show(root.dataset.theme);
    document.getElementById("theme").addEventListener("click", () => {
      show(order[(order.indexOf(root.dataset.theme) + 1) % order.length]);
      try {
        localStorage.setItem("millrace.theme", root.dataset.theme);
      } catch {
        // It lasts until the page is closed.
      }
    });
  });
}
