// A server of Node's standard library.
const fs = require('fs'), http = require('http'), https = require('https');
const page = Buffer.alloc(1024, 'x');

function spin(rounds) {
  let x = 1;
  for (let i = 0; i < rounds; i++) x = (Math.imul(x, 69069) + 1) | 0;
  return x;
}

let best = 1e9;
for (let i = 0; i < 300; i++) {
  const begin = performance.now();
  spin(100000);
  best = Math.min(best, performance.now() - begin);
}
const millisecond = Math.round(100000 / best);

function handle(request, response) {
  if (request.url.startsWith('/work/')) {
    response.x = spin(Number(request.url.slice('/work/'.length)) * millisecond);
    response.writeHead(200, {'Content-Length': 0}).end();
  } else if (request.url === '/refuse/log') {
    process.stderr.write(`${Date.now()} refused ${request.url}\n`);
    response.writeHead(503, {'Content-Length': page.length}).end(page);
  } else {
    response.writeHead(503, {'Content-Length': 0}).end();
  }
}

const [folder, plain, tls] = process.argv.slice(2);
const file = (name) => fs.readFileSync(`${folder}/${name}`);
http.createServer(handle).listen(plain, '127.0.0.1', 1024);
https.createServer({cert: file('cert.pem'), key: file('key.pem')}, handle).listen(tls, '127.0.0.1', 1024);
