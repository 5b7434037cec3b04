/**
 * The skills of a server, from the first one on: their code is loaded when a program offers a skill, and by no other server.
 */

import { Openings } from '../../core/kernel/openings.ts';
import type { RequestMail, RequestTarget } from '../../core/messages/request-messages.ts';
import { SKILLS_EXTENSION } from '../../core/protocol/skills.ts';
import type { Tool } from '../../core/protocol/types.ts';
import type { RegisteredCapabilities } from '../../core/server/capabilities.ts';
import type { AnyMachine } from '../machines/define-machine.ts';
import type { SkillRegistry, SkillRegistryParts } from './skill-registry.ts';
import type { SkillSource } from './skill-source.ts';
import type { RegisteredSkills, SkillsOptions } from './skills-options.ts';

interface OfferedSkillsOptions extends Omit<SkillRegistryParts, 'resources'> {
  readonly capabilities: RegisteredCapabilities;
  /** The name of the server, which begins the addresses of manuals. */
  readonly server: string;
  /** Makes the registration of their files. */
  resources(): SkillRegistryParts['resources'];
}

/** The parts of a manual. */
interface ManualParts {
  readonly machine: AnyMachine;
  readonly tools: readonly Tool[];
}

export class OfferedSkills implements RequestTarget {
  readonly #options: OfferedSkillsOptions;
  #loading: Promise<SkillRegistry> | undefined;
  #skills: SkillRegistry | undefined;
  /** The first scans. */
  readonly #openings = new Openings();
  /** The folders of the program, in the order in which it offered them. */
  readonly #folders = new Set<SkillSource>();
  /** The skills of mounts, by the name of the source. */
  readonly #mounted = new Map<string, SkillSource>();
  /** The folders of another server that are offered here. */
  #adopted: ReadonlySet<SkillSource> = new Set();
  /** The machines that have a manual, and the manuals that are shown. */
  readonly #manuals = new Map<string, ManualParts>();
  readonly #shownManuals = new Map<string, SkillSource>();
  /** Undefined until its code is loaded. */
  #makeManual: ((made: ManualParts) => SkillSource) | undefined;
  #closed = false;

  constructor(options: OfferedSkillsOptions) {
    this.#options = options;
  }

  /** See `Server.skills`. */
  folder(path: string | URL, options: SkillsOptions): Promise<RegisteredSkills> {
    return this.#openings.add(this.#open(path, options));
  }

  /**
   * Offers the manual of a machine in place of an earlier one.
   *
   * @param tools the tools of the machine, as clients list them
   */
  manual(machine: AnyMachine, tools: readonly Tool[]): void {
    this.#manuals.set(machine.name, { machine, tools });
    if (this.#showManual(machine.name)) return;
    const loading = Promise.all([this.#use(), import('./machine-manual.ts')]).then(([, { MachineManual }]) => {
      this.#makeManual = (made) => new MachineManual(made.machine, made.tools, this.#options.server);
      this.#showManual(machine.name);
    });
    void this.#openings.add(loading);
  }

  /** Withdraws the manual of a machine, if it has one. */
  withdrawManual(machine: string): void {
    if (this.#manuals.delete(machine)) this.#showManual(machine);
  }

  /** @returns false if the code is not loaded yet, which shows the last manual of the machine then */
  #showManual(machine: string): boolean {
    if (!this.#skills || !this.#makeManual) return false;
    const made = this.#manuals.get(machine);
    const before = this.#shownManuals.get(machine);
    const now = made && this.#makeManual(made);
    if (now) {
      this.#shownManuals.set(machine, now);
      this.#skills.offer(now);
    } else if (before) {
      this.#shownManuals.delete(machine);
      this.#skills.withdraw(before);
    }
    return true;
  }

  /** The folders that the program offers. */
  get folders(): readonly SkillSource[] {
    return [...this.#folders];
  }

  /** Offers the folders of another server in place of those that were adopted before. They close when they are no longer adopted. */
  adopt(folders: readonly SkillSource[]): void {
    const before = this.#adopted;
    this.#adopted = new Set(folders);
    if (folders.length === 0 && before.size === 0) return;
    void this.#use().then((skills) => {
      // First the new ones: a folder of the same name replaces the one before, and clients see no list without it.
      for (const folder of folders) if (!before.has(folder) && this.#adopted.has(folder)) skills.offer(folder);
      for (const folder of before) if (!this.#adopted.has(folder)) skills.withdraw(folder);
    });
  }

  /** Offers the skills of a mount in place of those before. Without any, nothing is loaded for it. */
  mounted(source: SkillSource): void {
    if (source.skills.length === 0 && !this.#mounted.has(source.name)) return;
    this.#mounted.set(source.name, source);
    if (this.#skills) this.#skills.offer(source);
    else
      void this.#use().then((skills) => {
        if (this.#mounted.get(source.name) === source) skills.offer(source);
      });
  }

  /** Announces that skills may come: clients read capabilities only when they connect. */
  announce(): void {
    const { capabilities } = this.#options;
    capabilities.add('resources');
    capabilities.extend(SKILLS_EXTENSION, { directoryRead: true });
  }

  /** Waits for the first scans. @throws the error of a folder that cannot be offered, if the program did not await it */
  ready(): Promise<void> {
    return this.#openings.ready();
  }

  /** Serves a request about skills. */
  send(mail: RequestMail): void {
    if (this.#skills) this.#skills.send(mail);
    else void this.#use().then((skills) => skills.send(mail));
  }

  close(): void {
    this.#closed = true;
    this.#skills?.close();
  }

  async #open(path: string | URL, options: SkillsOptions): Promise<RegisteredSkills> {
    const using = this.#use();
    const { SkillFolder } = await import('./skill-folder.ts');
    const folder = new SkillFolder(path, options, this.#options.system);
    const skills = await using;
    await folder.open();
    this.#folders.add(folder);
    skills.offer(folder);
    if (this.#closed) skills.close();
    return {
      get skills() {
        return folder.skills.map(({ entry: { uri, frontmatter } }) => ({ name: frontmatter.name, uri }));
      },
      get problems() {
        return folder.problems;
      },
      reload: () => folder.scan(),
      remove: () => {
        this.#folders.delete(folder);
        skills.withdraw(folder);
      },
    };
  }

  #use(): Promise<SkillRegistry> {
    if (!this.#loading) this.announce();
    this.#loading ??= import('./skill-registry.ts').then(({ SkillRegistry }) => {
      this.#skills = new SkillRegistry({ ...this.#options, resources: this.#options.resources() });
      return this.#skills;
    });
    return this.#loading;
  }
}
