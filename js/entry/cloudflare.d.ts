declare module "cloudflare:workers" {
  /** Missing in older runtimes. */
  export const waitUntil: ((work: Promise<unknown>) => void) | undefined;
}
