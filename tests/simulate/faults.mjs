// What is broken on purpose, to see that the judge notices: each is a way in which a store, or the package, could fail its promise.

/** `spoil` makes a store worse; `delay` holds up every call by so many milliseconds. */
export const FAULTS = {
  /** Writes whatever version it finds. */
  blind: { spoil: (store) => ({ ...store, set: (key, text, options) => store.set(key, text, { ttlMs: options.ttlMs }) }) },
  /** Takes every write, and keeps none. */
  forgetful: { spoil: (store) => ({ ...store, set: () => ({ ok: true, version: "1" }) }) },
  /** Reads once, and tells that for ever. */
  stubborn: {
    spoil: (store) => {
      let first;
      return { ...store, get: (key) => (first ??= store.get(key)), subscribe: undefined };
    },
  },
  /** Gives every lock to everybody. */
  generous: { spoil: (store) => ({ ...store, claim: () => () => {} }) },
  /** Loses by what a batch is known again. */
  anonymous: { spoil: (store) => ({ ...store, set: (key, text, options) => store.set(key, text.replace(/#.*$/, ""), options) }) },
  /** Loses what was counted. */
  innumerate: { spoil: (store) => ({ ...store, set: (key, text, options) => store.set(key, text.replace(/[^;]*$/, ""), options) }) },
  hesitant: { delay: 1 },
};
