/** The mounts of a server: their code is loaded when a program mounts a server, and by no other server. */
import type { ListenedResources } from '../messages/remote-change.ts';
import type { Mount, MountOptions, MountTarget } from '../mounts/mount-options.ts';
import type { MountHost, OpenMount } from '../mounts/open-mount.ts';
import type { SearchTools } from '../mounts/search-tools.ts';
import type { SignIns } from '../mounts/sign-ins.ts';
import { requestsAddress } from '../requests/requests.ts';
import type { Bus } from '../transports/bus.ts';
import { Openings } from './openings.ts';

export interface OfferedMountsOptions {
  /** Makes the parts of the server that mounts use; called with the first mount. */
  host(): Omit<MountHost, 'loadSignIns'>;
  readonly bus: Bus;
  readonly maxMounts: number;
}

export class OfferedMounts implements ListenedResources {
  readonly #options: OfferedMountsOptions;
  #host: MountHost | undefined;
  readonly #mounts = new Map<string, OpenMount>();
  readonly #openings = new Openings();
  /** The resources that clients watch, of mounts and others; recorded from the first mount on. */
  readonly #listened = new Set<string>();
  #search: Promise<SearchTools> | undefined;
  /** Mounts that are withdrawn, or have calls in flight. */
  readonly #closing = new Set<OpenMount>();
  #signIns: SignIns | undefined;
  #closed = false;

  constructor(options: OfferedMountsOptions) {
    this.#options = options;
  }

  /** See `Server.mount`. */
  mount(name: string, target: MountTarget, options: MountOptions): Promise<Mount> {
    return this.#openings.add(this.#mount(name, target, options));
  }

  /** The sign-ins at upstreams; undefined while no mount needs one. */
  get signIns(): SignIns | undefined {
    return this.#signIns;
  }

  /** True if a required mount offers nothing. */
  get missing(): boolean {
    for (const { settings, offering } of this.#mounts.values()) if (settings.required && !offering) return true;
    return false;
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

  listened(uri: string): void {
    if (!this.#host) return;
    this.#listened.add(uri);
    for (const mount of this.#mounts.values()) mount.listened(uri, true);
  }

  unlistened(uri: string): void {
    if (this.#listened.delete(uri)) for (const mount of this.#mounts.values()) mount.listened(uri, false);
  }

  /** Closes the connections to all upstreams. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#signIns?.close();
    await Promise.all([...this.#mounts.values(), ...this.#closing].map((mount) => mount.close()));
  }

  async #mount(given: string, target: MountTarget, options: MountOptions): Promise<Mount> {
    const { nameTaken, openMount, signInAddress } = await import('../mounts/open-mount.ts');
    await Promise.all([...this.#closing].filter(({ name }) => name === given).map((mount) => mount.withdraw()));
    if (this.#closed) throw new Error(`mount "${given}": the server is closed`);
    if (this.#mounts.has(given)) throw nameTaken(given);
    const { maxMounts } = this.#options;
    if (this.#mounts.size >= maxMounts)
      throw new Error(`mount "${given}": there are ${maxMounts} mounts. The limit is limits.maxUpstreams`);
    this.#host ??= this.#open();
    const host = this.#host;
    const signIns = signInAddress(target, options) && (await host.loadSignIns());
    const search = options.expose === 'search' ? await this.#loadSearch(this.#host) : undefined;
    if (this.#mounts.has(given)) throw nameTaken(given);
    const mount = openMount(given, target, options, host, signIns);
    try {
      search?.add(mount.name);
    } catch (error) {
      await mount.close();
      throw error;
    }
    this.#mounts.set(mount.name, mount);
    for (const uri of this.#listened) mount.listened(uri, true);
    return {
      name: mount.name,
      get state() {
        return mount.state;
      },
      ready: () => mount.ready(),
      refresh: () => mount.refresh(),
      approve: (element) => mount.approve(element),
      change: async (change) => {
        const searched = (): boolean => mount.settings.expose === 'search';
        if (change.options.expose === 'search' && !searched()) (await this.#loadSearch(host)).add(mount.name);
        try {
          await mount.change(change);
        } finally {
          if (!searched()) (await this.#search)?.remove(mount.name);
        }
      },
      close: async () => {
        if (this.#mounts.get(mount.name) === mount) {
          this.#mounts.delete(mount.name);
          (await this.#search)?.remove(mount.name);
        }
        this.#closing.add(mount);
        await mount.drain();
        this.#closing.delete(mount);
      },
    };
  }

  /** The tools with which the tools of mounts are found. Their code is loaded with the first mount that exposes by search. */
  #loadSearch(host: MountHost): Promise<SearchTools> {
    this.#search ??= import('../mounts/search-tools.ts').then(({ SearchTools }) => new SearchTools(host.search));
    return this.#search;
  }

  async #loadSignIns({ system, keys, returnAddresses }: Omit<MountHost, 'loadSignIns'>): Promise<SignIns> {
    const { SignIns } = await import('../mounts/sign-ins.ts');
    this.#signIns ??= new SignIns({
      clock: system.clock,
      log: (level, message) => system.log(level, message, { event: 'mount' }),
      keys,
      addresses: returnAddresses,
    });
    return this.#signIns;
  }

  /** The upstreams learn that a client of theirs has ended. */
  #open(): MountHost {
    const { bus } = this.#options;
    const released = (owner: string): void => {
      for (const mount of this.#mounts.values()) mount.released(owner);
    };
    bus.on('session.ended', ({ session }) => released(`session/${session}`));
    bus.on('connection.closed', ({ connection }) => released(requestsAddress(connection)));
    const host = this.#options.host();
    return { ...host, loadSignIns: () => this.#loadSignIns(host) };
  }
}
