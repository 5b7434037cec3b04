/** Requests of the server that wait for a person: forms, pages, sampling, roots. They stay in view until they are answered. */
import { useState } from 'preact/hooks';
import type { ServerQuestion } from '../../../src/inspector/calls/call-messages.ts';
import type { Plain } from '../../../src/inspector/frames.ts';
import { isList, isRecord, member, textOfValue } from '../../../src/inspector/model/plain-values.ts';
import { Icon } from '../parts/icons.tsx';
import { Json } from '../parts/Json.tsx';
import { duration } from '../parts/time.ts';
import { now } from '../store/state.ts';
import { answer, calls, nameOf } from './calls.ts';
import { Form, valuesOf } from './Form.tsx';
import type { Values } from './fields.ts';
import { Link } from './Link.tsx';

export function Questions() {
  const open = calls.value?.questions ?? [];
  if (open.length === 0) return null;
  return (
    <section class="questions" aria-label="questions of the server">
      {open.map((question) => (
        <Card key={question.id} question={question} />
      ))}
    </section>
  );
}

const TITLES = {
  form: 'asks you',
  url: 'asks you to open a page',
  sampling: 'asks your model',
  roots: 'asks for your roots',
};

function Card({ question }: { readonly question: ServerQuestion }) {
  const { kind, at, params, call } = question;
  const asker = calls.value?.calls.find(({ id }) => id === call);
  const message = textOfValue(member(params, 'message'));
  return (
    <section class="question" aria-label={`question: ${TITLES[kind]}`}>
      <p class="question-head">
        <Icon name="ask" size={14} />
        <b>{asker ? nameOf(asker.request) : 'The server'}</b> {TITLES[kind]}
        <span class="beside">for {duration(now.value - at)}</span>
      </p>
      {message === undefined ? null : <p class="question-text">{message}</p>}
      <Body question={question} />
    </section>
  );
}

function Body({ question }: { readonly question: ServerQuestion }) {
  switch (question.kind) {
    case 'form':
      return <FormBody question={question} />;
    case 'url':
      return <PageBody question={question} />;
    case 'sampling':
      return <SamplingBody question={question} />;
    case 'roots':
      return <RootsBody question={question} />;
  }
}

function FormBody({ question: { id, params } }: { readonly question: ServerQuestion }) {
  const schema = member(params, 'requestedSchema') ?? {};
  const [values, setValues] = useState<Values>(() => valuesOf(schema));
  const [invalid, setInvalid] = useState<string | undefined>(undefined);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (invalid === undefined) void answer(id, { action: 'accept', content: values });
      }}
    >
      <Form schema={schema} values={values} onValues={setValues} onInvalid={setInvalid} />
      {invalid === undefined ? null : (
        <p class="bad" role="alert">
          {invalid}
        </p>
      )}
      <Buttons id={id} accept="Accept" />
    </form>
  );
}

function Buttons({ id, accept }: { readonly id: number; readonly accept: string }) {
  return (
    <p class="buttons">
      <button type="submit" class="primary">
        {accept}
      </button>
      <button type="button" onClick={() => void answer(id, { action: 'decline' })}>
        Decline
      </button>
      <button type="button" onClick={() => void answer(id, { action: 'cancel' })}>
        Cancel
      </button>
    </p>
  );
}

/** A person opens the page. Only afterwards do they say that they agree (MCP elicitation, "Safe URL Handling"). */
function PageBody({ question: { id, params } }: { readonly question: ServerQuestion }) {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        void answer(id, { action: 'accept' });
      }}
    >
      <p>
        <Link to={textOfValue(member(params, 'url')) ?? ''} />
      </p>
      <Buttons id={id} accept="I agree" />
    </form>
  );
}

function SamplingBody({ question: { id, params } }: { readonly question: ServerQuestion }) {
  const [text, setText] = useState('');
  const [model, setModel] = useState('a person');
  const messages = member(params, 'messages');
  const { messages: _, ...rest } = isRecord(params) ? params : {};
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        const result = { role: 'assistant', content: { type: 'text', text }, model, stopReason: 'endTurn' };
        void answer(id, { action: 'sample', result });
      }}
    >
      {(isList(messages) ? messages : []).map((message, index) => (
        <div class="block" key={index}>
          <p class="block-kind">
            <b>{textOfValue(member(message, 'role'))}</b>
          </p>
          <Said content={member(message, 'content') ?? null} />
        </div>
      ))}
      <details>
        <summary>parameters</summary>
        <Json value={rest} open={2} />
      </details>
      <div class="form form-fields">
        <div class="form-field">
          <label for={`sample-${id}`}>the model's answer</label>
          <textarea
            id={`sample-${id}`}
            rows={3}
            value={text}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </div>
        <div class="form-field">
          <label for={`model-${id}`}>model</label>
          <input id={`model-${id}`} value={model} onInput={({ currentTarget }) => setModel(currentTarget.value)} />
        </div>
      </div>
      <Buttons id={id} accept="Answer" />
    </form>
  );
}

function Said({ content }: { readonly content: Plain }) {
  const text = textOfValue(member(content, 'text'));
  return text === undefined ? <Json value={content} open={2} /> : <pre>{text}</pre>;
}

/** The roots that were entered last. */
let lastRoots = '';

function RootsBody({ question: { id } }: { readonly question: ServerQuestion }) {
  const [text, setText] = useState(lastRoots);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        lastRoots = text;
        const lines = text.split('\n').map((line) => line.trim());
        void answer(id, { action: 'roots', roots: lines.filter((line) => line !== '').map((uri) => ({ uri })) });
      }}
    >
      <div class="form form-field">
        <label for={`roots-${id}`}>roots: one file: URI a line</label>
        <textarea
          id={`roots-${id}`}
          class="mono"
          rows={3}
          placeholder="file:///home/me/project"
          value={text}
          onInput={({ currentTarget }) => setText(currentTarget.value)}
        />
      </div>
      <Buttons id={id} accept="Answer" />
    </form>
  );
}
