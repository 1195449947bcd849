// What the browser remembers: settings for good, the token only until the tab is closed.

export function recall(name, storage = "localStorage") {
  try {
    return window[storage].getItem(`askwise.${name}`);
  } catch {
    return null; // storage is blocked: nothing is remembered
  }
}

export function remember(name, value, storage = "localStorage") {
  try {
    if (value === null) window[storage].removeItem(`askwise.${name}`);
    else window[storage].setItem(`askwise.${name}`, value);
  } catch {
    // storage is blocked: the setting lasts until the page is left
  }
}
