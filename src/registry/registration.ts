/** Registration: the second of the three contracts. It turns definitions into mail for a registry and its executor, and refusals into errors. */
import type { ExecutorMail } from '../messages/executor-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { Registered, RegistryMail } from '../messages/registry-messages.ts';
import type { PromptArgument } from '../protocol/types.ts';
import type { AuthorSchema } from '../schema/schema-types.ts';
import type { ReadableCatalogue } from './catalogue.ts';
import type { AnyPrompt, AnyTool, PromptDefinition, ToolDefinition } from './define.ts';
import { DefinitionError } from './definition-checks.ts';
import type { Compiled } from './offers.ts';

/** One kind of element at runtime. Each change that clients can see reaches them as one coalesced `list_changed`. */
export interface Registration<Definition> {
  /** Offers one more. @throws {DefinitionError} for an invalid definition or a name that is taken */
  register(definition: Definition): RegisteredElement;
  /** Replaces an element in its place. @throws {DefinitionError} for an invalid definition or a name that is not there */
  update(definition: Definition): void;
  /** Shows a disabled element again. */
  enable(key: string): void;
  /** Hides an element from lists and calls, and keeps it. */
  disable(key: string): void;
  remove(key: string): void;
  /** Removes all. */
  clear(): void;
  /** Replaces everything that one source offers, as one change, or refuses it whole. Clients hear of it if they can tell the difference. */
  replaceSource(source: string, definitions: readonly Definition[]): void;
  /** Tells clients to list again, though nothing looks different: what the elements do has changed. */
  announce(): void;
  /** What was registered, as it was written, in the catalogue's order. */
  definitions(): readonly Definition[];
  /** Read access. */
  readonly catalogue: ReadableCatalogue<unknown>;
}

/** Registration of tools: the schema's types flow into the handler. */
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

/** Registration of prompts: the schema's types flow into the handler. */
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

export interface ElementsOptions<Definition, D, I> {
  readonly registry: Mailbox<RegistryMail<D>>;
  /** Every executor that must know the implementation. */
  readonly executors: readonly Pick<Mailbox<Extract<ExecutorMail<I, never>, { type: 'attach' | 'detach' }>>, 'send'>[];
  readonly catalogue: ReadableCatalogue<D>;
  compile(definition: Definition): Compiled<D, I>;
  nextRef(): number;
  /** An element with this implementation is being offered. */
  offered(implementation: I): void;
}

export function elements<Definition, D, I>(options: ElementsOptions<Definition, D, I>): Registration<Definition> {
  const { registry, executors, catalogue } = options;
  const written = new Map<number, Definition>();
  const attach = (definition: Definition, source?: string) => {
    const { key, definition: shown, implementation } = options.compile(definition);
    const ref = options.nextRef();
    options.offered(implementation);
    for (const executor of executors) executor.send({ type: 'attach', ref, implementation });
    written.set(ref, definition);
    return {
      key,
      definition: shown,
      ref,
      source: source ?? catalogue.all().find((element) => element.key === key)?.source ?? 'code',
    };
  };
  const detach = (refs: readonly number[]): void => {
    for (const ref of refs) {
      written.delete(ref);
      for (const executor of executors) executor.send({ type: 'detach', ref });
    }
  };
  /** Mails the registry, which answers at once, and lets go of what is no longer needed: the old, or on refusal the new. */
  const change = (
    mail: (reply: (registered: Registered) => void) => RegistryMail<D>,
    offered: readonly number[],
  ): void => {
    const answers: Registered[] = [];
    registry.send(mail((registered) => void answers.push(registered)));
    const answer = answers[0] ?? {
      ok: false,
      why: 'the registry did not answer: do not register from inside an executor of your own',
    };
    detach(answer.ok ? answer.gone : offered);
    if (!answer.ok) throw new DefinitionError(answer.why);
  };
  const named = (type: 'enable' | 'disable' | 'remove') => (key: string) =>
    change((reply) => ({ type, key, reply }), []);
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
      change((reply) => ({ type: 'register', offer, reply }), [offer.ref]);
      const { key } = offer;
      return { key, enable: () => enable(key), disable: () => disable(key), remove: () => remove(key) };
    },
    update(definition) {
      const offer = attach(definition);
      change((reply) => ({ type: 'update', offer, reply }), [offer.ref]);
    },
    clear() {
      change((reply) => ({ type: 'clear', reply }), []);
    },
    announce() {
      change((reply) => ({ type: 'announce', reply }), []);
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
        (reply) => ({ type: 'replace source', source, offers, reply }),
        offers.map(({ ref }) => ref),
      );
    },
  };
}
