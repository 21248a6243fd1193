import { toasts } from "./toasts.svelte";

/** Put a text into the clipboard, and say so. */
export async function copy(text: string, what = "It"): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toasts.show(`${what} is copied.`);
  } catch {
    toasts.show("The browser does not allow copying; select the text and copy it.", {
      isError: true,
    });
  }
}
