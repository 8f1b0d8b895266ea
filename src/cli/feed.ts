import { loop, type Service } from '../service/service.ts'
import type { Store } from '../store/store.ts'
import { type Cursor, type FeedRow, feedNext, feedRest, feedStart } from './feed.sql.ts'
import { eventWords, type StageNames, stageWords } from './job-words.ts'
import { shortId } from './pick-job.ts'
import { padded, paint } from './terminal.ts'
import { clockWords, lengthWords } from './time-words.ts'

/** The live view of a database: one line for each event. */
export interface Feed extends Service {
  /** Tells what is left to tell. */
  flush(): Promise<void>
}

/** What a feed needs. */
export interface FeedOptions {
  store: Store
  /** The stages of a kind; asked again for a kind that was not known before. */
  stagesOf: (kind: string) => Promise<StageNames | undefined>
  tell: (line: string) => void
  onTrouble: (error: unknown) => void
}

const mostLines = 200
const everyMs = 150
// the log has no index by time, so a look reads more the longer it is; it may take a twentieth of the time at most
const shareOfTime = 20

/** Makes a feed. It begins with what happens after its start. */
export function makeFeed(options: FeedOptions): Feed {
  const { store, tell } = options
  const lines = makeLines(options.stagesOf)
  let cursor: Cursor | undefined

  async function flush(): Promise<void> {
    if (!cursor) return
    const rows = await store.run(feedNext, { cursor, limit: mostLines })
    for (const row of rows) {
      tell(await lines.of(row))
      cursor = { txid: row.txid, seq: row.seq }
    }
    if (rows.length === mostLines) await skip(cursor)
  }

  async function skip(from: Cursor): Promise<void> {
    const [rest] = await store.run(feedRest, { cursor: from })
    if (!rest) return
    tell(paint('dim', `… ${rest.count} more events, too many to show`))
    cursor = { txid: rest.txid, seq: rest.seq }
  }

  async function turn(): Promise<number> {
    const startedAtMs = performance.now()
    await flush()
    return Math.max(everyMs, (performance.now() - startedAtMs) * shareOfTime)
  }

  const looker = loop({ turn, onError: options.onTrouble })
  return {
    async start() {
      if (cursor) return
      const [now] = await store.run(feedStart, {})
      cursor = { txid: now?.txid ?? '0', seq: 0 }
      await looker.start()
    },
    stop: () => looker.stop(),
    flush,
  }
}

const mostRemembered = 10_000

/** Makes lines that align as far as can be known, and that tell how long it was since the last event of the same job. */
function makeLines(stagesOf: FeedOptions['stagesOf']) {
  const lastAt = new Map<string, Date>()
  const widths = { kind: 7, stage: 9 }

  function sinceLast({ job_id, at, type }: FeedRow): string {
    if (type === 'job.log') return ''
    const last = lastAt.get(job_id)
    lastAt.delete(job_id)
    lastAt.set(job_id, at)
    const [oldest] = lastAt.keys()
    if (lastAt.size > mostRemembered && oldest) lastAt.delete(oldest)
    return last ? lengthWords(at.getTime() - last.getTime()) : ''
  }

  async function of(row: FeedRow): Promise<string> {
    const stages = await stagesOf(row.kind)
    const { what, look, note } = eventWords(row, stages)
    const stage = row.attempt === 0 ? '' : stageWords(stages, row.stage)
    widths.kind = Math.max(widths.kind, row.kind.length)
    widths.stage = Math.max(widths.stage, stage.length)
    const word = padded(what, 9)
    return [
      paint('dim', clockWords(row.at)),
      padded(row.kind, widths.kind),
      shortId(row.job_id),
      look ? paint(look, word) : word,
      padded(stage, widths.stage),
      padded(row.attempt === 0 ? '' : `attempt ${row.attempt}`, 10),
      padded(sinceLast(row), 7),
      note,
    ]
      .join('  ')
      .trimEnd()
  }

  return { of }
}
