import { readdir } from 'node:fs/promises'

/**
 * Statements that no cell covers, each with the reason. The proof says nothing about them, even where a scenario sends one by chance. Every
 * other statement that the product declares has to occur in a scenario, so a new statement is either covered automatically or reported as
 * not covered.
 */
export const leftOut: readonly { matches: RegExp; because: string }[] = [
  {
    matches:
      /^(api_key\.(find|list|list_tenant|create|revoke|touch)|server_secret\.read|job\.page_(live|live_tenant|running)|outcome\.page(_tenant|_default|_trouble)?|snapshot\.oldest)$/,
    because: 'It only reads, on request, or writes API keys, which no job depends on.',
  },
  {
    matches:
      /^(leader\.current|event\.(oldest_writer|revivals|tally|browse_job|browse_tenant|place_before_end_job)|job\.(state|live)|queue\.list(_tenant)?|session\.(living|ended)|kind\.near|refusal\.last|why\.facts|orphan\.one|delivery\.(count|list_tenant)|prune\.preview|key\.gone)$/,
    because: 'It only reads, on request.',
  },
  {
    matches: /^suspect\.free_remote$/,
    because:
      'It takes a lock for a moment and writes nothing. suspect.free, which is tried, does the same for other workers.',
  },
  {
    matches: /^(migration\.lock_holder|prune\.holders)$/,
    because: 'It only reads, to name the process that holds a lock.',
  },
  {
    matches: /^(lease|barrier|waiting)\.await$/,
    because: 'It takes a lock for a moment and writes nothing. The fault `locked` at settles makes workers send it.',
  },
  {
    matches: /^((barrier|lease|session)\.open_ones|barrier\.waiting_jobs)$/,
    because: 'It only reads, to handle rows one by one with statements that are tried elsewhere.',
  },
  {
    matches: /^session\.end_owned$/,
    because:
      'It is sent when a person revokes a key. If it gets lost, session.end_keyless, which is tried, does the same.',
  },
  {
    matches: /^(queue\.resume|why\.(wake|repair))$/,
    because: 'It is sent at the request of a person, who can repeat it, and nothing depends on it.',
  },
  {
    matches: /^transaction\.check$/,
    because: 'It runs in the transaction of the caller, and writes nothing.',
  },
]

/** Rooms whose statements are not part of the system under test. */
const excludedRooms = ['audit', 'bench', 'cli', 'http', 'prove', 'testing']

/** Why a statement is left out; undefined if it must be covered. */
export function reasonToLeaveOut(statement: string): string | undefined {
  return leftOut.find(({ matches }) => matches.test(statement))?.because
}

const source = new URL('../', import.meta.url)

/** The names of all statements that the product declares, found in its built *.sql files. */
export async function declaredStatements(): Promise<string[]> {
  const files = (await readdir(source, { recursive: true }))
    .filter((path) => path.endsWith('.sql.js'))
    .filter(isUnderTest)
  const names = new Set<string>()
  for (const path of files) collect(await import(new URL(path.replaceAll('\\', '/'), source).href), names)
  return [...names].sort()
}

function isUnderTest(path: string): boolean {
  return !excludedRooms.includes(path.split(/[/\\]/)[0] as string)
}

function collect(value: unknown, names: Set<string>): void {
  if (typeof value !== 'object' || value === null) return
  const { name, build } = value as { name?: unknown; build?: unknown }
  if (typeof name === 'string' && typeof build === 'function') {
    names.add(name)
    return
  }
  // statements can be in lists and tables; pieces of SQL have no name
  for (const one of Object.values(value)) collect(one, names)
}
