import { stat } from 'node:fs/promises'
import { extname, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { HoldfastError, messageOf } from '../errors/errors.ts'
import { type AnyJob, isJob } from '../job/define.ts'

/** Loads the job definitions that a module exports: by name, as its default, in a list or in a plain object. */
export async function loadJobs(module: string): Promise<AnyJob[]> {
  const path = pathOf(module)
  const found = await stat(path).catch(() => undefined)
  if (!found) throw invalid(path, 'the file does not exist')
  if (found.isDirectory()) throw invalid(path, 'it is a folder; pass a file in it')
  const exported = Object.entries(await importFrom(path))
  const problem = exported.map(([name, value]) => exportProblem(name, value)).find((one) => one !== undefined)
  if (problem) throw invalid(path, `the export ${problem}`)
  const jobs = exported.flatMap(([, value]) => jobsIn(value))
  if (jobs.length > 0) return [...new Set(jobs)]
  throw invalid(path, 'it exports no job; export the result of defineJob, by name or in a default list')
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
        `Node ${process.versions.node} cannot load TypeScript; compile it and pass the .js file, or run this command under tsx (\`node --import tsx …\`)`,
        error,
      )
    throw invalid(path, `it failed to load: ${messageOf(error)}`, error)
  }
}

function isTypeScript(path: string): boolean {
  return ['.ts', '.mts', '.cts', '.tsx'].includes(extname(path))
}

function jobsIn(value: unknown): AnyJob[] {
  return isJob(value) ? [value] : membersOf(value).flatMap(([, member]) => (isJob(member) ? [member] : []))
}

/** The members of a list or a plain object, with the path to each. */
function membersOf(value: unknown): [way: string, member: unknown][] {
  if (Array.isArray(value)) return Array.from(value, (member, index) => [`[${index}]`, member])
  return isPlain(value) ? Object.entries(value).map(([name, member]) => [`.${name}`, member]) : []
}

function isPlain(value: unknown): value is object {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}

/** What is wrong with an export, if anything: a job that no worker runs would otherwise be noticed only in production. */
function exportProblem(name: string, value: unknown): string | undefined {
  if (isJob(value)) return undefined
  const members = membersOf(value)
  if (!members.some(([, member]) => isJob(member))) return likenessProblem(name, value)
  for (const [way, member] of members) {
    if (isJob(member)) continue
    const problem = likenessProblem(`${name}${way}`, member)
    if (problem) return problem
    if (Array.isArray(value))
      return `${name}${way} is ${kindOfValue(member)}; every element of a job list must come from defineJob`
  }
  return undefined
}

function likenessProblem(name: string, value: unknown): string | undefined {
  if (value instanceof Promise)
    return `${name} is a promise; await it in the module (\`export const ${name} = await …\`)`
  if (!isPlain(value)) return undefined
  const { kind, run, stages } = value as Record<string, unknown>
  if (typeof run !== 'function' && !(Array.isArray(stages) && stages.some(isStageLike))) return undefined
  const fields = Object.keys(value).filter((key) => key !== 'kind')
  const call = `defineJob(${typeof kind === 'string' ? JSON.stringify(kind) : '"…"'}, { ${fields.join(', ')}, … })`
  return `${name} looks like a job but was not made by defineJob; write ${call}`
}

function isStageLike(stage: unknown): boolean {
  return typeof stage === 'object' && stage !== null && ('run' in stage || 'fanOut' in stage)
}

function kindOfValue(value: unknown): string {
  return value === null || value === undefined ? String(value) : `a ${typeof value}`
}

function invalid(path: string, why: string, cause?: unknown): HoldfastError {
  return new HoldfastError('module_invalid', `Cannot use the module ${path}: ${why}.`, { cause })
}
