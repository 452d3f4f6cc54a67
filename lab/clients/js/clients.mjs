// Each client as its manual shows it, with its own defaults for what is retried and how long it
// waits. A function makes one call and returns the status. It reads the body and ends the call as the
// manual shows: with the signal if that ends a whole call there, or else with the timeout.
const of = (name) => import(name);

// read takes a fetch response to its end.
const read = async (resp) => {
  await resp.arrayBuffer();
  return resp.status;
};

export const clients = {
  fetch: async () => async ({ url, ...o }) => read(await fetch(url, o)),

  "axios": async () => {
    const { default: axios } = await of("axios");
    return async ({ url, method, headers, body, signal }) => (await axios.request({ url, method, headers, data: body, signal })).status;
  },

  "axios-retry": async () => {
    const [{ default: axios }, { default: retry }] = [await of("axios"), await of("axios-retry")];
    const client = axios.create();
    retry(client, { retries: 3, retryDelay: retry.exponentialDelay });
    // Its README: the timeout of axios is that of the whole call.
    return async ({ url, method, headers, body, timeout }) => (await client.request({ url, method, headers, data: body, timeout })).status;
  },

  "retry-axios": async () => {
    const [{ default: axios }, rax] = [await of("axios"), await of("retry-axios")];
    const client = axios.create();
    client.defaults.raxConfig = { instance: client };
    rax.attach(client);
    return async ({ url, method, headers, body, signal }) => (await client.request({ url, method, headers, data: body, signal })).status;
  },

  got: async () => {
    const { default: got } = await of("got");
    return async ({ url, method, headers, body, signal }) => (await got(url, { method, headers, body, signal })).statusCode;
  },

  ky: async () => {
    const { default: ky } = await of("ky");
    return async ({ url, method, headers, body, signal }) => read(await ky(url, { method, headers, body, signal }));
  },

  ofetch: async () => {
    const { ofetch } = await of("ofetch");
    return async ({ url, method, headers, body, timeout }) => (await ofetch.raw(url, { method, headers, body, timeout })).status;
  },

  "undici-retry-agent": async () => {
    const { Agent, RetryAgent, request } = await of("undici");
    const dispatcher = new RetryAgent(new Agent({ connect: { ca: ca() } }));
    return async ({ url, method, headers, body, signal }) => {
      const resp = await request(url, { method, headers, body, signal, dispatcher });
      await resp.body.arrayBuffer();
      return resp.statusCode;
    };
  },

  // p-retry and cockatiel know no HTTP: what is a failure is what most programs around them say.
  "p-retry": async () => {
    const { default: pRetry } = await of("p-retry");
    return ({ url, signal, ...o }) =>
      pRetry(
        async () => {
          const resp = await fetch(url, { ...o, signal });
          await resp.arrayBuffer();
          if (resp.status >= 500) throw new Error(resp.statusText);
          return resp.status;
        },
        { retries: 3, signal },
      );
  },

  cockatiel: async () => {
    const { retry, handleAll, ExponentialBackoff } = await of("cockatiel");
    const policy = retry(handleAll, { maxAttempts: 3, backoff: new ExponentialBackoff() });
    return ({ url, signal: over, ...o }) =>
      policy.execute(async ({ signal }) => {
        const resp = await fetch(url, { ...o, signal });
        await resp.arrayBuffer();
        if (resp.status >= 500) throw new Error(resp.statusText);
        return resp.status;
      }, over);
  },

  "fetch-retry": async () => {
    const { default: wrap } = await of("fetch-retry");
    const retrying = wrap(fetch, { retryOn: [429, 500, 502, 503, 504] });
    return async ({ url, ...o }) => read(await retrying(url, o));
  },

  gaxios: async () => {
    const { Gaxios } = await of("gaxios");
    const client = new Gaxios();
    return async ({ url, method, headers, body, signal }) => (await client.request({ url, method, headers, data: body, signal, retry: true })).status;
  },

  "octokit-retry": async () => {
    const [{ Octokit }, { retry }] = [await of("@octokit/core"), await of("@octokit/plugin-retry")];
    const client = new (Octokit.plugin(retry))({ log: { debug() {}, info() {}, warn() {}, error() {} } });
    return async ({ url, method, headers, body, signal }) => (await client.request({ url, method, headers, data: body, request: { signal } })).status;
  },

  superagent: async () => {
    const { default: superagent } = await of("superagent");
    return async ({ url, method, headers, body, timeout }) => {
      const request = superagent(method, url).set(headers).send(body).retry(2);
      return (await (timeout ? request.timeout({ deadline: timeout }) : request)).status;
    };
  },

  "make-fetch-happen": async () => {
    const { default: fetch } = await of("make-fetch-happen");
    return async ({ url, method, headers, body, timeout }) => {
      const resp = await fetch(url, { method, headers, body, timeout, ca: ca(), retry: 3 });
      await resp.buffer();
      return resp.status;
    };
  },

  "aws-sdk-s3": async () => {
    const { S3Client, GetObjectCommand, PutObjectCommand, HeadObjectCommand, DeleteObjectCommand } = await of("@aws-sdk/client-s3");
    const commands = { GET: GetObjectCommand, PUT: PutObjectCommand, HEAD: HeadObjectCommand, DELETE: DeleteObjectCommand };
    const clientsOf = new Map();
    return async ({ url, method, body, signal }) => {
      const { origin, pathname } = new URL(url);
      if (!commands[method]) throw new Error(`S3 has no ${method} of an object`);
      if (!clientsOf.has(origin))
        clientsOf.set(origin, new S3Client({ endpoint: origin, region: "us-east-1", forcePathStyle: true, credentials: { accessKeyId: "a", secretAccessKey: "b" }, requestChecksumCalculation: "WHEN_REQUIRED" }));
      const [, bucket, ...rest] = pathname.split("/");
      const out = await clientsOf.get(origin).send(new commands[method]({ Bucket: bucket, Key: rest.join("/"), Body: body }), { abortSignal: signal });
      if (out.Body) await out.Body.transformToByteArray();
      return out.$metadata.httpStatusCode;
    };
  },

  openai: sdk("openai", { apiKey: "none" }),
  anthropic: sdk("@anthropic-ai/sdk", { apiKey: "none" }),

  stripe: async () => {
    const { default: Stripe } = await of("stripe");
    const clientsOf = new Map();
    return async ({ url, method, headers, body, timeout }) => {
      const { hostname, port, protocol, origin, pathname } = new URL(url);
      if (!["GET", "POST", "DELETE"].includes(method)) throw new Error(`Stripe's API has no ${method}`);
      if (!clientsOf.has(origin)) clientsOf.set(origin, new Stripe("sk_test_none", { host: hostname, port, protocol: protocol.slice(0, -1), telemetry: false }));
      const key = headers["Idempotency-Key"];
      const options = { ...(key ? { idempotencyKey: key } : {}), ...(timeout ? { timeout } : {}) };
      const out = await clientsOf.get(origin).rawRequest(method, pathname, body ? { text: body.toString() } : undefined, options);
      return out.lastResponse.statusCode; // it takes for a failure what has an error in its body, as Stripe's answers do
    };
  },
};

// sdk is a client made by Stainless: it has a method for any path.
function sdk(name, options) {
  return async () => {
    const { default: Client } = await of(name);
    const clientsOf = new Map();
    return async ({ url, method, headers, body, timeout }) => {
      const { origin, pathname } = new URL(url);
      if (!clientsOf.has(origin)) clientsOf.set(origin, new Client({ ...options, baseURL: origin }));
      const { response } = await clientsOf.get(origin)[method.toLowerCase()](pathname, { body, headers, ...(timeout ? { timeout } : {}) }).withResponse();
      return response.status;
    };
  };
}

import { readFileSync } from "node:fs";
const ca = () => readFileSync(process.env.LULL_TORTURE_CA);
