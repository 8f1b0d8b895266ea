import { randomBytes } from 'node:crypto'
import { runOnce } from '../postgres/run-once.ts'
import { migrate } from '../schema/migrate.ts'
import { copyDatabase, dropDatabase, emptyTables, endConnections, tablesToEmpty } from './database-pool.sql.ts'

/** What a database starts with: an empty schema, or none. */
type Contents = 'migrated' | 'blank'

/** The databases of the cells on one server. Each cell has its own, and a migrated one is used again. */
export class DatabasePool {
  readonly #serverUrl: () => string
  readonly #prefix = `holdfast_prove_${randomBytes(4).toString('hex')}`
  readonly #template = `${this.#prefix}_template`
  readonly #existing = new Set<string>()
  readonly #lent = new Map<string, Contents>()
  readonly #idle: string[] = []
  #created = 0

  /** The server's URL is asked for each time, because a restart may move it. */
  constructor(serverUrl: () => string) {
    this.#serverUrl = serverUrl
  }

  /** Creates the database that migrated ones are copied from. */
  async prepare(): Promise<void> {
    await this.#create(this.#template, 'template0')
    await migrate(this.url(this.#template))
  }

  url(database: string): string {
    const url = new URL(this.#serverUrl())
    url.pathname = `/${database}`
    return url.href
  }

  /** Lends a database without any rows. Returns its name. */
  async lend(contents: Contents): Promise<string> {
    const name = (contents === 'migrated' && this.#idle.pop()) || (await this.#createNext(contents))
    this.#lent.set(name, contents)
    return name
  }

  // emptied rather than dropped: to drop a database the server writes out everything it has, which takes longer than a cell
  async takeBack(name: string): Promise<void> {
    if (this.#lent.get(name) === 'blank') return this.#drop(name)
    await this.endConnections(name)
    const tables = await runOnce(this.url(name), tablesToEmpty, {})
    await runOnce(this.url(name), emptyTables, { names: tables.map((table) => table.name) })
    this.#idle.push(name)
  }

  /** Ends every connection to a database. */
  async endConnections(name: string): Promise<void> {
    await runOnce(this.url(name), endConnections, {})
  }

  async dropAll(): Promise<void> {
    for (const name of this.#existing) await this.#drop(name).catch(() => {})
  }

  async #createNext(contents: Contents): Promise<string> {
    this.#created += 1
    const name = `${this.#prefix}_${this.#created}`
    await this.#create(name, contents === 'migrated' ? this.#template : 'template0')
    return name
  }

  async #create(name: string, template: string): Promise<void> {
    this.#existing.add(name)
    await runOnce(this.#serverUrl(), copyDatabase, { name, template })
  }

  async #drop(name: string): Promise<void> {
    await runOnce(this.#serverUrl(), dropDatabase, { name })
    this.#existing.delete(name)
  }
}
