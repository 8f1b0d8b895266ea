import { stat } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import type { AnyJob } from '../job/define.ts'

/** Loads the job definitions that a module exports: by name, as its default, or in a list. */
export async function loadJobs(module: string): Promise<AnyJob[]> {
  const path = pathOf(module)
  const found = await stat(path).catch(() => undefined)
  if (!found) throw invalid(path, 'there is no such file')
  if (found.isDirectory()) throw invalid(path, 'it is a folder; name the file in it')
  const exported = await importFrom(path)
  const jobs = [...new Set(Object.values(exported).flat())].filter(isJob)
  if (jobs.length > 0) return jobs
  throw invalid(path, 'it exports no job; export what defineJob returned, by name or in a default list')
}

/** The file that a module argument names. */
export function pathOf(module: string): string {
  return module.startsWith('file:') ? fileURLToPath(module) : resolve(module)
}

async function importFrom(path: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(path).href)) as Record<string, unknown>
  } catch (error) {
    if ((error as { code?: unknown } | null)?.code === 'ERR_UNKNOWN_FILE_EXTENSION' && isTypeScript(path))
      throw invalid(
        path,
        `Node ${process.versions.node} cannot load TypeScript by itself; compile it and name the .js file, or run this command under tsx (\`node --import tsx …\`)`,
        error,
      )
    throw invalid(path, `it failed while it was loaded: ${messageOf(error)}`, error)
  }
}

function isTypeScript(path: string): boolean {
  return ['.ts', '.mts', '.cts', '.tsx'].includes(extname(path))
}

// by shape, not by identity: the module may have brought a copy of Holdfast of its own
function isJob(value: unknown): value is AnyJob {
  if (typeof value !== 'object' || value === null) return false
  const { kind, queue, stages } = value as Partial<AnyJob>
  return (
    typeof kind === 'string' &&
    typeof queue === 'string' &&
    Array.isArray(stages) &&
    stages.every((stage) => typeof stage?.run === 'function')
  )
}

function invalid(path: string, why: string, cause?: unknown): HoldfastError {
  return new HoldfastError('module_invalid', `The module ${path} cannot be used: ${why}.`, { cause })
}
