import { defineConfig } from "vitest/config";

// Everything is a separate file: the server's policy allows no inline scripts or styles.
export default defineConfig({
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "dist/page",
    emptyOutDir: true,
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  // For work on the page: `ostler serve` runs next to it. The server checks the origin, which is its own then.
  server: {
    proxy: Object.fromEntries(
      ["/api", "/agui", "/healthz"].map((path) => [
        path,
        {
          target: process.env.OSTLER ?? "http://127.0.0.1:8300",
          ws: true,
          changeOrigin: true,
          headers: { origin: process.env.OSTLER ?? "http://127.0.0.1:8300" },
        },
      ]),
    ),
  },
  test: { reporters: ["./test/reporter.ts"], include: ["test/**/*.test.{ts,tsx}"] },
});
