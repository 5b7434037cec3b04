/** The public interface of approvals: the policy of a rule, an approval as people see it, and `server.approvals`. Types only. */
import type { ApprovalState } from '../../../machines/approval.ts';
import type { JsonPrimitive } from '../../core/protocol/json.ts';

/**
 * The people who must approve. `'caller'`: the principal that calls, who consents. `{ scope }` and `{ claim }`: somebody else whose sign-in
 * has it. `{ principals }`: one of these.
 */
export type ApprovalBy =
  | 'caller'
  | { readonly scope: string }
  | { readonly claim: readonly [name: string, value: JsonPrimitive] }
  | { readonly principals: readonly string[] };

/** The decision of a rule that a call needs approval, and the option `approve` of a tool. */
export interface ApprovalPolicy {
  /** The people who must approve. Of a list, each member. */
  readonly by: ApprovalBy | readonly ApprovalBy[];
  /** The number of people who must approve for each member other than `'caller'`, 1 to 20. Default 1. */
  readonly quorum?: number | undefined;
  /** The caller counts as one of them, too, if it fits. Default false. */
  readonly self?: boolean | undefined;
  /** Milliseconds until its expiry, at most 7 days. Default: `limits.askMs` for the caller, `limits.approvalMs` for others. */
  readonly expiresMs?: number | undefined;
  /** The subject, in at most 100 characters. Default: the title of the tool. */
  readonly title?: string | undefined;
  /** More for the people who decide, in at most 1,000 characters. */
  readonly message?: string | undefined;
  /** The arguments that are shown first, by name. All others follow. */
  readonly show?: readonly string[] | undefined;
  /** A read-only tool that shows what the call would do. It gets the same arguments. `required`: without it no person is asked. */
  readonly preview?: string | { readonly tool: string; readonly required?: boolean | undefined } | undefined;
  /** Lets the person who approves remember the approval for further calls. Default: each call is asked. */
  readonly remember?: RememberPolicy | undefined;
  /** An approval counts only while the sign-in of the person who gave it is valid. Default false. */
  readonly recheck?: boolean | undefined;
}

/** The calls that a person may approve in advance: those of the tool for the same values of some arguments. */
export interface RememberPolicy {
  /** `'session'`: for calls of the same session. Otherwise milliseconds, at most 30 days. */
  readonly for: 'session' | number;
  /** The arguments whose values must be the same. Default: none, so that it holds for every call of the tool. */
  readonly match?: readonly string[] | undefined;
  /** The number of calls, at most 10,000. Default 100. */
  readonly max?: number | undefined;
  /** It holds for calls of scripts (docs/code-mode.md), too. Default false: a script has what was remembered in its own run. */
  readonly runs?: boolean | undefined;
}

declare module '../../core/messages/authorization-rule.ts' {
  interface AddedDecisions {
    /** The call runs once it is approved. `true`: by its caller. See docs/approvals.md. */
    readonly approve: { readonly approve: ApprovalPolicy | true };
  }
}

declare module '../../core/registry/define.ts' {
  interface ToolFeatureOptions<Args> {
    /** Each call waits until it is approved; `true`: by its caller. In addition to what rules demand. See docs/approvals.md. */
    readonly approve?: ApprovalPolicy | boolean | undefined;
  }
}

declare module '../../core/execution/approving.ts' {
  interface ApprovalRequest extends Pick<ApprovalPolicy, 'quorum' | 'self' | 'expiresMs' | 'recheck'> {
    /** The people who must approve. Of a list, each member. Default: the caller. */
    readonly by?: ApprovalPolicy['by'] | undefined;
  }
}

declare module '../../core/execution/execution.ts' {
  interface ToolImplementation {
    /** Undefined for a tool that does not ask for approvals itself. */
    readonly approve?: ApprovalPolicy | true | undefined;
    /** The server behind this one that offers the tool, and its name there. */
    readonly upstream?: { readonly mount: string; readonly tool: string } | undefined;
    /** A digest of what is behind the tool beside its definition, such as the address of a request: an approval is void when it changes. */
    readonly behind?: string | undefined;
  }
}

declare module '../../core/server/options.ts' {
  interface ServerOptions {
    /**
     * Called when an approval is asked and each time that its state changes, at the node where it happens: for a mail or a message
     * to the people who decide. An error of it is an incident in the log.
     */
    readonly onApproval?: ApprovalListener | undefined;
  }
}

/** The person who decides. `ctx.auth`, and what `http.authenticate` returns, are one. */
export interface Approver {
  readonly principal: string;
  /** The person behind several clients. Default: the principal. */
  readonly subject?: string | undefined;
  readonly issuer?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly claims?: Readonly<Record<string, unknown>> | undefined;
  /** The end of the sign-in, in milliseconds since 1970. */
  readonly expiresAt?: number | undefined;
}

/** One approval of a person. */
export interface GivenApproval {
  readonly principal: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The way on which it came: `client`, `api`, or the member `via` of the decision. */
  readonly via: string;
  readonly reason?: string | undefined;
}

/** An approval as people see it. */
export interface Approval {
  readonly id: string;
  readonly state: ApprovalState;
  readonly tool: string;
  /** The principal that calls. */
  readonly principal: string;
  readonly title: string;
  /** Everything that a person must see before they decide: characters that do not show are escaped. Show it whole, as plain text. */
  readonly text: string;
  /** The names of the rules that demand it. */
  readonly policies: readonly string[];
  /** The people who must approve, in words, and the number of those still missing. */
  readonly by: readonly { readonly who: string; readonly missing: number }[];
  /** True if the caller must approve, too. */
  readonly caller: boolean;
  /** Milliseconds since 1970. */
  readonly created: number;
  readonly until: number;
  readonly given: readonly GivenApproval[];
  /** The end of the approval; undefined while it is open. */
  readonly ended?: {
    readonly at: number;
    readonly principal?: string;
    readonly via?: string;
    readonly reason?: string;
  };
  /** The calls that the person who approves may approve in advance, in words; undefined if none. */
  readonly remembers?: string | undefined;
  /** The grant that approved it. */
  readonly grant?: string | undefined;
}

/** A remembered approval. */
export interface ApprovalGrant {
  readonly id: string;
  readonly tool: string;
  /** The principal whose calls it approves. */
  readonly principal: string;
  /** The calls that it approves, in words. */
  readonly text: string;
  readonly policies: readonly string[];
  readonly by: readonly string[];
  readonly created: number;
  readonly until: number;
  readonly uses: number;
  readonly max: number;
}

export interface ApprovalQuery {
  /** `open` (default): those about which people may still decide. */
  readonly state?: 'open' | 'all' | undefined;
  /** Only those of the calls of this principal. */
  readonly principal?: string | undefined;
  /** Only those about which this person may decide now. */
  readonly approver?: Approver | undefined;
  /** At most so many, the oldest first. Default 100. */
  readonly limit?: number | undefined;
}

export interface ApprovalDecision {
  readonly approver: Approver;
  readonly decision: 'approve' | 'deny';
  /** At most 500 characters. People see it; a model gets it as a quotation. */
  readonly reason?: string | undefined;
  /** Remembers it, if the policy permits. */
  readonly remember?: boolean | undefined;
  /** The way on which it came, for the audit, such as `page`. Default `api`. */
  readonly via?: string | undefined;
}

/** `server.approvals`: what waits for people, and their decisions. The server must listen. */
export interface Approvals {
  /** @throws {ApprovalError} `input`, `store` */
  list(query?: ApprovalQuery): Promise<readonly Approval[]>;
  /** One approval in any state; undefined if there is none. */
  get(id: string): Promise<Approval | undefined>;
  /**
   * Decides about an approval. One person counts once, and one denial denies.
   *
   * @throws {ApprovalError} `unknown`, `closed`, `not an approver`, `input`, `conflict`, `store`
   * @example await server.approvals.decide(id, { approver: ctx.auth, decision: 'approve' });
   */
  decide(id: string, decision: ApprovalDecision): Promise<Approval>;
  /** True if this person may decide about an approval now. */
  mayDecide(id: string, approver: Approver): Promise<boolean>;
  /**
   * Revokes a grant, or an approval whose call has not started.
   *
   * @throws {ApprovalError} `unknown`, `closed`, `conflict`, `store`
   */
  revoke(id: string, by?: { readonly principal: string; readonly reason?: string }): Promise<void>;
  /** The remembered approvals, of all principals or of one. */
  grants(query?: { readonly principal?: string; readonly limit?: number }): Promise<readonly ApprovalGrant[]>;
}

/** Called when the state of an approval changes. */
export type ApprovalListener = (approval: Approval) => void | Promise<void>;
