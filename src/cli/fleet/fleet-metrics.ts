/** Merges the metrics of several nodes into one text for Prometheus: each time series gets the label `node`. */

/** The lines of one metric family. */
interface Family {
  readonly head: string[];
  readonly samples: string[];
}

/**
 * @param texts the text of each node, in the format of Prometheus or OpenMetrics, by the name of the node
 * @example mergeMetrics(new Map([['1', '# TYPE a gauge\na 5\n']])) // # TYPE a gauge\na{node="1"} 5\n
 */
export function mergeMetrics(texts: ReadonlyMap<string, string>): string {
  const families = new Map<string, Family>();
  let ends = false;
  for (const [node, text] of texts) {
    let family: Family = { head: [], samples: [] };
    for (const line of text.split('\n')) {
      const [, keyword, name] = /^# (HELP|TYPE|UNIT) (\S+)/.exec(line) ?? [];
      if (line === '# EOF') ends = true;
      else if (keyword !== undefined && name !== undefined) {
        family = families.get(name) ?? { head: [], samples: [] };
        families.set(name, family);
        if (!family.head.includes(line)) family.head.push(line);
      } else if (line !== '') family.samples.push(labelled(line, node));
    }
  }
  const lines = [...families.values()].flatMap(({ head, samples }) => [...head, ...samples]);
  return `${[...lines, ...(ends ? ['# EOF'] : [])].join('\n')}\n`;
}

/** Adds the label to a sample, before its own labels if it has any. */
function labelled(sample: string, node: string): string {
  const end = sample.search(/[{ ]/);
  const more = sample[end] === '{' ? `,${sample.slice(end + 1)}` : `}${sample.slice(end)}`;
  return `${sample.slice(0, end)}{node="${node}"${more}`;
}
