// Before the first paint: the theme that was chosen here. Without a choice the system's holds.
(() => {
  try {
    const theme = localStorage.getItem("blotter-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // No storage: the system's theme.
  }
})();
