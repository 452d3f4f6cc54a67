// An emulator of Amazon SQS (fauxqs) for the tests: on 127.0.0.1 only, which its own
// command line cannot.
//
//	node emulator.mjs FOLDER PORT [DATA]
//
// FOLDER is where package-lock.json is installed. PORT 0 is any. With the folder DATA it
// keeps its queues there, and has them again when it is started again. It writes its port when
// it listens, and ends when its standard input does.
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const [folder, port, data] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(folder, "node_modules", "fauxqs", "dist", path)).href);
const { buildApp } = await load("app.js");

const options = { logger: false, host: "localhost" };
if (data) {
  const { SqsStore } = await load("sqs/sqsStore.js");
  const { SnsStore } = await load("sns/snsStore.js");
  const { PersistenceManager } = await load("persistence.js");
  const sqsStore = new SqsStore();
  const snsStore = new SnsStore();
  const kept = new PersistenceManager(data);
  kept.db.exec("PRAGMA synchronous = OFF"); // it is killed, the machine is not
  // fauxqs 2.4.1 forgets the receive count of what is made visible, which its table refuses.
  const ready = kept.db.prepare("UPDATE sqs_messages SET receipt_handle = NULL, visibility_deadline = NULL WHERE message_id = ?");
  kept.updateMessageReady = (id) => ready.run(id);
  kept.loadSqsAndSns(sqsStore, snsStore);
  sqsStore.persistence = kept;
  for (const queue of sqsStore.allQueues()) {
    queue.persistence = kept;
  }
  options.stores = { sqsStore, snsStore };
}
const app = buildApp(options);
await app.listen({ port: Number(port), host: "127.0.0.1" });
console.log(app.server.address().port);

process.stdin.resume();
process.stdin.on("end", () => process.exit(0));
