// Virtual time, and everything in it that is not a participant: events in order, chance that repeats itself, the guarded backend, the log.
// One seed is one schedule is one run, the same on every machine.
import { chance, T0 } from "./chance.mjs";
import { Judge } from "./judge.mjs";
import { Participant } from "./participant.mjs";
import { draw } from "./schedule.mjs";
import { makeStore } from "./stores.mjs";

export class World {
  /** `changes`: of the schedule, for shrinking. `fault`: what is broken on purpose, to see that the judge notices. `unjudged`: what is not looked at. */
  constructor(seed, kind, { changes = {}, fault, unjudged = [], telling = false } = {}) {
    this.seed = seed;
    this.kind = kind;
    this.options = { fault, unjudged };
    this.fault = fault;
    this.unjudged = unjudged;
    this.telling = telling;
    this.schedule = { ...draw(seed, kind), ...changes };
    this.chance = chance(`${seed}/${kind}/world`);
    this.now = T0;
    this.events = [];
    this.serial = 0;
    this.log = [];
    this.violation = undefined;
    const { schedule } = this;
    this.quiet = T0 + schedule.horizon;
    this.judge = new Judge(this);
    this.store = makeStore(this);
    this.people = Array.from({ length: schedule.people }, (_, index) => new Participant(this, index));
    this.#script();
  }

  get atomic() {
    return this.kind === "atomic" || this.kind === "tally";
  }

  #script() {
    const { schedule, people } = this;
    for (const person of people) this.at(person.startsAfter, () => person.start());
    for (const { at, who, what, ms } of schedule.events) {
      const person = people[who % people.length];
      this.at(at, () => person[what]());
      this.at(at + ms, () => (what === "freeze" ? person.thaw() : person.start()));
    }
    for (const { at, text } of schedule.corruptions) this.at(at, () => this.store.corrupt(text));
    this.at(schedule.horizon, () => {
      this.say(undefined, `quiet from here, the backend is ${schedule.final}`);
      for (const person of people) person.dead ? person.start() : person.thaw();
    });
    const settling = 3 * (schedule.maxOpenMs + schedule.leaseMs) + 2 * this.judge.slack + this.judge.hold + 30_000;
    this.judgeFrom = this.quiet + settling;
    this.end = this.judgeFrom + 20_000;
  }

  at(delay, work) {
    const { events } = this;
    const event = { at: this.now + delay, serial: this.serial++, work };
    let place = events.length;
    events.push(event);
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!sooner(event, events[parent])) break;
      events[place] = events[parent];
      place = parent;
    }
    events[place] = event;
  }

  #next() {
    const { events } = this;
    const first = events[0];
    const last = events.pop();
    if (events.length === 0) return first;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= events.length) break;
      if (child + 1 < events.length && sooner(events[child + 1], events[child])) child++;
      if (!sooner(events[child], last)) break;
      events[place] = events[child];
      place = child;
    }
    events[place] = last;
    return first;
  }

  /** Runs to the end, or to the first violation, which it gives. */
  run() {
    return new Promise((resolve) => {
      const caught = (error) => this.fail("unhandled", `nobody handles ${error?.stack ?? error}`);
      const others = process.listeners("unhandledRejection");
      process.removeAllListeners("unhandledRejection");
      process.on("unhandledRejection", caught);
      let over = false;
      const step = () => {
        if (over) return;
        try {
          this.judge.look();
          if (!this.violation && this.events.length > 0 && this.events[0].at <= this.end) {
            const { at, work } = this.#next();
            this.now = at;
            return work();
          }
          if (!this.violation) this.judge.end();
        } catch (error) {
          this.fail("threw", error?.stack ?? String(error));
        }
        over = true;
        process.off("unhandledRejection", caught);
        for (const other of others) process.on("unhandledRejection", other);
        resolve(this.violation);
      };
      // Between two of these Node runs every promise to its end, which is what should happen between two events, and cheap by the dozen.
      const batch = () => {
        for (let i = 0; i < 50; i++) setImmediate(step);
        if (!over) setImmediate(batch);
      };
      batch();
    });
  }

  backendFails(person) {
    if (this.now >= this.quiet) return this.schedule.final === "down";
    const at = this.now - T0;
    return this.schedule.outages.some(({ from, to, who }) => from <= at && at < to && (who === null || who === person.index));
  }

  storeIsDown() {
    const at = this.now - T0;
    return this.now < this.quiet && this.schedule.storeOutages.some(({ from, to }) => from <= at && at < to);
  }

  say(person, text) {
    this.log.push(`${String(this.now - T0).padStart(7)} ${person ? `P${person.index}` : "--"}  ${text}`);
  }

  /** What only a reader of one failure wants to know. */
  detail(person, text) {
    if (this.telling) this.say(person, text());
  }

  fail(what, text) {
    if (this.violation || this.unjudged.includes(what)) return;
    this.say(undefined, `VIOLATION ${what}: ${text}`);
    this.violation = { what, text, at: this.now - T0 };
  }
}

const sooner = (one, other) => one.at < other.at || (one.at === other.at && one.serial < other.serial);
