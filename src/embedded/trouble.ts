import { HoldfastError } from '../errors/errors.ts'

const noSpace = /No space left on device|Disk quota exceeded/
const noProgram = /error while loading shared libraries|Library not loaded|symbol not found|not found: required by/

/** The error of a failed start as one that says what happened, to which folder, and what to do. */
export function explain(error: unknown, folder: string): unknown {
  if (error instanceof HoldfastError) return error
  const { code, syscall } = error as NodeJS.ErrnoException
  if (syscall?.startsWith('spawn')) return cannotRun(error)
  const sentence = sentences[code ?? '']
  if (!sentence) return error
  return new HoldfastError('data_folder_unusable', `${sentence} (data folder ${folder})`, { cause: error })
}

/** The error for a Postgres program that failed, from its output. */
export function explainOutput(what: string, output: string, folder: string): HoldfastError {
  if (noSpace.test(output))
    return new HoldfastError('data_folder_unusable', `${sentences.ENOSPC} (data folder ${folder})`)
  if (noProgram.test(output)) return cannotRun(new Error(output.trim()))
  const tail = output.trim().split('\n').slice(-20).join('\n')
  const words = tail ? `Its last output:\n${tail}` : 'It printed nothing, so it was probably killed. Start it again.'
  return new HoldfastError('embedded_start_failed', `${what} ${words}`, { details: { folder } })
}

const noRights =
  'The data folder is not writable. Give the user that runs Holdfast write access, or choose another folder.'
const notThere = 'The data folder cannot be created, because a file with that name exists. Choose another folder.'
const full = 'The disk of the data folder is full. Free some space, or choose a folder on another disk.'

const sentences: Record<string, string> = {
  EACCES: noRights,
  EPERM: noRights,
  EROFS: 'The data folder is on a read-only file system. Choose another folder.',
  ENOTDIR: notThere,
  EEXIST: notThere,
  ENOSPC: full,
  EDQUOT: full,
}

// a missing interpreter also shows as ENOENT: the programs need glibc, which Alpine Linux lacks
function cannotRun(cause: unknown): HoldfastError {
  return new HoldfastError(
    'embedded_unavailable',
    'The embedded Postgres cannot be run on this system: it lacks a library that Postgres needs (it is built for ' +
      'glibc), or does not allow programs to run from where it is installed. Give Holdfast the URL of a Postgres server instead.',
    { cause },
  )
}
