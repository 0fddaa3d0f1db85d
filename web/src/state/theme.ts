// Light or dark: the system's setting, or the user's choice on this device.

import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const KEY = "ostler-theme";

function stored(): Theme {
  const word = localStorage.getItem(KEY);
  return word === "light" || word === "dark" ? word : "system";
}

export const theme = signal<Theme>(stored());

effect(() => {
  document.documentElement.dataset.theme = theme.value;
  if (theme.value === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme.value);
});
