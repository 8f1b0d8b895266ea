import { announces, leadsTo, legalFrom, type MoveName, type State } from '../job/machine.ts'

/** A piece of SQL with its values. Pieces can be nested. */
export interface Sql {
  readonly texts: readonly string[]
  readonly values: readonly unknown[]
}

/** Makes a piece of SQL. A value becomes a parameter; a nested piece becomes part of the text. */
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

/** SQL text that is used as is. Only for text from our own code, never for input. */
export function raw(text: string): Sql {
  return { texts: [text], values: [] }
}

/** A statement. Logs, pg_stat_activity and fault injection show its name. */
export interface Statement<P, Row> {
  readonly name: string
  readonly build: (params: P) => Sql
  /** Only carries the row type. */
  readonly row?: Row
}

/** Declares a statement. Its text must not depend on its parameters, or the server would have to plan it each time. */
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

/** The state that a move writes. If the move has several, `to` says which. */
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

/** States as a list of SQL literals. */
export function stateList(words: readonly State[]): Sql {
  return raw(quoted(words))
}
