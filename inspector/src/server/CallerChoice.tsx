/** The client that sends the next call: its revision, its principal, what it can answer, its log level. */
import type { Answerable } from '../../../src/inspector/calls/call-messages.ts';
import { known } from '../store/state.ts';
import { ALL, caller, calls } from './calls.ts';

const WORDS: { readonly [kind in Answerable]: string } = {
  form: 'forms',
  url: 'pages',
  sampling: 'sampling',
  roots: 'roots',
};
const LEVELS = ['debug', 'info', 'notice', 'warning', 'error'];

export function CallerChoice() {
  const { revision, principal, answers = ALL, logLevel = 'info' } = caller.value;
  const usual = calls.value?.principal ?? 'anonymous';
  const revisions = known().catalogue?.revisions ?? [];
  // The calls are those of the connected client, with the options of its connection.
  if (known().hello?.remote === true) return null;
  return (
    <details class="caller">
      <summary>
        as “inspector” · {revision ?? revisions[0]} · {principal ?? usual}
        {answers.length === ALL.length
          ? ''
          : ` · answers ${answers.map((kind) => WORDS[kind]).join(', ') || 'nothing'}`}
      </summary>
      <div class="caller-fields">
        <label>
          revision
          <select
            value={revision ?? ''}
            onChange={({ currentTarget: { value } }) => {
              const { revision: _, ...rest } = caller.value;
              caller.value = value === '' ? rest : { ...rest, revision: value };
            }}
          >
            {revisions.map((each, index) => (
              <option key={each} value={index === 0 ? '' : each}>
                {each}
              </option>
            ))}
          </select>
        </label>
        <label
          title={`Handles, tasks and state belong to a principal. Without an entry, the calls are those of “${usual}”.`}
        >
          principal
          <input
            value={principal ?? ''}
            placeholder={usual}
            onChange={({ currentTarget: { value } }) => {
              const { principal: _, ...rest } = caller.value;
              caller.value = value === '' ? rest : { ...rest, principal: value };
            }}
          />
        </label>
        <label>
          log messages
          <select
            value={logLevel}
            onChange={({ currentTarget: { value } }) => {
              caller.value = { ...caller.value, logLevel: value };
            }}
          >
            {LEVELS.map((level) => (
              <option key={level} value={level}>
                {level}
              </option>
            ))}
          </select>
        </label>
        <fieldset class="form-choices">
          <legend>answers</legend>
          {ALL.map((kind) => (
            <label key={kind}>
              <input
                type="checkbox"
                checked={answers.includes(kind)}
                onChange={({ currentTarget: { checked } }) => {
                  const next = ALL.filter((each) => (each === kind ? checked : answers.includes(each)));
                  const { answers: _, ...rest } = caller.value;
                  caller.value = next.length === ALL.length ? rest : { ...rest, answers: next };
                }}
              />
              {WORDS[kind]}
            </label>
          ))}
        </fieldset>
      </div>
    </details>
  );
}
