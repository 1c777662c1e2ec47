// A real HTTP service that fails on demand, on a port of its own, so that the page talks to it across origins as it would to any API.

import { createServer } from "node:http";
import { createAnswers } from "./answers.mjs";
import { listen, shut } from "./listen.mjs";

export async function startService({ port = 0, host = "127.0.0.1", random } = {}) {
  const answers = createAnswers({ random });
  const server = createServer((request, response) => {
    request.resume();
    response.setHeader("Access-Control-Allow-Origin", "*");
    response.setHeader("Access-Control-Allow-Headers", "*");
    response.setHeader("Access-Control-Expose-Headers", "Retry-After");
    if (request.method === "OPTIONS") return void response.writeHead(204).end();
    const { fails, delayMs, body, head } = answers.next();
    if (fails === "hangs") return;
    if (fails === "refuses") return void request.socket.destroy();
    const timer = setTimeout(() => {
      const { status, headers } = head();
      response.writeHead(status, headers).end(body);
    }, delayMs);
    response.on("close", () => clearTimeout(timer));
  });
  const url = await listen(server, host, port);
  return { url, state: answers.state, apply: answers.apply, close: () => shut(server) };
}
