/** The waits of an actor in sentences: the addressee, the deadline and the cause. */
import { lineOf, type Waited } from '../../../src/inspector/model/index.ts';
import { Icon } from '../parts/icons.tsx';
import { At, Left } from '../parts/parts.tsx';
import { duration } from '../parts/time.ts';
import { known, select, selection } from '../store/state.ts';

export function Waiting({ waits }: { readonly waits: readonly Waited[] | undefined }) {
  if (waits === undefined || waits.length === 0) return null;
  return (
    <ul class="waits">
      {waits.map((wait) => (
        <li key={`${wait.what} ${wait.because ?? ''} ${wait.until ?? ''}`}>
          <Icon name="clock" size={15} />
          <p>
            <What wait={wait} />
            {wait.until === undefined ? endOf(wait) : null}
            {wait.until === undefined ? null : (
              <>
                {wait.after ? ' at ' : ', until '}
                <At at={wait.until} />.
                <Left until={wait.until} {...(wait.lasts === undefined ? {} : { lasts: wait.lasts })} />
              </>
            )}
            {wait.because === undefined ? null : <Because seq={wait.because} />}
          </p>
        </li>
      ))}
    </ul>
  );
}

function endOf({ unconfirmed, lasts }: Waited): string {
  if (lasts !== undefined) return `, at most ${duration(lasts)}.`;
  return unconfirmed === true ? '.' : ', without a deadline.';
}

function What({ wait }: { readonly wait: Waited }) {
  const { what, whom, after, who } = wait;
  const waits =
    who === undefined ? (
      'Waits'
    ) : (
      <>
        <b>{who}</b> waits
      </>
    );
  if (after)
    return (
      <>
        {who === undefined ? 'Timer' : `${who}: timer`} <b>{after.label}</b> fires
        {after.targets.length === 0 ? null : (
          <>
            {' '}
            → <b>{after.targets.join(', ')}</b>
          </>
        )}
      </>
    );
  if (whom === undefined)
    return (
      <>
        {waits} for <b>{what}</b>
      </>
    );
  // A wait for a thing begins with an article or a possessive; the message of an input request is quoted.
  const quoted = !/^(the|its|an?) /.test(what);
  return (
    <>
      {waits} for {quoted ? 'an answer to ' : ''}
      <b>{quoted ? `“${what}”` : what}</b> from <b>{whom}</b>
    </>
  );
}

function Because({ seq }: { readonly seq: number }) {
  const chain = known().causes.because(seq);
  const first = chain.at(-1);
  const [itself] = chain;
  if (!itself) return null;
  const root = first && first.seq !== itself.seq ? first : undefined;
  return (
    <span class="because">
      cause:{' '}
      <button type="button" class="link" onClick={() => select({ ...selection.value, record: itself.seq })}>
        {lineOf(known(), itself)}
      </button>
      {root ? (
        <>
          , started by{' '}
          <button type="button" class="link" onClick={() => select({ ...selection.value, record: root.seq })}>
            {lineOf(known(), root)}
          </button>
        </>
      ) : null}
    </span>
  );
}
