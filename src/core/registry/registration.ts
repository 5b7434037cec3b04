/**
 * Registration, the second of the three contracts: turns definitions into messages to a registry and its executors, and
 * rejections into errors.
 */
import type { ExecutorMail } from '../messages/executor-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { Registered, RegisteredMail, RegistryChange, RegistryMail } from '../messages/registry-messages.ts';
import type { PromptArgument } from '../protocol/types.ts';
import type { AuthorSchema } from '../schema/schema-types.ts';
import type { ReadableCatalogue } from './catalogue.ts';
import type { AnyPrompt, AnyTool, PromptDefinition, ToolDefinition } from './define.ts';
import { DefinitionError } from './definition-checks.ts';
import type { Compiled } from './offers.ts';

/**
 * Registration of one kind of element at run time. Each visible change reaches clients in one coalesced `list_changed`.
 */
export interface Registration<Definition> {
  /** Registers an element. @throws {DefinitionError} if the definition is invalid or the name is taken */
  register(definition: Definition): RegisteredElement;
  /**
   * Replaces an element in its place. @throws {DefinitionError} if the definition is invalid or no such element exists
   */
  update(definition: Definition): void;
  /** Enables a disabled element. */
  enable(key: string): void;
  /** Hides an element from lists and calls without removing it, also after its source has dropped it and offers it again. */
  disable(key: string): void;
  remove(key: string): void;
  /** Removes all elements. */
  clear(): void;
  /**
   * Replaces all elements of one source in one change, or rejects all of them. Clients are notified if they can see a
   * difference.
   */
  replaceSource(source: string, definitions: readonly Definition[]): void;
  /** Sends `list_changed` although no definition changed: the behaviour of the elements has. */
  announce(): void;
  /** The registered definitions as their authors wrote them, in the catalogue's order. */
  definitions(): readonly Definition[];
  /** Read access. */
  readonly catalogue: ReadableCatalogue<unknown>;
}

/** Registration of tools. The handler's types follow from the schema. */
export interface ToolRegistration extends Registration<AnyTool> {
  register<const I extends MaybeSchema = undefined>(definition: ToolDefinition<I, undefined>): RegisteredElement;
  register<const I extends MaybeSchema = undefined, const O extends AuthorSchema = AuthorSchema>(
    definition: ToolDefinition<I, O>,
  ): RegisteredElement;
  register(definition: AnyTool): RegisteredElement;
  update<const I extends MaybeSchema = undefined>(definition: ToolDefinition<I, undefined>): void;
  update<const I extends MaybeSchema = undefined, const O extends AuthorSchema = AuthorSchema>(
    definition: ToolDefinition<I, O>,
  ): void;
  update(definition: AnyTool): void;
}

/** Registration of prompts. The handler's types follow from the schema. */
export interface PromptRegistration extends Registration<AnyPrompt> {
  register<const I extends MaybeSchema = undefined, const A extends MaybeArguments = undefined>(
    definition: PromptDefinition<I, A>,
  ): RegisteredElement;
  update<const I extends MaybeSchema = undefined, const A extends MaybeArguments = undefined>(
    definition: PromptDefinition<I, A>,
  ): void;
}

type MaybeArguments = readonly PromptArgument[] | undefined;
type MaybeSchema = AuthorSchema | undefined;

/** One registered element. */
export interface RegisteredElement {
  readonly key: string;
  enable(): void;
  disable(): void;
  remove(): void;
}

interface ElementsOptions<Definition, D, I> {
  readonly registry: Mailbox<RegistryMail<D>>;
  /** All executors that store the implementation. */
  readonly executors: readonly Pick<Mailbox<Extract<ExecutorMail<I, never>, { type: 'attach' | 'detach' }>>, 'send'>[];
  readonly catalogue: ReadableCatalogue<D>;
  compile(definition: Definition): Compiled<D, I>;
  nextRef(): number;
  /** Called when an element with this implementation is offered. */
  offered(implementation: I, offer: Pick<Compiled<D, I>, 'listed' | 'opens'>): void;
  /** Called when an element with rules is offered. */
  guarded(): void;
}

export function elements<Definition, D, I>(options: ElementsOptions<Definition, D, I>): Registration<Definition> {
  const { registry, executors, catalogue } = options;
  const written = new Map<number, Definition>();
  const attach = (definition: Definition, source?: string) => {
    const {
      key,
      definition: shown,
      implementation,
      access,
      listed,
      opens,
      opener,
      untrusted,
      ofUpstream,
      owned,
      rank,
    } = options.compile(definition);
    const ref = options.nextRef();
    options.offered(implementation, { listed, opens });
    if (access && (access.allow || access.rules || access.hiddenFrom || access.demands || access.scopes.length > 0))
      options.guarded();
    for (const executor of executors) executor.send({ type: 'attach', ref, implementation });
    written.set(ref, definition);
    return {
      key,
      definition: shown,
      ref,
      access,
      listed,
      opens,
      opener,
      untrusted,
      ofUpstream,
      owned,
      rank,
      source: source ?? catalogue.all().find((element) => element.key === key)?.source ?? 'code',
    };
  };
  const detach = (refs: readonly number[]): void => {
    for (const ref of refs) {
      written.delete(ref);
      for (const executor of executors) executor.send({ type: 'detach', ref });
    }
  };
  /**
   * Sends the change to the registry, which responds in the same turn. Then releases the implementations that are no
   * longer needed: the old ones, or the new ones after a rejection.
   */
  const change = (mail: RegistryChange<D>, offered: readonly number[]): void => {
    const answers: Registered[] = [];
    const from: Mailbox<RegisteredMail> = {
      address: 'registration',
      send: ({ registered }) => void answers.push(registered),
    };
    registry.send({ ...mail, from });
    const answer = answers[0] ?? {
      ok: false,
      why: 'the registry is busy: do not register elements from inside your own executor',
    };
    detach(answer.ok ? answer.gone : offered);
    if (!answer.ok) throw new DefinitionError(answer.why);
  };
  const named = (type: 'enable' | 'disable' | 'remove') => (key: string) => change({ type, key }, []);
  const enable = named('enable');
  const disable = named('disable');
  const remove = named('remove');
  return {
    catalogue,
    enable,
    disable,
    remove,
    register(definition) {
      const offer = attach(definition, 'code');
      change({ type: 'register', offer }, [offer.ref]);
      const { key } = offer;
      return { key, enable: () => enable(key), disable: () => disable(key), remove: () => remove(key) };
    },
    update(definition) {
      const offer = attach(definition);
      change({ type: 'update', offer }, [offer.ref]);
    },
    clear() {
      change({ type: 'clear' }, []);
    },
    announce() {
      change({ type: 'announce' }, []);
    },
    definitions: () => catalogue.all().flatMap(({ ref }) => written.get(ref) ?? []),
    replaceSource(source, definitions) {
      const offers: ReturnType<typeof attach>[] = [];
      try {
        for (const definition of definitions) offers.push(attach(definition, source));
      } catch (error) {
        detach(offers.map(({ ref }) => ref));
        throw error;
      }
      change(
        { type: 'replace source', source, offers },
        offers.map(({ ref }) => ref),
      );
    },
  };
}
