// A gateway in front of UPSTREAM, with a circuit for each origin, and what its circuits do at /metrics for Prometheus.
import { createServer } from "node:http";
import { wrapFetch } from "tripcurve";
import { collectMetrics } from "tripcurve/prometheus";

const { UPSTREAM = "https://api.example.com", PORT = "9464" } = process.env;

const guarded = wrapFetch(fetch, { timeoutMs: 5_000, onOpen: "respond" }); // a refused request gets a 503 that says when to come back
const metrics = collectMetrics(guarded.registry);

const server = createServer(async ({ method, url }, response) => {
  if (url === "/metrics") {
    response.setHeader("Content-Type", metrics.contentType).end(metrics.text());
    return;
  }
  try {
    const answer = await guarded(new URL(url, UPSTREAM), { method });
    const { status, headers } = answer;
    const kept = Object.fromEntries(["content-type", "retry-after"].flatMap((name) => (headers.has(name) ? [[name, headers.get(name)]] : [])));
    response.writeHead(status, kept).end(Buffer.from(await answer.arrayBuffer()));
  } catch (error) {
    response.writeHead(502).end(String(error));
  }
});

server.listen(Number(PORT), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/ leads to ${UPSTREAM}, and has /metrics`));
