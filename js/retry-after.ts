// Retry-After: a number of seconds or one of the three dates of HTTP, and nothing else.

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const TIME = String.raw`(\d\d):(\d\d):(\d\d)`;
const DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
const MONTH = `(${MONTHS.join("|")})`;
const IMF = new RegExp(String.raw`^${DAY}, (\d\d) ${MONTH} (\d{4}) ${TIME} GMT$`);
const RFC850 = new RegExp(String.raw`^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (\d\d)-${MONTH}-(\d\d) ${TIME} GMT$`);
const ASCTIME = new RegExp(String.raw`^${DAY} ${MONTH} ([ \d]\d) ${TIME} (\d{4})$`);

/** The instant such a header asks for, at least `now`; NaN: it says nothing. */
export function retryAt(header: string | null, now: number): number {
  const text = header?.replace(/^[ \t]+|[ \t]+$/g, "") ?? "";
  if (/^\d+$/.test(text)) return Math.min(now + Number(text) * 1_000, Number.MAX_SAFE_INTEGER);
  const at = date(text, now);
  return at === at ? Math.max(at, now) : NaN;
}

function date(text: string, now: number): number {
  const imf = IMF.exec(text);
  if (imf) return instant(Number(imf[3]), imf[2]!, imf[1]!, imf[4]!, imf[5]!, imf[6]!);
  const asctime = ASCTIME.exec(text);
  if (asctime) return instant(Number(asctime[6]), asctime[1]!, asctime[2]!, asctime[3]!, asctime[4]!, asctime[5]!);
  const rfc850 = RFC850.exec(text);
  if (!rfc850) return NaN;
  // Two digits that seem to lie more than 50 years ahead are of the century before.
  const thisYear = new Date(now).getUTCFullYear();
  const year = thisYear - (thisYear % 100) + Number(rfc850[3]);
  return instant(year > thisYear + 50 ? year - 100 : year, rfc850[2]!, rfc850[1]!, rfc850[4]!, rfc850[5]!, rfc850[6]!);
}

function instant(year: number, month: string, ...rest: string[]): number {
  const [day, hours, minutes, seconds] = rest.map(Number) as [number, number, number, number];
  const index = MONTHS.indexOf(month);
  const at = Date.UTC(year, index, day, hours, minutes, Math.min(seconds, 59)); // 60 is a leap second
  const isDate = new Date(at).getUTCMonth() === index && day > 0 && hours < 24 && minutes < 60 && seconds <= 60;
  return isDate ? at : NaN;
}
