// What must hold, whatever the schedule. The judge sees what no participant can: true time, every store and every other participant. It asks
// participants only by reading (`inspect`, `snapshot`), and reads texts with the package's own core.
import { decode, parsePolicy } from "tripcurve/core";
import { T0 } from "./chance.mjs";
import { policyOf } from "./schedule.mjs";

export class Judge {
  /** When something last went wrong for a call: it failed, never ended, or its caller was stopped. */
  lastBad = T0;
  /** Whose event is being handled. */
  touched = undefined;
  /** What happened how often, to know that schedules reach what is judged. */
  seen = { calls: 0, refusals: 0, probes: 0, exempt: 0, verdicts: 0, adoptions: 0, writes: 0 };
  /** id → when it was really made, and what its maker had met: hidden from the participants. */
  #verdicts = new Map();
  /** id → when a verdict was proposed to the store, and what its maker had met by then. */
  #proposed = new Map();
  #probes = [];
  /** Successes of probes, by the verdict they belong to. */
  #successes = new Map();
  #probingSince = undefined;
  /** Outcomes of closed calls, by the verdict they were admitted under. */
  #counted = new Map();
  /** When a verdict was last made, and when another one last reached the store. */
  #madeAt = T0;
  #storedAt = T0;
  #texts = new Map();

  constructor(world) {
    const { schedule, kind } = world;
    this.world = world;
    // Wide, so that nothing is cut in reading.
    this.policy = parsePolicy({ ...policyOf(schedule, kind === "tally"), maxOpenMs: Number.MAX_SAFE_INTEGER });
    /** How long news may take while the store works. */
    this.slack = schedule.refreshMs + { atomic: 1_500, tally: 2_500, local: 1_500, kv: 65_000 }[kind] + 3 * schedule.storeTimeoutMs;
    /** And how much longer otherwise: an answer that never comes is waited for, and after failures a participant waits up to a minute. */
    this.hold = schedule.lost || schedule.cut || schedule.slow || schedule.storeOutages.length ? 20 * schedule.storeTimeoutMs + 60_000 : 0;
    const poison = schedule.poison === null ? null : this.#read(schedule.poison);
    if (poison?.id) this.#verdicts.set(poison.id, { at: T0 - 1, met: new Set() });
  }

  // ---- reading

  /** The verdict in a text; null: no circuit. */
  #read(text) {
    if (text === null) return null;
    if (!this.#texts.has(text)) {
      const { snapshot, problem } = decode(this.policy, text, 0);
      const { verdict, until, probes, counts } = snapshot;
      const open = verdict !== null && verdict.state !== "closed"; // half-open is open, and due
      const id = verdict && [verdict.since, verdict.by, open ? until : ""].join(".");
      const found = { id, state: open ? "open" : "closed", until: open ? until : 0, since: verdict?.since, by: verdict?.by, probes, counts };
      this.#texts.set(text, ["too_long", "unknown_version", "malformed"].includes(problem) ? null : found);
    }
    return this.#texts.get(text);
  }

  /** What the store would tell now. */
  #master() {
    return this.#read(this.world.store.master());
  }

  /** Looks whether a participant holds another verdict than before. `closely`: also when it seems to be the same. */
  look(person = this.touched, closely = false) {
    this.touched = undefined;
    if (!person || person.dead || !person.called) return;
    const { generation } = person.show((breaker) => breaker.inspect());
    const same = generation === person.generation;
    const learns = same && person.verdict && (closely || (this.world.schedule.serverClock && person.readings < 4));
    if (same && !learns && (person.verdict || !person.heard)) return;
    person.generation = generation;
    person.heard = false;
    const found = this.#read(person.show((breaker) => breaker.snapshot()));
    if (!found?.id || found.id === person.verdict?.id) return;
    if (learns) return this.#renames(person, found);
    const { world } = this;
    if (this.#verdicts.has(found.id)) this.#adopts(person, person.verdict, found);
    else this.#made(person, found);
    for (const id of this.#verdicts.get(found.id).met) person.known.add(id);
    person.known.add(found.id);
    person.verdict = found;
    person.heldAt = world.now;
    if (found.state === "open") person.openAt = world.now;
  }

  /** It has learnt the store's clock, or found that what it restored cannot be: its own verdict has another name, unknown to the others. */
  #renames(person, found) {
    const { id } = person.verdict;
    this.#verdicts.set(found.id, this.#verdicts.get(id));
    this.#counted.set(found.id, this.#countedUnder(id));
    person.known.add(found.id);
    for (const probe of this.#probes) if (probe.verdict?.id === id) probe.verdict = found;
    person.verdict = found;
  }

  begins(person) {
    Object.assign(person, { verdict: undefined, readings: 0, known: new Set(), generation: undefined, heldAt: this.world.now, openAt: -Infinity, ready: false });
  }

  /** It crashed or left. */
  gone(person) {
    for (const probe of this.#probes) if (probe.person === person) probe.over = true;
  }

  moved(person, { from, to, reason }) {
    this.world.say(person, `${from} → ${to}, ${reason}`);
    this.look(person);
  }

  #made(person, found) {
    const { world } = this;
    const { now } = world;
    this.seen.verdicts++;
    this.#madeAt = now;
    const { at, met } = this.#proposed.get(found.id) ?? { at: now, met: new Set(person.known) };
    this.#verdicts.set(found.id, { at, met, alone: person.inTrouble() });
    world.say(person, `decides ${found.state} since ${found.since - T0}${found.state === "open" ? ` until ${found.until - T0}` : ""}`);
    if (world.kind === "local" && person.verdict?.state === "open" && found.state === "closed") this.#closes(person);
  }

  /** A tab closes what was open: whatever the storage shows everybody it must have met. */
  #closes(person) {
    const { world } = this;
    const { jump, shadow, poison } = world.schedule;
    const top = this.#master();
    // Of what nobody could have decided each who restores it makes what can be, by itself.
    if (jump || shadow || poison !== null || person.inTrouble() || !this.#isOpen(top) || person.known.has(top.id)) return;
    const age = world.now - this.#bornAt(top);
    if (age > 60) world.fail("fence_crossed", `P${person.index} closes over an open verdict that it has not read, made ${age} ms ago`);
  }

  /** An open verdict of this run, not one that was there before. */
  #isOpen(found) {
    return found?.state === "open" && this.#verdicts.get(found.id)?.at >= T0;
  }

  #adopts(person, old, found) {
    const { world } = this;
    const { skew, jump, storeTimeoutMs, poison } = world.schedule;
    this.seen.adoptions++;
    world.say(person, `adopts ${found.state} since ${found.since - T0}`);
    if (!old) return;
    if (this.#verdicts.get(old.id).met.has(found.id)) {
      return world.fail("resurrected", `P${person.index} drops ${old.state} for an older ${found.state} that its maker knew`);
    }
    const earlier = this.#bornAt(old) - this.#bornAt(found);
    const unsure = 2 * skew + Math.abs(jump) + (world.kind === "local" ? 5 : storeTimeoutMs);
    if (poison === null && old.state === "open" && found.state === "closed" && found.since < world.now + 60_000 && earlier > unsure) {
      world.fail("open_lost", `P${person.index} drops open for a closed made ${earlier} ms before`);
    }
  }

  #bornAt(found) {
    return this.#verdicts.get(found.id)?.at ?? this.world.now;
  }

  // ---- the store

  /** A write is about to be asked for. It may hold a verdict that its maker does not hold yet. */
  asked(person, text) {
    this.seen.writes++;
    this.look(person, true);
    const id = this.#read(text)?.id;
    if (id && !this.#verdicts.has(id) && !this.#proposed.has(id)) this.#proposed.set(id, { at: this.world.now, met: new Set(person.known) });
  }

  /** A text takes another's place. */
  stored(person, before, text) {
    const { world } = this;
    const [old, found] = [this.#read(before), this.#read(text)];
    if (found === null) return world.fail("garbage", `P${person.index} stores what nobody can read: ${text.slice(0, 80)}`);
    if (found.id && !this.#verdicts.has(found.id)) this.#made(person, found);
    if (found.id !== old?.id) this.#storedAt = world.now;
    const probes = found.probes.map(({ id, fate }) => `, probe ${id} ${fate}`).join("");
    world.say(person, `writes ${found.state}${found.id ? ` since ${found.since - T0}` : ""}${probes}`);
    const held = new Set(old?.probes.map(({ id }) => id));
    person.claims += found.probes.filter(({ id }) => !held.has(id)).length;
    if (found.state === "closed") this.#tallied(person, found);
    if (world.atomic && this.#isOpen(old) && found.state === "closed") this.#closesOver(person, old, found);
  }

  /** Closed takes the place of open: enough probes of it, or of one made from it, have succeeded. Unless it was decided without the store. */
  #closesOver(person, old, found) {
    const { shadow, poison, probeSuccesses } = this.world.schedule;
    if (shadow || poison !== null || this.#verdicts.get(found.id)?.alone) return;
    const of = (id) => id === old.id || this.#verdicts.get(id)?.met.has(old.id);
    const successes = [...this.#successes].reduce((sum, [id, times]) => sum + (of(id) ? times : 0), 0);
    if (successes < probeSuccesses) this.world.fail("fence_crossed", `P${person.index} closes over an open verdict of which ${successes} probes have succeeded`);
  }

  // ---- calls

  calls(call) {
    const { person } = call;
    this.seen.calls++;
    call.unread = !person.ready;
    call.stateAsked = call.first ? undefined : person.show(({ state }) => state);
    call.number = this.seen.calls;
    if (call.stateAsked !== "closed") this.world.detail(person, () => `asks (call ${call.number}, ${call.stateAsked ?? "unread"})`);
  }

  /** Its function starts: as a probe, or because the circuit is closed. */
  starts(call) {
    const { person } = call;
    this.look(person);
    call.verdict = person.verdict;
    this.#waited(call, call.probe ? "starts a probe" : "starts");
    if (call.probe) this.#probe(call);
    else if (!this.world.schedule.shadow) this.#allowed(call);
    person.ready = true;
  }

  ends(call) {
    const { now } = this.world;
    call.over = true;
    if (call.probe || call.outcome !== "success") this.world.detail(call.person, () => `call ${call.number} ends, ${call.outcome}`);
    if (call.outcome === "failure") {
      this.lastBad = now;
      call.person.failedSeconds.add(Math.floor(now / 1_000));
    }
    this.ending = call;
    this.look(call.person);
    if (call.outcome === "ignored") return;
    const { verdict } = call.person;
    if (call.probe) {
      const { id } = call.verdict ?? {};
      if (call.outcome === "success") this.#successes.set(id, (this.#successes.get(id) ?? 0) + 1);
    } else if (verdict?.state !== "open" && (!call.verdict || verdict?.id === call.verdict.id)) {
      this.#count(call); // the first verdict that is met, if it is closed, keeps what is counted
    }
  }

  /** Admitted and settled while closed, under one verdict: it counts. */
  #count({ person, outcome, verdict }) {
    person.counted++;
    const { incarnation } = person;
    this.#countedUnder(verdict?.id).push({ at: this.world.now, person, incarnation, failure: outcome === "failure" });
  }

  #countedUnder(id = null) {
    if (!this.#counted.has(id)) this.#counted.set(id, []);
    return this.#counted.get(id);
  }

  /** Where nothing leaves the window by age, a shared tally can be told to the last outcome. */
  get #exact() {
    return this.world.kind === "tally" && this.world.schedule.window === "calls";
  }

  /** A tally goes into the store: no outcome is in it twice, and it has not reached what opens the circuit. */
  #tallied(person, { id, counts }) {
    const { world } = this;
    const { failures, window } = world.schedule;
    if (world.kind !== "tally" || (window !== "calls" && window !== "consecutive")) return;
    if (counts.failures >= failures) world.fail("threshold", `P${person.index} stores a closed circuit with ${counts.failures} failures`);
    if (!this.#exact) return;
    const all = [...this.#countedUnder(id), ...(id ? this.#countedUnder() : [])];
    const failed = all.filter(({ failure }) => failure).length;
    if (counts.calls > all.length || counts.failures > failed) {
      world.fail("counted_twice", `P${person.index} stores ${counts.failures} failures of ${counts.calls}, there were ${failed} of ${all.length}`);
    }
  }

  /** Outcomes that whoever counted them has had the time to share. */
  #shareable(id, late) {
    const before = this.world.now - late;
    const able = (person) => !person.dead && !person.frozen && person.awakeAt < before && !person.inTrouble();
    return this.#countedUnder(id).filter(({ at, person, incarnation }) => at < before && person.incarnation === incarnation && able(person));
  }

  answered(call, value, ok) {
    const { person } = call;
    const { world } = this;
    if (call.startedAt === undefined) {
      if (!ok && value?.code === "ERR_CIRCUIT_OPEN") this.refused(call, value.reason);
      else world.fail("result", `P${person.index}: a call that did not run gives ${value?.stack ?? value}`);
    } else if (call.ended?.value !== value || call.ended.at !== world.now || ok === value instanceof Error) {
      world.fail("result", `P${person.index}: a call does not give what its function gave, at once, but ${value?.stack ?? value}`);
    }
  }

  /** Nothing waits for a store but the first reading and the claim of a probe. */
  #waited(call, what) {
    const { person, askedAt, unread, stateAsked } = call;
    const { world } = this;
    if (person.awakeAt > askedAt) return;
    const { storeTimeoutMs, ticks } = world.schedule;
    // Also of a circuit that only the call's own reading, or a clock that moved on, made due.
    const told = (world.kind === "local" || world.schedule.sync) && (call.probe || call.startedAt === undefined || person.openAt === askedAt);
    const maybeDue = unread || told || stateAsked === "half_open" || (ticks > 0 && stateAsked === "open");
    const bound = (unread ? storeTimeoutMs : 0) + (maybeDue ? storeTimeoutMs : 0);
    const waited = world.now - askedAt;
    if (waited >= storeTimeoutMs) person.troubleAt = world.now; // in vain, as far as it knows
    if (waited > bound) world.fail("waited", `P${person.index} ${what} after ${waited} ms, ${stateAsked ?? "unread"} when asked`);
  }

  #probe(call) {
    const { world } = this;
    const { person, verdict } = call;
    const { kind, schedule, now } = world;
    const { probeLimit, leaseMs, locks, shadow, jump, jumpAt } = schedule;
    this.seen.probes++;
    world.say(person, `probes (call ${call.number})`);
    if (this.#probingSince === undefined || this.#probingSince < this.lastBad) this.#probingSince = now;
    this.#probes = this.#probes.filter((probe) => !probe.over && probe.incarnation === probe.person.incarnation && now < probe.startedAt + leaseMs);

    // A lease from before the clock jumped says nothing after it.
    const jumped = T0 + jumpAt;
    const steady = this.#probes.filter((probe) => !jump || probe.startedAt >= jumped || now < jumped);
    const own = steady.filter((probe) => probe.person === person && probe.verdict?.id === verdict?.id && now < probe.askedAt + leaseMs - 1);
    if (own.length >= probeLimit) world.fail("own_limit", `P${person.index} starts a probe beside ${own.length} of its own`);

    // Without a store, or without locks, each has its own limit only; and who refuses nothing asks nobody.
    call.exempt = kind === "kv" || (kind === "local" && !locks) || shadow || person.isAlone(call.askedAt);
    if (call.exempt) this.seen.exempt++;
    else this.#probesAmongOthers(call, world.atomic && schedule.serverClock ? this.#probes : steady);
    this.#probes.push(call);
  }

  #probesAmongOthers({ person, verdict }, probes) {
    const { world } = this;
    const { store, schedule, now } = world;
    const { probeLimit, leaseMs, storeTimeoutMs, jump, skew, poison } = schedule;
    const same = (probe) => !world.atomic || probe.verdict?.id === verdict?.id;
    const others = probes.filter((probe) => !probe.exempt && probe.startedAt > store.corruptedAt && same(probe));
    const busy = others.filter((probe) => now < probe.startedAt + leaseMs - (world.atomic ? 3 * storeTimeoutMs : 10));
    if (busy.length >= probeLimit) {
      const whose = busy.map((probe) => `P${probe.person.index}'s of ${now - probe.startedAt} ms ago`);
      world.fail("probe_limit", `P${person.index} starts a probe beside ${whose.join(" and ")}`);
    }
    const top = this.#master();
    if (world.atomic && top?.id === verdict?.id) {
      const written = top?.probes.filter(({ fate, leaseUntil }) => fate === "in_flight" && (skew || leaseUntil > now)).length;
      const held = others.filter((probe) => now < probe.askedAt + leaseMs - storeTimeoutMs).length;
      if (written <= held && !jump) world.fail("probe_untold", `P${person.index} starts a probe that the store does not know of`);
    }
    if (skew || jump || poison !== null) return;
    const due = verdict?.state === "open" ? verdict.until - person.show(() => person.clock()) : Infinity;
    const uncertain = schedule.serverClock ? storeTimeoutMs / 2 : 0; // nobody knows how long an answer was on its way back
    if (due > uncertain) world.fail("probe_early", `P${person.index} starts a probe, due in ${due} ms`);
    const written = Math.max(store.corruptedAt, store.writes.at(-1)?.at ?? T0);
    if (this.#isOpen(top) && now < top.until - 2 && now - written > (world.atomic ? 3 * storeTimeoutMs : 60)) {
      world.fail("probe_in_open", `P${person.index} starts a probe, the store has said open for ${now - written} ms`);
    }
  }

  refused(call, reason) {
    const { world } = this;
    const { person } = call;
    const { maxOpenMs, leaseMs, skew, jump, storeTimeoutMs, probeSuccesses, idle, final, poison, shadow, storeOutages } = world.schedule;
    if (shadow) world.fail("shadow", `P${person.index} refuses in the shadow (${reason})`);
    this.seen.refusals++;
    world.detail(person, () => `call ${call.number} is refused, ${reason}`);
    this.#waited(call, "is refused");
    person.ready = true;
    if (world.now > world.judgeFrom && final === "up") person.refusalsAtEnd++;
    // A verdict from before anybody came is cut where it is met.
    let since = poison === null ? this.lastBad : Math.max(this.lastBad, this.#madeAt, person.startedAt);
    // The outcome of a probe counts until its lease ends.
    let extra = leaseMs + 2 * skew + Math.abs(jump) + 3 * storeTimeoutMs + 2_000;
    // A shared tally may be put together as late as the store lets it.
    if (world.kind === "tally") extra += this.slack + this.hold + Math.max(0, ...storeOutages.map(({ from, to }) => to - from));
    if (reason === "probes_busy") {
      since = Math.max(since, this.#probingSince ?? world.now);
      extra += leaseMs + probeSuccesses * (idle ? 20_000 : 1_000);
    }
    if (world.now > since + maxOpenMs + extra) {
      const probing = this.#probingSince === undefined ? "nobody probes" : `probing began ${world.now - this.#probingSince} ms ago`;
      world.fail("late_refusal", `P${person.index} refuses (${reason}), the last failure was ${world.now - this.lastBad} ms ago, ${probing}`);
    }
  }

  /** Is what somebody else holds later than what this one holds? */
  #lacks(person, verdict) {
    const mine = person.verdict;
    return !person.known.has(verdict.id) && (!mine || before(mine, verdict));
  }

  #allowed({ person }) {
    const { world, slack } = this;
    const { skew, jump, idle, final } = world.schedule;
    this.#probingSince = undefined;
    // Where clocks differ, calls are rare or the store fails, nobody can say how soon news must have come.
    if (!skew && !jump && !idle && !person.inTrouble()) this.#isUpToDate(person, slack + (world.now < world.quiet ? 0 : 3_000));
    if (final === "down" && world.now > world.judgeFrom && world.now > person.startedAt + slack + 10_000) {
      world.fail("verdict_lost", `P${person.index} still admits as closed, the backend is down since ${world.now - world.quiet} ms`);
    }
  }

  /** It admits as closed. Does nobody hold, does the store not say, anything later? */
  #isUpToDate(person, late) {
    const { world } = this;
    const { store, schedule, now } = world;
    for (const other of world.people) {
      const { verdict } = other;
      if (other === person || other.dead || other.frozen || other.inTrouble()) continue;
      if (!this.#isOpen(verdict) || now >= verdict.until || !this.#lacks(person, verdict)) continue;
      const held = now - Math.max(other.heldAt, other.awakeAt, person.awakeAt, store.corruptedAt + late);
      if (held > 2 * late) world.fail("erased", `P${person.index} admits as closed, P${other.index} has held an open verdict for ${held} ms`);
    }
    const top = this.#master();
    if (this.#isOpen(top) && now < top.until && this.#lacks(person, top)) {
      const stored = now - Math.max(store.writes.at(-1)?.at ?? T0, person.awakeAt, store.corruptedAt);
      if (stored > late) world.fail("not_reached", `P${person.index} admits as closed, an open verdict has been in the store for ${stored} ms`);
    }
    if (this.#exact && top?.id === person.verdict?.id && Math.max(store.corruptedAt, person.startedAt) < now - late) {
      const failed = this.#shareable(person.verdict?.id, late).filter(({ failure }) => failure).length;
      if (failed >= schedule.failures) world.fail("late_trip", `P${person.index} admits as closed, ${failed} failures are older than ${late} ms`);
    }
  }

  /** An `outcome` event: does what should count? */
  outcome(person, { probe, stale }) {
    const { world } = this;
    const call = this.ending;
    if (call?.person !== person || call.probe !== probe || !stale || call.outcome === "ignored") return;
    const { schedule, now } = world;
    const { jump, skew, shadow, leaseMs, probeLimit } = schedule;
    const news = Math.max(this.#madeAt, this.#storedAt);
    if (!probe && !call.verdict && news < call.startedAt && person.openAt < call.startedAt) {
      world.fail("outcome_wasted", `P${person.index}: admitted and settled while closed, no verdict since, counts nothing`);
    }
    // Where the store judges the outcome is told later, and of two probes nobody knows whose it is.
    const calm = !jump && !skew && !shadow && !person.inTrouble() && !this.#verdicts.get(person.verdict?.id)?.alone && (world.kind === "local" || (world.atomic && probeLimit === 1));
    if (probe && calm && news < call.startedAt - (probeLimit === 1 ? 0 : 60) && now < call.startedAt + leaseMs - 1_500) {
      world.fail("probe_wasted", `P${person.index}: a probe of ${now - call.startedAt} ms, no verdict since, counts nothing`);
    }
  }

  // ---- the quiet end

  end() {
    const { world } = this;
    const { store, people, schedule } = world;
    if (schedule.final === "up") {
      const writes = store.writes.filter(({ at }) => at > world.judgeFrom);
      if (writes.length > 0 && world.kind !== "tally") {
        world.fail("ping_pong", `${writes.length} writes in the quiet end, by ${[...new Set(writes.map(({ person }) => `P${person.index}`))]}`);
      }
      for (const person of people) {
        if (person.verdict?.state === "open" && person.refusalsAtEnd > 0) world.fail("stuck", `P${person.index} refuses at the end`);
      }
      // A text that has outlived its time tells nobody any more which of two closed verdicts is the later one.
      const exact = world.atomic && this.#master() !== null;
      const held = people.filter(({ verdict }) => verdict).map(({ verdict }) => (exact ? verdict.id : verdict.state));
      const told = people.map(({ index, verdict }) => `P${index} ${verdict?.state} ${verdict?.id}`);
      if (new Set(held).size > 1) world.fail("no_convergence", told.join(", "));
    } else if (this.#master()?.state !== "open") {
      world.fail("store_old", "the backend is down and the store says closed, or nothing");
    }
    const top = this.#master();
    if (this.#exact && schedule.final === "up" && top?.state === "closed" && store.corruptedAt === -Infinity) {
      const must = this.#shareable(top.id, this.slack + 3_000).length;
      if (top.counts.calls < must) world.fail("outcome_lost", `the store counts ${top.counts.calls} calls, there were ${must}`);
    }
    for (const person of people) {
      const seconds = world.kind === "local" ? person.failedSeconds.size : 0;
      const batches = world.kind === "tally" ? 2 * person.counted : 0;
      const bound = 2 * (this.#verdicts.size + 2) + 3 * person.claims + seconds + batches;
      const what = `${this.#verdicts.size} verdicts and ${person.claims} probes`;
      if (person.sets > bound) world.fail("writes", `P${person.index} wrote ${person.sets} times, for ${what}`);
    }
  }
}

/** The order of verdicts. */
function before(one, other) {
  const order = ({ since, state, until, by }) => [since, Number(state === "open"), until, by];
  const [a, b] = [order(one), order(other)];
  const at = a.findIndex((value, index) => value !== b[index]);
  return at >= 0 && a[at] < b[at];
}
