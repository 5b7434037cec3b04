/** All calls that were made in inspectors of this server, with tasks, watched resources, messages, and any request. */
import { signal } from '@preact/signals';
import { useState } from 'preact/hooks';
import { objectOf } from '../detail/events.ts';
import { At, Section } from '../parts/parts.tsx';
import { cursor, known } from '../store/state.ts';
import { CallerChoice } from './CallerChoice.tsx';
import { CallList } from './CallList.tsx';
import { CallView } from './CallView.tsx';
import { calls, forget, mayCall, nameOf, start, watch } from './calls.ts';
import { LiveActors } from './LiveActors.tsx';

const chosen = signal<number | undefined>(undefined);

export function CallsPage() {
  const { value: state } = calls;
  const all = state?.calls ?? [];
  const call = all.find(({ id }) => id === chosen.value) ?? all[0];
  return (
    <article class="what offer-page">
      <header class="offer-head">
        <div>
          <p class="kind">made here</p>
          <h2>Calls and tasks</h2>
        </div>
      </header>
      {mayCall() ? null : (
        <p class="note quiet">
          This page only shows. Start the server with <code>troupe dev</code>, or with <code>--inspect-control</code>,
          to call it from here.
        </p>
      )}
      <div class="use">
        <div class="use-form">
          <Section title="Calls" beside={all.length === 0 ? undefined : String(all.length)}>
            {all.length === 0 ? (
              <p class="beside">None yet. Choose a tool, a resource or a prompt in the list.</p>
            ) : (
              <>
                <CallList
                  calls={all}
                  chosen={call?.id}
                  named
                  onChoose={({ id }) => {
                    chosen.value = id;
                  }}
                />
                <p class="buttons">
                  <button type="button" onClick={() => void forget()}>
                    Forget them
                  </button>
                </p>
              </>
            )}
          </Section>
          <Tasks />
          {state && state.watched.length > 0 ? (
            <Section title="Watched resources">
              <ul class="offer-links">
                {state.watched.map((uri) => (
                  <li key={uri}>
                    <span class="mono">{uri}</span>{' '}
                    <button type="button" class="link" onClick={() => void watch(uri, false)}>
                      stop
                    </button>
                  </li>
                ))}
              </ul>
            </Section>
          ) : null}
          {state && state.notices.length > 0 ? (
            <Section title="Messages outside of calls">
              <ul class="call-logs">
                {state.notices.map((notice, index) => (
                  <li key={index}>
                    <span class="beside">
                      <At at={notice.at} />
                    </span>{' '}
                    <span class="badge">{notice.level ?? notice.type}</span> {notice.text}
                  </li>
                ))}
              </ul>
            </Section>
          ) : null}
          {state && state.sessions.length > 0 ? (
            <Section title="Sessions of the inspector">
              <ul class="offer-links">
                {state.sessions.map(({ caller, revision, state: stands }) => (
                  <li key={JSON.stringify(caller)}>
                    {revision} · {caller.principal ?? 'anonymous'} <span class="beside">{stands}</span>
                  </li>
                ))}
              </ul>
            </Section>
          ) : null}
          {mayCall() ? <AnyRequest /> : null}
        </div>
        <div class="use-result">
          {call ? (
            <>
              <p class="call-name mono">{nameOf(call.request)}</p>
              <CallView call={call} />
            </>
          ) : null}
        </div>
      </div>
    </article>
  );
}

/** The live tasks of the server, of all clients. */
function Tasks() {
  const tasks = [...known().actors.values()].filter((line) => line.kind === 'task' && line.aliveAt(cursor.value));
  return (
    <Section title="Tasks of the server" beside={String(tasks.length)}>
      <LiveActors lines={tasks} none="None." />
    </Section>
  );
}

/** Any request of the protocol, as JSON: for what has no form here, such as `ping`. */
function AnyRequest() {
  const [method, setMethod] = useState('ping');
  const [text, setText] = useState('');
  const [why, setWhy] = useState<string | undefined>(undefined);
  return (
    <Section title="Any request">
      <form
        class="form form-fields"
        onSubmit={(event) => {
          event.preventDefault();
          const params = objectOf(text);
          setWhy(typeof params === 'string' ? params : undefined);
          chosen.value = undefined;
          if (typeof params !== 'string') void start({ kind: 'request', method, params });
        }}
      >
        <div class="form-field">
          <label for="any-method">method</label>
          <input
            id="any-method"
            class="mono"
            value={method}
            onInput={({ currentTarget }) => setMethod(currentTarget.value)}
          />
        </div>
        <div class="form-field">
          <label for="any-params">parameters, as JSON</label>
          <textarea
            id="any-params"
            class="mono"
            rows={2}
            spellcheck={false}
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </div>
        {why === undefined ? null : (
          <p class="bad" role="alert">
            {why}
          </p>
        )}
        <p class="buttons">
          <button type="submit" class="primary" disabled={method === ''}>
            Send
          </button>
        </p>
        <CallerChoice />
      </form>
    </Section>
  );
}
