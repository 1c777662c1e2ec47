// The host's globals, reached in one place so that tests can replace them. Nothing is read before it is needed.

interface Host {
  reportError?: (error: unknown) => void;
  document?: unknown;
  navigator?: { onLine?: boolean };
  location?: { href?: string };
  addEventListener?: (type: string, listener: (event: never) => void) => void;
  removeEventListener?: (type: string, listener: (event: never) => void) => void;
}

const host = globalThis as unknown as Host;

/** Tells the host of a fault in somebody else's code (a listener, a classifier, a clock), where an uncaught one would be seen. */
export function report(error: unknown): void {
  try {
    if (host.reportError) host.reportError(error);
    else console.error(error);
  } catch {
    // A host that cannot take a report does not get one.
  }
}

export const isPage = (): boolean => host.document !== undefined;

/** The browser says that it has no network at all. */
export const isOffline = (): boolean => host.navigator?.onLine === false;

/** What relative addresses are relative to, if anything. */
export const baseUrl = (): string | undefined => host.location?.href;

/** Calls `listener` whenever this page is left, until the returned function is called. Does nothing where there are no pages. */
export function onPageHide(listener: () => void): () => void {
  host.addEventListener?.("pagehide", listener);
  return () => host.removeEventListener?.("pagehide", listener);
}

let left = 0;
let watching = false;

/**
 * How often this page was about to be left so far. What is under way then the browser breaks off, some before the page hides and some after
 * it, even if all that comes is a download; to the page that looks like a network error.
 */
export function departures(): number {
  if (!watching) {
    watching = true;
    if (isPage()) for (const type of ["beforeunload", "pagehide"]) host.addEventListener?.(type, () => left++);
  }
  return left;
}
