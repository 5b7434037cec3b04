/** The mounts of a server: their code is loaded when a program mounts a server, and by no other server. */
import type { Mount, MountOptions, MountTarget } from '../mounts/mount-options.ts';
import type { MountHost, OpenMount } from '../mounts/open-mount.ts';
import type { SearchTools } from '../mounts/search-tools.ts';
import { Openings } from './openings.ts';

export class OfferedMounts {
  readonly #makeHost: () => MountHost;
  #host: MountHost | undefined;
  readonly #mounts = new Map<string, OpenMount>();
  readonly #openings = new Openings();
  #search: Promise<SearchTools> | undefined;
  #closed = false;

  /** @param host makes the parts of the server that mounts use; called with the first mount */
  constructor(host: () => MountHost) {
    this.#makeHost = host;
  }

  /** See `Server.mount`. */
  mount(name: string, target: MountTarget, options: MountOptions): Promise<Mount> {
    return this.#openings.add(this.#mount(name, target, options));
  }

  /** The names of required mounts that offer nothing. */
  get missing(): readonly string[] {
    const missing = [...this.#mounts.values()].filter(({ settings, offering }) => settings.required && !offering);
    return missing.map(({ name }) => name);
  }

  /** Waits until each mount has a catalogue, at most its `firstListMs`. @throws the error of an invalid mount that the program did not await */
  async ready(): Promise<void> {
    await this.#openings.ready();
    const mounts = [...this.#mounts.values()];
    if (mounts.length === 0) return;
    await Promise.all(mounts.map((mount) => mount.begun()));
    // Clients read capabilities only when they connect.
    if (mounts.every(({ offering }) => offering)) return;
    const capabilities = this.#host?.capabilities;
    for (const capability of ['tools', 'resources', 'prompts', 'completions'] as const) capabilities?.add(capability);
  }

  /** Closes the connections to all upstreams. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([...this.#mounts.values()].map((mount) => mount.close()));
  }

  async #mount(given: string, target: MountTarget, options: MountOptions): Promise<Mount> {
    const { nameTaken, openMount } = await import('../mounts/open-mount.ts');
    if (this.#closed) throw new Error(`mount "${given}": the server is closed`);
    if (this.#mounts.has(given)) throw nameTaken(given);
    this.#host ??= this.#makeHost();
    const search = options.expose === 'search' ? await this.#loadSearch(this.#host) : undefined;
    if (this.#mounts.has(given)) throw nameTaken(given);
    const mount = openMount(given, target, options, this.#host);
    try {
      search?.add(mount.name);
    } catch (error) {
      await mount.close();
      throw error;
    }
    this.#mounts.set(mount.name, mount);
    return {
      name: mount.name,
      get state() {
        return mount.state;
      },
      ready: () => mount.ready(),
      refresh: () => mount.refresh(),
      close: () => {
        if (this.#mounts.get(mount.name) === mount) {
          this.#mounts.delete(mount.name);
          search?.remove(mount.name);
        }
        return mount.close();
      },
    };
  }

  /** The tools with which the tools of mounts are found. Their code is loaded with the first mount that exposes by search. */
  #loadSearch(host: MountHost): Promise<SearchTools> {
    this.#search ??= import('../mounts/search-tools.ts').then(({ SearchTools }) => new SearchTools(host.search));
    return this.#search;
  }
}
