// What participants share, with all that real ones do: late, lost and stale answers, reordered notifications, writes that happened although
// nobody was told. `plug(person)` gives one incarnation its side of it.

export const KEY = "tripcurve:shared";

export const makeStore = (world) => (world.atomic ? new AtomicStore(world) : world.kind === "local" ? new LocalStore(world) : new KvStore(world));

/** The text there is, when it was written and by whom; the same for every kind. */
class Shelf {
  constructor(world) {
    this.world = world;
    this.chance = world.chance;
    this.text = world.schedule.poison;
    this.expiresAt = Infinity;
    /** Instants of writes, and who wrote. */
    this.writes = [];
    this.corruptedAt = -Infinity;
  }

  /** What a fresh reader would be given. */
  master() {
    return this.world.now < this.expiresAt ? this.text : null;
  }

  write(person, text, ttlMs = Infinity) {
    const { world } = this;
    world.judge.stored(person, this.master(), text);
    this.text = text;
    this.expiresAt = world.now + ttlMs;
    this.writes.push({ at: world.now, person });
  }

  corrupt(text) {
    this.world.say(undefined, `the store now holds ${text === null ? "nothing" : JSON.stringify(text.slice(0, 20))}`);
    this.text = text;
    this.corruptedAt = this.world.now;
  }

  /**
   * Over a network: the effect happens on the other side, if at all; then the answer comes, if at all. What is slower than the participant's
   * patience, or never comes, is trouble of the store for it.
   */
  travel(person, operation, effect) {
    const { world, chance } = this;
    const { schedule } = world;
    person.stall();
    const done = person.operation();
    return new Promise((resolve, reject) => {
      let value;
      const act = () => (value = effect());
      const tell = (what) => world.detail(person, () => `${operation}: ${what}`);
      const answer = (delay) => world.at(delay, person.guard(() => (tell(value?.ok === false ? "refused" : "answered"), done(true), resolve(value))));
      const refuse = (delay) => world.at(delay, person.guard(() => (tell("fails"), done(false), reject(new Error("The store is away")))));
      tell("asked");
      if (world.storeIsDown()) {
        const arrives = chance.happens(0.3);
        if (arrives) world.at(chance.between(1, 2_000), act);
        return chance.pick([() => refuse(5), () => refuse(schedule.storeTimeoutMs), () => arrives && answer(3_000), () => {}])();
      }
      const calm = world.now >= world.quiet;
      const leg = () => (!calm && chance.happens(schedule.slow) ? chance.between(1, 1_500) : chance.between(1, 15));
      const [there, back] = [leg(), leg()];
      if (!calm && chance.happens(schedule.cut)) return chance.happens(0.5) && world.at(there, act);
      world.at(there, act);
      if (!calm && chance.happens(schedule.lost)) return chance.happens(0.5) && refuse(there + back);
      answer(there + back);
    });
  }
}

/** get and compare-and-set; with a clock of its own if the schedule says so. */
class AtomicStore extends Shelf {
  version = 0;

  /** Whoever has subscribed. */
  listeners = new Map();

  plug(person) {
    const { world } = this;
    const { sync, serverClock, subscribe } = world.schedule;
    const clock = () => (serverClock ? { now: world.now } : {});
    const get = () => {
      const snapshot = this.master();
      person.readings++;
      return snapshot === null ? (serverClock ? { snapshot, version: null, ...clock() } : null) : { snapshot, version: String(this.version), ...clock() };
    };
    const set = (text, { ttlMs, ifVersion }) => {
      const version = this.master() === null ? null : String(this.version);
      if (ifVersion !== undefined && ifVersion !== version) return { ok: false, version };
      this.write(person, text, ttlMs);
      return { ok: true, version: String(this.version) };
    };
    const ask = (operation, effect) => {
      if (!sync) return this.travel(person, operation, effect);
      const done = person.operation();
      done(!world.storeIsDown());
      if (world.storeIsDown()) throw new Error("The store is away");
      return effect();
    };
    return {
      store: {
        consistency: "atomic",
        get: () => ask("get", get),
        set: (key, text, options) => {
          person.writes(text);
          return ask("set", () => set(text, options));
        },
        ...(subscribe && {
          subscribe: (listener) => {
            this.listeners.set(person, listener);
            return () => this.listeners.delete(person);
          },
        }),
      },
    };
  }

  write(person, text, ttlMs) {
    const { world, chance } = this;
    super.write(person, text, ttlMs);
    this.version++;
    for (const [other, listener] of this.listeners) {
      if (other === person || chance.happens(world.schedule.loss)) continue;
      world.at(chance.between(1, 50), other.guard(() => listener("shared", text)));
    }
  }

  corrupt(text) {
    super.corrupt(text);
    this.version++;
  }
}

/** localStorage: a write is there at once for its tab, and up to 50 ms later for others; `storage` events are late, lost, out of order. Web Locks. */
class LocalStore extends Shelf {
  constructor(world) {
    super(world);
    /** Every text there was; each tab sees one of them. */
    this.texts = [this.text];
    this.views = new Map();
    /** name → who holds it, and who waits. */
    this.locks = new Map();
  }

  master() {
    return this.texts.at(-1);
  }

  plug(person) {
    const { world } = this;
    const open = () => {
      const done = person.operation();
      done(!world.storeIsDown());
      if (world.storeIsDown()) throw new Error("The storage is full or forbidden");
    };
    const localStorage = {
      getItem: (key) => (open(), key === KEY ? this.texts[this.views.get(person.index) ?? 0] : null),
      setItem: (key, text) => {
        open();
        person.writes(text);
        this.write(person, text);
      },
      removeItem: () => open(),
    };
    return { localStorage, navigator: { onLine: true, ...(world.schedule.locks && { locks: this.#locksFor(person) }) } };
  }

  write(person, text) {
    const { world, chance } = this;
    super.write(person, text);
    this.texts.push(text);
    const at = this.texts.length - 1;
    for (const other of world.people) {
      if (other === person) {
        this.views.set(other.index, at);
        continue;
      }
      world.at(chance.between(0, 51), () => this.views.set(other.index, Math.max(this.views.get(other.index) ?? 0, at)));
      if (other.dead || chance.happens(world.schedule.loss)) continue;
      const event = { type: "storage", key: KEY, newValue: text, oldValue: null, storageArea: other.host.localStorage };
      world.at(chance.between(0, 51), other.guard(() => other.dispatch(event)));
    }
  }

  corrupt(text) {
    super.corrupt(text);
    this.texts.push(text);
    for (const person of this.world.people) this.views.set(person.index, this.texts.length - 1);
  }

  /** The browser frees the locks of a tab that dies. */
  free(person) {
    for (const [name, lock] of this.locks) {
      lock.queue = lock.queue.filter((waiting) => waiting.person !== person);
      if (lock.person === person) this.#release(name);
    }
  }

  #release(name) {
    const lock = this.locks.get(name);
    const next = lock.queue.shift();
    if (next) next.take();
    else this.locks.delete(name);
  }

  #locksFor(person) {
    const { world, chance } = this;
    const ipc = () => (world.now < world.quiet && chance.happens(world.schedule.slow / 4) ? chance.between(1, 1_500) : chance.between(0, 3));
    const request = (name, options, callback) => {
      if (typeof options === "function") [options, callback] = [{}, options];
      person.stall();
      const done = person.operation();
      if (options.steal) world.fail("steals", `P${person.index} steals the lock ${name}`);
      return new Promise((resolve, reject) => {
        const grant = (lock, end) =>
          world.at(ipc(), person.guard(() => {
            done(true);
            const work = Promise.resolve().then(() => callback(lock));
            work.then(end, end);
            work.then(resolve, reject);
          }));
        const take = () => {
          const held = this.locks.get(name);
          const { incarnation } = person;
          this.locks.set(name, { person, queue: held?.queue ?? [] });
          const mine = () => person.incarnation === incarnation && this.locks.get(name)?.person === person;
          grant({ name, mode: "exclusive" }, () => world.at(ipc(), () => mine() && this.#release(name)));
        };
        const arrive = () => {
          const held = this.locks.get(name);
          if (!held) take();
          else if (options.ifAvailable) grant(null, () => {});
          else held.queue.push({ person, take });
        };
        const arrives = person.whileAlive(arrive);
        world.at(ipc(), arrives);
      });
    };
    return { request, query: async () => ({ held: [...this.locks.keys()].map((name) => ({ name })), pending: [] }) };
  }
}

/** Workers KV: last write wins, one a second, and each place reads a copy that may be a minute old, also of there being nothing. */
class KvStore extends Shelf {
  copies = new Map();
  wroteAt = -Infinity;

  plug(person) {
    const { world, chance } = this;
    const read = () => {
      const copy = this.copies.get(person.index);
      if (copy && world.now < copy.until) return copy.text;
      const text = this.master();
      this.copies.set(person.index, { text, until: world.now + chance.pick([0, 5_000, 60_000]) });
      return text;
    };
    return {
      namespace: {
        get: () => this.travel(person, "get", read),
        put: async (key, text, { expirationTtl }) => {
          person.writes(text);
          const accepted = await this.travel(person, "put", () => {
            if (world.now < this.wroteAt + 1_000) return false;
            this.wroteAt = world.now;
            this.write(person, text, expirationTtl * 1_000);
            return true;
          });
          if (!accepted) throw new Error("KV PUT failed: 429 Too Many Requests");
        },
        delete: () => Promise.reject(new Error("Nobody deletes")),
      },
    };
  }
}
