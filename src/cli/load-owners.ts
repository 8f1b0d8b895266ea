import { stat } from 'node:fs/promises'
import { pathToFileURL } from 'node:url'
import type { Owner } from '../barrier/owner.ts'
import type { Config } from '../config/config.ts'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import { pathOf } from './load-jobs.ts'

type Owners = Readonly<Record<string, Owner>>

/** The owners that are configured for a command: those that its module exports as `owners`, and those of the setting `ownersModule`. */
export async function loadOwners({ ownersModule }: Config, module?: string): Promise<Owners> {
  const beside = module === undefined ? undefined : await ownersIn(module)
  const own = ownersModule === undefined ? undefined : await ownersIn(ownersModule)
  if (ownersModule !== undefined && own === undefined)
    throw invalid(ownersModule, 'it exports no `owners`; export an object that maps names to owners')
  return { ...beside, ...own }
}

async function ownersIn(module: string): Promise<Owners | undefined> {
  const path = pathOf(module)
  if (!(await stat(path).catch(() => undefined))) throw invalid(module, 'the file does not exist')
  const { owners } = await imported(module, path)
  if (owners === undefined) return undefined
  if (typeof owners !== 'object' || owners === null || Array.isArray(owners))
    throw invalid(module, 'its export `owners` is not an object that maps names to owners')
  for (const [name, owner] of Object.entries(owners))
    if (!isOwner(owner))
      throw invalid(module, `owners.${name} is not an owner: it needs the functions read and markFailed`)
  return owners as Owners
}

async function imported(module: string, path: string): Promise<{ owners?: unknown }> {
  try {
    return await import(pathToFileURL(path).href)
  } catch (error) {
    throw invalid(module, `it failed to load: ${messageOf(error)}`, error)
  }
}

function isOwner(value: unknown): value is Owner {
  const { read, markFailed } = (value ?? {}) as Partial<Owner>
  return typeof read === 'function' && typeof markFailed === 'function'
}

function invalid(module: string, why: string, cause?: unknown): HoldfastError {
  return new HoldfastError('module_invalid', `Cannot use the module ${pathOf(module)} for owners: ${why}.`, {
    cause,
  })
}
