// Numbers out of rounds. Differences and ratios are taken within a round, where a slow spell of the machine hits all alike.

export function median(numbers) {
  const sorted = numbers.filter(Number.isFinite).sort((a, b) => a - b);
  if (sorted.length === 0) return NaN;
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** The rounds of a guard minus those of the bare call. */
export function over(result, label) {
  const bare = Object.values(result).find((each) => each.bare);
  const rounds = result[label]?.rounds;
  return bare?.rounds && rounds ? rounds.map((ns, i) => ns - bare.rounds[i]) : [];
}

export const whole = (result, label) => result[label]?.rounds ?? [];

/** How many times dearer `a` is than `b`: the median of the ratios within rounds. */
export function times(result, a, b, what = whole) {
  const dividend = what(result, a);
  const divisor = what(result, b);
  return median(dividend.map((ns, i) => ns / divisor[i]));
}

/** The same from the best round of each. */
export function timesBest(result, a, b, what = whole) {
  const bare = what === over ? Math.min(...whole(result, Object.keys(result).find((label) => result[label].bare))) : 0;
  return (Math.min(...whole(result, a)) - bare) / (Math.min(...whole(result, b)) - bare);
}
