// The protocol of lull torture for clients in JavaScript: see docs/torture.md. NAME is the
// client, a file of ./clients.mjs: node adapter.mjs NAME
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { clients } from "./clients.mjs";

const make = clients[process.argv[2]];
if (!make) {
  console.error(`no client ${process.argv[2]}: one of ${Object.keys(clients).join(", ")}`);
  process.exit(2);
}
// What a client needs to load is no part of its calls. Node.js loads fetch with its Headers.
const made = new Map([["0", make()]]);
await made.get("0");
new Headers();
const lines = createInterface({ input: process.stdin });
lines.on("line", async (line) => {
  const [id, client, method, url, file, timeout, key] = line.split("\t");
  if (!made.has(client)) made.set(client, make());
  const headers = key === "-" ? {} : { "Idempotency-Key": key };
  const body = file === "-" ? undefined : readFileSync(file);
  if (body) headers["Content-Type"] = "application/octet-stream";
  const signal = Number(timeout) ? AbortSignal.timeout(Number(timeout)) : undefined;
  try {
    const status = await (await made.get(client))({ method, url, headers, body, signal, timeout: Number(timeout) || undefined });
    console.log(`${id}\t${status >= 200 && status < 300 ? "ok" : "failed"}\t${status}\t`);
  } catch (e) {
    console.log(`${id}\tfailed\t${e?.status ?? e?.response?.status ?? 0}\t${String(e?.message ?? e).split("\n")[0].slice(0, 200)}`);
  }
});
lines.on("close", () => process.exit(0));
console.log("ready");
