import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vitest/config";

// The service answers the page of every address itself and names the built files by their hashes,
// so they are kept by browsers for good (headgate/service/console.py).
export default defineConfig({
  plugins: [svelte()],
  base: "/console/",
  build: {
    outDir: "../src/headgate/service/console_files",
    emptyOutDir: true,
    target: "es2022",
    // Small files inside of scripts would be data: URLs, which the policy of the page forbids.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  test: { include: ["src/**/*.test.ts"] },
  server: {
    proxy: Object.fromEntries(
      ["/v1", "/session", "/sign-in", "/sign-out", "/enter"].map((path) => [
        path,
        "http://localhost:8080",
      ]),
    ),
  },
});
