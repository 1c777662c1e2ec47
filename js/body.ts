// A body watched to its end, on the caller's own Response: no copy, no reading of ours, the same stream. What reads it is wrapped where it
// stands; what the host consumes by itself is not seen.

import { FAILURE, IGNORED, SUCCESS } from "./classify.js";
import { timer } from "./calls.js";

export interface Watch {
  /** Called once, if the body is read: how it ended, and with what error. */
  readonly end: (verdict: number, error?: unknown) => void;
  /** The reading was given up by its caller, so that an error says nothing about the service. */
  readonly wasAborted: () => boolean;
  readonly timeoutMs: number | undefined;
  /** The time is over. */
  readonly abort: (reason: unknown) => void;
}

const READERS = ["text", "json", "arrayBuffer", "blob", "bytes", "formData"] as const;
type Stream = ReadableStream<Uint8Array<ArrayBuffer>>;

/** False: there is no body to wait for. */
export function watchBody(response: Response, watch: Watch): boolean {
  if (!response.body) return false;
  let open = true;
  let stop: (() => void) | undefined;
  /** Copies that are read, or may be. */
  let readers = 0;
  /** Not every browser lets a body break with the reason it was aborted for. */
  let late: DOMException | undefined;
  const end = (verdict: number, error?: unknown): void => {
    if (!open) return;
    open = false;
    stop?.();
    watch.end(verdict, error);
  };
  const began = (): void => {
    if (!open || stop || watch.timeoutMs === undefined) return;
    stop = timer(watch.timeoutMs, () => {
      late = new DOMException(`The body took longer than ${watch.timeoutMs} ms`, "TimeoutError");
      watch.abort(late);
    });
  };
  const broke = (error: unknown): void => end(!late && watch.wasAborted() ? IGNORED : FAILURE, error);
  /** One of the copies was given up. */
  const left = (): void => {
    if (--readers === 0) end(IGNORED);
  };

  const watchResponse = (of: Response): void => {
    readers++;
    const watched = new WeakSet<Stream>();
    for (const name of READERS) {
      const native = (of as Partial<Response>)[name] as (() => Promise<unknown>) | undefined;
      if (!native) continue;
      own(of, name, () => {
        if (of.bodyUsed) return native.call(of);
        began();
        return native.call(of).then(
          (value) => {
            end(SUCCESS);
            return value;
          },
          (error) => {
            // What is no JSON or no form has arrived all the same.
            if (name === "formData" || (error as Error)?.name === "SyntaxError") end(IGNORED);
            else broke(error);
            throw late ?? error;
          },
        );
      });
    }
    const body = getter(of, "body")!;
    Object.defineProperty(of, "body", {
      configurable: true,
      get() {
        const stream = body.call(of) as Stream | null;
        if (stream && !watched.has(stream)) {
          watched.add(stream);
          watchStream(stream);
        }
        return stream;
      },
    });
    const clone = of.clone;
    own(of, "clone", () => {
      const copy = clone.call(of);
      watchResponse(copy);
      return copy;
    });
  };

  const watchStream = (stream: Stream): void => {
    const { getReader, cancel, pipeTo, tee } = stream;
    own(stream, "cancel", (reason?: unknown) => {
      if (!stream.locked) left();
      return cancel.call(stream, reason);
    });
    own(stream, "getReader", (options?: never) => {
      const reader = getReader.call(stream, options);
      began();
      let released = false;
      const { cancel, releaseLock } = reader;
      own(reader, "cancel", (reason?: unknown) => {
        released = true;
        left();
        return cancel.call(reader, reason);
      });
      own(reader, "releaseLock", () => {
        released = true;
        releaseLock.call(reader);
      });
      reader.closed.then(() => !released && end(SUCCESS), (error) => !released && broke(error));
      return reader;
    });
    own(stream, "pipeTo", (to: WritableStream, options?: StreamPipeOptions) => {
      began();
      const work = pipeTo.call(stream, to, options);
      // An error of the other side has cancelled this one, which is then closed.
      work.then(
        () => end(SUCCESS),
        () => (options?.preventCancel ? undefined : getReader.call(stream).closed.then(left, broke)),
      );
      return work;
    });
    own(stream, "pipeThrough", ({ writable, readable }: ReadableWritablePair, options?: StreamPipeOptions) => {
      (stream.pipeTo(writable, options) as Promise<void>).catch(() => {});
      return readable;
    });
    own(stream, "tee", () => {
      const branches = tee.call(stream) as [Stream, Stream];
      readers++;
      branches.forEach(watchStream);
      return branches;
    });
    const iterate = (options?: { preventCancel?: boolean }): AsyncIterableIterator<unknown> => {
      const reader = stream.getReader();
      return {
        next: async () => {
          const result = await reader.read();
          if (result.done) reader.releaseLock();
          return result as IteratorResult<unknown>;
        },
        return: async (value?: unknown) => {
          if (!options?.preventCancel) await reader.cancel(value);
          reader.releaseLock();
          return { done: true, value };
        },
        [Symbol.asyncIterator]() {
          return this;
        },
      };
    };
    own(stream, "values" as never, iterate);
    own(stream, Symbol.asyncIterator as never, () => iterate());
  };

  watchResponse(response);
  return true;
}

function own<T extends object>(of: T, name: keyof T, value: unknown): void {
  Object.defineProperty(of, name, { value, writable: true, configurable: true });
}

function getter(of: object, name: string): (() => unknown) | undefined {
  for (let at: object | null = of; at; at = Object.getPrototypeOf(at) as object | null) {
    const found = Object.getOwnPropertyDescriptor(at, name)?.get;
    if (found) return found;
  }
  return undefined;
}
