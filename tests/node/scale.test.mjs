// Very many origins, and addresses that somebody made to hurt.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import test from "node:test";
import { wrapFetch } from "tripcurve";
import { outcomeOf } from "./help.mjs";

const ok = async () => new Response(null, { status: 204 });

for (const [name, options, host = ""] of [["alone", ""], ["with a store", ", { store: memoryStore() }"], ["where there is no WeakRef", "", "globalThis.WeakRef = globalThis.FinalizationRegistry = undefined;"]]) {
  test(`100,000 origins, one after the other, take the room of the 500 that are kept, and the oldest idle ones go: ${name}`, async () => {
    const script = `
      import { memoryStore, wrapFetch } from "tripcurve";
      const settled = async () => {
        for (let i = 0; i < 4; i++) { globalThis.gc(); await new Promise((resolve) => setTimeout(resolve, 20)); }
        const { heapUsed, external, arrayBuffers } = process.memoryUsage();
        return heapUsed + external + arrayBuffers;
      };
      const response = { status: 204, type: "basic", headers: new Headers() };
      ${host}
      const guarded = wrapFetch(async () => response${options});
      const ask = async (from, to) => { for (let i = from; i < to; i++) await guarded("https://s" + i + ".example/x"); };
      await ask(0, 2_000);
      const before = await settled();
      await ask(2_000, 100_000);
      const grown = (await settled()) - before;
      const keys = guarded.registry.inspect().map(({ key }) => key);
      console.log(JSON.stringify({ grown, size: guarded.registry.size, last: keys.at(-1), has: keys.includes("https.s99501.example"), gone: keys.includes("https.s99000.example") }));`;
    const { grown, ...rest } = JSON.parse(execFileSync(process.execPath, ["--expose-gc", "--input-type=module", "-e", script], { cwd: new URL("../..", import.meta.url), encoding: "utf8" }));
    assert.deepEqual(rest, { size: 500, last: "https.s99999.example", has: true, gone: false });
    assert.ok(grown < 1_000_000, `${grown} bytes more`);
  });
}

test("100,000 circuits that are kept cost less than 600 bytes each while they are idle", async () => {
  const script = `
    import { CircuitRegistry } from "tripcurve";
    const settled = async () => {
      for (let i = 0; i < 4; i++) { globalThis.gc(); await new Promise((resolve) => setTimeout(resolve, 20)); }
      const { heapUsed, external } = process.memoryUsage();
      return heapUsed + external;
    };
    const registry = new CircuitRegistry({ window: { kind: "calls", last: 20 } }, { maxCircuits: 200_000 });
    for (let i = 0; i < 2_000; i++) await registry.get("a" + i).run(() => 1);
    const before = await settled();
    for (let i = 0; i < 100_000; i++) await registry.get("b" + i).run(() => 1);
    console.log(JSON.stringify({ each: ((await settled()) - before) / 100_000, size: registry.size, seen: registry.inspect().length }));`;
  const { each, ...rest } = JSON.parse(execFileSync(process.execPath, ["--expose-gc", "--input-type=module", "-e", script], { cwd: new URL("../..", import.meta.url), encoding: "utf8" }));
  assert.deepEqual(rest, { size: 102_000, seen: 102_000 });
  assert.ok(each < 600, `${each} bytes`);
});

const hostile = [
  "https://__proto__/x", "https://constructor/", "https://hasownproperty.tostring/", "http://xn--e1afmkfd.xn--p1ai/", "http://пример.рф/", "https://faß.example/", "https://[::1]:8443/",
  "https://a.example:443/", "https://user:secret@a.example/?token=secret#secret", `https://a.example/${"x".repeat(1_000_000)}`, `https://${"a".repeat(63)}.${"b".repeat(63)}.${"c".repeat(63)}.example/`,
  "https://a.example/\u0000\u001b[31m", "https://A.EXAMPLE/", "https://a.example./", "https://_dmarc.a.example/", "https://1.2.3.4/", "https://0x7f.1/",
];
for (const url of hostile) {
  test(`an address made to hurt gets a key that is none: ${url.length > 60 ? `${url.slice(0, 30)}… (${url.length})` : JSON.stringify(url)}`, async () => {
    const guarded = wrapFetch(ok);
    await guarded(url);
    for (const { key, counts } of guarded.registry.inspect()) {
      assert.match(key, /^[a-z0-9]+(?:[._-][a-z0-9]+)*$/);
      assert.ok(key.length <= 87 && !key.includes("secret"), key);
      assert.equal(counts.calls, 1);
    }
    assert.equal(guarded.registry.size, 1);
    assert.equal({}.polluted, undefined);
  });
}

test("an address that is none is fetch's to refuse, and makes no circuit", async () => {
  const guarded = wrapFetch(fetch);
  for (const url of ["https://", "nonsense", "https://a b/", "", "javascript:1"]) {
    assert.ok((await outcomeOf(guarded(url))).error instanceof TypeError);
  }
  assert.equal(guarded.registry.size, 0);
});
