/** How much is measured: all of it, what takes two minutes, or just enough to see that the suite works. */

export interface Scale {
  readonly name: 'full' | 'quick' | 'tiny';
  /** Rounds in which all contenders have a turn, and how long one lasts. */
  readonly rounds: number;
  readonly ms: number;
  /** How long a server is called before it is measured: compilers take their time. */
  readonly warmMs: number;
  readonly inFlight: readonly number[];
  /** Idle sessions: in Troupe, and in a peer (0: none is weighed). */
  readonly sessions: number;
  readonly peerSessions: number;
  /** After how many milliseconds a session that nobody uses is at rest (docs/adr/0009 says ten seconds at most). */
  readonly restMs: number;
  /** Sizes of catalogues that are listed. */
  readonly tools: readonly number[];
  /** How often each program is started. */
  readonly starts: number;
  /** Events in one stream. */
  readonly events: number;
  /** Streams that are told of each broadcast, and broadcasts in one turn. */
  readonly streams: number;
  readonly broadcasts: number;
  /** Characters of the large argument. */
  readonly characters: number;
}

export const SCALES: Readonly<Record<Scale['name'], Scale>> = {
  full: {
    name: 'full',
    rounds: 11,
    ms: 1_000,
    warmMs: 3_000,
    inFlight: [1, 32, 256],
    sessions: 10_000,
    peerSessions: 500,
    restMs: 12_000,
    tools: [10, 100, 1_000],
    starts: 15,
    events: 1_000,
    streams: 10_000,
    broadcasts: 3,
    characters: 10_000_000,
  },
  quick: {
    name: 'quick',
    rounds: 3,
    ms: 100,
    warmMs: 400,
    inFlight: [1, 32, 256],
    sessions: 2_000,
    peerSessions: 0,
    restMs: 11_000,
    tools: [1_000],
    starts: 3,
    events: 500,
    streams: 2_000,
    broadcasts: 3,
    characters: 10_000_000,
  },
  tiny: {
    name: 'tiny',
    rounds: 1,
    ms: 20,
    warmMs: 20,
    inFlight: [1, 4],
    sessions: 20,
    peerSessions: 5,
    restMs: 0,
    tools: [10],
    starts: 1,
    events: 20,
    streams: 20,
    broadcasts: 2,
    characters: 100_000,
  },
};
