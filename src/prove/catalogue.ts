import { readdir } from 'node:fs/promises'

/** Why no cell covers some statements. */
interface LeftOut {
  matches: RegExp
  because: string
  /** Whether a scenario may send it on a busy machine, but can't be relied on to do so again. */
  isByChance?: true
}

/**
 * Statements that no cell covers, each with the reason. The proof says nothing about them. Every other statement that the product
 * declares has to occur in a scenario, so a new statement is either covered automatically or reported as not covered.
 */
export const leftOut: readonly LeftOut[] = [
  {
    matches:
      /^(api_key\.(find|list|list_tenant|create|revoke|touch)|server_secret\.read|job\.page_(live|live_tenant|running)|outcome\.page(_tenant|_default|_trouble)?|snapshot\.oldest)$/,
    because: 'It only reads, on request, or writes API keys, which no job depends on.',
  },
  {
    matches:
      /^(leader\.current|schedule\.overdue|event\.(oldest_writer|revivals|tally|browse_job|browse_tenant|place_before_end_job)|job\.(state|live)|queue\.list(_tenant)?|session\.(living|ended)|kind\.near|refusal\.last|why\.facts|orphan\.one|delivery\.(count|list_tenant)|prune\.preview|key\.gone|signal\.of_kind|bulk\.(get|list|list_skipped|count)|outcome\.group_failures(_tenant)?)$/,
    because: 'It only reads, on request.',
  },
  {
    matches: /^(migration\.lock_holder|prune\.holders)$/,
    because: 'It only reads, to name the process that holds a lock.',
  },
  {
    matches: /^(lease|barrier|waiting)\.await$/,
    because: 'It takes a lock for a moment and writes nothing. The fault `locked` at settles makes workers send it.',
    isByChance: true,
  },
  {
    matches: /^barrier\.(open_ones|waiting_jobs)$/,
    because: 'It only reads, to repair barriers one by one with statements that are tried elsewhere.',
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

/** Whether a statement that is left out may be sent all the same. */
export function isSentByChance(statement: string): boolean {
  return leftOut.some(({ matches, isByChance }) => isByChance === true && matches.test(statement))
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
