// Upstash's REST interface over a real Redis: a posted command is run and answered, texts as base64 where that is asked for.
import { createServer } from "node:http";

export const token = "secret";

/** `redis`: an ioredis client. `requests` counts what came. */
export async function startProxy(redis) {
  const proxy = { requests: 0 };
  const server = createServer(async (request, response) => {
    proxy.requests++;
    const answer = (status, body) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    if (request.headers.authorization !== `Bearer ${token}`) return answer(401, { error: "Unauthorized" });
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const posted = JSON.parse(Buffer.concat(chunks));
    const encode = request.headers["upstash-encoding"] === "base64" ? base64 : (value) => value;
    const run = ([name, ...args]) => redis.call(name, ...args).then((value) => ({ result: encode(value) }), (error) => ({ error: error.message }));
    if (request.url === "/pipeline") return answer(200, await Promise.all(posted.map(run)));
    const result = await run(posted);
    return answer(result.error ? 400 : 200, result);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  proxy.url = `http://127.0.0.1:${server.address().port}`;
  proxy.close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return proxy;
}

function base64(value) {
  if (typeof value === "string") return value === "OK" ? value : Buffer.from(value).toString("base64");
  return Array.isArray(value) ? value.map(base64) : value;
}
