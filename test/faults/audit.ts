/** Broken builds: the audit log. */
import type { BrokenBuild } from './broken-build.ts';

const test = 'test/features/guard/audit/audit.test.ts';

export const AUDIT: readonly BrokenBuild[] = [
  {
    id: 'G-11',
    test: 'test/features/guard/audit/kill.test.ts',
    in: 'AuditedCalls.run',
    find: 'if (!started.recorded) return',
    replace: 'if (started.recorded || !started.recorded) return',
    why: 'the handler runs while the record of its start is written',
  },
  {
    id: 'G-11',
    test,
    in: 'AuditedCalls.#start',
    find: 'if (error !== undefined) return reject(notRecorded(error));',
    replace: '',
    why: 'the handler runs although the record of its start could not be kept',
  },
  {
    id: 'G-11',
    test,
    in: 'status.ts: statusOfAnswer',
    find: 'error.data === NOT_RECORDED ? 503',
    replace: 'error.data === NOT_RECORDED ? 200',
    why: 'a proxy takes a call that could not be recorded for a success',
  },
  {
    id: 'G-11',
    test,
    in: 'AuditedCalls.run',
    find: 'if (started.arguments !== args)',
    replace: 'if (started.arguments === undefined)',
    why: 'the audit records other arguments than those with which a call ran',
  },
  {
    id: 'G-12',
    test,
    in: 'traceIdOf',
    find: 'return /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}$/.exec(traceparent)?.[1];',
    replace: 'return traceparent;',
    why: 'a client writes any text into the audit log',
  },
  {
    id: 'G-12',
    test,
    in: 'AuditLog.receive',
    find: '{ rule: shortened(rule, MAX_ELEMENT) }',
    replace: '{ rule }',
    why: 'what clients send fills the memory and the disk through the reasons of rules',
  },
  {
    id: 'G-12',
    test,
    in: 'AuditedCalls.#callOf',
    find: 'argumentsDigest: this.#options.keys.ring.fingerprint(given),',
    replace: 'argumentsDigest: Object.values(given).join(),',
    why: 'the audit log contains the arguments of calls',
  },
  {
    id: 'G-12',
    test,
    in: 'Admission.#nameOf',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a file
    find: 'return `resource ${this.#resolve(operation.uri)?.element.key ?? UNKNOWN}`;',
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the text of a file
    replace: 'return `resource ${operation.uri}`;',
    why: 'the audit log contains the URIs of clients, which may contain tokens',
  },
];
