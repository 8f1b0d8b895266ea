import type pg from 'pg'
import { type Sql, textOf } from '#holdfast/postgres/sql'

interface Plan {
  'Node Type': string
  'Relation Name'?: string
  'Shared Hit Blocks': number
  'Shared Read Blocks': number
  Plans?: Plan[]
}

/** What a statement costs, and which of these tables it reads from end to end. It is rolled back. */
export async function costOf(
  client: pg.Client,
  piece: Sql,
  { mode, tables }: { mode: string; tables: readonly string[] },
): Promise<{ blocks: number; walked: (string | undefined)[] }> {
  await client.query('begin')
  try {
    await client.query(`set local plan_cache_mode = ${mode}`)
    await client.query(`prepare sampled as ${textOf(piece)}`)
    const values = piece.values.length > 0 ? `(${piece.values.map(literal).join(', ')})` : ''
    const { rows } = await client.query(`explain (analyze, buffers, format json) execute sampled ${values}`)
    const plan: Plan = rows[0]['QUERY PLAN'][0].Plan
    const walked = nodesOf(plan).filter(
      (node) => node['Node Type'] === 'Seq Scan' && tables.includes(node['Relation Name'] ?? ''),
    )
    return {
      blocks: plan['Shared Hit Blocks'] + plan['Shared Read Blocks'],
      walked: walked.map((node) => node['Relation Name']),
    }
  } finally {
    await client.query('rollback')
    await client.query('deallocate all')
  }
}

function literal(value: unknown): string {
  if (value === null) return 'null'
  if (value instanceof Date) return `'${value.toISOString()}'`
  if (Array.isArray(value)) return `'{${value.map((one) => JSON.stringify(one)).join(',')}}'`
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : `'${value}'`
}

function nodesOf(plan: Plan): Plan[] {
  return [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]
}
