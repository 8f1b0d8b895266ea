import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { removeEmbedded, startEmbedded } from '#holdfast/embedded/embedded'
import { migrate } from '#holdfast/schema/migrate'

declare module 'vitest' {
  export interface ProvidedContext {
    /** The URL of the server that all tests share, to a database that no test uses. */
    server: string
    /** A migrated database without connections, so that it can be copied. */
    template: string
  }
}

/** Runs once before all tests: starts one Postgres for all of them, and creates the migrated database that each test copies. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const given = process.env.HOLDFAST_TEST_URL
  const own = given ? undefined : await startOwn()
  const server = given ?? (own as { url: string }).url
  const template = `holdfast_template_${process.pid}`
  try {
    await onServer(server, `create database ${template}`)
    await migrate(databaseUrl(server, template))
  } catch (error) {
    await own?.stop()
    throw error
  }
  project.provide('server', server)
  project.provide('template', template)
  return async () => {
    if (given) await onServer(server, `drop database ${template} with (force)`)
    await own?.stop()
  }
}

async function startOwn(): Promise<{ url: string; stop(): Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'holdfast-test-'))
  const postgres = await startEmbedded({ dir, durable: false, settings: { max_connections: '300' } })
  return {
    url: postgres.url,
    async stop() {
      await postgres.stop()
      await removeEmbedded(dir)
      await rm(dir, { recursive: true, force: true })
    },
  }
}

async function onServer(url: string, text: string): Promise<void> {
  const client = new pg.Client(url)
  await client.connect()
  await client.query(text)
  await client.end()
}

function databaseUrl(server: string, name: string): string {
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}
