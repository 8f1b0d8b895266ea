import { announces, leadsTo, legalFrom, type MoveName, type State } from '../job/machine.ts'

/** A piece of SQL with its values; pieces nest. */
export interface Sql {
  readonly texts: readonly string[]
  readonly values: readonly unknown[]
}

/** Writes a piece of SQL. A value becomes a parameter; a piece is woven in. */
export function sql(strings: TemplateStringsArray, ...given: unknown[]): Sql {
  const texts = [strings[0] as string]
  const values: unknown[] = []
  given.forEach((value, index) => {
    const next = strings[index + 1] as string
    if (!isSql(value)) {
      values.push(value)
      texts.push(next)
      return
    }
    texts.push((texts.pop() as string) + value.texts[0])
    texts.push(...value.texts.slice(1))
    values.push(...value.values)
    texts.push((texts.pop() as string) + next)
  })
  return { texts, values }
}

function isSql(value: unknown): value is Sql {
  return typeof value === 'object' && value !== null && 'texts' in value && 'values' in value
}

/** SQL text as it stands. Only for words of our own, never for anything from outside. */
export function raw(text: string): Sql {
  return { texts: [text], values: [] }
}

/** A statement with a name that logs, pg_stat_activity and fault injection know it by. */
export interface Statement<P, Row> {
  readonly name: string
  readonly build: (params: P) => Sql
  /** Carries the row type only; holds nothing. */
  readonly row?: Row
}

/** Declares a statement. Its text may not depend on its parameters, or the server would plan it anew each time. */
export function statement<Row>() {
  return <P>(name: string, build: (params: P) => Sql): Statement<P, Row> => ({ name, build })
}

/** The text of a piece, with numbered parameters. */
export function textOf(piece: Sql): string {
  return piece.texts.reduce((text, next, index) => `${text}$${index}${next}`)
}

function quoted(words: readonly string[]): string {
  return words.map((word) => `'${word}'`).join(', ')
}

/** The guard of a move: the row must be in a state that the move may start from. */
export function legal(move: MoveName, table = 'job'): Sql {
  return raw(`${table}.state in (${quoted(legalFrom(move))})`)
}

/** The state that a move writes; a move with several ends must say which. */
export function target(move: MoveName, to?: State): Sql {
  const [first, ...others] = leadsTo(move)
  if (to === undefined && others.length > 0) throw new Error(`The move ${move} has several ends; say which.`)
  if (to !== undefined && !leadsTo(move).includes(to)) throw new Error(`The move ${move} does not lead to ${to}.`)
  return raw(`'${to ?? first}'`)
}

/** The type of the event that announces a move. */
export function eventOf(move: MoveName): Sql {
  return raw(`'${announces(move)}'`)
}

/** Those states, as a list of SQL words. */
export function stateList(words: readonly State[]): Sql {
  return raw(quoted(words))
}
