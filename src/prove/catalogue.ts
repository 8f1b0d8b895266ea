import { readdir } from 'node:fs/promises'

/**
 * Statements that no cell covers, each with its reason: of these the proof says nothing. Everything else that the product
 * declares has to occur in a scenario, so that a statement added later is covered by itself or reported as not covered.
 */
export const leftOut: readonly { matches: RegExp; because: string }[] = [
  {
    matches:
      /^(api_key\.(find|list|list_tenant|create|revoke|touch)|door\.secret|(live|finished)_job\.page(_tenant|_default|_trouble|_running)?)$/,
    because: 'It reads for a person who asks, or writes about API keys, which no job depends on.',
  },
  {
    matches:
      /^(leader\.current|event\.(oldest_writer|revivals|tally|browse_job|browse_tenant|place_before_end_job)|job\.state|queue\.list(_tenant)?|session\.(living|ended)|kind\.near|refusal\.last|why\.facts|orphan\.one|delivery\.(count|list_tenant))$/,
    because: 'It only reads, for a person who asks.',
  },
  {
    matches: /^barrier\.(open_ones|waiting_jobs)$/,
    because: 'It only reads, to heal barriers one by one by statements that are tried elsewhere.',
  },
  {
    matches: /^session\.end_owned$/,
    because:
      'A person sends it by revoking a key. If it gets lost, session.end_keyless, which is tried, does the same.',
  },
  {
    matches: /^(queue\.resume|why\.(wake|repair))$/,
    because: 'A person sends it, and may send it again: nothing follows it.',
  },
  {
    matches: /^transaction\.check$/,
    because: 'It runs in a transaction of the caller, writes nothing, and ends with it.',
  },
]

/** Rooms whose statements no worker, submitter or reaper sends. */
const onlookers = ['audit', 'bench', 'cli', 'http', 'prove', 'testing']

/** Why a statement is left out; undefined if it must be covered. */
export function reasonToLeaveOut(statement: string): string | undefined {
  return leftOut.find(({ matches }) => matches.test(statement))?.because
}

const source = new URL('../', import.meta.url)

/** The name of every statement that the product declares, found in its built *.sql files. */
export async function declaredStatements(): Promise<string[]> {
  const files = (await readdir(source, { recursive: true })).filter((path) => path.endsWith('.sql.js')).filter(isActor)
  const names = new Set<string>()
  for (const path of files) collect(await import(new URL(path.replaceAll('\\', '/'), source).href), names)
  return [...names].sort()
}

function isActor(path: string): boolean {
  return !onlookers.includes(path.split(/[/\\]/)[0] as string)
}

function collect(value: unknown, names: Set<string>): void {
  if (typeof value !== 'object' || value === null) return
  const { name, build } = value as { name?: unknown; build?: unknown }
  if (typeof name === 'string' && typeof build === 'function') {
    names.add(name)
    return
  }
  // statements may stand in a list or a table; pieces of SQL have no names and are passed by
  for (const one of Object.values(value)) collect(one, names)
}
