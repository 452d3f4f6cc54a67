// A service without anything for clients that retry: node app.mjs PORT
import { createServer } from "node:http";

let number = 0;
createServer((request, response) => {
  const answer = (status, text) => {
    response.writeHead(status, { "Content-Type": "application/json" });
    response.end(text);
  };
  request.resume().on("end", () => {
    if (request.method === "POST") answer(request.url === "/fails" ? 500 : 201, JSON.stringify({ id: ++number }));
    else setTimeout(answer, request.url === "/slow" ? 1500 : 50, 200, "{}");
  });
}).listen(Number(process.argv[2]), "127.0.0.1");
