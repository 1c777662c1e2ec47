// Chance that repeats itself, and the instant at which every schedule begins.

/** When every schedule begins. */
export const T0 = 1_700_000_000_000;

/** Chance from a text: the same text gives the same numbers (xmur3 and sfc32, both in the public domain). */
export function chance(text) {
  let h = 1779033703 ^ text.length;
  for (let at = 0; at < text.length; at++) {
    h = Math.imul(h ^ text.charCodeAt(at), 3432918353);
    h = (h << 13) | (h >>> 19);
  }
  const word = () => {
    h = Math.imul(h ^ (h >>> 16), 2246822507);
    h = Math.imul(h ^ (h >>> 13), 3266489909);
    return (h ^= h >>> 16) >>> 0;
  };
  let [a, b, c, d] = [word(), word(), word(), word()];
  const bits = () => {
    const sum = (((a + b) | 0) + d) | 0;
    d = (d + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  for (let warm = 0; warm < 12; warm++) bits();
  const unit = () => bits() / 2 ** 32;
  return {
    bits,
    unit,
    /** True with this probability. */
    happens: (share) => unit() < share,
    /** A whole number from `from` to before `to`. */
    between: (from, to) => from + Math.floor(unit() * (to - from)),
    pick: (list) => list[Math.floor(unit() * list.length)],
  };
}
