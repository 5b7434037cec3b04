/** One call: what it waits for while it runs, then its result; with links to the other views. */
import { useEffect } from 'preact/hooks';
import type { ViewerCall } from '../../../src/inspector/calls/call-messages.ts';
import { isAuthored } from '../../../src/inspector/model/index.ts';
import { Sign } from '../parts/icons.tsx';
import { duration } from '../parts/time.ts';
import { known, now, select, show, type Tab } from '../store/state.ts';
import { signOf } from './CallList.tsx';
import { again, calls, cancel, exchangeOf, nameOf, readResult, results } from './calls.ts';
import { Result } from './Result.tsx';

export function CallView({ call }: { readonly call: ViewerCall }) {
  const { id, status, progress, logs, task, error, at, endedAt } = call;
  const result = results.value.get(id);
  const running = status === 'running';
  const asked = calls.value?.questions.some((question) => question.call === id) === true;
  useEffect(() => void readResult(call), [id, call.hasResult]);
  const { shape, title } = signOf(call);
  return (
    <section class={`call ${shape}`} aria-label={`call of ${nameOf(call.request)}`}>
      <header class="call-head">
        <Sign shape={asked ? 'asked' : shape} />
        <b role="status">{asked ? 'waits for your answer' : title}</b>
        <span class="beside">
          {running ? 'for' : 'after'} {duration((endedAt ?? now.value) - at)}
        </span>
        <span class="call-acts">
          {running ? (
            <button type="button" onClick={() => void cancel(id)}>
              Cancel
            </button>
          ) : (
            <button type="button" onClick={() => void again(id)}>
              Again
            </button>
          )}
          <Elsewhere call={call} />
        </span>
      </header>
      {task === undefined ? null : <Task id={task} />}
      {progress === undefined ? null : (
        <div class="call-progress">
          <progress max={progress.total} value={progress.total === undefined ? undefined : progress.progress}>
            {progress.progress}
          </progress>
          <span class="beside">
            {progress.progress}
            {progress.total === undefined ? '' : ` of ${progress.total}`} {progress.message}
          </span>
        </div>
      )}
      {error === undefined || status === 'cancelled' ? null : (
        <p class="call-error" role="alert">
          {error}
        </p>
      )}
      {result ? <Result result={result} /> : null}
      {!running && status === 'done' && !call.hasResult ? (
        <p class="beside">Its result was dropped for newer ones.</p>
      ) : null}
      {logs.length === 0 ? null : (
        <ul class="call-logs" aria-label="log messages">
          {logs.map((line, index) => (
            <li key={index}>
              <span class={`badge ${line.level === 'error' ? 'bad' : ''}`}>{line.level}</span> {line.text}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** The task that runs the call. The address of its actor begins with its id. */
function Task({ id }: { readonly id: string }) {
  const line = [...known().actors.values()].find(
    ({ kind, address }) => kind === 'task' && id.startsWith(address.slice('task/'.length)),
  );
  return (
    <p class="call-task">
      <span class="badge wait">task</span>{' '}
      {line ? (
        <button
          type="button"
          class="link mono"
          onClick={() => {
            select({ actor: line.address });
            show('chart');
          }}
        >
          {id}
        </button>
      ) : (
        <span class="mono">{id}</span>
      )}{' '}
      <span class="beside">{line?.standings.last?.state}</span>
    </p>
  );
}

/** The call in the other views. */
function Elsewhere({ call }: { readonly call: ViewerCall }) {
  const exchange = exchangeOf(call);
  if (!exchange) return null;
  const { key, seq, servedBy } = exchange;
  const line = servedBy === undefined ? undefined : known().actor(servedBy);
  const go = (tab: Tab, to: Parameters<typeof select>[0]) => () => {
    select(to);
    show(tab);
  };
  return (
    <>
      <button type="button" class="link" onClick={go('wire', { exchange: key })}>
        wire
      </button>
      <button type="button" class="link" onClick={go('messages', { exchange: key, record: seq })}>
        messages
      </button>
      {line && isAuthored(line.kind) ? (
        <button type="button" class="link" onClick={go('chart', { actor: line.address })}>
          chart
        </button>
      ) : null}
    </>
  );
}
